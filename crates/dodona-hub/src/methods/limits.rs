//! What calls are bounded by, as `hub.limits` tells it.

use std::collections::BTreeMap;
use std::time::Duration;

use dodona_proto::PluginName;
use dodona_store::journal::Held;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::config::{HubConfig, Limit};

#[derive(Serialize, JsonSchema)]
pub(super) struct LimitsResult {
    /// Each user's calls from outside.
    user: CallLimit,
    /// All calls of a plugin's methods, where they are bounded.
    plugins: BTreeMap<PluginName, CallLimit>,
    /// Each user's calls of a plugin's methods, where they are bounded.
    plugins_for_each_user: BTreeMap<PluginName, CallLimit>,
    /// How many calls below one root may run at once.
    nested: u32,
    /// The most bytes of JSON that parameters from outside may have.
    params_bytes: usize,
    /// The deepest that parameters from outside may nest.
    params_depth: usize,
    /// How long a unary call may take where neither the method nor the caller says.
    unary_timeout_ms: u64,
    /// The same for a streaming call.
    stream_timeout_ms: u64,
    /// How long a stream that nobody reads goes on.
    stream_grace_ms: u64,
    /// How long a call waits for a person's agreement.
    approval_timeout_ms: u64,
    /// The journal's room.
    journal: JournalRoom,
}

/// A bound on calls. Zero is no bound.
#[derive(Serialize, JsonSchema)]
struct CallLimit {
    /// Calls a second in the long run.
    per_second: u32,
    /// Calls at once after a pause.
    burst: u32,
    /// Calls that run at the same time.
    concurrent: u32,
}

/// How much the journal holds, and how much it may.
#[derive(Serialize, JsonSchema)]
struct JournalRoom {
    /// About how many bytes it holds.
    bytes: u64,
    /// When more than this, the oldest goes.
    max_bytes: u64,
    /// When the oldest of what it holds ended.
    oldest: Option<Timestamp>,
    /// What is older than this goes.
    max_age_s: u64,
}

impl LimitsResult {
    pub(super) fn new(config: &HubConfig, held: Held) -> Self {
        let limits = &config.limits;
        Self {
            user: limits.user.into(),
            plugins: of_plugins(&limits.plugin),
            plugins_for_each_user: of_plugins(&limits.user_and_plugin),
            nested: limits.nested,
            params_bytes: limits.params_bytes,
            params_depth: limits.params_depth,
            unary_timeout_ms: millis(config.unary_timeout),
            stream_timeout_ms: millis(config.stream_timeout),
            stream_grace_ms: millis(config.stream_grace),
            approval_timeout_ms: millis(config.approvals.timeout),
            journal: JournalRoom {
                bytes: held.bytes,
                max_bytes: config.retention.max_bytes,
                oldest: held.oldest,
                max_age_s: config.retention.max_age.as_secs(),
            },
        }
    }
}

impl From<Limit> for CallLimit {
    fn from(limit: Limit) -> Self {
        Self {
            per_second: limit.per_second,
            burst: limit.burst,
            concurrent: limit.concurrent,
        }
    }
}

fn of_plugins<'a>(
    limits: impl IntoIterator<Item = (&'a PluginName, &'a Limit)>,
) -> BTreeMap<PluginName, CallLimit> {
    limits
        .into_iter()
        .map(|(plugin, limit)| (plugin.clone(), CallLimit::from(*limit)))
        .collect()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
