//! Running a plugin's script: one machine for each call, threads only while it computes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::Duration;

use dodona_plugin::{BoxFuture, CallError, ErrorCode, LogLevel, PluginLog};
use dodona_proto::PluginName;
use dodona_script::{Api, Entry, ErrorKind, Instance, Limits, Request, ScriptError, Step, Stopper};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::code::ScriptFile;
use crate::services::Services;

/// How many calls of one plugin may have a machine at the same time, waiting ones included. With
/// the memory that each may use it bounds what a plugin can hold.
const MOST_CALLS: usize = 64;

/// How many of them may compute at the same time.
const MOST_COMPUTING: usize = 4;

/// What a script may cost while it is loaded, and in a hook.
pub(super) const BRIEF: Limits = Limits {
    steps: 20_000_000,
    time: Duration::from_secs(1),
    memory_bytes: 16 << 20,
    result_bytes: 4 << 20,
};

/// What a call of a method may cost; time in which it waits for others is not its own.
pub(super) const METHOD: Limits = Limits {
    steps: 200_000_000,
    time: Duration::from_secs(5),
    memory_bytes: 32 << 20,
    result_bytes: 4 << 20,
};

static API: LazyLock<Api> = LazyLock::new(|| {
    Api::compile(include_str!("api.luau")).expect("our own script compiles, as its tests show")
});

/// A plugin's script, and the bounds of all its runs.
pub(super) struct Program {
    pub(super) facts: Facts,
    file: Arc<ScriptFile>,
    constants: Value,
    log: PluginLog,
    /// Where the script's numbers go; nowhere in a trial.
    services: Option<Services>,
    computing: Semaphore,
    alive: AtomicUsize,
}

/// What a script is told about the plugin that it is.
pub(super) struct Facts {
    pub(super) plugin: PluginName,
    pub(super) version: String,
    /// As they hold for whoever did not choose for themselves.
    pub(super) settings: Map<String, Value>,
}

/// Something to be asked of a script.
pub(super) struct Ask {
    /// The number of what was declared.
    pub(super) entry: usize,
    /// What it was declared as.
    pub(super) kind: &'static str,
    /// Its name in the log.
    pub(super) part: String,
    pub(super) arguments: Vec<Value>,
    pub(super) limits: Limits,
}

/// Who answers what a script wants.
pub(super) trait Answers: Send + Sync {
    /// The answer, or what is wrong.
    fn answer(&self, request: Request) -> BoxFuture<'_, Result<Value, String>>;
}

/// Why a script has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RunError {
    /// The script failed, at a place.
    #[error("{place}: {}", error.message)]
    Script {
        /// File and line.
        place: String,
        /// What is wrong.
        error: ScriptError,
    },
    /// Too many calls.
    #[error("{MOST_CALLS} calls of this plugin run already")]
    Busy,
    /// The script panicked the program, which is ours to mend.
    #[error("running the script failed")]
    Panicked,
}

impl Program {
    pub(super) fn new(
        file: Arc<ScriptFile>,
        facts: Facts,
        log: PluginLog,
        services: Option<Services>,
    ) -> Self {
        let constants = json!({
            "plugin": facts.plugin,
            "version": facts.version,
            "settings": facts.settings,
        });
        Self {
            facts,
            file,
            constants,
            log,
            services,
            computing: Semaphore::new(MOST_COMPUTING),
            alive: AtomicUsize::new(0),
        }
    }

    /// What the script declares. Blocks for as long as it takes to load.
    pub(super) fn declared(&self) -> Result<Vec<Entry>, RunError> {
        let instance = self.start("main").map_err(|error| self.failed(error))?;
        Ok(instance.entries())
    }

    /// Runs what was declared, from the beginning to its end.
    pub(super) async fn run(
        self: &Arc<Self>,
        ask: Ask,
        answers: &dyn Answers,
    ) -> Result<Value, RunError> {
        let _alive = self.enter()?;
        let part = ask.part.clone();
        let result = self.turns(ask, answers).await;
        if let Err(error) = &result {
            self.log.write(LogLevel::Error, &part, &error.to_string());
        }
        result
    }

    async fn turns(self: &Arc<Self>, ask: Ask, answers: &dyn Answers) -> Result<Value, RunError> {
        let program = Arc::clone(self);
        let stop = StopOnDrop::default();
        let handle = stop.handle.clone();
        let begin = move || {
            let mut instance = program.start(&ask.part)?;
            handle.has(instance.stopper());
            program.same(&instance, &ask)?;
            let step = instance.call(ask.entry, &ask.arguments, &ask.limits)?;
            Ok((instance, step))
        };
        let (mut instance, mut step) = self.compute(begin).await?;
        loop {
            let request = match step {
                Step::Done(value) => return Ok(value),
                Step::Wants(request) => request,
            };
            let answer = answers.answer(request).await;
            let go_on = move || {
                let step = instance.resume(answer)?;
                Ok((instance, step))
            };
            (instance, step) = self.compute(go_on).await?;
        }
    }

    /// Does work that computes, where that keeps nobody else waiting.
    async fn compute(
        &self,
        work: impl FnOnce() -> Result<(Instance, Step), ScriptError> + Send + 'static,
    ) -> Result<(Instance, Step), RunError> {
        let permit = self.computing.acquire().await;
        let done = tokio::task::spawn_blocking(work).await;
        drop(permit);
        match done {
            Ok(result) => result.map_err(|error| self.failed(error)),
            Err(_) => Err(RunError::Panicked),
        }
    }

    fn start(&self, part: &str) -> Result<Instance, ScriptError> {
        let (log, part) = (self.log.clone(), part.to_owned());
        let plugin = self.facts.plugin.clone();
        let services = self.services.clone();
        let told = move |name: &str, arguments: &[Value]| {
            let said = |index: usize| arguments.get(index).and_then(Value::as_str);
            if name != "log" {
                let value = arguments.get(1).and_then(Value::as_f64).unwrap_or(f64::NAN);
                let metric = said(0).unwrap_or_default();
                let done = services
                    .as_ref()
                    .map(|one| one.measure(name, metric, value));
                if let Some(Err(why)) = done {
                    log.write(LogLevel::Warning, &part, &why);
                }
                return;
            }
            let (level, text) = (said(0).unwrap_or_default(), said(1).unwrap_or_default());
            log.write(level_of(level), &part, text);
            tracing::debug!(plugin = %plugin, part, "{text}");
        };
        Instance::start(
            &API,
            &self.file.script,
            &self.constants,
            Arc::new(told),
            &BRIEF,
        )
    }

    /// A script that declares something else each time cannot be asked by number.
    fn same(&self, instance: &Instance, ask: &Ask) -> Result<(), ScriptError> {
        let entries = instance.entries();
        match entries.get(ask.entry) {
            Some(entry) if entry.kind == ask.kind => Ok(()),
            _ => Err(ScriptError {
                kind: ErrorKind::Runtime,
                message: "the script declares something else than when it was activated".to_owned(),
                line: None,
            }),
        }
    }

    fn failed(&self, error: ScriptError) -> RunError {
        let name = &self.file.name;
        let place = match error.line {
            Some(line) => format!("{name}:{line}"),
            None => name.clone(),
        };
        RunError::Script { place, error }
    }

    /// The script's file, below the plugin's directory.
    pub(super) fn file_name(&self) -> &str {
        &self.file.name
    }

    /// What the script wrote to its log.
    pub(super) fn log(&self) -> &PluginLog {
        &self.log
    }

    /// File and line of something declared.
    pub(super) fn place(&self, entry: &Entry) -> String {
        match entry.line {
            Some(line) => format!("{}:{line}", self.file.name),
            None => self.file.name.clone(),
        }
    }

    fn enter(self: &Arc<Self>) -> Result<Alive, RunError> {
        let alive = Alive(Arc::clone(self));
        match self.alive.fetch_add(1, SeqCst) < MOST_CALLS {
            true => Ok(alive),
            false => Err(RunError::Busy),
        }
    }
}

fn level_of(name: &str) -> LogLevel {
    match name {
        "debug" => LogLevel::Debug,
        "warning" => LogLevel::Warning,
        "error" => LogLevel::Error,
        _ => LogLevel::Info,
    }
}

/// Counts a call for as long as it lives.
struct Alive(Arc<Program>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, SeqCst);
    }
}

/// Ends a script whose caller is gone, wherever it is.
#[derive(Default)]
struct StopOnDrop {
    handle: StopHandle,
}

#[derive(Clone, Default)]
struct StopHandle {
    gone: Arc<AtomicBool>,
    stopper: Arc<OnceLock<Stopper>>,
}

impl StopHandle {
    /// Says how to stop; at once, if the caller is gone already.
    fn has(&self, stopper: Stopper) {
        let stopper = self.stopper.get_or_init(|| stopper);
        if self.gone.load(SeqCst) {
            stopper.stop();
        }
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.handle.gone.store(true, SeqCst);
        if let Some(stopper) = self.handle.stopper.get() {
            stopper.stop();
        }
    }
}

impl RunError {
    /// The error as callers of a method see it.
    pub(super) fn to_call_error(&self, method: &str, plugin: &PluginName) -> CallError {
        let message = format!("`{method}` failed: {self}");
        let code = match self {
            Self::Busy => ErrorCode::TooManyCalls,
            Self::Panicked => ErrorCode::Internal,
            Self::Script { error, .. } => match error.kind {
                ErrorKind::Steps | ErrorKind::Time => ErrorCode::DeadlineExceeded,
                ErrorKind::Memory => ErrorCode::TooLarge,
                ErrorKind::Stopped => ErrorCode::Cancelled,
                _ => ErrorCode::Plugin(format!("{plugin}.failed").into()),
            },
        };
        let error = CallError::new(code, message);
        match self {
            Self::Script { .. } => error.hint(format!("run `dodona plugins logs {plugin}`")),
            _ => error,
        }
    }
}
