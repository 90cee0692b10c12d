//! How much a run may cost.

use std::time::Duration;

/// Bounds of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Calls, returns and rounds of loops, and attempts of a pattern to match.
    pub steps: u64,
    /// From beginning to end, time in functions of the program around included.
    pub time: Duration,
    /// What the script may allocate at the same time, garbage that was not yet collected included.
    pub memory_bytes: usize,
    /// How large the result may be as JSON.
    pub result_bytes: usize,
}

impl Limits {
    /// For rules: a condition that runs at every event.
    pub const fn rules() -> Self {
        Self {
            steps: 5_000_000,
            time: Duration::from_millis(200),
            memory_bytes: 16 * 1024 * 1024,
            result_bytes: 256 * 1024,
        }
    }
}

impl Default for Limits {
    /// Those of [`rules`](Self::rules).
    fn default() -> Self {
        Self::rules()
    }
}
