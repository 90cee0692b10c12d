//! The result of `hub.limits`.

use std::collections::BTreeMap;
use std::time::Duration;

use dodona_proto::PluginName;
use dodona_store::journal::JournalSize;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::config::{HubConfig, Limit};

#[derive(Serialize, JsonSchema)]
pub(super) struct LimitsResult {
    /// Limit on the calls of each user from surfaces.
    user: CallLimit,
    /// Limits on all calls to a plugin, for plugins that have one.
    plugins: BTreeMap<PluginName, CallLimit>,
    /// Limits on the calls of each user to a plugin, for plugins that have one.
    plugins_for_each_user: BTreeMap<PluginName, CallLimit>,
    /// Maximum number of nested calls that run at once in one call tree.
    nested: u32,
    /// Maximum size of parameters, in bytes of JSON.
    params_bytes: usize,
    /// Maximum nesting depth of parameters.
    params_depth: usize,
    /// Default timeout of unary calls in milliseconds.
    unary_timeout_ms: u64,
    /// Default timeout of streaming calls in milliseconds.
    stream_timeout_ms: u64,
    /// How long a stream without readers continues, in milliseconds.
    stream_grace_ms: u64,
    /// How long a call waits for approval, in milliseconds.
    approval_timeout_ms: u64,
    /// Size and limits of the journal.
    journal: JournalRoom,
}

/// A limit on calls. Zero means unlimited.
#[derive(Serialize, JsonSchema)]
struct CallLimit {
    /// Sustained calls per second.
    per_second: u32,
    /// Calls accepted at once after a pause.
    burst: u32,
    /// Calls running at the same time.
    concurrent: u32,
}

/// Size and limits of the journal.
#[derive(Serialize, JsonSchema)]
struct JournalRoom {
    /// Approximate size in bytes.
    bytes: u64,
    /// Size limit in bytes. The oldest entries beyond it are deleted.
    max_bytes: u64,
    /// End time of the oldest stored stream.
    oldest: Option<Timestamp>,
    /// Age limit in seconds. Older entries are deleted.
    max_age_s: u64,
}

impl LimitsResult {
    pub(super) fn new(config: &HubConfig, held: JournalSize) -> Self {
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
