//! The Responses protocol, as OpenAI streams it.

use serde_json::{Value, json};

use super::play::Render;
use super::reply::Step;

/// Renders the steps of a reply as events of the protocol.
pub(super) struct Responses {
    model: Value,
    sequence: usize,
    items: usize,
    /// The text item that is open, by its index.
    text: Option<(usize, String)>,
    reasoning: Option<(usize, String)>,
    usage: Value,
    stop_reason: Option<String>,
}

impl Responses {
    pub(super) fn new(request: &Value) -> Self {
        Self {
            model: request["model"].clone(),
            sequence: 0,
            items: 0,
            text: None,
            reasoning: None,
            usage: Value::Null,
            stop_reason: None,
        }
    }

    fn event(&mut self, mut data: Value) -> String {
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        let kind = data["type"].as_str().unwrap_or_default();
        format!("event: {kind}\ndata: {data}\n\n")
    }

    fn add_item(&mut self, item: Value, events: &mut Vec<String>) -> usize {
        let index = self.items;
        self.items += 1;
        let added =
            json!({ "type": "response.output_item.added", "output_index": index, "item": item });
        events.push(self.event(added));
        index
    }

    fn close_items(&mut self, events: &mut Vec<String>) {
        if let Some((index, text)) = self.reasoning.take() {
            let item = json!({
                "type": "reasoning", "id": format!("rs_{index}"), "encrypted_content": "c2VjcmV0",
                "summary": [{ "type": "summary_text", "text": text }],
            });
            let done =
                json!({ "type": "response.output_item.done", "output_index": index, "item": item });
            events.push(self.event(done));
        }
        if let Some((index, text)) = self.text.take() {
            let item = json!({
                "type": "message", "id": format!("msg_{index}"), "role": "assistant",
                "content": [{ "type": "output_text", "text": text }],
            });
            let done =
                json!({ "type": "response.output_item.done", "output_index": index, "item": item });
            events.push(self.event(done));
        }
    }

    fn call(&mut self, (id, name): (&str, &str), fragments: &[String]) -> Vec<String> {
        let mut events = Vec::new();
        self.close_items(&mut events);
        let item_id = format!("fc_{}", self.items);
        let item = |arguments: &str| {
            json!({
                "type": "function_call", "id": item_id, "call_id": id, "name": name,
                "arguments": arguments,
            })
        };
        let index = self.add_item(item(""), &mut events);
        for part in fragments {
            let delta = json!({
                "type": "response.function_call_arguments.delta", "item_id": item_id,
                "output_index": index, "delta": part,
            });
            events.push(self.event(delta));
        }
        let whole = item(&fragments.concat());
        let done =
            json!({ "type": "response.output_item.done", "output_index": index, "item": whole });
        events.push(self.event(done));
        events
    }
}

impl Render for Responses {
    fn begin(&mut self) -> Vec<String> {
        let response =
            json!({ "id": "resp_testkit", "model": self.model, "status": "in_progress" });
        vec![self.event(json!({ "type": "response.created", "response": response }))]
    }

    fn step(&mut self, step: &Step) -> Vec<String> {
        let mut events = Vec::new();
        match step {
            Step::Text(text) => {
                if self.text.is_none() {
                    self.close_items(&mut events);
                    let item = json!({ "type": "message", "role": "assistant", "content": [] });
                    self.text = Some((self.add_item(item, &mut events), String::new()));
                }
                if let Some((index, so_far)) = &mut self.text {
                    so_far.push_str(text);
                    let index = *index;
                    let delta = json!({
                        "type": "response.output_text.delta", "output_index": index,
                        "item_id": format!("msg_{index}"), "content_index": 0, "delta": text,
                    });
                    events.push(self.event(delta));
                }
            }
            Step::Reasoning(text) => {
                if self.reasoning.is_none() {
                    let item = json!({ "type": "reasoning", "summary": [] });
                    self.reasoning = Some((self.add_item(item, &mut events), String::new()));
                }
                if let Some((_, so_far)) = &mut self.reasoning {
                    so_far.push_str(text);
                }
                let delta =
                    json!({ "type": "response.reasoning_summary_text.delta", "delta": text });
                events.push(self.event(delta));
            }
            Step::ToolCall {
                id,
                name,
                fragments,
            } => events = self.call((id, name), fragments),
            Step::Usage {
                input,
                output,
                cached,
            } => {
                self.usage = json!({
                    "input_tokens": input,
                    "input_tokens_details": { "cached_tokens": cached },
                    "output_tokens": output,
                    "output_tokens_details": { "reasoning_tokens": 0 },
                    "total_tokens": input + output,
                });
            }
            Step::StopReason(reason) => self.stop_reason = Some(reason.clone()),
            Step::Error { kind, message } => {
                events
                    .push(self.event(json!({ "type": "error", "code": kind, "message": message })));
            }
            _ => {}
        }
        events
    }

    fn end(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        self.close_items(&mut events);
        let (kind, details) = match &self.stop_reason {
            Some(reason) => ("response.incomplete", json!({ "reason": reason })),
            None => ("response.completed", Value::Null),
        };
        let response = json!({
            "id": "resp_testkit", "model": self.model, "usage": self.usage,
            "incomplete_details": details,
        });
        events.push(self.event(json!({ "type": kind, "response": response })));
        events
    }
}
