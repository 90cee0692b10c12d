//! Functions that the program around offers to a script.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

/// A call that a script makes.
#[derive(Debug)]
pub struct HostCall<'a> {
    /// What it was given.
    pub arguments: &'a [Json],
    /// When the run ends. A function that waits must not wait longer: nothing can interrupt it.
    pub deadline: Instant,
}

impl HostCall<'_> {
    /// How much time the run has left.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

type Function = dyn Fn(&HostCall<'_>) -> Result<Json, String> + Send + Sync;

/// Named functions. A name with a dot, such as `state.get`, is a function in a table.
///
/// A function runs on the thread of the script. One that needs asynchronous work waits for it there,
/// within the [time left](HostCall::time_left): runs belong on a thread that may block, so with tokio
/// that is `Handle::block_on(timeout(call.time_left(), work))`. Turning scripts into coroutines that
/// yield instead would let a run outlive its virtual machine's place in the pool, for no gain: the
/// thread is there anyway.
#[derive(Default)]
pub struct Host {
    functions: BTreeMap<Box<str>, Box<Function>>,
}

impl Host {
    /// No function at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a function. An error's text is an error of the script, which it may catch.
    #[must_use]
    pub fn function(
        mut self,
        name: &str,
        function: impl Fn(&HostCall<'_>) -> Result<Json, String> + Send + Sync + 'static,
    ) -> Self {
        self.functions.insert(name.into(), Box::new(function));
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.functions.get(name).map(|function| &**function)
    }

    /// Whether there are functions below this name.
    pub(crate) fn has_table(&self, name: &str) -> bool {
        let below = |full: &str| {
            full.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        self.functions.keys().any(|full| below(full))
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.functions.keys()).finish()
    }
}
