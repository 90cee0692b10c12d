//! OpenAI's chat completions, which OpenRouter, Ollama, vLLM and llama.cpp speak too.

mod answer;
mod reasoning;
mod request;
mod tool_calls;

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
}
