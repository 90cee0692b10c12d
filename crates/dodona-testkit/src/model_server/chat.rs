//! Chat completions, as OpenAI streams them.

use serde_json::{Value, json};

use super::play::Render;
use super::reply::Step;

/// Writes one answer.
pub(super) struct Chat {
    model: Value,
    wants_usage: bool,
    calls: usize,
    usage: Option<Value>,
    stop_reason: Option<String>,
}

impl Chat {
    pub(super) fn new(request: &Value) -> Self {
        Self {
            model: request["model"].clone(),
            wants_usage: request["stream_options"]["include_usage"] == true,
            calls: 0,
            usage: None,
            stop_reason: None,
        }
    }

    fn chunk(&self, choices: &Value, usage: Option<&Value>) -> String {
        let mut chunk = json!({
            "id": "chatcmpl-testkit",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": self.model,
            "choices": choices,
        });
        if self.wants_usage {
            chunk["usage"] = usage.cloned().unwrap_or_default();
        }
        event(&chunk)
    }

    fn delta(&self, delta: &Value) -> String {
        let choice = json!([{ "index": 0, "delta": delta, "finish_reason": null }]);
        self.chunk(&choice, None)
    }
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

impl Render for Chat {
    fn begin(&mut self) -> Vec<String> {
        vec![self.delta(&json!({ "role": "assistant", "content": "" }))]
    }

    fn step(&mut self, step: &Step) -> Vec<String> {
        match step {
            Step::Text(text) => vec![self.delta(&json!({ "content": text }))],
            Step::Reasoning(text) => vec![self.delta(&json!({ "reasoning_content": text }))],
            Step::ToolCall {
                id,
                name,
                fragments,
            } => {
                let index = self.calls;
                self.calls += 1;
                let start = json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } });
                let more = fragments
                    .iter()
                    .map(|part| json!({ "index": index, "function": { "arguments": part } }));
                let pieces = [start].into_iter().chain(more);
                pieces
                    .map(|piece| self.delta(&json!({ "tool_calls": [piece] })))
                    .collect()
            }
            Step::Usage {
                input,
                output,
                cached,
            } => {
                self.usage = Some(json!({
                    "prompt_tokens": input,
                    "completion_tokens": output,
                    "total_tokens": input + output,
                    "prompt_tokens_details": { "cached_tokens": cached },
                    "completion_tokens_details": { "reasoning_tokens": 0 },
                }));
                Vec::new()
            }
            Step::StopReason(reason) => {
                self.stop_reason = Some(reason.clone());
                Vec::new()
            }
            Step::Error { kind, message } => {
                vec![event(
                    &json!({ "error": { "type": kind, "message": message } }),
                )]
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self) -> Vec<String> {
        let usual = if self.calls > 0 { "tool_calls" } else { "stop" };
        let reason = self.stop_reason.as_deref().unwrap_or(usual);
        let last = json!([{ "index": 0, "delta": {}, "finish_reason": reason }]);
        let mut events = vec![self.chunk(&last, None)];
        if let Some(usage) = self.usage.as_ref().filter(|_| self.wants_usage) {
            events.push(self.chunk(&json!([]), Some(usage)));
        }
        events.push("data: [DONE]\n\n".to_owned());
        events
    }
}
