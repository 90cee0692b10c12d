//! Reaching a conversation from outside of its query: finding it, waiting for it, and saying
//! something while a query runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::count::Counter;
use super::error::{ConversationError, not_found};
use super::exchange::ExchangeRole;
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

    /// Says something in the query that is running: the model sees it when it is asked next.
    pub async fn steer(
        &self,
        owner: &Owner,
        asked: Option<&str>,
        content: String,
        counter: &Counter,
    ) -> Result<QueryId, ConversationError> {
        let mut said = query::draft(ExchangeRole::User, content);
        query::complete(&mut said, None, counter);
        let (owner, asked) = (owner.clone(), asked.map(str::to_owned));
        let live = self.inner.live.clone();
        self.write(move |tx| {
            let head = lifecycle::find(tx, &owner, asked.as_deref())?.open()?;
            let sql =
                "select id, turns, model from queries where context_id = ?1 and state = 'running'";
            let running = tx.query_opt(sql, (head.id.as_str(),), |row| {
                let (id, model): (String, Option<String>) = (row.get(0)?, row.get(2)?);
                Ok((QueryId::stored(id), row.get::<u32>(1)?, model))
            })?;
            let none = || not_found("running query in conversation", head.id.as_str());
            let (query, turns, model) = running
                .filter(|(query, ..)| live.steer(query))
                .ok_or_else(none)?;
            let facts = turn::Facts {
                query: query.clone(),
                context: head.id.clone(),
                model: model.unwrap_or_default(),
                tools: Arc::new(BTreeSet::new()),
            };
            turn::append(tx, &facts, turns, &said, None)?;
            Ok(query)
        })
        .await
    }
}
