//! What can be called on a rule's context, answered from its JSON form.

use dodona_script::Host;
use jiff::Timestamp;
use serde_json::{Value as Json, json};

/// Functions without an object.
pub(super) const GLOBAL: &[&str] = &[
    "tool_completed",
    "tool_failed",
    "failure_count",
    "context_above_threshold",
    "message_count_above",
    "recent_tool_count",
    "time_since_last_tool",
    "session_duration_minutes",
];

/// Methods of `context`.
pub(super) const CONTEXT: &[&str] = &["project_state"];

/// Methods of `context.history`.
pub(super) const HISTORY: &[&str] = &["get_failures_for_tool"];

/// Methods of `context.state`.
pub(super) const STATE: &[&str] = &["get", "has", "keys"];

/// The functions, for a script.
pub(super) fn host(document: &Json) -> Host {
    GLOBAL.iter().fold(Host::new(), |host, name| {
        let document = document.clone();
        host.function(name, move |given| call(&document, name, given.arguments))
    })
}

/// Calls one by its full name.
pub(super) fn call(document: &Json, name: &str, arguments: &[Json]) -> Result<Json, String> {
    let context = &document["context"];
    let text = |index: usize| {
        let found = arguments.get(index).and_then(Json::as_str);
        found.ok_or_else(|| format!("`{name}` needs a text as argument {}", index + 1))
    };
    let number = |index: usize| {
        let found = arguments.get(index).and_then(Json::as_f64);
        found.ok_or_else(|| format!("`{name}` needs a number as argument {}", index + 1))
    };
    Ok(match name {
        "tool_completed" => json!(calls(context, text(0)?).any(|call| call["success"] == true)),
        "tool_failed" => {
            let tool = text(0)?;
            let failed = calls(context, tool).any(|call| call["success"] == false);
            json!(failed || failures(context, tool) > 0)
        }
        "failure_count" | "context.history.get_failures_for_tool" => {
            json!(failures(context, text(0)?))
        }
        "context_above_threshold" => {
            let usage = context["turn"]["context_usage"].as_f64();
            json!(usage.unwrap_or_default() > number(0)?)
        }
        "message_count_above" => {
            #[expect(clippy::cast_precision_loss, reason = "no conversation is that long")]
            let count = tools_or_messages(context, "messages").len() as f64;
            json!(count > number(0)?)
        }
        "recent_tool_count" => {
            let tool = text(0)?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a cast of a float saturates, and a negative count counts nothing"
            )]
            let last = number(1)? as usize;
            let tools = tools_or_messages(context, "tools");
            let recent = tools.iter().rev().take(last);
            json!(recent.filter(|call| call["name"] == tool).count())
        }
        "time_since_last_tool" => json!(seconds_since(context, <[Json]>::last)),
        "session_duration_minutes" => json!(seconds_since(context, <[Json]>::first) / 60.0),
        "context.project_state" => match &context["project_state"][text(0)?] {
            Json::Null => json!({}),
            state => state.clone(),
        },
        "context.state.get" => {
            let given = arguments.get(1).cloned();
            let found = context["state"].get(text(0)?).cloned();
            found.or(given).unwrap_or_default()
        }
        "context.state.has" => json!(context["state"].get(text(0)?).is_some()),
        "context.state.keys" => {
            let fields = context["state"].as_object();
            json!(
                fields
                    .map(|fields| fields.keys().collect::<Vec<_>>())
                    .unwrap_or_default()
            )
        }
        _ => return Err(format!("unknown name `{name}`")),
    })
}

fn tools_or_messages<'c>(context: &'c Json, which: &str) -> &'c [Json] {
    let list = context["history"][which].as_array();
    list.map(Vec::as_slice).unwrap_or_default()
}

fn calls<'c>(context: &'c Json, tool: &'c str) -> impl Iterator<Item = &'c Json> {
    let tools = tools_or_messages(context, "tools").iter();
    tools.filter(move |call| call["name"] == tool)
}

fn failures(context: &Json, tool: &str) -> i64 {
    context["history"]["failures"][tool]
        .as_i64()
        .unwrap_or_default()
}

/// Seconds from a tool call to the event. A context says all that a rule may know, the time
/// included: without an event, or without a call, no time has passed.
fn seconds_since(context: &Json, which: impl Fn(&[Json]) -> Option<&Json>) -> f64 {
    let time = |value: &Json| {
        value
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok())
    };
    let now = time(&context["event"]["timestamp"]);
    let then = which(tools_or_messages(context, "tools")).and_then(|call| time(&call["timestamp"]));
    match (now, then) {
        (Some(now), Some(then)) => now.duration_since(then).as_secs_f64().max(0.0),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_answer_from_the_context() {
        let tool = |name: &str, success: bool, at: &str| json!({ "name": name, "success": success, "timestamp": at });
        let document = json!({ "context": {
            "turn": { "context_usage": 0.5 },
            "event": { "timestamp": "2026-01-01T00:10:30Z" },
            "state": { "seen": 3 },
            "history": {
                "messages": [{}, {}],
                "tools": [tool("a", true, "2026-01-01T00:00:00Z"), tool("b", false, "2026-01-01T00:10:00Z")],
                "failures": { "b": 2 },
            },
        } });
        for (name, arguments, expected) in [
            ("tool_completed", json!(["a"]), json!(true)),
            ("tool_completed", json!(["b"]), json!(false)),
            ("tool_failed", json!(["b"]), json!(true)),
            ("failure_count", json!(["b"]), json!(2)),
            (
                "context.history.get_failures_for_tool",
                json!(["x"]),
                json!(0),
            ),
            ("context_above_threshold", json!([0.5]), json!(false)),
            ("message_count_above", json!([1]), json!(true)),
            ("recent_tool_count", json!(["a", 1]), json!(0)),
            ("recent_tool_count", json!(["a", 9]), json!(1)),
            ("time_since_last_tool", json!([]), json!(30.0)),
            ("session_duration_minutes", json!([]), json!(10.5)),
            ("context.state.get", json!(["seen"]), json!(3)),
            ("context.state.get", json!(["new", 7]), json!(7)),
            ("context.state.has", json!(["new"]), json!(false)),
            ("context.state.keys", json!([]), json!(["seen"])),
        ] {
            let arguments = arguments.as_array().cloned().unwrap_or_default();
            assert_eq!(call(&document, name, &arguments), Ok(expected), "{name}");
        }
        assert!(call(&document, "failure_count", &[]).is_err());
    }
}
