//! Keeps a process running: restarts it when it ends.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dodona_plugin::{LogLevel, PluginLog};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::host::Host;
use super::peer::{Limits, Peer};
use super::scope::Scope;
use crate::child::{Ended, GuardCommand, Process, Program, Start, pause_after, with_last_words};

/// The version of the protocol.
const PROTOCOL: u32 = 1;

/// A process that ran for so long did not fail at its start.
const STEADY: Duration = Duration::from_secs(60);

/// A request waits for a process that is to be started again within so much time.
const PATIENCE: Duration = Duration::from_secs(5);

/// What it takes to start a process.
pub(super) struct Plan {
    pub(super) program: Program,
    pub(super) guard: GuardCommand,
    pub(super) env: Vec<(String, String)>,
    pub(super) data_dir: PathBuf,
    pub(super) start_timeout: Duration,
    pub(super) limits: Limits,
    pub(super) host: Arc<Host>,
    pub(super) log: PluginLog,
    /// The parameters of the first message to the process.
    pub(super) greeting: Value,
}

/// How a process is.
#[derive(Clone)]
enum State {
    Starting,
    Up(Arc<Peer>),
    Down { why: Arc<str>, again: Instant },
    Stopped,
}

/// A process that is kept until this is stopped or dropped.
pub(super) struct Runner {
    state: watch::Receiver<State>,
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Runner {
    /// Starts the process; it must answer `initialize` now.
    pub(super) async fn start(plan: Plan) -> Result<Self, String> {
        let first = start(&plan).await?;
        let (tell, state) = watch::channel(State::Up(Arc::clone(&first)));
        let stop = CancellationToken::new();
        let task = tokio::spawn(keep(plan, first, tell, stop.clone()));
        Ok(Self {
            state,
            stop,
            task: Mutex::new(Some(task)),
        })
    }

    /// The process, once it runs. The caller bounds the time.
    pub(super) async fn peer(&self) -> Result<Arc<Peer>, String> {
        let mut state = self.state.clone();
        loop {
            let now = state.borrow_and_update().clone();
            match now {
                State::Up(peer) if !peer.ended.is_over() => return Ok(peer),
                State::Stopped => return Err("it was stopped".to_owned()),
                State::Down { why, again } if again > Instant::now() + PATIENCE => {
                    let seconds = again.saturating_duration_since(Instant::now()).as_secs();
                    return Err(format!("{why}; the next try is in {seconds} s"));
                }
                _ => {}
            }
            if state.changed().await.is_err() {
                return Err("it was stopped".to_owned());
            }
        }
    }

    /// Ends the process. Returns when nothing of it is left.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Starts a process and waits until it has answered `initialize`.
async fn start(plan: &Plan) -> Result<Arc<Peer>, String> {
    let ended = Arc::new(Ended::default());
    let directory = plan.program.directory.as_ref().unwrap_or(&plan.data_dir);
    if !directory.is_dir() {
        return Err(format!("there is no directory {}", directory.display()));
    }
    let process = Process::start(Start {
        guard: &plan.guard,
        program: &plan.program,
        directory,
        env: plan.env.clone(),
        log: plan.log.clone(),
        ended: Arc::clone(&ended),
    })?;
    let peer = Peer::open(
        process,
        ended,
        Arc::clone(&plan.host),
        plan.limits,
        plan.log.clone(),
    );
    let mut greeting = plan.greeting.clone();
    greeting["protocol"] = json!(PROTOCOL);
    let initializing = peer.request("initialize", greeting, Scope::Start);
    let why = match tokio::time::timeout(plan.start_timeout, initializing).await {
        Ok(Ok(_)) => return Ok(peer),
        Ok(Err(failure)) => format!("`initialize` failed: {failure}"),
        Err(_) => {
            let seconds = plan.start_timeout.as_secs_f32();
            format!("it did not answer `initialize` within {seconds} s")
        }
    };
    // What it writes from here on, it writes because it is ended.
    let why = with_last_words(&why, &plan.log);
    peer.close().await;
    Err(why)
}

/// Stays with a process, and starts another when it ends.
async fn keep(plan: Plan, first: Arc<Peer>, state: watch::Sender<State>, stop: CancellationToken) {
    let (mut peer, mut began, mut failures) = (Some(first), Instant::now(), 0_u32);
    loop {
        let why = match peer.take() {
            Some(peer) => {
                let is_stopped = stop.run_until_cancelled(peer.ended.wait()).await.is_none();
                let why = peer.ended.why();
                peer.close().await;
                if is_stopped {
                    break;
                }
                why
            }
            None => {
                began = Instant::now();
                state.send_replace(State::Starting);
                match stop.run_until_cancelled(start(&plan)).await {
                    None => break,
                    Some(Ok(started)) => {
                        plan.log
                            .write(LogLevel::Info, "process", "it was started again");
                        state.send_replace(State::Up(Arc::clone(&started)));
                        peer = Some(started);
                        continue;
                    }
                    Some(Err(why)) => why,
                }
            }
        };
        if began.elapsed() >= STEADY {
            failures = 0;
        }
        let pause = pause_after(failures);
        failures = failures.saturating_add(1);
        let told = format!("it is down: {why}; the next try is in {pause:?}");
        plan.log.write(LogLevel::Warning, "process", &told);
        let again = Instant::now() + pause;
        let why = why.into();
        state.send_replace(State::Down { why, again });
        let waiting = tokio::time::sleep_until(again);
        if stop.run_until_cancelled(waiting).await.is_none() {
            break;
        }
    }
    state.send_replace(State::Stopped);
}
