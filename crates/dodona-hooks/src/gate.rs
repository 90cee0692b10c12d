//! The gate before a tool runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use dodona_proto::hook::Verdict;
use dodona_proto::{MethodName, PluginName};
use serde_json::Value;

use crate::OnFailure;

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

/// What all gates together decided, and which plugin's word it was.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Run it with these parameters.
    Run(Value),
    /// Refuse it.
    Deny {
        /// Whose word it was.
        plugin: PluginName,
        /// Why.
        message: String,
    },
    /// Ask a person, then run it with these parameters.
    Ask {
        /// Whose word it was.
        plugin: PluginName,
        /// To what the person would agree.
        message: String,
        /// What would run.
        params: Value,
    },
    /// Answer without running it.
    Answer(Value),
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

    fn ask(&self, call: &PendingCall<'_>) -> Verdict {
        match catch_unwind(AssertUnwindSafe(|| (self.callback)(call))) {
            Ok(verdict) => verdict,
            Err(_) => {
                tracing::warn!(plugin = %self.plugin, hook = "PRE_TOOL_EXECUTE", method = %call.method, "a gate panicked");
                match self.on_failure {
                    OnFailure::Open => Verdict::Allow,
                    OnFailure::Closed => {
                        Verdict::Deny(format!("the gate of plugin `{}` failed", self.plugin))
                    }
                }
            }
        }
    }
}

/// Every gate there is, in the order they are asked: ascending priority, then plugin name, then
/// the order in which the plugin gave them.
#[derive(Clone, Default)]
pub struct Gates(Vec<Gate>);

impl Gates {
    /// Orders the gates for good.
    pub fn freeze(mut gates: Vec<Gate>) -> Self {
        gates.sort_by(|a, b| (a.priority, &a.plugin).cmp(&(b.priority, &b.plugin)));
        Self(gates)
    }

    /// Whether there is nobody to ask.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Asks every gate. A refusal beats everything, a question beats an answer, and the first
    /// of equals counts.
    pub fn decide(&self, mut call: PendingCall<'_>) -> Decision {
        let mut ask: Option<(PluginName, String)> = None;
        let mut answer: Option<Value> = None;
        for gate in &self.0 {
            match gate.ask(&call) {
                Verdict::Allow => {}
                Verdict::Modify(params) => call.params = params,
                Verdict::Deny(message) => {
                    return Decision::Deny {
                        plugin: gate.plugin.clone(),
                        message,
                    };
                }
                Verdict::Ask(message) => ask = ask.or_else(|| Some((gate.plugin.clone(), message))),
                Verdict::Answer(value) => answer = answer.or(Some(value)),
            }
        }
        match (ask, answer) {
            (Some((plugin, message)), _) => Decision::Ask {
                plugin,
                message,
                params: call.params,
            },
            (None, Some(value)) => Decision::Answer(value),
            (None, None) => Decision::Run(call.params),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn gate(
        plugin: &str,
        callback: impl Fn(&PendingCall<'_>) -> Verdict + Send + Sync + 'static,
    ) -> Gate {
        Gate::new(
            PluginName::new(plugin).unwrap(),
            OnFailure::Closed,
            callback,
        )
    }

    fn decide(gates: Vec<Gate>) -> Decision {
        let method = MethodName::new("vault.write").unwrap();
        Gates::freeze(gates).decide(PendingCall::new(&method, json!({"n": 0})))
    }

    fn push(digit: u64) -> impl Fn(&PendingCall<'_>) -> Verdict {
        move |call| Verdict::Modify(json!({"n": call.params["n"].as_u64().unwrap() * 10 + digit}))
    }

    #[test]
    fn gates_run_by_priority_then_name_then_registration() {
        let gates = vec![
            gate("zeta", push(3)),
            gate("alpha", push(1)),
            gate("alpha", push(2)),
            gate("omega", push(9)).priority(5),
            gate("beta", push(4)).priority(200),
        ];
        assert_eq!(decide(gates), Decision::Run(json!({"n": 91234})));
    }

    #[test]
    fn a_refusal_beats_an_answer_and_a_question_that_came_first() {
        let gates = vec![
            gate("a", |_| Verdict::Answer(json!(1))),
            gate("b", |_| Verdict::Ask("sure?".into())),
            gate("c", |_| Verdict::Deny("no".into())),
        ];
        assert!(matches!(decide(gates.clone()), Decision::Deny { message, .. } if message == "no"));
        assert!(matches!(decide(gates[..2].to_vec()), Decision::Ask { .. }));
        assert_eq!(decide(gates[..1].to_vec()), Decision::Answer(json!(1)));
    }

    #[test]
    fn a_panicking_gate_counts_as_it_declared_and_the_others_are_still_asked() {
        let bad = gate("bad", |_| panic!("boom"));
        assert!(matches!(decide(vec![bad.clone()]), Decision::Deny { .. }));
        let open = Gate {
            on_failure: OnFailure::Open,
            ..bad
        };
        assert_eq!(
            decide(vec![open, gate("z", push(7))]),
            Decision::Run(json!({"n": 7}))
        );
    }
}
