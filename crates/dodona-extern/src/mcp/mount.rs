//! A server that is kept: started when it is needed, started anew when it ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dodona_plugin::{
    CallCtx, CallError, ErrorCode, Handler, LogLevel, Method, MethodHost, PluginLog,
};
use dodona_proto::PluginName;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::cache::{Cache, Known};
use super::call::{self, Leaving};
use super::config::ServerConfig;
use super::extras;
use super::result;
use super::session::{Plan, Session};
use super::tools::{self, Offered};
use crate::child::{pause_after, with_last_words};

/// A server that ran for so long did not fail at its start.
const STEADY: Duration = Duration::from_secs(60);

/// A call waits for a server that is to be tried again within so much time, and does not ask for
/// another try sooner.
const PATIENCE: Duration = Duration::from_secs(5);

/// Changes of the tools that follow each other within so much time are one.
const SETTLE: Duration = Duration::from_millis(200);

/// How a server is.
#[derive(Clone)]
enum State {
    /// It was not needed so far.
    Asleep,
    /// It is being started.
    Starting,
    /// It can be called.
    Up(Arc<Session>),
    /// It failed, and is to be tried again.
    Down { why: Arc<str>, again: Instant },
    /// It is not to be started again.
    Stopped,
}

/// What the methods of a server share.
pub(crate) struct Calls {
    plugin: PluginName,
    state: watch::Receiver<State>,
    wanted: Arc<Notify>,
    config: ServerConfig,
    log: PluginLog,
}

impl Calls {
    /// How large a result may be.
    pub(crate) fn most(&self) -> usize {
        self.config.max_output
    }

    /// The connection, once it stands.
    pub(crate) async fn session(&self, ctx: &CallCtx) -> Result<Arc<Session>, CallError> {
        let mut state = self.state.clone();
        let mut is_told = false;
        loop {
            let now = state.borrow_and_update().clone();
            match now {
                State::Up(session) if !session.line.ended.is_over() => return Ok(session),
                State::Stopped => return Err(self.stopped()),
                State::Down { why, again } if again > Instant::now() + PATIENCE => {
                    self.wanted.notify_one();
                    return Err(self.down(&why, again));
                }
                _ => self.wanted.notify_one(),
            }
            if !is_told {
                is_told = true;
                ctx.progress(format!("starting the server of {}", self.plugin), None)
                    .await?;
            }
            if state.changed().await.is_err() {
                return Err(self.stopped());
            }
        }
    }

    fn stopped(&self) -> CallError {
        let message = format!("the server of `{}` was stopped", self.plugin);
        CallError::new(ErrorCode::PluginNotActive, message)
    }

    fn down(&self, why: &str, again: Instant) -> CallError {
        let seconds = again.saturating_duration_since(Instant::now()).as_secs();
        let plugin = &self.plugin;
        let message = format!("the server of `{plugin}` does not run: {why}");
        CallError::plugin("mcp.not_running", message)
            .retry(true)
            .hint(format!(
                "it is tried again in {seconds} s; `dodona plugins logs {plugin}` tells more"
            ))
    }

    /// Everything the server brings, as methods.
    pub(crate) fn methods(self: &Arc<Self>, known: &Known) -> (Vec<Method>, Vec<Offered>) {
        let (offered, left_out) = tools::offer(&self.plugin, known.tools.clone(), &self.config);
        for why in left_out {
            self.log.write(LogLevel::Warning, "tools", &why);
        }
        let mut methods: Vec<Method> = offered.iter().map(|one| self.method(one)).collect();
        methods.extend(extras::methods(
            &self.plugin,
            &known.capabilities,
            self,
            self.config.timeout,
        ));
        (methods, offered)
    }

    fn method(self: &Arc<Self>, offered: &Offered) -> Method {
        let (calls, offered) = (Arc::clone(self), Arc::new(offered.clone()));
        let descriptor = offered.descriptor.clone();
        let handler = Handler::Unary(Arc::new(move |ctx: CallCtx, params| {
            let (calls, offered) = (Arc::clone(&calls), Arc::clone(&offered));
            Box::pin(async move {
                let session = calls.session(&ctx).await?;
                let arguments = params.as_object().cloned().unwrap_or_default();
                let leaving = Leaving {
                    on_cancel: calls.config.on_cancel,
                    log: calls.log.clone(),
                };
                let result = call::call(&session, &ctx, &offered.tool, arguments, &leaving).await?;
                result::value(&offered, result, calls.most())
            })
        }));
        Method::from_parts(descriptor, handler).rendered(result::render)
    }
}

/// A server that is kept until this is dropped or stopped.
pub(crate) struct Mount {
    stop: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// What it takes to mount a server.
pub(crate) struct Mounting {
    pub(crate) plugin: PluginName,
    pub(crate) plan: Plan,
    pub(crate) cache: Cache,
    pub(crate) host: Arc<dyn MethodHost>,
    /// The connection, if the server was started before.
    pub(crate) opened: Option<Opened>,
}

/// A connection, and what the server offers over it.
pub(crate) type Opened = (Arc<Session>, Known);

impl Mount {
    /// Mounts a server and tells what it brings. One that is known from an earlier time is started
    /// when it is first needed; one that is not must answer now.
    pub(crate) async fn start(mounting: Mounting) -> Result<(Self, Vec<Method>), String> {
        let (known, session) = match (mounting.opened, mounting.cache.read()) {
            (Some((session, known)), _) => (known, Some(session)),
            (None, Some(known)) => (known, None),
            (None, None) => {
                let (session, known) = open(&mounting.plan).await?;
                mounting.cache.write(&known);
                (known, Some(session))
            }
        };
        let (tell, state) = watch::channel(State::Asleep);
        let wanted = Arc::new(Notify::new());
        let calls = Arc::new(Calls {
            plugin: mounting.plugin,
            state,
            wanted: Arc::clone(&wanted),
            config: mounting.plan.config.clone(),
            log: mounting.plan.log.clone(),
        });
        let (methods, offered) = calls.methods(&known);
        let stop = CancellationToken::new();
        let keeping = Keeping {
            plan: mounting.plan,
            cache: mounting.cache,
            host: mounting.host,
            calls,
            state: tell,
            wanted,
            stop: stop.clone(),
            offered,
            capabilities: known.capabilities,
        };
        let task = Mutex::new(Some(tokio::spawn(keeping.run(session))));
        Ok((Self { stop, task }, methods))
    }

    /// Ends the server. Returns when nothing of it is left.
    pub(crate) async fn stop(&self) {
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

impl Drop for Mount {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Connects, and asks what there is.
pub(crate) async fn open(plan: &Plan) -> Result<Opened, String> {
    let session = Session::connect(plan).await?;
    let asked = tokio::time::timeout(plan.config.start_timeout, session.tools()).await;
    let tools = asked.unwrap_or_else(|_| Err("it did not list its tools in time".to_owned()));
    match tools {
        Ok(tools) => {
            let info = session.info();
            let capabilities = info
                .map(|info| info.capabilities.clone())
                .unwrap_or_default();
            let known = Known {
                tools,
                capabilities,
            };
            Ok((Arc::new(session), known))
        }
        Err(why) => {
            let why = with_last_words(&why, &plan.log);
            session.close().await;
            Err(why)
        }
    }
}

/// The task that keeps a server.
struct Keeping {
    plan: Plan,
    cache: Cache,
    host: Arc<dyn MethodHost>,
    calls: Arc<Calls>,
    state: watch::Sender<State>,
    wanted: Arc<Notify>,
    stop: CancellationToken,
    offered: Vec<Offered>,
    capabilities: rmcp::model::ServerCapabilities,
}

impl Keeping {
    async fn run(mut self, first: Option<Arc<Session>>) {
        let stop = self.stop.clone();
        let mut failures = 0_u32;
        let mut session = first;
        if session.is_none()
            && stop
                .run_until_cancelled(self.wanted.notified())
                .await
                .is_none()
        {
            return self.stopped();
        }
        loop {
            let began = Instant::now();
            let why = match self.bring(session.take()).await {
                Ok(session) => {
                    self.attend(&session).await;
                    session.close().await;
                    session.line.ended.why()
                }
                Err(why) => why,
            };
            if stop.is_cancelled() {
                return self.stopped();
            }
            if began.elapsed() >= STEADY {
                failures = 0;
            }
            let pause = pause_after(failures);
            failures = failures.saturating_add(1);
            self.log(
                LogLevel::Warning,
                &format!("it is down: {why}; the next try is in {pause:?}"),
            );
            if stop
                .run_until_cancelled(self.pause(&why, pause))
                .await
                .is_none()
            {
                return self.stopped();
            }
        }
    }

    /// The session, made if there is none, with methods as it has them.
    async fn bring(&mut self, session: Option<Arc<Session>>) -> Result<Arc<Session>, String> {
        let session = match session {
            Some(session) => session,
            None => {
                self.state.send_replace(State::Starting);
                let opening = self.stop.run_until_cancelled(open(&self.plan)).await;
                let (session, known) =
                    opening.unwrap_or_else(|| Err("it was stopped".to_owned()))?;
                self.install(known).await;
                session
            }
        };
        self.state.send_replace(State::Up(Arc::clone(&session)));
        Ok(session)
    }

    /// Stays with a session until it ends or is to end, and follows its changes.
    async fn attend(&mut self, session: &Arc<Session>) {
        let stop = self.stop.clone();
        let listening = session.listen();
        tokio::pin!(listening);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = &mut listening => return,
                () = session.line.ended.wait() => return,
                () = session.line.changed.notified() => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = session.line.ended.wait() => return,
                () = self.follow(session) => {}
            }
        }
    }

    /// Asks for the tools anew.
    async fn follow(&mut self, session: &Arc<Session>) {
        tokio::time::sleep(SETTLE).await;
        let asking = tokio::time::timeout(self.plan.config.start_timeout, session.tools());
        match asking.await {
            Ok(Ok(tools)) => {
                let capabilities = self.capabilities.clone();
                self.install(Known {
                    tools,
                    capabilities,
                })
                .await;
            }
            Ok(Err(why)) => self.log(LogLevel::Warning, &format!("its tools changed: {why}")),
            Err(_) => self.log(
                LogLevel::Warning,
                "its tools changed, and it does not list them",
            ),
        }
    }

    /// Puts other methods in the place of those that are there, if they are others.
    async fn install(&mut self, known: Known) {
        let (methods, offered) = self.calls.methods(&known);
        let is_same = self.capabilities == known.capabilities;
        let told = match tools::difference(&self.offered, &offered) {
            None if is_same => return,
            None => "it can do something else".to_owned(),
            Some(told) => told,
        };
        self.log(LogLevel::Info, &told);
        self.cache.write(&known);
        self.capabilities = known.capabilities;
        self.offered = offered;
        let replacing = self.stop.run_until_cancelled(self.host.replace(methods));
        if let Some(Err(why)) = replacing.await {
            self.log(
                LogLevel::Error,
                &format!("its methods stay as they were: {why}"),
            );
        }
    }

    /// Waits until the next try. Somebody who needs the server may cut a long pause short.
    async fn pause(&self, why: &str, pause: Duration) {
        let again = Instant::now() + pause;
        let why = why.into();
        self.state.send_replace(State::Down { why, again });
        let soon = async {
            tokio::time::sleep(PATIENCE).await;
            self.wanted.notified().await;
        };
        tokio::select! {
            () = tokio::time::sleep_until(again) => {}
            () = soon => {}
        }
    }

    fn stopped(self) {
        self.state.send_replace(State::Stopped);
    }

    fn log(&self, level: LogLevel, text: &str) {
        self.plan.log.write(level, "server", text);
    }
}
