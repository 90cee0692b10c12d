//! Messages, as Anthropic streams them.

use serde_json::{Value, json};

use super::play::Render;
use super::reply::Step;

/// Writes one answer.
pub(super) struct Messages {
    model: Value,
    /// The kind of the block that is open.
    open: Option<&'static str>,
    index: usize,
    calls: usize,
    input: u64,
    output: u64,
    cached: u64,
    stop_reason: Option<String>,
}

impl Messages {
    /// The input is told at the start, so the numbers are looked up ahead.
    pub(super) fn new(request: &Value, steps: &[Step]) -> Self {
        let counted = steps.iter().find_map(|step| match step {
            Step::Usage {
                input,
                output,
                cached,
            } => Some((*input, *output, *cached)),
            _ => None,
        });
        let (input, output, cached) = counted.unwrap_or((1, 1, 0));
        Self {
            model: request["model"].clone(),
            open: None,
            index: 0,
            calls: 0,
            input,
            output,
            cached,
            stop_reason: None,
        }
    }

    /// Goes on in the open block of this kind, or opens one.
    fn within(&mut self, kind: &'static str, start: &Value, events: &mut Vec<String>) {
        if self.open != Some(kind) {
            self.close(events);
            self.start(kind, start, events);
        }
    }

    fn start(&mut self, kind: &'static str, start: &Value, events: &mut Vec<String>) {
        self.open = Some(kind);
        let index = self.index;
        events.push(event(
            &json!({ "type": "content_block_start", "index": index, "content_block": start }),
        ));
    }

    fn delta(&self, delta: &Value) -> String {
        let index = self.index;
        event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
    }

    /// Ends the open block; reasoning is signed.
    fn close(&mut self, events: &mut Vec<String>) {
        let Some(kind) = self.open.take() else {
            return;
        };
        if kind == "thinking" {
            let signature = format!("signature-{}", self.index);
            events.push(self.delta(&json!({ "type": "signature_delta", "signature": signature })));
        }
        let index = self.index;
        events.push(event(
            &json!({ "type": "content_block_stop", "index": index }),
        ));
        self.index += 1;
    }
}

fn event(data: &Value) -> String {
    let name = data["type"].as_str().unwrap_or("message");
    format!("event: {name}\ndata: {data}\n\n")
}

impl Render for Messages {
    fn begin(&mut self) -> Vec<String> {
        let plain = self.input.saturating_sub(self.cached);
        let message = json!({
            "id": "msg_testkit",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "usage": { "input_tokens": plain, "cache_read_input_tokens": self.cached, "cache_creation_input_tokens": 0, "output_tokens": 1 },
        });
        vec![
            event(&json!({ "type": "message_start", "message": message })),
            event(&json!({ "type": "ping" })),
        ]
    }

    fn step(&mut self, step: &Step) -> Vec<String> {
        let mut events = Vec::new();
        match step {
            Step::Text(text) => {
                self.within("text", &json!({ "type": "text", "text": "" }), &mut events);
                events.push(self.delta(&json!({ "type": "text_delta", "text": text })));
            }
            Step::Reasoning(text) => {
                let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
                self.within("thinking", &start, &mut events);
                events.push(self.delta(&json!({ "type": "thinking_delta", "thinking": text })));
            }
            Step::ToolCall {
                id,
                name,
                fragments,
            } => {
                self.close(&mut events);
                let start = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                self.start("tool_use", &start, &mut events);
                let pieces = fragments.iter().map(|part| {
                    self.delta(&json!({ "type": "input_json_delta", "partial_json": part }))
                });
                events.extend(pieces);
                self.close(&mut events);
                self.calls += 1;
            }
            Step::StopReason(reason) => self.stop_reason = Some(reason.clone()),
            Step::Error { kind, message } => {
                events.push(event(
                    &json!({ "type": "error", "error": { "type": kind, "message": message } }),
                ));
            }
            _ => {}
        }
        events
    }

    fn end(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        self.close(&mut events);
        let usual = if self.calls > 0 {
            "tool_use"
        } else {
            "end_turn"
        };
        let reason = self.stop_reason.as_deref().unwrap_or(usual);
        events.push(event(&json!({
            "type": "message_delta",
            "delta": { "stop_reason": reason, "stop_sequence": null },
            "usage": { "output_tokens": self.output },
        })));
        events.push(event(&json!({ "type": "message_stop" })));
        events
    }
}
