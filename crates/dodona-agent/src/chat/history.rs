//! What happened in a query, as rules see it.

use std::sync::Arc;

use dodona_proto::{HistorySnapshot, Message, ToolCall};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::conversation::Ending;

/// The most messages that are shown, and the most tool calls.
const MOST: usize = 50;

/// The longest text of one, in bytes.
const LONGEST: usize = 8 * 1024;

/// The last messages that a model is sent.
pub(crate) fn messages(all: &[Message]) -> Vec<Value> {
    let last = &all[all.len().saturating_sub(MOST)..];
    let shown = last.iter().map(|message| {
        let (role, content) = match message {
            Message::User { content } => ("user", content),
            Message::Assistant { content, .. } => ("assistant", content),
            Message::Tool { content, .. } => ("tool", content),
        };
        json!({ "role": role, "content": begin(content) })
    });
    shown.collect()
}

/// Notes how a tool ended, and what the model is told of it.
pub(super) fn record(history: &mut HistorySnapshot, call: &ToolCall, ending: Ending, told: &str) {
    history.total_tool_calls += 1;
    if counts_as_failure(ending) {
        history.total_failures += 1;
        *history.failures.entry(call.name.clone()).or_default() += 1;
    }
    let Value::Array(tools) = Arc::make_mut(&mut history.tools) else {
        return;
    };
    if tools.len() >= MOST {
        tools.remove(0);
    }
    tools.push(json!({
        "name": call.name,
        "arguments": call.arguments,
        "result": begin(told),
        "success": ending == Ending::Success,
        "timestamp": Timestamp::now(),
    }));
}

/// A denied call is no failure: somebody meant it.
fn counts_as_failure(ending: Ending) -> bool {
    !matches!(ending, Ending::Success | Ending::Denied)
}

fn begin(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_counts_everything_and_shows_the_last() {
        let mut history = HistorySnapshot::default();
        let call = |name: &str| ToolCall {
            id: "1".to_owned(),
            name: name.to_owned(),
            arguments: json!({}),
        };
        for _ in 0..60 {
            record(&mut history, &call("a"), Ending::Error, "no");
        }
        record(&mut history, &call("b"), Ending::Denied, "never");
        record(
            &mut history,
            &call("c"),
            Ending::Success,
            &"é".repeat(LONGEST),
        );
        assert_eq!((history.total_tool_calls, history.total_failures), (62, 60));
        assert_eq!(history.failures.get("a"), Some(&60));
        assert_eq!(history.failures.get("b"), None);
        let tools = history.tools.as_array().unwrap();
        assert_eq!(tools.len(), MOST);
        assert_eq!(tools[MOST - 1]["name"], "c");
        assert_eq!(tools[MOST - 1]["result"].as_str().unwrap().len(), LONGEST);
    }
}
