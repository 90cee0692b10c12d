//! Steps and time of a run.
//!
//! Luau asks at every call, return and round of a loop whether to go on, also inside of coroutines,
//! `pcall` and pattern matching. Once a limit was reached, every answer is no: a script that catches
//! the error meets it again at the next call, and a run that was stopped once has failed, whatever
//! it returns.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::error::{ErrorKind, ScriptError};

/// What a run ran out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Limit {
    #[error("the script does more steps than it may")]
    Steps,
    #[error("the script takes longer than it may")]
    Time,
}

impl Limit {
    pub(crate) fn error(self) -> ScriptError {
        let kind = match self {
            Self::Steps => ErrorKind::Steps,
            Self::Time => ErrorKind::Time,
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

    /// When the run has to end.
    pub(crate) fn deadline(&self) -> Instant {
        self.epoch + Duration::from_nanos(self.deadline.load(Relaxed))
    }

    pub(crate) fn reached(&self) -> Option<Limit> {
        match self.reached.load(Relaxed) {
            0 => None,
            1 => Some(Limit::Steps),
            _ => Some(Limit::Time),
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
