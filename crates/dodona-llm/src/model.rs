//! What every model can do.

use dodona_proto::{Message, ToolCall};
use futures_util::stream::BoxStream;
use serde_json::Value;

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The conversation so far.
    pub messages: Vec<Message>,
    /// What it may ask for.
    pub tools: Vec<ToolOffer>,
}

/// A tool that a model may ask for.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOffer {
    /// Its name on the model's side, such as `vault_search`.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its parameters.
    pub parameters: Value,
}

/// What a model says, as it says it.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// Some more text.
    Text(String),
    /// A tool it wants, whole.
    ToolCall(ToolCall),
}

/// Why a model did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// There is nothing to answer.
    #[error("the conversation holds no question")]
    NoQuestion,
}

/// A model. The stream ends with its answer; dropping it ends the request.
pub trait Model: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Answers a conversation.
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>>;
}
