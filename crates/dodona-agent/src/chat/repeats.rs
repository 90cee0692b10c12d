//! Noticing that a model goes round in circles.

use std::collections::VecDeque;

use dodona_proto::ToolCall;

/// How often one call is made before it is noticed.
const TIMES: usize = 3;

/// Within how many turns.
const TURNS: u32 = 6;

/// The calls of the last turns.
#[derive(Default)]
pub(super) struct Repeats {
    calls: VecDeque<(u32, String)>,
}

impl Repeats {
    /// Takes note of a call. Answers with what to tell the model, if it made the same call often.
    pub(super) fn seen(&mut self, turn: u32, call: &ToolCall) -> Option<String> {
        while self.calls.front().is_some_and(|(at, _)| at + TURNS <= turn) {
            self.calls.pop_front();
        }
        let this = format!("{} {}", call.name, call.arguments);
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
