//! Parameters and items of `agent.chat`.

use dodona_plugin::{CallError, ErrorCode};
use dodona_proto::{Source, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ChatParams {
    /// The name of the agent that answers, from `agent.list`. Default: the agent of the
    /// conversation, or `oracle` where none is named. A conversation belongs to one agent; naming
    /// another one is an error.
    #[schemars(length(min = 1, max = 50))]
    pub(crate) agent_id: Option<String>,
    /// The question. What the conversation has no room for is cut; the model can read it in parts.
    #[schemars(length(min = 1, max = 4194304))]
    pub(crate) message: String,
    /// The conversation, by id or name. Default: the agent's default conversation, which the first
    /// question creates.
    pub(crate) context_id: Option<String>,
    /// The model, by its name in the configuration. Default: the agent's `model_override`, or the
    /// default model.
    pub(crate) model: Option<String>,
    /// Whether the model is offered tools.
    #[serde(default = "yes")]
    pub(crate) tools: bool,
}

fn yes() -> bool {
    true
}

/// The whole answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentResponse {
    /// The text; `[1]` refers to the first source.
    pub(crate) text: String,
    /// What it cites, in the order it does.
    pub(crate) sources: Vec<Source>,
    /// Paragraphs that cite nothing, each shortened.
    pub(crate) uncited: Vec<String>,
    /// Whether the model had to stop before it was done.
    pub(crate) truncated: bool,
    /// Which model answered.
    pub(crate) model: String,
    /// How many times it was asked.
    pub(crate) turns: u32,
    /// What that took.
    pub(crate) usage: Usage,
    /// What that cost, in millionths of a dollar, where prices are known.
    pub(crate) cost_micros: Option<u64>,
    /// The query, for `agent.queries`.
    pub(crate) query_id: String,
    /// The conversation it is part of.
    pub(crate) context_id: String,
    /// The agent that answered.
    pub(crate) agent_id: String,
    /// The limit that ended the query, where the answer was given because of one. The call then
    /// ends with this error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<TurnLimit>,
}

/// A limit that a query reached.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct TurnLimit {
    /// The code of the error: `limit.turns`.
    #[schemars(with = "String")]
    pub(crate) code: ErrorCode,
    /// What was reached.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: String,
}

impl TurnLimit {
    /// The error with which the call ends.
    pub(crate) fn into_error(self) -> CallError {
        CallError::new(self.code, self.message).hint(self.hint)
    }
}
