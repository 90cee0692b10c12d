//! How often a request is sent, and when.

use std::time::Duration;

use crate::http::Failure;

/// The longest wait between two tries, and the longest that a provider may ask for: whoever
/// waits for an answer had better hear that there is none.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// How often a request that failed is sent again, and after which time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Retry {
    /// How many times it is sent again.
    pub(crate) retries: u32,
    /// The wait before the first of them; it doubles each time.
    pub(crate) delay: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            retries: 3,
            delay: Duration::from_millis(500),
        }
    }
}

/// The tries of one request.
#[derive(Debug)]
pub(crate) struct Tries {
    retry: Retry,
    /// How many have failed.
    failed: u32,
}

impl Retry {
    pub(crate) fn tries(self) -> Tries {
        Tries {
            retry: self,
            failed: 0,
        }
    }
}

impl Tries {
    /// How long to wait before the next try; none if there is no other.
    pub(crate) fn after(&mut self, failure: &Failure) -> Option<Duration> {
        self.failed += 1;
        match failure {
            Failure::Final(_) => None,
            Failure::Passing { .. } if self.failed > self.retry.retries => None,
            Failure::Passing {
                retry_after: Some(asked),
                ..
            } => (*asked <= LONGEST_WAIT).then_some(*asked),
            Failure::Passing { .. } => Some(self.backoff(chance())),
        }
    }

    /// Which try comes next, from 1.
    pub(crate) fn number(&self) -> u32 {
        self.failed + 1
    }

    /// Half of the wait is fixed, half is left to chance, so that many clients that failed
    /// together do not come back together.
    fn backoff(&self, chance: f64) -> Duration {
        let doubled = 1u32.checked_shl(self.failed - 1).unwrap_or(u32::MAX);
        let full = self.retry.delay.saturating_mul(doubled).min(LONGEST_WAIT);
        full.mul_f64(0.5 + 0.5 * chance)
    }
}

/// A number from 0 to 1.
fn chance() -> f64 {
    getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(seconds: u64) -> Failure {
        Failure::Passing {
            reason: String::new(),
            retry_after: Some(Duration::from_secs(seconds)),
        }
    }

    #[test]
    fn waits_double_and_are_bounded() {
        let retry = Retry {
            retries: 40,
            delay: Duration::from_secs(1),
        };
        let mut tries = retry.tries();
        let mut full = Vec::new();
        while tries.after(&Failure::passing("busy")).is_some() {
            assert!(tries.backoff(0.0) * 2 == tries.backoff(1.0));
            full.push(tries.backoff(1.0).as_secs());
        }
        assert_eq!(full[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(full.len(), 40);
        assert_eq!(full[39], 60);
    }

    #[test]
    fn what_the_provider_asks_for_is_done_within_reason() {
        let mut tries = Retry::default().tries();
        assert_eq!(tries.after(&asked(7)), Some(Duration::from_secs(7)));
        assert_eq!(tries.after(&asked(3600)), None);
    }

    #[test]
    fn some_failures_are_final() {
        let failure = Failure::Final(crate::ModelError::NoQuestion);
        assert_eq!(Retry::default().tries().after(&failure), None);
    }
}
