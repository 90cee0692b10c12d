//! Noticing that a model goes round in circles.

use std::collections::{HashMap, VecDeque};

use dodona_plugin::CallError;
use dodona_proto::ToolCall;

/// How often one call is made before it is noticed.
const TIMES: usize = 3;

/// Within how many turns.
const TURNS: u32 = 6;

/// The calls of the last turns.
#[derive(Default)]
pub(super) struct Repeats {
    calls: VecDeque<(u32, String)>,
    /// How often in a row a call has failed with the same arguments, and with what.
    failures: HashMap<String, (usize, String)>,
}

impl Repeats {
    /// Why a call is not run: it has failed too often with the same arguments.
    pub(super) fn refusal(&self, call: &ToolCall) -> Option<CallError> {
        let (times, error) = self.failures.get(&key(call))?;
        (*times >= TIMES).then(|| {
            let message = format!(
                "`{}` failed {times} times in a row with the same arguments and was not run again; the last error was: {error}",
                call.name
            );
            CallError::plugin("agent.loop", message)
                .hint("change the arguments, use another tool, or answer without it")
        })
    }

    /// Counts how a call ended. A call that was not run because of `refusal` is not counted.
    pub(super) fn ended(&mut self, call: &ToolCall, error: Option<&CallError>) {
        match error {
            None => {
                self.failures.remove(&key(call));
            }
            Some(error) if error.code.as_str() == "agent.loop" => {}
            Some(error) => {
                let (times, last) = self.failures.entry(key(call)).or_default();
                *times += 1;
                last.clone_from(&error.message);
            }
        }
    }

    /// Takes note of a call. Answers with what to tell the model, if it made the same call often.
    pub(super) fn seen(&mut self, turn: u32, call: &ToolCall) -> Option<String> {
        while self.calls.front().is_some_and(|(at, _)| at + TURNS <= turn) {
            self.calls.pop_front();
        }
        let this = key(call);
        self.calls.push_back((turn, this.clone()));
        let times = self
            .calls
            .iter()
            .filter(|(_, known)| *known == this)
            .count();
        (times >= TIMES).then(|| {
            format!(
                "`{}` was called {times} times with the same arguments in {TURNS} turns. The answer \
                 does not change: use what you have, or try something else.",
                call.name
            )
        })
    }
}

fn key(call: &ToolCall) -> String {
    format!("{} {}", call.name, call.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(query: &str) -> ToolCall {
        ToolCall {
            id: "x".to_owned(),
            name: "code_search".to_owned(),
            arguments: json!({ "query": query }),
        }
    }

    #[test]
    fn the_third_time_in_six_turns_is_noticed() {
        let mut repeats = Repeats::default();
        assert!(repeats.seen(1, &call("a")).is_none());
        assert!(repeats.seen(2, &call("b")).is_none());
        assert!(repeats.seen(3, &call("a")).is_none());
        assert!(repeats.seen(6, &call("a")).is_some());
        // The first is forgotten by then, and so is the second.
        assert!(repeats.seen(9, &call("a")).is_none());
    }
}
