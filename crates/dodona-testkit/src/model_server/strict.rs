//! What strict providers refuse.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Dialect, SeenRequest};

type Checked = Result<(), String>;

pub(super) fn check(dialect: Dialect, seen: &SeenRequest) -> Checked {
    if dialect == Dialect::Responses {
        check_tools(dialect, &seen.body)?;
        let items = seen.body["input"].as_array();
        return responses(items.ok_or("`input` is not a list")?);
    }
    let messages = seen.body["messages"]
        .as_array()
        .ok_or("`messages` is no list")?;
    check_tools(dialect, &seen.body)?;
    match dialect {
        Dialect::Chat | Dialect::Responses => chat(messages),
        Dialect::Messages => {
            refuse(seen.header("anthropic-version").is_empty(), || {
                "the header `anthropic-version` is missing".to_owned()
            })?;
            refuse(seen.body["max_tokens"].as_u64().is_none(), || {
                "`max_tokens` is missing".to_owned()
            })?;
            alternating(messages)
        }
    }
}

fn refuse(is_wrong: bool, what: impl FnOnce() -> String) -> Checked {
    if is_wrong { Err(what()) } else { Ok(()) }
}

fn check_tools(dialect: Dialect, body: &Value) -> Checked {
    for tool in body["tools"].as_array().into_iter().flatten() {
        let (tool, schema) = match dialect {
            Dialect::Chat => (&tool["function"], "parameters"),
            Dialect::Responses => (tool, "parameters"),
            Dialect::Messages => (tool, "input_schema"),
        };
        let name = tool["name"].as_str().unwrap_or_default();
        refuse(!is_plain(name), || format!("`{name}` is no tool name"))?;
        refuse(tool[schema]["type"] != "object", || {
            format!("the parameters of `{name}` are no object")
        })?;
    }
    Ok(())
}

fn is_plain(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&name.len()) && name.chars().all(fits)
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

/// Chat completions: every call is answered exactly once before anything else is said.
fn chat(messages: &[Value]) -> Checked {
    let mut open: BTreeSet<String> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        let wrong = |what: &str| Err(format!("messages[{at}]: {what}"));
        if role != "tool" && !open.is_empty() {
            return wrong(&format!("the calls {open:?} are not answered"));
        }
        match role {
            "system" if at == 0 && is_text(&message["content"]) => {}
            "user" if is_text(&message["content"]) => {}
            "assistant" => {
                open = chat_calls(message).map_err(|what| format!("messages[{at}]: {what}"))?;
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                if !open.remove(id) {
                    return wrong(&format!("`{id}` answers no open call"));
                }
                if !message["content"].is_string() {
                    return wrong("a result has no content");
                }
            }
            role => return wrong(&format!("the role `{role}` is out of place or empty")),
        }
    }
    refuse(!open.is_empty(), || {
        format!("the calls {open:?} are not answered")
    })?;
    let last = messages.last().map(|message| &message["role"]);
    refuse(
        !last.is_some_and(|role| role == "user" || role == "tool"),
        || "there is nothing to answer".to_owned(),
    )
}

/// Responses: every call has exactly one output before the next message.
fn responses(items: &[Value]) -> Checked {
    let mut open: BTreeSet<String> = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let wrong = |what: &str| Err(format!("input[{at}]: {what}"));
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str().unwrap_or("message") {
            "function_call" => {
                let arguments = item["arguments"].as_str().unwrap_or_default();
                let parsed: Result<Value, _> = serde_json::from_str(arguments);
                if !parsed.is_ok_and(|value| value.is_object()) {
                    return wrong("the arguments are not a JSON object");
                }
                if !is_plain(item["name"].as_str().unwrap_or_default()) {
                    return wrong("the call has no name");
                }
                if id.is_empty() || !open.insert(id.to_owned()) {
                    return wrong("the call id is empty or used twice");
                }
            }
            "function_call_output" if !open.remove(id) => return wrong("no open call has this id"),
            "function_call_output" if item["output"].is_string() => {}
            "function_call_output" => return wrong("an output has no text"),
            "reasoning" if item["encrypted_content"].is_string() => {}
            "message" if !open.is_empty() => return wrong("calls have no output"),
            "message" if is_text(&item["content"]) => {}
            kind => return wrong(&format!("`{kind}` is empty or unknown")),
        }
    }
    refuse(!open.is_empty(), || {
        format!("the calls {open:?} have no output")
    })?;
    let last = items.last().map(|item| (&item["role"], &item["type"]));
    refuse(
        !last.is_some_and(|(role, kind)| role == "user" || kind == "function_call_output"),
        || "there is nothing to answer".to_owned(),
    )
}

/// The ids of the calls of an assistant's message.
fn chat_calls(message: &Value) -> Result<BTreeSet<String>, String> {
    let mut ids = BTreeSet::new();
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let id = call["id"].as_str().unwrap_or_default();
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        let parsed: Result<Value, _> = serde_json::from_str(arguments);
        if !parsed.is_ok_and(|value| value.is_object()) {
            return Err(format!("the arguments of `{id}` are no JSON object"));
        }
        if !is_plain(call["function"]["name"].as_str().unwrap_or_default()) {
            return Err(format!("the call `{id}` has no name"));
        }
        if id.is_empty() || !ids.insert(id.to_owned()) {
            return Err(format!("the id `{id}` is empty or used twice"));
        }
    }
    match ids.is_empty() && !is_text(&message["content"]) {
        true => Err("an assistant's message is empty".to_owned()),
        false => Ok(ids),
    }
}

/// Messages: user and assistant in turn, results first in the turn after their calls.
fn alternating(messages: &[Value]) -> Checked {
    let mut open: BTreeSet<String> = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        let wrong = |what: String| format!("messages[{at}]: {what}");
        refuse(message["role"] != expected, || {
            wrong(format!("`{expected}` was expected"))
        })?;
        let blocks = message["content"].as_array();
        let blocks = blocks.ok_or_else(|| wrong("the content is no list".to_owned()))?;
        refuse(blocks.is_empty(), || wrong("nothing is said".to_owned()))?;
        open = match expected {
            "user" => user_turn(blocks, open),
            _ => assistant_turn(blocks),
        }
        .map_err(wrong)?;
    }
    refuse(messages.len().is_multiple_of(2), || {
        "there is nothing to answer".to_owned()
    })
}

fn user_turn(blocks: &[Value], mut open: BTreeSet<String>) -> Result<BTreeSet<String>, String> {
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "tool_result" => {
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                if !open.remove(id) {
                    return Err(format!("`{id}` answers no open call"));
                }
            }
            "text" if is_text(&block["text"]) && open.is_empty() => {}
            "text" => return Err(format!("a text is empty, or comes before {open:?}")),
            kind => return Err(format!("a user says no `{kind}`")),
        }
    }
    match open.is_empty() {
        true => Ok(open),
        false => Err(format!("the calls {open:?} are not answered")),
    }
}

fn assistant_turn(blocks: &[Value]) -> Result<BTreeSet<String>, String> {
    let mut open = BTreeSet::new();
    let mut says_something = false;
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "text" if is_text(&block["text"]) => says_something = true,
            "thinking" if is_text(&block["signature"]) => {}
            "redacted_thinking" if is_text(&block["data"]) => {}
            "tool_use" => {
                let id = block["id"].as_str().unwrap_or_default();
                let named = is_plain(block["name"].as_str().unwrap_or_default());
                if !is_plain(id) || !named || !block["input"].is_object() {
                    return Err(format!("the call `{id}` is not well formed"));
                }
                if !open.insert(id.to_owned()) {
                    return Err(format!("the id `{id}` is used twice"));
                }
            }
            kind => return Err(format!("an assistant's `{kind}` is empty or unknown")),
        }
    }
    match says_something || !open.is_empty() {
        true => Ok(open),
        false => Err("an assistant's message holds no text and no call".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Bytes;
    use axum::http::{HeaderMap, Method};
    use serde_json::json;

    fn said(dialect: Dialect, messages: &Value) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", "2023-06-01".parse().unwrap());
        let seen = SeenRequest {
            method: Method::POST,
            path: String::new(),
            headers,
            bytes: Bytes::new(),
            body: json!({ "messages": messages, "max_tokens": 1 }),
        };
        check(dialect, &seen).err().unwrap_or_default()
    }

    fn call(id: &str) -> Value {
        json!({ "id": id, "function": { "name": "read", "arguments": "{}" } })
    }

    #[test]
    fn chat_conversations_are_looked_at() {
        let user = json!({ "role": "user", "content": "hello" });
        let calls =
            json!({ "role": "assistant", "content": null, "tool_calls": [call("a"), call("b")] });
        let result = |id| json!({ "role": "tool", "tool_call_id": id, "content": "{}" });
        let good = json!([user, calls, result("b"), result("a")]);
        assert_eq!(said(Dialect::Chat, &good), "");
        let faults = [
            (json!([user, calls, result("a")]), "not answered"),
            (
                json!([user, calls, result("a"), user, result("b")]),
                "not answered",
            ),
            (json!([user, result("a")]), "no open call"),
            (
                json!([user, calls, result("a"), result("a")]),
                "no open call",
            ),
            (json!([{ "role": "user", "content": "" }]), "out of place"),
            (
                json!([user, { "role": "assistant", "content": "" }]),
                "empty",
            ),
            (
                json!([user, { "role": "assistant", "content": "yes" }]),
                "nothing to answer",
            ),
        ];
        for (messages, expected) in faults {
            let found = said(Dialect::Chat, &messages);
            assert!(found.contains(expected), "{found:?} for {messages}");
        }
    }

    #[test]
    fn message_conversations_are_looked_at() {
        let user = json!({ "role": "user", "content": [{ "type": "text", "text": "hello" }] });
        let use_ = |id| json!({ "type": "tool_use", "id": id, "name": "read", "input": {} });
        let calls = json!({ "role": "assistant", "content": [use_("a"), use_("b")] });
        let result = |id| json!({ "type": "tool_result", "tool_use_id": id, "content": "{}" });
        let answer = |blocks: Value| json!({ "role": "user", "content": blocks });
        let both = answer(json!([result("a"), result("b")]));
        assert_eq!(said(Dialect::Messages, &json!([user, calls, both])), "");
        let faults = [
            (json!([user, user]), "`assistant` was expected"),
            (json!([user, calls, user]), "comes before"),
            (
                json!([user, calls, answer(json!([result("a")]))]),
                "not answered",
            ),
            (json!([answer(json!([]))]), "nothing is said"),
            (
                json!([user, { "role": "assistant", "content": [{ "type": "thinking", "thinking": "hm", "signature": "" }] }]),
                "empty or unknown",
            ),
            (json!([user, calls]), "nothing to answer"),
        ];
        for (messages, expected) in faults {
            let found = said(Dialect::Messages, &messages);
            assert!(found.contains(expected), "{found:?} for {messages}");
        }
    }
}
