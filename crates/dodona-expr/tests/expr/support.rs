//! A host to evaluate against: the context of a rule, as JSON.

use std::sync::LazyLock;

use dodona_expr::{CallError, Schema, Value};
use dodona_proto::RULE_CONTEXT;
use serde_json::{Value as Json, json};

/// What a rule's condition may name.
pub(crate) static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::parse(RULE_CONTEXT).unwrap());

/// A conversation in its third turn.
pub(crate) fn document() -> Json {
    SCHEMA.fill(&json!({
        "context": {
            "turn": {"number": 3, "token_usage": 0.41, "context_usage": 0.9, "iteration_count": 2, "max_iterations": 30},
            "history": {
                "messages": [
                    {"role": "user", "content": "How does login work?"},
                    {"role": "assistant", "content": "It issues a token."},
                ],
                "tools": [
                    {"name": "vault_search", "arguments": {"query": "login", "limit": 5}, "result": "3 notes", "success": true, "timestamp": "2026-01-04T10:00:00Z"},
                    {"name": "code_search", "arguments": {"query": "token"}, "result": null, "success": false, "timestamp": "2026-01-04T10:00:05Z"},
                    {"name": "vault_read", "arguments": {"path": "notes/a.md"}, "result": "…", "success": true, "timestamp": "2026-01-04T10:00:09Z"},
                ],
                "failures": {"code_search": 3},
                "total_tool_calls": 7,
                "total_failures": 3,
            },
            "user": {"id": "alice", "settings": {"language": "en"}},
            "project": {"id": "demo"},
            "state": {"last_search_turn": 2, "seen": ["a", "b"]},
            "event": {"type": "agent.turn.start", "source": "agent", "severity": "info"},
        },
        "settings": {"max_sources": 10},
    }))
}

/// The functions of the schema, over a document.
pub(crate) fn functions<'a>(
    document: &'a Json,
    name: &str,
    arguments: &[Value<'a>],
) -> Result<Value<'a>, CallError> {
    let history = &document["context"]["history"];
    let tool = arguments
        .first()
        .and_then(Value::as_str)
        .unwrap_or_default();
    let tools = history["tools"].as_array().unwrap();
    let ended = |success: bool| {
        let matching = |call: &Json| call["name"] == tool && call["success"] == success;
        Value::Bool(tools.iter().any(matching))
    };
    match name {
        "tool_completed" => Ok(ended(true)),
        "tool_failed" => Ok(ended(false)),
        "failure_count" | "context.history.get_failures_for_tool" => {
            Ok(Value::Int(history["failures"][tool].as_i64().unwrap_or(0)))
        }
        "context_above_threshold" => {
            let usage = document["context"]["turn"]["context_usage"].as_f64();
            Ok(Value::Bool(usage > arguments[0].as_float()))
        }
        "message_count_above" => {
            let count = history["messages"].as_array().unwrap().len();
            Ok(Value::Bool(
                i64::try_from(count).ok() > arguments[0].as_int(),
            ))
        }
        "recent_tool_count" => {
            let last = usize::try_from(arguments[1].as_int().unwrap_or(0)).unwrap_or(0);
            let recent = tools.iter().rev().take(last);
            let count = recent.filter(|call| call["name"] == tool).count();
            Ok(Value::Int(i64::try_from(count).unwrap()))
        }
        other => Err(CallError::new(format!("`{other}` needs a clock"))),
    }
}
