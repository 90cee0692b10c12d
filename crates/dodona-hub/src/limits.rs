//! Who may call how often and how much at once.
//!
//! A call over a limit is refused with the time after which it is worth trying again. Nothing
//! waits for a place, so calls that hold one while they call others cannot lock each other out.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use dodona_proto::{CallError, ErrorCode, PluginName, UserId};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use serde_json::json;

use crate::config::{Limit, LimitsConfig};

/// What to suggest when too much runs at once: it depends on others, so a guess.
const CONCURRENCY_RETRY: Duration = Duration::from_millis(100);

/// One bound and what counts against it.
pub(crate) struct Gauge {
    rate: Option<DefaultDirectRateLimiter>,
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
            RateLimiter::direct(Quota::per_second(per_second).allow_burst(burst))
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
            && let Err(not_yet) = rate.check()
        {
            let wait = not_yet.wait_time_from(DefaultClock::default().now());
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
