//! Reaching a conversation from outside of its query: finding it, waiting for it, and saying
//! something while a query runs.

use super::count::Counter;
use super::error::ConversationError;
use super::exchange::{ExchangeOrigin, ExchangeRole};
use super::id::{ContextId, QueryId};
use super::rows::{Head, Owner};
use super::{Conversations, lifecycle, query, turn};

/// The queue of an agent's default conversation, which need not exist yet.
fn default_key(owner: &Owner, agent: &str) -> String {
    format!("default {agent} {} {}", owner.user, owner.project)
}

impl Conversations {
    /// What queries of one conversation have in common, however they name it. The default one has
    /// the same key before it is made and after.
    pub async fn queue_key(
        &self,
        owner: &Owner,
        asked: Option<&str>,
        agent: &str,
    ) -> Result<String, ConversationError> {
        let Some(asked) = asked else {
            return Ok(default_key(owner, agent));
        };
        let (owner, asked) = (owner.clone(), asked.to_owned());
        self.read(move |tx| {
            let named = Head::find(tx, &owner, &asked)?;
            let default = Head::default_of(tx, &owner, &named.agent_id)?;
            Ok(
                match default.is_some_and(|default| default.id == named.id) {
                    true => default_key(&owner, &named.agent_id),
                    false => named.id.to_string(),
                },
            )
        })
        .await
    }

    /// A conversation of an agent by id or name. Without either, the agent's default conversation
    /// if it exists.
    pub async fn find(
        &self,
        owner: &Owner,
        asked: Option<&str>,
        agent: &str,
    ) -> Result<Option<ContextId>, ConversationError> {
        let (owner, asked) = (owner.clone(), asked.map(str::to_owned));
        let agent = agent.to_owned();
        self.read(move |tx| {
            let head = match &asked {
                Some(asked) => {
                    let found = Head::find(tx, &owner, asked)?;
                    Some(found.of_agent(Some(&agent), asked)?)
                }
                None => Head::default_of(tx, &owner, &agent)?,
            };
            Ok(head.map(|head| head.id))
        })
        .await
    }

    /// Stores a message to the running query. The model reads it with its next request.
    pub async fn steer(
        &self,
        owner: &Owner,
        asked: Option<&str>,
        content: String,
        counter: &Counter,
    ) -> Result<QueryId, ConversationError> {
        let mut message = query::draft(ExchangeRole::User, content);
        message.origin = Some(ExchangeOrigin::Steering);
        query::complete(&mut message, None, counter);
        let (owner, asked) = (owner.clone(), asked.map(str::to_owned));
        let live = self.inner.live.clone();
        self.write(move |tx| {
            let head = lifecycle::find(tx, &owner, asked.as_deref())?.open()?;
            let sql = "select id from queries where context_id = ?1 and state = 'running'";
            let running = tx.query_opt(sql, (head.id.as_str(),), |row| {
                Ok(QueryId::stored(row.get(0)?))
            })?;
            let shown = asked.unwrap_or_else(|| "default".to_owned());
            let query = running
                .filter(|query| live.steer(query))
                .ok_or(ConversationError::NotRunning(shown))?;
            turn::add_steering(tx, &query, &message)?;
            Ok(query)
        })
        .await
    }
}
