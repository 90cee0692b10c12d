//! Circuit breaker for a callback that keeps failing.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Number of consecutive failures that open the breaker.
const TOO_MANY: u32 = 5;

/// How long an open breaker skips the callback.
const REST: Duration = Duration::from_secs(30);

/// Counts consecutive failures. After too many the callback is skipped for a while, and then tried once.
#[derive(Debug)]
pub(crate) struct Breaker {
    failures: AtomicU32,
    /// Milliseconds after `since` until which the callback is skipped; zero while the breaker is closed.
    resting_until: AtomicU64,
    since: Instant,
}

/// The effect of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tripped {
    /// The callback continues to run.
    No,
    /// The callback is skipped from now on.
    Now,
}

impl Breaker {
    pub(crate) fn new() -> Self {
        Self {
            failures: AtomicU32::new(0),
            resting_until: AtomicU64::new(0),
            since: Instant::now(),
        }
    }

    /// Whether the last run failed. Only then the other fields need to be read.
    #[inline]
    pub(crate) fn is_troubled(&self) -> bool {
        self.failures.load(Ordering::Relaxed) != 0
    }

    /// Whether the callback must be skipped now.
    #[inline]
    pub(crate) fn is_resting(&self) -> bool {
        let until = self.resting_until.load(Ordering::Relaxed);
        until != 0 && self.now() < until
    }

    #[inline]
    pub(crate) fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.resting_until.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn failed(&self) -> Tripped {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        if failures < TOO_MANY {
            return Tripped::No;
        }
        let until = self.now() + u64::try_from(REST.as_millis()).unwrap_or(u64::MAX);
        self.resting_until.store(until, Ordering::Relaxed);
        Tripped::Now
    }

    fn now(&self) -> u64 {
        // At least 1, because zero means closed.
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn five_failures_in_a_row_mean_a_rest_and_then_one_try() {
        let breaker = Breaker::new();
        for _ in 0..4 {
            assert_eq!(breaker.failed(), Tripped::No);
        }
        breaker.succeeded();
        for _ in 0..4 {
            assert_eq!(breaker.failed(), Tripped::No);
        }
        assert_eq!(breaker.failed(), Tripped::Now);
        assert!(breaker.is_resting());
        tokio::time::advance(REST + Duration::from_millis(1)).await;
        assert!(!breaker.is_resting());
        assert_eq!(breaker.failed(), Tripped::Now);
        assert!(breaker.is_resting());
        tokio::time::advance(REST + Duration::from_millis(1)).await;
        breaker.succeeded();
        assert_eq!(breaker.failed(), Tripped::No);
    }
}
