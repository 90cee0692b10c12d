//! Who may call how often and how much at once.
//!
//! A call over a limit is refused with the time after which it is worth trying again. Nothing
//! waits for a place, so calls that hold one while they call others cannot lock each other out.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use dodona_proto::{CallError, ErrorCode, PluginName, UserId};
use serde_json::json;

use crate::config::{Limit, LimitsConfig};

/// What to suggest when too much runs at once: it depends on others, so a guess.
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

/// One bound and what counts against it.
pub(crate) struct Gauge {
    rate: Option<RateLimiter>,
    concurrent: u32,
    running: AtomicU32,
}

/// A place among the calls that run. Given back when dropped.
pub(crate) struct Place(Arc<Gauge>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Gauge {
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

    fn enter(self: &Arc<Self>, whose: impl FnOnce() -> String) -> Result<Place, CallError> {
        if let Some(rate) = &self.rate
            && let Err(wait) = rate.check()
        {
            return Err(refusal(
                ErrorCode::RateLimited,
                format!("{} calls too often", whose()),
                wait,
            ));
        }
        if self.running.fetch_add(1, Ordering::Relaxed) >= self.concurrent {
            self.running.fetch_sub(1, Ordering::Relaxed);
            let message = format!("{} has too many calls running", whose());
            return Err(refusal(ErrorCode::TooManyCalls, message, CONCURRENCY_RETRY));
        }
        Ok(Place(Arc::clone(self)))
    }
}

fn refusal(code: ErrorCode, message: String, wait: Duration) -> CallError {
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    CallError::new(code, message)
        .data(json!({ "retry_after_ms": millis }))
        .hint(format!("try again in {millis} ms"))
}

/// One gauge for each user.
struct PerUser {
    limit: Limit,
    gauges: RwLock<HashMap<UserId, Arc<Gauge>>>,
}

impl PerUser {
    fn new(limit: Limit) -> Self {
        Self {
            limit,
            gauges: RwLock::default(),
        }
    }

    fn gauge(&self, user: &UserId) -> Arc<Gauge> {
        let known = self
            .gauges
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(user)
            .cloned();
        known.unwrap_or_else(|| {
            let mut gauges = self.gauges.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(
                gauges
                    .entry(user.clone())
                    .or_insert_with(|| Arc::new(Gauge::new(self.limit))),
            )
        })
    }
}

/// The limits on calls from outside.
pub(crate) struct UserLimits(PerUser);

impl UserLimits {
    pub(crate) fn new(config: &LimitsConfig) -> Self {
        Self(PerUser::new(config.user))
    }

    pub(crate) fn enter(&self, user: &UserId) -> Result<Place, CallError> {
        self.0.gauge(user).enter(|| format!("user `{user}`"))
    }
}

/// The limits on one plugin's methods, where there are any.
pub(crate) struct PluginLimits {
    plugin: PluginName,
    all: Option<Arc<Gauge>>,
    each: Option<PerUser>,
}

impl PluginLimits {
    pub(crate) fn new(plugin: &PluginName, config: &LimitsConfig) -> Self {
        Self {
            plugin: plugin.clone(),
            all: config
                .plugin
                .get(plugin)
                .map(|limit| Arc::new(Gauge::new(*limit))),
            each: config
                .user_and_plugin
                .get(plugin)
                .map(|limit| PerUser::new(*limit)),
        }
    }

    /// The user's own bound is asked first, so that one user's refusals use up nothing of what
    /// all share.
    pub(crate) fn enter(&self, user: &UserId) -> Result<[Option<Place>; 2], CallError> {
        let each = self.each.as_ref().map(|each| {
            each.gauge(user)
                .enter(|| format!("user `{user}` at plugin `{}`", self.plugin))
        });
        let each = each.transpose()?;
        let all = self
            .all
            .as_ref()
            .map(|all| all.enter(|| format!("plugin `{}`", self.plugin)))
            .transpose()?;
        Ok([each, all])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(per_second: u32, burst: u32, concurrent: u32) -> Arc<Gauge> {
        Arc::new(Gauge::new(Limit {
            per_second,
            burst,
            concurrent,
        }))
    }

    fn enter(gauge: &Arc<Gauge>) -> Result<Place, CallError> {
        gauge.enter(|| "somebody".to_owned())
    }

    fn retry_after(error: &CallError) -> u64 {
        let data = error
            .data_value()
            .expect("a refusal says when to try again");
        data["retry_after_ms"].as_u64().expect("a number")
    }

    #[test]
    fn zero_is_no_bound() {
        let gauge = gauge(0, 0, 0);
        let places: Vec<Place> = (0..10_000).map(|_| enter(&gauge).unwrap()).collect();
        assert_eq!(gauge.running.load(Ordering::Relaxed), 10_000);
        drop(places);
        assert_eq!(gauge.running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_burst_is_let_through_and_the_next_told_how_long_to_wait() {
        let gauge = gauge(1, 3, 0);
        for _ in 0..3 {
            enter(&gauge).unwrap();
        }
        let refused = enter(&gauge).map(drop).unwrap_err();
        assert_eq!(refused.code, ErrorCode::RateLimited);
        assert!((1..=1_000).contains(&retry_after(&refused)));
        // Without a burst of its own, a second's worth is one.
        let gauge = self::gauge(2, 0, 0);
        assert!(enter(&gauge).is_ok() && enter(&gauge).is_ok() && enter(&gauge).is_err());
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
    fn a_refusal_takes_no_place_and_a_place_is_given_back() {
        let gauge = gauge(0, 0, 2);
        let first = enter(&gauge).unwrap();
        let _second = enter(&gauge).unwrap();
        for _ in 0..100 {
            let refused = enter(&gauge).map(drop).unwrap_err();
            assert_eq!(refused.code, ErrorCode::TooManyCalls);
            assert_eq!(retry_after(&refused), 100);
        }
        drop(first);
        let _third = enter(&gauge).unwrap();
        assert!(enter(&gauge).is_err());
    }

    #[test]
    fn the_bound_holds_when_everybody_comes_at_once() {
        let gauge = gauge(0, 0, 7);
        let most = AtomicU32::new(0);
        let running = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        if let Ok(place) = enter(&gauge) {
                            let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                            most.fetch_max(now, Ordering::SeqCst);
                            running.fetch_sub(1, Ordering::SeqCst);
                            drop(place);
                        }
                    }
                });
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 7);
        assert_eq!(gauge.running.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_plugins_refusal_gives_the_users_place_back() {
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
        let held = limits.enter(&bob).unwrap();
        for _ in 0..5 {
            let refused = limits.enter(&alice).map(drop).unwrap_err();
            assert!(refused.message.contains("plugin `echo` has"), "{refused}");
        }
        drop(held);
        limits.enter(&alice).unwrap();
    }
}
