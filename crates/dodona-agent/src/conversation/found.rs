//! Tools that were found among many.

use dodona_plugin::store::Tx;

use super::Conversations;
use super::error::ConversationError;
use super::id::{ContextId, QueryId};
use super::query::Query;

/// How many tools a model was told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolsTold {
    /// Of how many.
    pub told: usize,
    /// How many there were.
    pub known: usize,
    /// How many tokens the others would have taken.
    pub saved: u64,
}

impl Conversations {
    /// The tools that were found in a conversation, by their names on the model's side and in the
    /// order in which they were: until now, or before a query.
    pub async fn found_tools(
        &self,
        context: &ContextId,
        before: Option<&QueryId>,
    ) -> Result<Vec<String>, ConversationError> {
        let (context, before) = (context.clone(), before.cloned());
        self.read(move |tx| of(tx, &context, before.as_ref())).await
    }
}

pub(super) fn of(
    tx: &Tx<'_>,
    context: &ContextId,
    before: Option<&QueryId>,
) -> Result<Vec<String>, ConversationError> {
    let sql = "select name from found_tools
        where context_id = ?1 and (?2 is null or query_id < ?2) order by ordinal";
    let before = before.map(QueryId::as_str);
    Ok(tx.query(sql, (context.as_str(), before), |row| row.get(0))?)
}

impl Query {
    /// Keeps that tools were found in a turn. What is known already stays where it is.
    pub async fn found_tools(
        &self,
        turn: u32,
        names: Vec<String>,
    ) -> Result<(), ConversationError> {
        let (context, query) = (self.context().clone(), self.id().clone());
        let write = move |tx: &Tx<'_>| {
            for name in &names {
                tx.execute(
                    "insert into found_tools (context_id, ordinal, name, query_id, turn)
                     select ?1, coalesce(max(ordinal), 0) + 1, ?2, ?3, ?4
                     from found_tools where context_id = ?1
                     on conflict (context_id, name) do nothing",
                    (context.as_str(), name.as_str(), query.as_str(), turn),
                )?;
            }
            Ok(())
        };
        self.conversations.write(write).await
    }
}

/// The tools that the turns of a query found before one of them.
pub(super) fn in_query(
    tx: &Tx<'_>,
    query: &QueryId,
    before: u32,
) -> Result<Vec<String>, ConversationError> {
    let sql = "select name from found_tools where query_id = ?1 and turn < ?2 order by ordinal";
    Ok(tx.query(sql, (query.as_str(), before), |row| row.get(0))?)
}

/// A copy of a conversation knows the same tools.
pub(super) fn copy(tx: &Tx<'_>, from: &ContextId, to: &ContextId) -> Result<(), ConversationError> {
    tx.execute(
        "insert into found_tools (context_id, ordinal, name, query_id, turn)
         select ?2, ordinal, name, '', 0 from found_tools where context_id = ?1",
        (from.as_str(), to.as_str()),
    )?;
    Ok(())
}
