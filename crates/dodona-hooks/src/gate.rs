//! The gate before a tool runs.

use std::sync::Arc;

use dodona_proto::hook::Verdict;
use dodona_proto::{MethodName, PluginName};
use serde_json::Value;

use crate::point::PreToolExecute;
use crate::{Hook, OnFailure, Reply};

/// What a gate is asked about.
#[derive(Debug)]
pub struct PendingCall<'a> {
    /// The method about to run.
    pub method: &'a MethodName,
    /// Its parameters, with what earlier gates changed.
    pub params: Value,
}

impl<'a> PendingCall<'a> {
    /// A call as its caller asked for it.
    pub fn new(method: &'a MethodName, params: Value) -> Self {
        Self { method, params }
    }
}

type Callback = dyn for<'a, 'b> Fn(&'a PendingCall<'b>) -> Verdict + Send + Sync;

/// A plugin's say over calls of tool-marked methods.
#[derive(Clone)]
pub struct Gate {
    plugin: PluginName,
    priority: i32,
    on_failure: OnFailure,
    callback: Arc<Callback>,
}

impl Gate {
    /// A gate with the usual priority, 100.
    pub fn new(
        plugin: PluginName,
        on_failure: OnFailure,
        callback: impl Fn(&PendingCall<'_>) -> Verdict + Send + Sync + 'static,
    ) -> Self {
        Self {
            plugin,
            priority: 100,
            on_failure,
            callback: Arc::new(callback),
        }
    }

    /// Runs it earlier (lower) or later (higher).
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Whose gate it is.
    pub fn plugin(&self) -> &PluginName {
        &self.plugin
    }
}

impl From<Gate> for Hook {
    fn from(gate: Gate) -> Self {
        let (callback, priority, on_failure) = (gate.callback, gate.priority, gate.on_failure);
        let hook = Self::inline::<PreToolExecute>(move |call| {
            let pending = PendingCall::new(&call.method, call.arguments.clone());
            Ok(Reply::edit(callback(&pending)))
        });
        let hook = hook.priority(priority);
        match on_failure {
            OnFailure::Open => hook,
            OnFailure::Closed => hook.fail_closed(),
        }
    }
}
