//! Counts of evaluations, firings and failures.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The counts of a rule for one user, in one project or in all projects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Liveness {
    /// Counts for all events together.
    #[serde(flatten)]
    pub total: Counts,
    /// Counts for events of queries.
    pub in_query: Counts,
    /// Tool calls outside queries: from the command line, RPC, the page or MCP.
    pub outside_query: Counts,
    /// Time of the last evaluation.
    pub last_evaluated: Option<Timestamp>,
    /// Time of the last firing.
    pub last_fired: Option<Timestamp>,
    /// Time of the last failure.
    pub last_failed: Option<Timestamp>,
    /// Message of the last failure.
    pub last_error: Option<String>,
}

/// Numbers of evaluations, by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Number of all evaluations.
    pub evaluated: u64,
    /// Evaluations at which the rule fired.
    pub fired: u64,
    /// Number of failed evaluations.
    pub failed: u64,
    /// Evaluations at which a limit suppressed the rule.
    pub suppressed: u64,
    /// Notifications that were dropped.
    pub dropped: u64,
}

impl Counts {
    fn add(&mut self, later: Self) {
        self.evaluated += later.evaluated;
        self.fired += later.fired;
        self.failed += later.failed;
        self.suppressed += later.suppressed;
        self.dropped += later.dropped;
    }
}

/// Counts with times, for one user and project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) counts: Counts,
    pub(super) last_evaluated: Option<Timestamp>,
    pub(super) last_fired: Option<Timestamp>,
    pub(super) last_failed: Option<Timestamp>,
    pub(super) last_error: Option<String>,
}

impl Tally {
    pub(super) fn add(&mut self, later: Self) {
        self.counts.add(later.counts);
        self.last_evaluated = later.last_evaluated.max(self.last_evaluated);
        self.last_fired = later.last_fired.max(self.last_fired);
        self.last_failed = later.last_failed.max(self.last_failed);
        self.last_error = later.last_error.or(self.last_error.take());
    }
}

impl Liveness {
    /// Adds a tally. The error of the last one is kept.
    pub(super) fn add(&mut self, tally: Tally, is_outside: bool) {
        self.total.add(tally.counts);
        if is_outside {
            self.outside_query.add(tally.counts)
        } else {
            self.in_query.add(tally.counts)
        }
        self.last_evaluated = tally.last_evaluated.max(self.last_evaluated);
        self.last_fired = tally.last_fired.max(self.last_fired);
        self.last_failed = tally.last_failed.max(self.last_failed);
        self.last_error = tally.last_error.or(self.last_error.take());
    }
}
