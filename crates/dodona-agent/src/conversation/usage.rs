//! What requests to models used, and what that cost.

use dodona_plugin::store::{ToValue, Tx};
use dodona_proto::Usage;

use super::Conversations;
use super::error::ConversationError;
use super::id::{ContextId, QueryId};
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

impl Conversations {
    /// Records what a request to a model used that was made for a conversation. It counts for the
    /// latest query there; a conversation without one has nothing to make requests for.
    pub(crate) async fn context_usage(
        &self,
        context: &ContextId,
        record: UsageRecord,
    ) -> Result<(), ConversationError> {
        let context = context.clone();
        self.write(move |tx| {
            let sql = "select q.id, c.user_id, c.project_id
                from queries q join oracle_contexts c on c.id = q.context_id
                where c.id = ?1 order by q.id desc limit 1";
            let found = tx.query_opt(sql, (context.as_str(),), |row| {
                let (user, project): (String, String) = (row.get(1)?, row.get(2)?);
                Ok((QueryId::stored(row.get(0)?), user, project))
            })?;
            match found {
                None => Ok(()),
                Some((query, user, project)) => {
                    row(tx, (&user, &project), (&context, &query), &record)
                }
            }
        })
        .await
    }
}

/// Stores it.
pub(super) fn insert(
    tx: &Tx<'_>,
    owner: &Owner,
    facts: &Facts,
    record: &UsageRecord,
) -> Result<(), ConversationError> {
    let whose = (owner.user.as_str(), owner.project.as_str());
    row(tx, whose, (&facts.context, &facts.query), record)
}

fn row(
    tx: &Tx<'_>,
    (user, project): (&str, &str),
    (context, query): (&ContextId, &QueryId),
    record: &UsageRecord,
) -> Result<(), ConversationError> {
    let values: [&dyn ToValue; 15] = [
        &context.as_str(),
        &query.as_str(),
        &user,
        &project,
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
