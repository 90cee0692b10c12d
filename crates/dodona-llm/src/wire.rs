//! What differs from one provider's protocol to another.

use dodona_proto::Usage;
use serde_json::Value;

use crate::http::Failure;
use crate::model::{Finish, ModelEvent, ModelOptions, ModelRequest};

/// A protocol: a request as its bytes, an answer from its events.
pub(crate) trait Wire: Send + Sync {
    /// Where requests go, below the base URL.
    fn path(&self) -> &'static str;

    /// The body of a request. What was sent before is written the same way again, byte for byte,
    /// so that a provider's cache recognises it.
    fn body(&self, request: &ModelRequest) -> Vec<u8>;

    /// Reads one answer.
    fn answer(&self) -> Box<dyn Answer>;

    /// The events of a complete answer that a server sent as one JSON object although a stream was
    /// requested. `None` if the object is not an answer of this protocol.
    fn events_of(&self, whole: &Value) -> Option<Vec<Value>>;
}

/// One answer, as it arrives.
pub(crate) trait Answer: Send {
    /// Takes an event's data, and says what is to be passed on. Both protocols say in the data
    /// what an event is.
    fn take(&mut self, data: &str, out: &mut Vec<ModelEvent>) -> Result<Progress, Failure>;

    /// The connection has ended without the mark that ends an answer: is it one all the same?
    fn cut_short(&mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, Failure>;

    /// What the answer took, as far as it is known.
    fn usage(&self) -> Option<Usage>;
}

/// Where an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing was said: an event that only keeps the connection open.
    Nothing,
    More,
    Complete(Finish),
}

/// An answer that ends before it is complete.
pub(crate) fn truncated() -> Failure {
    Failure::passing("the answer ends in the middle: the connection was closed early")
}

/// An answer that cannot be read.
pub(crate) fn garbled(what: impl std::fmt::Display) -> Failure {
    Failure::passing(format!("the answer cannot be read: {what}"))
}

/// A request's options over those of the configuration.
pub(crate) fn options(asked: &ModelOptions, configured: &ModelOptions) -> ModelOptions {
    ModelOptions {
        max_output_tokens: asked.max_output_tokens.or(configured.max_output_tokens),
        temperature: asked.temperature.or(configured.temperature),
        reasoning: asked.reasoning.or(configured.reasoning),
        without_tools: asked.without_tools,
    }
}
