//! What the model says: two or three turns with tools, and an answer that says which question it
//! answers.

use std::time::Duration;

use dodona_testkit::model_server::{Reply, SeenRequest, Step};
use serde_json::Value;

/// The words of a question.
pub(super) fn question(number: u64) -> String {
    format!("question {number}")
}

/// The answer to a question.
pub(super) fn answer(number: u64) -> String {
    format!("This is the answer to question {number}, in a few pieces.")
}

/// The ids of the calls that a question takes, in order, with their endings.
pub(super) fn calls(number: u64) -> Vec<(String, &'static str)> {
    let id = |turn: usize, call: usize| format!("call-{number}-{turn}-{call}");
    let mut calls = vec![
        (id(0, 0), "success"),
        (id(0, 1), "error"),
        (id(0, 2), "success"),
        (id(0, 3), "success"),
    ];
    if takes_long(number) {
        calls.push((id(1, 0), "success"));
        calls.push((id(1, 1), "success"));
    }
    calls
}

/// Whether a call, by its id, writes a file of that name.
pub(super) fn writes(id: &str) -> bool {
    id.ends_with("-0-3") || id.ends_with("-1-0")
}

fn takes_long(number: u64) -> bool {
    number.is_multiple_of(2)
}

/// The next thing to say in a conversation.
pub(super) fn reply(request: &SeenRequest) -> Reply {
    let none = Vec::new();
    let messages = request.body["messages"].as_array().unwrap_or(&none);
    let asked = messages
        .iter()
        .rposition(|message| message["role"] == "user");
    let (Some(asked), pause) = (asked, Step::Delay(Duration::from_millis(2))) else {
        return Reply::status(500).message("nothing was asked");
    };
    let number = number(&messages[asked]);
    let said = &messages[asked + 1..];
    let turns = said.iter().filter(|message| message["role"] == "assistant");
    let id = |turn: usize, call: usize| format!("call-{number}-{turn}-{call}");
    let mark = |id: &str| format!(r#"{{"text":"{id}"}}"#);
    match turns.count() {
        0 => {
            let (first, fails, last, write) = (id(0, 0), id(0, 1), id(0, 2), id(0, 3));
            Reply::text("Let me look.")
                .step(pause)
                .tool_call(&first, "marks_mark", &[&mark(&first)])
                .tool_call(&fails, "marks_fail", &["{}"])
                .tool_call(&last, "marks_mark", &[&mark(&last)])
                .tool_call(&write, "marks_write", &[&mark(&write)])
        }
        1 if takes_long(number) => {
            let (write, last) = (id(1, 0), id(1, 1));
            Reply::stream()
                .tool_call(&write, "marks_write", &[&mark(&write)])
                .tool_call(&last, "marks_mark", &[&mark(&last)])
        }
        _ => {
            let mut reply = Reply::stream();
            for word in answer(number).split_inclusive(' ') {
                reply = reply.add_text(word).step(pause.clone());
            }
            reply.usage(100, 10, 0)
        }
    }
}

fn number(message: &Value) -> u64 {
    let text = message["content"].as_str().unwrap_or_default();
    let number = text.strip_prefix("question ").map(str::parse);
    number.and_then(Result::ok).unwrap_or(0)
}
