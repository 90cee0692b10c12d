//! What requests to models used, and what that cost.

use dodona_plugin::store::{ToValue, Tx};
use dodona_proto::Usage;

use super::error::ConversationError;
use super::rows::{self, Owner};
use super::turn::Facts;

/// What one request to a model used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord {
    /// In which turn of the query, from 1.
    pub turn: u32,
    /// Which model answered.
    pub model: String,
    /// The path of the call that asked, such as `agent` or `agent.librarian`.
    pub path: String,
    /// The tool it was asked for, where it was for one.
    pub tool: Option<String>,
    /// The tokens, as the provider counted them.
    pub usage: Usage,
    /// The price in millionths of a dollar, where it is known.
    pub cost_micros: Option<u64>,
}

/// Stores it.
pub(super) fn insert(
    tx: &Tx<'_>,
    owner: &Owner,
    facts: &Facts,
    record: &UsageRecord,
) -> Result<(), ConversationError> {
    let values: [&dyn ToValue; 15] = [
        &facts.context.as_str(),
        &facts.query.as_str(),
        &owner.user.as_str(),
        &owner.project.as_str(),
        &record.turn,
        &rows::now(),
        &record.model,
        &record.path,
        &record.tool,
        &record.usage.input_tokens,
        &record.usage.output_tokens,
        &record.usage.cached_input_tokens,
        &record.usage.cache_write_tokens,
        &record.usage.reasoning_tokens,
        &record.cost_micros,
    ];
    tx.execute(
        "insert into usage (context_id, query_id, user_id, project_id, turn, at, model, path, tool,
             input_tokens, output_tokens, cached_input_tokens, cache_write_tokens, reasoning_tokens,
             cost_micros)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        &values[..],
    )?;
    Ok(())
}
