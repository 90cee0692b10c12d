//! Tool calls, put together from fragments.

use dodona_proto::ToolCall;
use serde::Deserialize;

use crate::arguments;
use crate::http::Failure;
use crate::model::ModelEvent;
use crate::wire::garbled;

/// A piece of a tool call.
#[derive(Deserialize)]
pub(super) struct Fragment {
    #[serde(default)]
    index: Option<usize>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionFragment>,
}

#[derive(Deserialize)]
struct FunctionFragment {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

/// The tool calls of one answer, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Fragments(Vec<Partial>);

#[derive(Debug, Default)]
struct Partial {
    index: Option<usize>,
    id: String,
    name: String,
    arguments: String,
}

impl Fragments {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next piece. Returns what it adds to the arguments of a call that has a name.
    pub(super) fn add(&mut self, fragment: Fragment) -> Option<ModelEvent> {
        let id = fragment.id.unwrap_or_default();
        let call = self.call(fragment.index, &id);
        if call.id.is_empty() {
            call.id = id;
        }
        let function = fragment.function?;
        // Some servers repeat the name in every piece; none sends it in two.
        if call.name.is_empty() {
            call.name = function.name.unwrap_or_default();
        }
        let text = function.arguments.unwrap_or_default();
        call.arguments.push_str(&text);
        (!text.is_empty() && !call.name.is_empty()).then(|| ModelEvent::ToolArguments {
            id: call.id.clone(),
            name: call.name.clone(),
            text,
        })
    }

    /// Which call a piece belongs to: the one of its index, except that a new id begins a new
    /// call, because some servers give every call the index 0 or none.
    fn call(&mut self, index: Option<usize>, id: &str) -> &mut Partial {
        let belongs = |call: &Partial| {
            let same_index = index.is_none() || call.index == index;
            same_index && (id.is_empty() || call.id.is_empty() || call.id == id)
        };
        let position = match self.0.iter().rposition(belongs) {
            Some(position) => position,
            None => {
                self.0.push(Partial {
                    index,
                    ..Partial::default()
                });
                self.0.len() - 1
            }
        };
        &mut self.0[position]
    }

    /// The calls, whole. A server that gives no ids gets ones made of the answer's own.
    pub(super) fn finish(&mut self, answer_id: &str) -> Result<Vec<ToolCall>, Failure> {
        let calls = std::mem::take(&mut self.0);
        let whole = |(number, call): (usize, Partial)| {
            if call.name.is_empty() {
                return Err(garbled("a tool call has no name"));
            }
            Ok(ToolCall {
                id: match call.id.is_empty() {
                    true => format!("{answer_id}-{number}"),
                    false => call.id,
                },
                name: call.name,
                arguments: arguments::parse(&call.arguments),
            })
        };
        calls.into_iter().enumerate().map(whole).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn calls(fragments: Value) -> Vec<(String, String, Value)> {
        let fragments: Vec<Fragment> = serde_json::from_value(fragments).unwrap();
        let mut calls = Fragments::default();
        for fragment in fragments {
            let _ = calls.add(fragment);
        }
        let whole = calls.finish("answer").unwrap();
        whole
            .into_iter()
            .map(|call| (call.id, call.name, call.arguments))
            .collect()
    }

    fn call(id: &str, name: &str, arguments: Value) -> (String, String, Value) {
        (id.to_owned(), name.to_owned(), arguments)
    }

    #[test]
    fn pieces_of_parallel_calls_may_alternate() {
        let found = calls(json!([
            { "index": 0, "id": "a", "function": { "name": "read", "arguments": "" } },
            { "index": 1, "id": "b", "function": { "name": "list", "arguments": "{\"x\"" } },
            { "index": 0, "function": { "arguments": "{\"p\":1}" } },
            { "index": 1, "function": { "arguments": ":2}" } },
        ]));
        let expected = [
            call("a", "read", json!({ "p": 1 })),
            call("b", "list", json!({ "x": 2 })),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn servers_without_indexes_or_ids_are_understood() {
        let same_index = calls(json!([
            { "index": 0, "id": "a", "function": { "name": "read", "arguments": "{}" } },
            { "index": 0, "id": "b", "function": { "name": "read", "arguments": "{\"n\":" } },
            { "index": 0, "id": "b", "function": { "name": "read", "arguments": "1}" } },
        ]));
        let expected = [
            call("a", "read", json!({})),
            call("b", "read", json!({ "n": 1 })),
        ];
        assert_eq!(same_index, expected);
        let no_id = calls(json!([
            { "index": 0, "function": { "name": "read", "arguments": "{}" } },
            { "index": 1, "function": { "name": "list", "arguments": "{}" } },
        ]));
        let expected = [
            call("answer-0", "read", json!({})),
            call("answer-1", "list", json!({})),
        ];
        assert_eq!(no_id, expected);
    }
}
