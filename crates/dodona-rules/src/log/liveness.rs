//! How alive a rule is.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is counted of a rule, over all users.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Liveness {
    /// How often it was asked.
    pub evaluated: u64,
    /// How often it acted.
    pub fired: u64,
    /// How often it failed.
    pub failed: u64,
    /// How often its limits kept it from acting.
    pub suppressed: u64,
    /// When it was asked last.
    pub last_evaluated: Option<Timestamp>,
    /// When it acted last.
    pub last_fired: Option<Timestamp>,
    /// When it failed last.
    pub last_failed: Option<Timestamp>,
    /// How.
    pub last_error: Option<String>,
}

impl Liveness {
    /// Adds what was counted later.
    pub(super) fn add(&mut self, later: Self) {
        self.evaluated += later.evaluated;
        self.fired += later.fired;
        self.failed += later.failed;
        self.suppressed += later.suppressed;
        self.last_evaluated = later.last_evaluated.max(self.last_evaluated);
        self.last_fired = later.last_fired.max(self.last_fired);
        self.last_failed = later.last_failed.max(self.last_failed);
        self.last_error = later.last_error.or(self.last_error.take());
    }
}
