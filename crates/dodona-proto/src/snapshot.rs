//! How a query stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
///
/// What would grow with the conversation is not written down with it: the exchanges are kept
/// elsewhere, and tool calls have events of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistorySnapshot {
    /// Tool calls that have ended.
    pub total_tool_calls: u64,
    /// Those of them that failed; denied ones did not.
    pub total_failures: u64,
    /// Messages that the model is shown.
    pub message_count: u64,
    /// How often each tool failed, by its name on the model's side.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<String, u64>,
    /// When the session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_started: Option<Timestamp>,
    /// The last messages, a list: each has `role` and `content`.
    #[serde(skip, default = "none")]
    pub messages: Arc<Value>,
    /// The last tool calls of the query, a list: each has `name`, `arguments`, `result`, `success`
    /// and `timestamp`.
    #[serde(skip, default = "none")]
    pub tools: Arc<Value>,
}

impl Default for HistorySnapshot {
    fn default() -> Self {
        Self {
            total_tool_calls: 0,
            total_failures: 0,
            message_count: 0,
            failures: BTreeMap::new(),
            session_started: None,
            messages: none(),
            tools: none(),
        }
    }
}

/// An empty list.
fn none() -> Arc<Value> {
    Arc::new(Value::Array(Vec::new()))
}
