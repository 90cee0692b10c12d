//! Parameters and results of the plugin `echo`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
pub(super) struct SayParams {
    /// The text to return.
    pub(super) text: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Said {
    pub(super) text: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CountParams {
    /// Count up to this number.
    #[schemars(range(max = 10_000_000))]
    pub(super) to: u64,
    /// Milliseconds to wait before each number.
    #[serde(default)]
    #[schemars(range(max = 60_000))]
    pub(super) delay_ms: u64,
}

/// One number of the count.
#[derive(Serialize, JsonSchema)]
pub(super) struct Tick {
    pub(super) n: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
pub(super) struct NestParams {
    /// Number of nested levels.
    pub(super) depth: u32,
    /// Number of parallel calls on each level.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub(super) width: u32,
    /// Milliseconds that the innermost calls wait.
    #[serde(default)]
    #[schemars(range(max = 60_000))]
    pub(super) delay_ms: u64,
}

fn one() -> u32 {
    1
}

/// One nested call of `echo.nest`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Level {
    /// The plugin path of the call.
    pub(super) path: String,
    /// The user of the call.
    pub(super) user: String,
    /// Number of levels below this call.
    pub(super) below: u32,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SlowParams {
    /// How many milliseconds to wait.
    #[schemars(range(max = 600_000))]
    pub(super) ms: u64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Slept {
    pub(super) ms: u64,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct FailParams {
    /// The message of the error.
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
