//! Parameters and results of the plugin `echo`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
pub(super) struct SayParams {
    /// What to say back.
    pub(super) text: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Said {
    pub(super) text: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CountParams {
    /// How far to count.
    #[schemars(range(max = 10_000_000))]
    pub(super) to: u64,
    /// How long to wait before each number.
    #[serde(default)]
    #[schemars(range(max = 60_000))]
    pub(super) delay_ms: u64,
}

/// One number.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tick {
    pub(super) n: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct NestParams {
    /// How many levels of calls to make below this one.
    pub(super) depth: u32,
    /// How many calls to make on each level, in parallel.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub(super) width: u32,
    /// How long the innermost calls wait.
    #[serde(default)]
    #[schemars(range(max = 60_000))]
    pub(super) delay_ms: u64,
}

fn one() -> u32 {
    1
}

/// Where a nested call stands.
#[derive(Serialize, JsonSchema)]
pub(super) struct Level {
    /// The path the hub gave it.
    pub(super) path: String,
    /// On whose behalf it runs.
    pub(super) user: String,
    /// Levels still below it.
    pub(super) below: u32,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SlowParams {
    /// How long to take.
    #[schemars(range(max = 600_000))]
    pub(super) ms: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Slept {
    pub(super) ms: u64,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct FailParams {
    /// What the error says.
    #[serde(default = "as_asked")]
    pub(super) message: String,
}

fn as_asked() -> String {
    "failed, as asked".to_owned()
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Never {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Stats {
    /// How often each method that counts was called.
    pub(super) calls: BTreeMap<String, u64>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Counted {
    /// The count after this call.
    pub(super) count: u64,
}
