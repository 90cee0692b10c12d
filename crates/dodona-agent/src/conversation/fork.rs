//! A conversation goes on in two ways.

use std::collections::HashMap;

use dodona_plugin::store::Tx;

use super::Conversations;
use super::archive::{self, Archive};
use super::context::ForkPoint;
use super::error::ConversationError;
use super::id::QueryId;
use super::lifecycle::NewContext;
use super::query::QueryState;
use super::restore::{self, Restored};
use super::rewind::Spot;
use super::rows::{Head, Owner};

impl Conversations {
    /// Copies a conversation up to an exchange, that one included, or whole. What was taken back
    /// is not copied, and neither is what it cost. A message that asks for tools comes with their
    /// answers.
    pub async fn fork(
        &self,
        owner: &Owner,
        context: &str,
        exchange: Option<&str>,
        name: Option<&str>,
    ) -> Result<Restored, ConversationError> {
        let (owner, context) = (owner.clone(), context.to_owned());
        let (exchange, name) = (exchange.map(str::to_owned), name.map(str::to_owned));
        self.write(move |tx| {
            let head = Head::find(tx, &owner, &context)?;
            let archive = upto(tx, &head, exchange.as_deref())?;
            let last = archive.exchanges.last();
            let new = NewContext {
                token_budget: head.token_budget,
                agent_id: archive.context.agent_id.clone(),
                forked_from: Some(ForkPoint {
                    context_id: head.id,
                    exchange_id: last.map(|entry| entry.exchange.id.clone()),
                }),
                ..NewContext::named(name.as_deref())
            };
            restore::restore(tx, &owner, &new, &archive)
        })
        .await
    }
}

fn upto(tx: &Tx<'_>, head: &Head, exchange: Option<&str>) -> Result<Archive, ConversationError> {
    let spot = exchange
        .map(|exchange| Spot::find(tx, &head.id, exchange))
        .transpose()?;
    let end = spot.map(|spot| spot.answered_at(tx)).transpose()?;
    let mut archive = archive::read(tx, &head.id)?;
    archive
        .exchanges
        .retain(|entry| entry.rewound_at.is_none() && end.is_none_or(|end| entry.position <= end));
    // Whether the last copied exchange of each query is its answer.
    let answered: HashMap<&QueryId, bool> = archive
        .exchanges
        .iter()
        .map(|entry| (&entry.query_id, entry.exchange.is_answer()))
        .collect();
    archive
        .queries
        .retain(|query| answered.contains_key(&query.id));
    for query in &mut archive.queries {
        if query.state == QueryState::Complete && answered.get(&query.id) == Some(&false) {
            query.state = QueryState::Interrupted;
            query.reason = Some("the copy ends before its answer".to_owned());
        }
    }
    Ok(archive)
}
