//! Parameters and items of the plugin `agent`.

use dodona_proto::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ChatParams {
    /// The question.
    #[schemars(length(min = 1, max = 16384))]
    pub(crate) message: String,
}

/// The whole answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentResponse {
    /// The text; `[1]` refers to the first source.
    pub(crate) text: String,
    /// What it cites, in the order it does.
    pub(crate) sources: Vec<Source>,
    /// Which model answered.
    pub(crate) model: String,
    /// How many times it was asked.
    pub(crate) turns: u32,
}
