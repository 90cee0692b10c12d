//! The sources that a model was shown in a conversation, by the numbers under which it cites them.
//!
//! A tool result is stored as the text that the model read, which has the number and the place of
//! each source, but not the hash by which a citation is verified.

use dodona_plugin::store::Tx;
use dodona_proto::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Conversations;
use super::error::ConversationError;
use super::id::ContextId;
use super::query::Query;
use super::rows;

/// A source and its number in the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumberedSource {
    /// Unique in the conversation, from 1 to 9999.
    pub number: u32,
    /// The lines that it stands for.
    pub source: Source,
}

impl Conversations {
    /// The sources of a conversation, in the order of their numbers.
    pub(crate) async fn sources(
        &self,
        context: &ContextId,
    ) -> Result<Vec<NumberedSource>, ConversationError> {
        let context = context.clone();
        self.read(move |tx| read(tx, &context)).await
    }
}

impl Query {
    /// Stores sources together with what is stored next.
    pub(crate) fn note_sources(&self, sources: Vec<NumberedSource>) {
        self.noted_sources().extend(sources);
    }
}

pub(super) fn read(
    tx: &Tx<'_>,
    context: &ContextId,
) -> Result<Vec<NumberedSource>, ConversationError> {
    let sql = "select number, source from sources where context_id = ?1 order by number";
    let rows: Vec<(u32, String)> = tx.query(sql, (context.as_str(),), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    rows.into_iter()
        .map(|(number, source)| {
            let source = rows::parse("source", &source)?;
            Ok(NumberedSource { number, source })
        })
        .collect()
}

pub(super) fn insert(
    tx: &Tx<'_>,
    context: &ContextId,
    sources: &[NumberedSource],
) -> Result<(), ConversationError> {
    for NumberedSource { number, source } in sources {
        tx.execute(
            "insert or replace into sources (context_id, number, source) values (?1, ?2, ?3)",
            (context.as_str(), *number, rows::json("source", source)?),
        )?;
    }
    Ok(())
}
