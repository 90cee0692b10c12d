//! How a query stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ProjectId, UserId};

/// How a query stands at one step of it: what rules see of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QuerySnapshot {
    /// Which query.
    pub query_id: String,
    /// Of which conversation.
    pub context_id: String,
    /// Whose.
    pub user: UserId,
    /// About which project.
    pub project: Option<ProjectId>,
    /// The turn it is in.
    pub turn: TurnSnapshot,
    /// The tokens of the conversation's window.
    pub tokens_used: u64,
    /// How many it may have.
    pub token_budget: u64,
    /// What happened before.
    pub history: HistorySnapshot,
    /// What the model is shown: enough to find it again.
    #[serde(default)]
    pub exchanges: ExchangeRange,
}

/// Exchanges of a conversation, by their positions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExchangeRange {
    /// The first.
    pub from: u64,
    /// The last.
    pub to: u64,
}

/// One request to a model, and the tools it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnSnapshot {
    /// Counted over the conversation, from 1.
    pub number: u64,
    /// Counted over the query, from 1.
    pub iteration_count: u32,
    /// How many the query may have.
    pub max_iterations: u32,
    /// The part of the conversation's budget that is used; above 1 in the last tenth.
    pub token_usage: f64,
    /// The part of the model's window that the request takes.
    pub context_usage: f64,
}

/// What happened in a query before now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistorySnapshot {
    /// Tool calls that have ended.
    pub total_tool_calls: u64,
    /// Those of them that failed; denied ones did not.
    pub total_failures: u64,
    /// Messages that the model is shown.
    pub message_count: u64,
}
