//! OpenAI's chat completions, which OpenRouter, Ollama, vLLM and llama.cpp speak too.

mod answer;
mod reasoning;
mod request;
mod tool_calls;

use serde_json::{Value, json};

use crate::model::{ModelOptions, ModelRequest};
use crate::wire::{Answer, Wire};

/// The protocol, for one model.
pub(crate) struct ChatCompletions {
    /// The provider's name for it.
    pub(crate) model: String,
    pub(crate) options: ModelOptions,
    pub(crate) limit_field: LimitField,
    pub(crate) cache_field: CacheField,
    pub(crate) host: String,
}

/// How the longest answer is told: OpenAI has renamed the field, others have not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitField {
    MaxTokens,
    MaxCompletionTokens,
}

/// Whether the cache must be asked for: behind OpenRouter some models want that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheField {
    Absent,
    Ephemeral,
}

impl Wire for ChatCompletions {
    fn path(&self) -> &'static str {
        "chat/completions"
    }

    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(self, request)
    }

    fn answer(&self) -> Box<dyn Answer> {
        Box::new(answer::Completion::new(&self.model, &self.host))
    }

    fn events_of(&self, whole: &Value) -> Option<Vec<Value>> {
        let choices = whole.get("choices")?.as_array()?;
        if choices.is_empty() {
            return None;
        }
        let chunks = choices.iter().map(|choice| {
            let mut delta = choice["message"].clone();
            let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
            for (index, call) in calls.into_iter().flatten().enumerate() {
                call["index"] = json!(index);
            }
            json!({
                "index": choice["index"],
                "delta": delta,
                "finish_reason": choice["finish_reason"],
            })
        });
        let chunks: Vec<Value> = chunks.collect();
        let chunk = json!({ "id": whole["id"], "choices": chunks, "usage": whole["usage"] });
        Some(vec![chunk, json!(answer::DONE)])
    }
}
