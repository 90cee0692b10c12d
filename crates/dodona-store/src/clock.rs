//! How long a statement may run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// No statement is timed.
const STOPPED: u64 = u64::MAX;

/// The time of the statement that runs, for a connection whose statements are bounded. The engine
/// asks it while it works.
#[derive(Debug)]
pub(crate) struct StatementClock {
    base: Instant,
    limit: Duration,
    /// When the time is over, in milliseconds after `base`.
    deadline: AtomicU64,
}

impl StatementClock {
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            base: Instant::now(),
            limit,
            deadline: AtomicU64::new(STOPPED),
        }
    }

    pub(crate) fn start(&self) {
        let deadline = self.base.elapsed() + self.limit;
        self.deadline.store(millis(deadline), Ordering::Relaxed);
    }

    /// What runs from now on is ours and not timed.
    pub(crate) fn stop(&self) {
        self.deadline.store(STOPPED, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        millis(self.base.elapsed()) > self.deadline.load(Ordering::Relaxed)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(STOPPED - 1)
}
