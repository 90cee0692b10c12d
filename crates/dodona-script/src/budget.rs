//! Steps and time of a run.
//!
//! Luau asks at every call, return and round of a loop whether to go on, also inside of coroutines,
//! `pcall` and pattern matching. Once a limit was reached, every answer is no: a script that catches
//! the error meets it again at the next call, and a run that was stopped once has failed, whatever
//! it returns.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::error::{ErrorKind, ScriptError};

/// What a run ran out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Limit {
    #[error("the script does more steps than it may")]
    Steps,
    #[error("the script takes longer than it may")]
    Time,
    #[error("the script was stopped")]
    Stopped,
}

impl Limit {
    pub(crate) fn error(self) -> ScriptError {
        let kind = match self {
            Self::Steps => ErrorKind::Steps,
            Self::Time => ErrorKind::Time,
            Self::Stopped => ErrorKind::Stopped,
        };
        ScriptError::new(kind, self.to_string())
    }
}

/// Shared with the virtual machine's interrupt; one thread uses it at a time.
#[derive(Debug)]
pub(crate) struct Budget {
    epoch: Instant,
    steps: AtomicU64,
    /// Nanoseconds since the epoch.
    deadline: AtomicU64,
    /// What was left of the time when the run began to wait.
    left: AtomicU64,
    /// Set from any thread.
    stopped: AtomicBool,
    /// 0, or what was reached first.
    reached: AtomicU8,
    /// The line of the script where it was reached, or 0.
    line: AtomicUsize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self {
            epoch: Instant::now(),
            steps: AtomicU64::new(0),
            deadline: AtomicU64::new(0),
            left: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            reached: AtomicU8::new(0),
            line: AtomicUsize::new(0),
        }
    }

    /// Begins a run.
    pub(crate) fn begin(&self, steps: u64, time: Duration) {
        let deadline = self.epoch.elapsed().saturating_add(time);
        self.steps.store(steps, Relaxed);
        self.deadline.store(nanos(deadline), Relaxed);
        self.reached.store(0, Relaxed);
        self.line.store(0, Relaxed);
    }

    /// Stands still while the run waits for the program around it.
    pub(crate) fn pause(&self) {
        let now = nanos(self.epoch.elapsed());
        let left = self.deadline.load(Relaxed).saturating_sub(now);
        self.left.store(left, Relaxed);
    }

    /// Goes on after a wait, with the time that was left.
    pub(crate) fn go_on(&self) {
        let now = nanos(self.epoch.elapsed());
        let deadline = now.saturating_add(self.left.load(Relaxed));
        self.deadline.store(deadline, Relaxed);
    }

    /// Ends the run at its next step, for good.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// When the run has to end.
    pub(crate) fn deadline(&self) -> Instant {
        self.epoch + Duration::from_nanos(self.deadline.load(Relaxed))
    }

    pub(crate) fn reached(&self) -> Option<Limit> {
        match self.reached.load(Relaxed) {
            0 => None,
            1 => Some(Limit::Steps),
            2 => Some(Limit::Time),
            _ => Some(Limit::Stopped),
        }
    }

    /// Remembers where the limit was reached first.
    pub(crate) fn note_line(&self, line: Option<usize>) {
        if let (0, Some(line)) = (self.line.load(Relaxed), line) {
            self.line.store(line, Relaxed);
        }
    }

    /// The error of a run that reached a limit.
    pub(crate) fn error(&self) -> Option<ScriptError> {
        let line = Some(self.line.load(Relaxed)).filter(|line| *line > 0);
        let limit = self.reached()?;
        Some(ScriptError {
            line,
            ..limit.error()
        })
    }

    /// Pays for one step.
    pub(crate) fn step(&self) -> Result<(), Limit> {
        if let Some(limit) = self.reached() {
            return Err(limit);
        }
        if self.stopped.load(Relaxed) {
            self.reached.store(3, Relaxed);
            return Err(Limit::Stopped);
        }
        let Some(left) = self.steps.load(Relaxed).checked_sub(1) else {
            self.reached.store(1, Relaxed);
            return Err(Limit::Steps);
        };
        self.steps.store(left, Relaxed);
        self.check_time()
    }

    /// The clock is read at every step, because one step may be a function that takes long.
    pub(crate) fn check_time(&self) -> Result<(), Limit> {
        if nanos(self.epoch.elapsed()) > self.deadline.load(Relaxed) {
            self.reached.store(2, Relaxed);
            return Err(Limit::Time);
        }
        Ok(())
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
