//! A child process, under its guard.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::{LogLevel, PluginLog};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Program;
use super::ended::Ended;
use crate::text;

/// How long a guard may take to end everything once it was told to.
const TOLD: Duration = Duration::from_secs(3);

/// How long to read standard error after the process ended. A process that detached itself from
/// the guard can hold it open for ever.
const DRAIN_STDERR: Duration = Duration::from_secs(1);

/// The longest line of standard error that is looked at in one piece.
const LINE: u64 = 8 * 1024;

/// What of our environment a server gets to see: enough to run, and nothing that is a secret.
const PASSED_ON: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    // Without these programs do not start on Windows.
    "APPDATA",
    "COMSPEC",
    "LOCALAPPDATA",
    "PATHEXT",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "WINDIR",
];

/// How this program is started as a guard.
#[derive(Debug, Clone)]
pub struct GuardCommand {
    program: PathBuf,
    args: Vec<OsString>,
}

impl GuardCommand {
    /// A program that calls [`run_guard`](crate::run_guard) when it is started with these words
    /// and then the server's command.
    pub fn new(program: impl Into<PathBuf>, args: impl IntoIterator<Item = OsString>) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().collect(),
        }
    }

    /// The running program, also when its file was replaced meanwhile.
    pub fn this_program(args: impl IntoIterator<Item = OsString>) -> Self {
        let same = Path::new("/proc/self/exe");
        let program = match same.exists() {
            true => same.to_owned(),
            false => std::env::current_exe().unwrap_or_else(|_| "dodona".into()),
        };
        Self::new(program, args)
    }
}

/// A process that was started: its pipes, and what is known of it.
pub(crate) struct Process {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) keeper: Keeper,
}

/// The way to a process that runs. It ends on its own once its input is closed; [`Keeper::end`] is
/// for when that should not be waited for.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    pub(crate) pid: Option<u32>,
    end: CancellationToken,
    gone: CancellationToken,
}

/// What a process is started with.
pub(crate) struct Start<'a> {
    pub(crate) guard: &'a GuardCommand,
    pub(crate) program: &'a Program,
    pub(crate) directory: &'a Path,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) log: PluginLog,
    pub(crate) ended: Arc<Ended>,
}

impl Process {
    /// Starts a server. What it writes to standard error goes to the plugin's log.
    pub(crate) fn start(start: Start<'_>) -> Result<Self, String> {
        let mut command = command(&start);
        let mut child = command
            .spawn()
            .map_err(|error| format!("its guard could not be started: {error}"))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("its pipes are missing".to_owned());
        };
        let stderr = child.stderr.take();
        let stderr = stderr.map(|stderr| tokio::spawn(log_stderr(stderr, start.log.clone())));
        let keeper = Keeper {
            pid: child.id(),
            end: CancellationToken::new(),
            gone: CancellationToken::new(),
        };
        tokio::spawn(keep(child, stderr, keeper.clone(), start.log, start.ended));
        Ok(Self {
            stdin,
            stdout,
            keeper,
        })
    }
}

fn command(start: &Start<'_>) -> Command {
    let mut command = Command::new(&start.guard.program);
    let passed_on = PASSED_ON
        .iter()
        .filter_map(|name| Some((*name, std::env::var_os(name)?)));
    command
        .args(&start.guard.args)
        .arg("--")
        .arg(&start.program.program)
        .args(&start.program.args)
        .env_clear()
        .envs(passed_on)
        .envs(start.env.iter().map(|(name, value)| (name, value)))
        .current_dir(start.directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A group of its own: a Ctrl-C at our terminal is ours, and the group can be ended as a whole.
    #[cfg(unix)]
    command.process_group(0);
    command
}

impl Keeper {
    /// Ends the process and everything below it, now.
    pub(crate) fn end(&self) {
        self.end.cancel();
    }

    /// Waits until nothing of it is left.
    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Waits for it to end by itself, for a moment; then ends it.
    pub(crate) async fn gone_within(&self, patience: Duration) {
        if tokio::time::timeout(patience, self.gone()).await.is_err() {
            self.end();
            self.gone().await;
        }
    }
}

/// Owns a guard's process until it is gone.
async fn keep(
    mut child: Child,
    stderr: Option<JoinHandle<()>>,
    keeper: Keeper,
    log: PluginLog,
    ended: Arc<Ended>,
) {
    let status = tokio::select! {
        status = child.wait() => Some(status),
        () = keeper.end.cancelled() => None,
    };
    let status = match status {
        Some(status) => status,
        None => {
            tell(&child, End::Everything);
            match tokio::time::timeout(TOLD, child.wait()).await {
                Ok(status) => status,
                Err(_) => {
                    tell(&child, End::Group);
                    child.wait().await
                }
            }
        }
    };
    let told = match &status {
        Ok(status) => format!("the process ended ({status})"),
        Err(error) => format!("the process was lost: {error}"),
    };
    // A guard that was killed could not end what it guarded. Its number is its group's for as long
    // as anybody is in the group, and nobody else's.
    if !status.is_ok_and(|status| status.code().is_some()) {
        end_group(keeper.pid);
    }
    // The last lines of standard error say why the process ended, and the reason that is reported
    // quotes them. They can still be in the pipe when the exit status is known.
    if let Some(stderr) = stderr {
        let _ = tokio::time::timeout(DRAIN_STDERR, stderr).await;
    }
    log.write(LogLevel::Info, "server", &told);
    ended.because(&told);
    keeper.gone.cancel();
}

enum End {
    /// The guard ends everything below it and then itself.
    Everything,
    /// The group is killed, guard included.
    Group,
}

#[cfg(unix)]
fn tell(child: &Child, end: End) {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};
    // While it has not been waited for, the number is its own.
    let Some(pid) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else {
        return;
    };
    let _ = match end {
        End::Everything => kill_process(pid, Signal::TERM),
        End::Group => kill_process_group(pid, Signal::KILL),
    };
}

#[cfg(unix)]
fn end_group(pid: Option<u32>) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = pid.and_then(|id| Pid::from_raw(id.cast_signed())) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn tell(_: &Child, _: End) {}

#[cfg(not(unix))]
fn end_group(_: Option<u32>) {}

/// Copies standard error to the plugin's log until it is closed. Lines longer than [`LINE`] are split.
async fn log_stderr(stderr: ChildStderr, log: PluginLog) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                log.write(LogLevel::Info, "stderr", text.trim_end());
            }
        }
    }
}

/// A reason, and the last line that the process wrote to standard error.
pub(crate) fn with_last_words(why: &str, log: &PluginLog) -> String {
    let lines = log.last(50);
    let last = lines.iter().rev().find(|line| line.part == "stderr");
    match last {
        Some(line) => format!("{why}; it said: {}", text::line(&line.text, 300)),
        None => why.to_owned(),
    }
}
