//! Rate and concurrency limits.
//!
//! A call over a limit is rejected with a `retry_after_ms`. Calls never wait for a slot: calls that hold
//! one while they make nested calls could otherwise deadlock each other.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use dodona_proto::{CallError, ErrorCode, PluginName, UserId};
use serde_json::json;

use crate::config::{Limit, LimitsConfig};

/// Suggested wait when too many calls run at once. An estimate: it depends on when other calls end.
const CONCURRENCY_RETRY: Duration = Duration::from_millis(100);

/// A rate limiter: the generic cell rate algorithm on one atomic.
///
/// `next` is the time, in nanoseconds since `start`, at which the quota is fully restored. A call
/// moves it forward by `interval`; a call is rejected when `next` would lie more than `burst`
/// intervals ahead of now.
struct RateLimiter {
    start: Instant,
    interval: u64,
    burst: u64,
    next: AtomicU64,
}

impl RateLimiter {
    fn new(per_second: NonZeroU32, burst: NonZeroU32) -> Self {
        let interval = 1_000_000_000 / u64::from(per_second.get());
        Self {
            start: Instant::now(),
            interval,
            burst: interval * u64::from(burst.get()),
            next: AtomicU64::new(0),
        }
    }

    /// Counts a call, or returns the time until the next call is accepted.
    fn check(&self) -> Result<(), Duration> {
        let now = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.check_at(now)
    }

    fn check_at(&self, now: u64) -> Result<(), Duration> {
        let advance = |next: u64| {
            let next = next.max(now) + self.interval;
            (next - now <= self.burst).then_some(next)
        };
        let order = Ordering::Relaxed;
        match self.next.fetch_update(order, order, advance) {
            Ok(_) => Ok(()),
            Err(next) => {
                let ahead = next.max(now) + self.interval - now;
                Err(Duration::from_nanos(ahead - self.burst))
            }
        }
    }
}

/// One limit and the calls counted against it.
pub(crate) struct CallLimiter {
    rate: Option<RateLimiter>,
    concurrent: u32,
    running: AtomicU32,
}

/// One running call, counted against a limit. Freed when dropped.
pub(crate) struct ConcurrencySlot(Arc<CallLimiter>);

impl Drop for ConcurrencySlot {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CallLimiter {
    fn new(limit: Limit) -> Self {
        let rate = NonZeroU32::new(limit.per_second).map(|per_second| {
            let burst = NonZeroU32::new(limit.burst).unwrap_or(per_second);
            RateLimiter::new(per_second, burst)
        });
        let concurrent = if limit.concurrent == 0 {
            u32::MAX
        } else {
            limit.concurrent
        };
        Self {
            rate,
            concurrent,
            running: AtomicU32::new(0),
        }
    }

    /// `subject` names who is limited, for the error message.
    fn acquire(
        self: &Arc<Self>,
        subject: impl FnOnce() -> String,
    ) -> Result<ConcurrencySlot, CallError> {
        if let Some(rate) = &self.rate
            && let Err(wait) = rate.check()
        {
            let message = format!("rate limit exceeded for {}", subject());
            return Err(limit_error(ErrorCode::RateLimited, message, wait));
        }
        if self.running.fetch_add(1, Ordering::Relaxed) >= self.concurrent {
            self.running.fetch_sub(1, Ordering::Relaxed);
            let message = format!("too many running calls for {}", subject());
            let wait = CONCURRENCY_RETRY;
            return Err(limit_error(ErrorCode::TooManyCalls, message, wait));
        }
        Ok(ConcurrencySlot(Arc::clone(self)))
    }
}

fn limit_error(code: ErrorCode, message: String, wait: Duration) -> CallError {
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    CallError::new(code, message)
        .data(json!({ "retry_after_ms": millis }))
        .hint(format!("retry in {millis} ms"))
}

/// One limiter for each user.
struct UserLimiters {
    limit: Limit,
    limiters: RwLock<HashMap<UserId, Arc<CallLimiter>>>,
}

impl UserLimiters {
    fn new(limit: Limit) -> Self {
        Self {
            limit,
            limiters: RwLock::default(),
        }
    }

    fn limiter(&self, user: &UserId) -> Arc<CallLimiter> {
        let known = self
            .limiters
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(user)
            .cloned();
        known.unwrap_or_else(|| {
            let mut limiters = self
                .limiters
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            Arc::clone(
                limiters
                    .entry(user.clone())
                    .or_insert_with(|| Arc::new(CallLimiter::new(self.limit))),
            )
        })
    }
}

/// The limits of each user on calls from surfaces.
pub(crate) struct UserLimits(UserLimiters);

impl UserLimits {
    pub(crate) fn new(config: &LimitsConfig) -> Self {
        Self(UserLimiters::new(config.user))
    }

    pub(crate) fn acquire(&self, user: &UserId) -> Result<ConcurrencySlot, CallError> {
        self.0.limiter(user).acquire(|| format!("user `{user}`"))
    }
}

/// The configured limits on the methods of one plugin.
pub(crate) struct PluginLimits {
    plugin: PluginName,
    /// For all users together.
    all: Option<Arc<CallLimiter>>,
    each: Option<UserLimiters>,
}

impl PluginLimits {
    pub(crate) fn new(plugin: &PluginName, config: &LimitsConfig) -> Self {
        Self {
            plugin: plugin.clone(),
            all: config
                .plugin
                .get(plugin)
                .map(|limit| Arc::new(CallLimiter::new(*limit))),
            each: config
                .user_and_plugin
                .get(plugin)
                .map(|limit| UserLimiters::new(*limit)),
        }
    }

    /// Checks the user's own limit first, so that rejected calls of one user do not use up the limit
    /// that all users share.
    pub(crate) fn acquire(&self, user: &UserId) -> Result<[Option<ConcurrencySlot>; 2], CallError> {
        let each = self.each.as_ref().map(|each| {
            each.limiter(user)
                .acquire(|| format!("user `{user}` at plugin `{}`", self.plugin))
        });
        let each = each.transpose()?;
        let all = self
            .all
            .as_ref()
            .map(|all| all.acquire(|| format!("plugin `{}`", self.plugin)))
            .transpose()?;
        Ok([each, all])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(per_second: u32, burst: u32, concurrent: u32) -> Arc<CallLimiter> {
        Arc::new(CallLimiter::new(Limit {
            per_second,
            burst,
            concurrent,
        }))
    }

    fn acquire(limiter: &Arc<CallLimiter>) -> Result<ConcurrencySlot, CallError> {
        limiter.acquire(|| "somebody".to_owned())
    }

    fn retry_after(error: &CallError) -> u64 {
        let data = error
            .data_value()
            .expect("a refusal says when to try again");
        data["retry_after_ms"].as_u64().expect("a number")
    }

    #[test]
    fn zero_means_unlimited() {
        let limiter = limiter(0, 0, 0);
        let slots: Vec<ConcurrencySlot> = (0..10_000).map(|_| acquire(&limiter).unwrap()).collect();
        assert_eq!(limiter.running.load(Ordering::Relaxed), 10_000);
        drop(slots);
        assert_eq!(limiter.running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn accepts_a_burst_and_then_reports_when_to_retry() {
        let limiter = limiter(1, 3, 0);
        for _ in 0..3 {
            acquire(&limiter).unwrap();
        }
        let refused = acquire(&limiter).map(drop).unwrap_err();
        assert_eq!(refused.code, ErrorCode::RateLimited);
        assert!((1..=1_000).contains(&retry_after(&refused)));
        // Without a burst of its own, a second's worth is one.
        let limiter = self::limiter(2, 0, 0);
        assert!(
            acquire(&limiter).is_ok() && acquire(&limiter).is_ok() && acquire(&limiter).is_err()
        );
    }

    #[test]
    fn quota_is_restored_at_the_configured_rate() {
        let rate = RateLimiter::new(NonZeroU32::new(10).unwrap(), NonZeroU32::new(2).unwrap());
        let ms = |ms: u64| ms * 1_000_000;
        assert_eq!(rate.check_at(ms(0)), Ok(()));
        assert_eq!(rate.check_at(ms(0)), Ok(()));
        // The burst is used up; one call is restored every 100 ms.
        assert_eq!(rate.check_at(ms(30)), Err(Duration::from_millis(70)));
        assert_eq!(rate.check_at(ms(99)), Err(Duration::from_millis(1)));
        assert_eq!(rate.check_at(ms(100)), Ok(()));
        assert_eq!(rate.check_at(ms(100)), Err(Duration::from_millis(100)));
        // A long pause restores the burst and no more.
        assert_eq!(rate.check_at(ms(60_000)), Ok(()));
        assert_eq!(rate.check_at(ms(60_000)), Ok(()));
        assert_eq!(rate.check_at(ms(60_000)), Err(Duration::from_millis(100)));
    }

    #[test]
    fn rejected_call_takes_no_slot_and_dropped_slot_is_freed() {
        let limiter = limiter(0, 0, 2);
        let first = acquire(&limiter).unwrap();
        let _second = acquire(&limiter).unwrap();
        for _ in 0..100 {
            let refused = acquire(&limiter).map(drop).unwrap_err();
            assert_eq!(refused.code, ErrorCode::TooManyCalls);
            assert_eq!(retry_after(&refused), 100);
        }
        drop(first);
        let _third = acquire(&limiter).unwrap();
        assert!(acquire(&limiter).is_err());
    }

    #[test]
    fn limit_holds_for_concurrent_callers() {
        let limiter = limiter(0, 0, 7);
        let most = AtomicU32::new(0);
        let running = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        if let Ok(slot) = acquire(&limiter) {
                            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            running.fetch_sub(1, Ordering::SeqCst);
                            drop(slot);
                        }
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 7);
        assert_eq!(limiter.running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn rejection_by_plugin_limit_frees_the_users_slot() {
        let plugin = PluginName::new("echo").unwrap();
        let at_once = |concurrent| Limit {
            per_second: 0,
            burst: 0,
            concurrent,
        };
        let config = LimitsConfig {
            plugin: HashMap::from([(plugin.clone(), at_once(1))]),
            user_and_plugin: HashMap::from([(plugin.clone(), at_once(2))]),
            ..LimitsConfig::default()
        };
        let limits = PluginLimits::new(&plugin, &config);
        let (alice, bob) = (UserId::new("alice").unwrap(), UserId::new("bob").unwrap());
        let held = limits.acquire(&bob).unwrap();
        for _ in 0..5 {
            let refused = limits.acquire(&alice).map(drop).unwrap_err();
            assert!(
                refused.message.contains("calls for plugin `echo`"),
                "{refused}"
            );
        }
        drop(held);
        limits.acquire(&alice).unwrap();
    }
}
