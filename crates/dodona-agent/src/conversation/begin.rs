//! The beginning of a query.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use dodona_plugin::store::{Commit, Tx};
use dodona_proto::CallId;

use super::context::{ContextStatus, DEFAULT_AGENT, default_name};
use super::count::Counter;
use super::decision::{self, KeyDecision};
use super::error::ConversationError;
use super::exchange::{ExchangeRole, OracleExchange};
use super::id::{ContextId, QueryId};
use super::lifecycle::{self, NewContext};
use super::live::LiveQueries;
use super::query::{self, Appended, Query};
use super::rows::{Head, Owner};
use super::session::Touched;
use super::shown::Window;
use super::{Conversations, session, turn};

/// A question, and what it is to be answered with.
#[derive(Clone)]
pub struct NewQuery {
    /// The conversation, by id or name; without one the default, which is made if there is none.
    pub context: Option<String>,
    /// The agent that answers. A conversation of another agent is refused; without a name, the
    /// conversation's own agent answers, and a new conversation belongs to the default agent.
    pub agent: Option<String>,
    /// What is asked.
    pub question: String,
    /// Which model.
    pub model: String,
    /// Counts tokens as this model does.
    pub counter: Counter,
    /// The names, on the model's side, of the tools that are defined for it.
    pub tools: BTreeSet<String>,
    /// How many tokens the window of a new conversation may have; the usual number without.
    pub token_budget: Option<u64>,
    /// The call it runs in.
    pub call: Option<CallId>,
}

/// What came of an attempt to begin.
enum Attempt {
    Begun(Box<Begun>),
    /// The window was counted by another model, or a count of it was left unfinished.
    Recount(ContextId),
}

/// A question that is in its conversation, and what was found there.
struct Begun {
    context: ContextId,
    appended: Appended,
    turns_before: u64,
    session: Touched,
    window: Window,
    decisions: Vec<KeyDecision>,
}

impl Conversations {
    /// Begins a query: stores the question in its conversation.
    ///
    /// A conversation that another model has answered in is recounted first. One that is closed
    /// is refused, and so is one in which a query is running: queries of a conversation follow
    /// each other, and it is the caller who lets them wait.
    pub async fn begin_query(
        &self,
        owner: &Owner,
        new: NewQuery,
    ) -> Result<Query, ConversationError> {
        let mut query = self.begin_ahead(owner, new).await?;
        query.settle().await?;
        Ok(query)
    }

    /// As [`begin_query`](Self::begin_query), without waiting until the question is stored. Until
    /// [`Query::settle`] has, the query knows what it found when it began.
    pub(crate) async fn begin_ahead(
        &self,
        owner: &Owner,
        new: NewQuery,
    ) -> Result<Query, ConversationError> {
        let mut question = query::draft(ExchangeRole::User, new.question.clone());
        query::complete(&mut question, None, &new.counter);
        let id = QueryId::new();
        // Before it is stored, so that nobody takes it for one that was left behind.
        let live = self.inner.live.add(&id);
        let tools = Arc::new(new.tools.clone());
        let facts = |context: ContextId| turn::Facts {
            query: id.clone(),
            context,
            model: new.model.clone(),
            answered_by: None,
            tools: Arc::clone(&tools),
        };
        loop {
            let (attempt, commit) = self.attempt(owner, &new, &question, &facts).await?;
            match attempt {
                Attempt::Recount(context) => {
                    self.recount(&context, &new.model, &new.counter).await?;
                }
                Attempt::Begun(begun) => {
                    return Ok(Query {
                        conversations: self.clone(),
                        owner: owner.clone(),
                        live: Some(live),
                        facts: facts(begun.context),
                        counter: Arc::clone(&new.counter),
                        begun: begun.appended,
                        turns_before: begun.turns_before,
                        window: begun.window,
                        decisions: begun.decisions,
                        session: begun.session,
                        beginning: Some(commit),
                        noted: Mutex::default(),
                        noted_sources: Mutex::default(),
                    });
                }
            }
        }
    }

    async fn attempt(
        &self,
        owner: &Owner,
        new: &NewQuery,
        question: &OracleExchange,
        facts: &impl Fn(ContextId) -> turn::Facts,
    ) -> Result<(Attempt, Commit), ConversationError> {
        let (owner, asked, question) = (owner.clone(), new.context.clone(), question.clone());
        let (budget, call, agent) = (new.token_budget, new.call, new.agent.clone());
        // The conversation is known only inside.
        let template = facts(ContextId::new());
        let (live, process) = (self.inner.live.clone(), self.inner.process);
        self.write_ahead(move |tx| {
            let head = find_or_create(tx, &owner, asked.as_deref(), agent.as_deref(), budget)?;
            not_busy(tx, &head.id, &live)?;
            if needs_recount(&head, &template.model) {
                return Ok(Attempt::Recount(head.id));
            }
            let facts = turn::Facts {
                context: head.id.clone(),
                ..template
            };
            Ok(Attempt::Begun(Box::new(Begun {
                turns_before: turns(tx, &head.id)?,
                session: session::touch(tx, &owner, &head.id, process)?,
                appended: turn::begin(tx, &facts, call, &question)?,
                window: Window::read(tx, &head.id)?,
                decisions: decision::of(tx, &head.id)?,
                context: head.id,
            })))
        })
        .await
    }
}

fn find_or_create(
    tx: &Tx<'_>,
    owner: &Owner,
    asked: Option<&str>,
    agent: Option<&str>,
    budget: Option<u64>,
) -> Result<Head, ConversationError> {
    if let Some(asked) = asked {
        return Head::find(tx, owner, asked)?.open()?.of_agent(agent, asked);
    }
    let agent = agent.unwrap_or(DEFAULT_AGENT);
    if let Some(head) = Head::default_of(tx, owner, agent)? {
        let shown = default_name(agent);
        return head.of_agent(Some(agent), &shown);
    }
    let mut new = NewContext::default_of(agent);
    new.token_budget = budget.unwrap_or(new.token_budget);
    let id = lifecycle::create(tx, owner, &new)?;
    Head::of(tx, &id)
}

/// An empty window has the same tokens for every model.
fn needs_recount(head: &Head, model: &str) -> bool {
    let other = head.last_model.as_deref().is_some_and(|last| last != model);
    head.status == ContextStatus::Suspended || (other && head.tokens_used > 0)
}

/// Refuses a conversation in which a query is running. One that nobody holds was left behind, and
/// is ended first.
pub(super) fn not_busy(
    tx: &Tx<'_>,
    context: &ContextId,
    live: &LiveQueries,
) -> Result<(), ConversationError> {
    let sql = "select id from queries where context_id = ?1 and state = 'running'";
    let running = tx.query_opt(sql, (context.as_str(),), |row| {
        Ok(QueryId::stored(row.get(0)?))
    })?;
    match running {
        None => Ok(()),
        Some(query) if live.contains(&query) => Err(ConversationError::Busy {
            context: context.clone(),
            query,
        }),
        Some(query) => {
            let left = live.left(&query);
            turn::end(tx, &query, left.state, Some(&left.reason))
        }
    }
}

fn turns(tx: &Tx<'_>, context: &ContextId) -> Result<u64, ConversationError> {
    let sql = "select coalesce(sum(turns), 0) from queries where context_id = ?1";
    Ok(tx.query_one(sql, (context.as_str(),), |row| row.get(0))?)
}
