//! What every model can do.

use std::time::Duration;

use dodona_proto::{Message, ToolCall, Usage};
use futures_util::stream::BoxStream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ModelError;
use crate::price::Price;
use crate::tokens::TokenCounter;

/// What a model is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// How it should behave. It comes first and stays the same over the turns of a conversation,
    /// so that a provider's cache can hold it.
    pub system: String,
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// What it may ask for.
    pub tools: Vec<ToolOffer>,
    /// How to answer; what is absent is as the model is configured.
    pub options: ModelOptions,
}

/// How a model should answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelOptions {
    /// The longest answer, reasoning included.
    pub max_output_tokens: Option<u32>,
    /// How much chance decides, from 0.
    pub temperature: Option<f32>,
    /// How long it thinks first, where it can.
    pub reasoning: Option<ReasoningEffort>,
    /// Whether the model must answer without calling tools.
    #[serde(default)]
    pub without_tools: bool,
}

/// How long a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningEffort {
    /// Shortly.
    Low,
    /// As most do.
    Medium,
    /// Long.
    High,
}

/// A tool that a model may ask for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolOffer {
    /// Its name on the model's side, such as `vault_search`.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its parameters.
    pub parameters: Value,
}

/// What a model says, as it says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelEvent {
    /// Some more text.
    Text(String),
    /// Some more of what it thinks before it answers.
    Reasoning(String),
    /// A tool it wants, whole and in order.
    ToolCall(ToolCall),
    /// Some more of the arguments of a tool call that is being written, as JSON text. The whole call
    /// follows as a `ToolCall`, unless the request fails and is sent again.
    ToolArguments {
        /// The id of the call. Empty where the provider gives none.
        id: String,
        /// The name of the tool.
        name: String,
        /// The next part of the text.
        text: String,
    },
    /// What belongs into `opaque` of the answer's [`Message::Assistant`]; at most once.
    Opaque(Value),
    /// What the answer took; at most once, and also before an error where it is known.
    Usage(Usage),
    /// The request failed before the answer began, and is sent again.
    Retrying {
        /// The number of the next attempt, from 2.
        attempt: u32,
        /// The largest number of attempts.
        attempts: u32,
        /// The wait before it.
        after: Duration,
        /// Why the last attempt failed.
        reason: String,
        /// The model that is asked.
        model: String,
    },
    /// The model is unavailable, and its fallback answers. Usage and cost from here on are those of
    /// the fallback.
    FallingBack {
        /// The model that answers.
        model: String,
        /// Why the first one is unavailable.
        reason: String,
    },
    /// The answer is complete; always last, and never before an error.
    Finished(Finish),
}

/// What ended an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model has said what it had to say.
    Stop,
    /// It waits for tools.
    ToolCalls,
    /// The answer, or the window, is full.
    Length,
    /// The model or its provider will not answer this.
    Refused,
}

/// A model. The stream ends with [`ModelEvent::Finished`] or one error; dropping it ends the
/// request.
pub trait Model: Send + Sync {
    /// Its name, as it is configured.
    fn name(&self) -> &str;

    /// Answers a conversation.
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>>;

    /// Whether it only quotes: then nothing in its answer is its own.
    fn quotes(&self) -> bool {
        false
    }

    /// How many tokens it takes, request and answer together, where that is known.
    fn context_window(&self) -> Option<u32> {
        None
    }

    /// What it costs, where that is known.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Counts tokens as it does, or nearly so.
    fn counter(&self) -> TokenCounter {
        TokenCounter::default()
    }
}
