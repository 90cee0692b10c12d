//! An answer of the Responses protocol.

use dodona_proto::{ToolCall, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::request::keep_reasoning;
use crate::arguments;
use crate::count;
use crate::http::Failure;
use crate::model::{Finish, ModelEvent};
use crate::wire::{Answer, Progress, garbled, truncated};

/// Reads the events of one answer.
pub(super) struct ResponseReader {
    model: String,
    host: String,
    calls: Vec<PartialCall>,
    reasoning: Vec<Value>,
    usage: Option<Usage>,
    has_text: bool,
    is_refused: bool,
}

/// A tool call, as far as it has arrived.
#[derive(Default)]
struct PartialCall {
    item_id: String,
    call_id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    delta: Option<String>,
    #[serde(default)]
    item_id: Option<String>,
    #[serde(default)]
    item: Option<Item>,
    #[serde(default)]
    response: Option<Response>,
    /// Of the event `error`.
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
    /// Of servers that wrap the error.
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
    #[serde(default)]
    content: Option<Vec<Value>>,
    #[serde(default)]
    summary: Option<Value>,
    #[serde(default)]
    encrypted_content: Option<Value>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default, deserialize_with = "count::optional")]
    usage: Option<Counted>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    incomplete_details: Option<Value>,
    #[serde(default)]
    output: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Counted {
    #[serde(default, deserialize_with = "count::tokens")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count::tokens")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count::optional")]
    input_tokens_details: Option<InputDetails>,
    #[serde(default, deserialize_with = "count::optional")]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Default, Deserialize)]
struct InputDetails {
    #[serde(default, deserialize_with = "count::tokens")]
    cached_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
struct OutputDetails {
    #[serde(default, deserialize_with = "count::tokens")]
    reasoning_tokens: Option<u64>,
}

impl From<Counted> for Usage {
    fn from(counted: Counted) -> Self {
        let input = counted.input_tokens_details.unwrap_or_default();
        let output = counted.output_tokens_details.unwrap_or_default();
        Self {
            input_tokens: counted.input_tokens.unwrap_or(0),
            output_tokens: counted.output_tokens.unwrap_or(0),
            cached_input_tokens: input.cached_tokens.unwrap_or(0),
            cache_write_tokens: 0,
            reasoning_tokens: output.reasoning_tokens.unwrap_or(0),
        }
    }
}

impl ResponseReader {
    pub(super) fn new(model: &str, host: &str) -> Self {
        Self {
            model: model.to_owned(),
            host: host.to_owned(),
            calls: Vec::new(),
            reasoning: Vec::new(),
            usage: None,
            has_text: false,
            is_refused: false,
        }
    }

    fn take_text(&mut self, text: String, out: &mut Vec<ModelEvent>) {
        if !text.is_empty() {
            self.has_text = true;
            out.push(ModelEvent::Text(text));
        }
    }

    fn call(&mut self, item_id: &str) -> &mut PartialCall {
        let known = self.calls.iter().position(|call| call.item_id == item_id);
        let index = known.unwrap_or_else(|| {
            self.calls.push(PartialCall {
                item_id: item_id.to_owned(),
                ..PartialCall::default()
            });
            self.calls.len() - 1
        });
        &mut self.calls[index]
    }

    /// Takes an item that begins or is complete.
    fn take_item(&mut self, item: Item, is_done: bool, out: &mut Vec<ModelEvent>) {
        match item.kind.as_str() {
            "function_call" => {
                let call_id = item.call_id.unwrap_or_default();
                let item_id = item.id.unwrap_or_else(|| call_id.clone());
                let call = self.call(&item_id);
                call.call_id = call_id;
                call.name = item.name.unwrap_or_default();
                if let Some(whole) = item.arguments.filter(|_| is_done) {
                    call.arguments = whole;
                }
            }
            "reasoning" if is_done => {
                let mut kept = json!({
                    "type": "reasoning",
                    "id": item.id,
                    "summary": item.summary.unwrap_or_else(|| json!([])),
                });
                if let Some(encrypted) = item.encrypted_content.filter(Value::is_string) {
                    kept["encrypted_content"] = encrypted;
                    self.reasoning.push(kept);
                }
            }
            // Servers that send no deltas.
            "message" if is_done && !self.has_text => {
                for part in item.content.unwrap_or_default() {
                    let text = part["text"].as_str().or(part["refusal"].as_str());
                    self.is_refused |= part["refusal"].is_string();
                    self.take_text(text.unwrap_or_default().to_owned(), out);
                }
            }
            _ => {}
        }
    }

    /// Takes the end of the answer.
    fn take_end(
        &mut self,
        response: Option<Response>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Finish, Failure> {
        let mut reason = None;
        if let Some(response) = response {
            if let Some(counted) = response.usage {
                self.usage = Some(counted.into());
            }
            // Items that had no event of their own.
            for item in response.output.unwrap_or_default() {
                let known = |call: &PartialCall| Some(&call.call_id) == item.call_id.as_ref();
                let is_new_call = item.kind == "function_call" && !self.calls.iter().any(known);
                if is_new_call || item.kind == "message" {
                    self.take_item(item, true, out);
                }
            }
            let details = response.incomplete_details.unwrap_or_default();
            reason = details["reason"].as_str().map(str::to_owned);
        }
        let calls = std::mem::take(&mut self.calls);
        let has_calls = !calls.is_empty();
        for call in calls {
            if call.name.is_empty() {
                return Err(garbled("a tool call has no name"));
            }
            out.push(ModelEvent::ToolCall(ToolCall {
                id: match call.call_id.is_empty() {
                    true => call.item_id,
                    false => call.call_id,
                },
                name: call.name,
                arguments: arguments::parse(&call.arguments),
            }));
        }
        if has_calls {
            let kept = keep_reasoning(std::mem::take(&mut self.reasoning), &self.model);
            out.extend(kept.map(ModelEvent::Opaque));
        }
        Ok(match reason.as_deref() {
            Some("content_filter") => Finish::Refused,
            Some(_) => Finish::Length,
            None if has_calls => Finish::ToolCalls,
            None if self.is_refused => Finish::Refused,
            None => Finish::Stop,
        })
    }
}

impl Answer for ResponseReader {
    fn take(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<Progress, Failure> {
        let data = data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(Progress::Nothing);
        }
        let event: Event = serde_json::from_str(data).map_err(garbled)?;
        let delta = event.delta.unwrap_or_default();
        match event.kind.as_str() {
            "response.output_text.delta" => self.take_text(delta, out),
            "response.refusal.delta" => {
                self.is_refused = true;
                self.take_text(delta, out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                out.extend((!delta.is_empty()).then_some(ModelEvent::Reasoning(delta)));
            }
            "response.function_call_arguments.delta" => {
                let item_id = event.item_id.unwrap_or_default();
                self.call(&item_id).arguments.push_str(&delta);
            }
            "response.output_item.added" => {
                if let Some(item) = event.item {
                    self.take_item(item, false, out);
                }
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.take_item(item, true, out);
                }
            }
            "response.completed" | "response.incomplete" => {
                return Ok(Progress::Complete(self.take_end(event.response, out)?));
            }
            "response.failed" => {
                let error = event.response.and_then(|response| response.error);
                return Err(Failure::of_event(&error.unwrap_or_default(), &self.host));
            }
            "error" => {
                let error = event
                    .error
                    .unwrap_or_else(|| json!({ "code": event.code, "message": event.message }));
                return Err(Failure::of_event(&error, &self.host));
            }
            _ => {}
        }
        Ok(Progress::More)
    }

    fn cut_short(&mut self, _out: &mut Vec<ModelEvent>) -> Result<Finish, Failure> {
        // Every answer ends with an event of its own.
        Err(truncated())
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }
}
