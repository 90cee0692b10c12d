//! A question of the user, and everything that is said until it has ended.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dodona_plugin::ToolStart;
use dodona_plugin::store::{Commit, DbError, Row, Tx};
use dodona_proto::{CallId, ExchangeRange, Message, PluginPath, ToolCall};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::count::{self, Counter};
use super::decision::KeyDecision;
use super::error::ConversationError;
use super::exchange::{ExchangeOrigin, ExchangeRole, OracleExchange};
use super::history;
use super::id::{ContextId, ExchangeId, QueryId};
use super::live::LiveQuery;
use super::request::{self, SentRequest};
use super::rows::{self, Owner};
use super::session::Touched;
use super::shown::{self, Window, WindowPlace};
use super::sources::{self, NumberedSource};
use super::tool_call::{Ending, ToolCallRecord};
use super::usage::{self, UsageRecord};
use super::{Conversations, turn};

/// How a query stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueryState {
    /// It has not ended.
    Running,
    /// It was answered.
    Complete,
    /// Something went wrong.
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// A rule or a person said no.
    Refused,
    /// It reached a limit: turns, tokens, time.
    Limited,
    /// The process ended, or its call was dropped, before it did.
    Interrupted,
}

impl QueryState {
    const ALL: [Self; 7] = [
        Self::Running,
        Self::Complete,
        Self::Failed,
        Self::Cancelled,
        Self::Refused,
        Self::Limited,
        Self::Interrupted,
    ];

    /// As it is stored and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::Limited => "limited",
            Self::Interrupted => "interrupted",
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, ConversationError> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| rows::unreadable("query", format!("state `{text}`")))
    }

    /// How calls end that are open when their query ends so.
    pub(super) fn ending(self) -> Ending {
        match self {
            Self::Cancelled | Self::Refused | Self::Limited => Ending::Cancelled,
            Self::Running | Self::Complete | Self::Failed | Self::Interrupted => {
                Ending::Interrupted
            }
        }
    }

    /// What a model is told instead of an answer.
    pub(super) fn told(self) -> &'static str {
        match self {
            // An answered query that was cut in the middle by a rewind or a fork.
            Self::Running | Self::Complete => "(The answer to this was taken back.)",
            Self::Failed => "(This was not answered: something went wrong.)",
            Self::Cancelled => "(This was not answered: the user stopped it.)",
            Self::Refused => "(This was not answered: it was not allowed.)",
            Self::Limited => "(This was not answered: it reached a limit.)",
            Self::Interrupted => "(This was not answered: it was interrupted.)",
        }
    }
}

impl fmt::Display for QueryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is known of a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QueryInfo {
    /// Which one.
    pub id: QueryId,
    /// What was asked.
    pub question: String,
    /// How it stands.
    pub state: QueryState,
    /// Why it ended so.
    pub reason: Option<String>,
    /// Since when.
    pub started_at: Timestamp,
    /// Until when.
    pub ended_at: Option<Timestamp>,
    /// How many times the model was asked.
    pub turns: u32,
    /// Which model.
    pub model: Option<String>,
    /// The call it runs in, or ran: what it emitted is in the stream of that. A copy has the call of
    /// its original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
}

pub(super) const INFO: &str =
    "id, question, state, reason, started_at, ended_at, turns, model, call_id";

impl QueryInfo {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, DbError> {
        Ok(Self {
            id: QueryId::stored(row.get(0)?),
            question: row.get(1)?,
            state: QueryState::parse(row.text(2)?)?,
            reason: row.get(3)?,
            started_at: rows::time(row, 4)?,
            ended_at: rows::time_opt(row, 5)?,
            turns: row.get(6)?,
            model: row.get(7)?,
            call_id: call(row.get::<Option<String>>(8)?.as_deref()),
        })
    }
}

/// A call as it is stored. One that cannot be read is not known any more.
fn call(text: Option<&str>) -> Option<CallId> {
    text.and_then(|text| text.parse().ok())
}

/// What was stored, and what the window comes to with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The exchange.
    pub exchange: ExchangeId,
    /// Its place in the conversation.
    pub position: u64,
    /// Its tokens.
    pub tokens: u64,
    /// The tokens of the window.
    pub tokens_used: u64,
    /// How many it may have.
    pub token_budget: u64,
    /// How many queries left the window to make room.
    pub dropped: usize,
}

/// An answer that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredAnswer {
    /// The stored message, and the tokens of the window with it.
    pub(crate) appended: Appended,
    /// Whether the query has ended with it. If not, the user has sent a message that the next
    /// request contains.
    pub(crate) is_last: bool,
}

/// A message to be added to a query.
#[derive(Debug, Clone, PartialEq)]
pub enum NewMessage {
    /// By the user, while the query is running.
    User {
        /// The text.
        content: String,
    },
    /// By the model.
    Assistant {
        /// The text; empty only where there are calls.
        content: String,
        /// The tools it wants.
        calls: Vec<ToolCall>,
        /// What its provider wants to see again, and nobody else understands.
        opaque: Option<Value>,
    },
}

/// How a tool call went.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// How it ended.
    pub ending: Ending,
    /// What the model is told.
    pub result: String,
    /// How long it took.
    pub duration: Duration,
}

/// When an ending that could not be stored is tried again.
const LATER: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(15),
    Duration::from_secs(60),
    Duration::from_secs(300),
];

/// A running query. Everything added to it is one transaction each, stored once it has answered.
///
/// Dropped before it has ended, it ends as interrupted: soon if there is a runtime, and otherwise
/// when the next query begins or the process starts again.
pub struct Query {
    pub(super) conversations: Conversations,
    pub(super) owner: Owner,
    pub(super) live: Option<LiveQuery>,
    pub(super) facts: turn::Facts,
    pub(super) counter: Counter,
    pub(super) begun: Appended,
    pub(super) turns_before: u64,
    /// What a model was shown last.
    pub(super) window: Window,
    /// What had been decided in the conversation when it began.
    pub(super) decisions: Vec<KeyDecision>,
    /// Storing the question, until that has been waited for.
    pub(super) beginning: Option<Commit>,
    pub(super) session: Touched,
    /// What is stored with what is said next.
    pub(super) noted: Mutex<Vec<Noted>>,
    /// Sources that are stored with what is said next.
    pub(super) noted_sources: Mutex<Vec<NumberedSource>>,
}

/// What a request used, and what tells it from others.
#[derive(Clone)]
pub(super) struct Noted {
    record: UsageRecord,
    sent: Option<SentRequest>,
    place: WindowPlace,
}

/// How a query ends that could not be ended when it should have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) state: QueryState,
    pub(super) reason: String,
}

impl Default for Left {
    fn default() -> Self {
        Self {
            state: QueryState::Interrupted,
            reason: "its call ended before it did".to_owned(),
        }
    }
}

impl Query {
    /// Which one.
    pub fn id(&self) -> &QueryId {
        &self.facts.query
    }

    /// The conversation it belongs to.
    pub fn context(&self) -> &ContextId {
        &self.facts.context
    }

    /// Says which call it runs in, so that tools called below it, such as `agent.remember`, find
    /// their conversation.
    pub fn runs_in(&self, call: &CallId) {
        if let Some(live) = &self.live {
            live.runs_in(call, self.context());
        }
    }

    /// Says that somebody stopped it, where it is dropped before it could say so itself.
    pub(crate) fn was_stopped(&self, reason: &str) {
        if let Some(live) = &self.live {
            live.ends_as(Left {
                state: QueryState::Cancelled,
                reason: reason.to_owned(),
            });
        }
    }

    /// What storing the question came to.
    pub fn begun(&self) -> &Appended {
        &self.begun
    }

    /// How many turns the conversation had before this query.
    pub fn turns_before(&self) -> u64 {
        self.turns_before
    }

    /// Whether a session began with it.
    pub fn begins_session(&self) -> bool {
        self.session.begins
    }

    /// When the session began that it belongs to.
    pub fn session_started(&self) -> Timestamp {
        self.session.started_at
    }

    /// What had been decided in the conversation when it began, in the order it was said.
    pub(crate) fn take_decisions(&mut self) -> Vec<KeyDecision> {
        std::mem::take(&mut self.decisions)
    }

    /// Waits until the question is stored. From here on others can see it, and what they say to it
    /// is seen.
    pub async fn settle(&mut self) -> Result<(), ConversationError> {
        match self.beginning.take() {
            Some(commit) => Ok(commit.done().await?),
            None => Ok(()),
        }
    }

    /// Adds what was said in a turn, counted from 1.
    pub async fn append(&self, turn: u32, said: NewMessage) -> Result<Appended, ConversationError> {
        let (exchange, opaque) = self.exchange(said);
        let facts = self.facts.clone();
        let write = move |tx: &Tx<'_>| turn::append(tx, &facts, turn, &exchange, opaque);
        self.write_noted(write).await
    }

    /// Adds what a model said that wants tools, and records that some of them begin to run.
    pub(crate) async fn append_started(
        &self,
        turn: u32,
        said: NewMessage,
        started: Vec<(String, Option<PluginPath>)>,
    ) -> Result<Appended, ConversationError> {
        let (exchange, opaque) = self.exchange(said);
        let facts = self.facts.clone();
        let write = move |tx: &Tx<'_>| {
            let appended = turn::append(tx, &facts, turn, &exchange, opaque)?;
            for (call_id, path) in &started {
                let path = path.as_ref().map(ToString::to_string);
                turn::start_call(tx, &facts, call_id, path.as_deref(), None)?;
            }
            Ok(appended)
        };
        self.write_noted(write).await
    }

    /// Records that a call begins to run. Its name must be one of the tools that the query has.
    pub async fn tool_started(
        &self,
        call_id: &str,
        path: Option<&PluginPath>,
    ) -> Result<(), ConversationError> {
        let (facts, call_id) = (self.facts.clone(), call_id.to_owned());
        let path = path.map(ToString::to_string);
        let write =
            move |tx: &Tx<'_>| turn::start_call(tx, &facts, &call_id, path.as_deref(), None);
        self.conversations.write(write).await
    }

    /// A callback that records the start of a mutating call. The hub runs it once the gates of the
    /// call have passed, so that a denied call is never recorded as started.
    pub(crate) fn start_callback(&self, call_id: &str, path: Option<PluginPath>) -> ToolStart {
        let (conversations, facts) = (self.conversations.clone(), self.facts.clone());
        let (call_id, path) = (call_id.to_owned(), path.map(|path| path.to_string()));
        ToolStart::new(move |hub_call| {
            let (conversations, facts) = (conversations.clone(), facts.clone());
            let (call_id, path) = (call_id.clone(), path.clone());
            Box::pin(async move {
                let write = move |tx: &Tx<'_>| {
                    turn::start_call(tx, &facts, &call_id, path.as_deref(), Some(&hub_call))
                };
                Ok(conversations.write(write).await?)
            })
        })
    }

    /// Records how a call ended, and what it answered. A call that was never started cannot have
    /// succeeded.
    pub async fn tool_ended(
        &self,
        call_id: &str,
        outcome: ToolOutcome,
    ) -> Result<Appended, ConversationError> {
        let mut exchange = draft(ExchangeRole::Tool, outcome.result.clone());
        exchange.tool_call_id = Some(call_id.to_owned());
        complete(&mut exchange, None, &self.counter);
        let facts = self.facts.clone();
        let shown = std::mem::take(&mut *self.noted_sources());
        let write = move |tx: &Tx<'_>| {
            sources::insert(tx, &facts.context, &shown)?;
            turn::end_call(tx, &facts, &exchange, &outcome)
        };
        self.conversations.write(write).await
    }

    /// Records what a request to a model used, and what tells it from others.
    pub async fn usage(
        &self,
        record: UsageRecord,
        sent: Option<SentRequest>,
    ) -> Result<(), ConversationError> {
        self.note_usage(record, sent);
        self.save_noted().await
    }

    /// The same together with what is said next, in one transaction.
    pub fn note_usage(&self, record: UsageRecord, sent: Option<SentRequest>) {
        let place = self.window.place();
        self.noted().push(Noted {
            record,
            sent,
            place,
        });
    }

    /// Stores what was noted, where nothing is said next.
    pub async fn save_noted(&self) -> Result<(), ConversationError> {
        self.write_noted(|_| Ok(())).await
    }

    fn noted(&self) -> std::sync::MutexGuard<'_, Vec<Noted>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn noted_sources(&self) -> std::sync::MutexGuard<'_, Vec<NumberedSource>> {
        let noted = self.noted_sources.lock();
        noted.unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes something and what was noted, both or neither.
    async fn write_noted<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<R, ConversationError> + Send + 'static,
    ) -> Result<R, ConversationError> {
        let (facts, owner) = (self.facts.clone(), self.owner.clone());
        let noted = self.noted().clone();
        let count = noted.len();
        let shown = std::mem::take(&mut *self.noted_sources());
        let write = move |tx: &Tx<'_>| {
            sources::insert(tx, &facts.context, &shown)?;
            for Noted {
                record,
                sent,
                place,
            } in &noted
            {
                usage::insert(tx, &owner, &facts, record)?;
                if let Some(sent) = sent {
                    request::insert(tx, &facts.query, record.turn, *place, sent)?;
                }
            }
            work(tx)
        };
        let written = self.conversations.write(write).await?;
        self.noted().drain(..count);
        Ok(written)
    }

    /// What a model is shown now.
    pub async fn window(&mut self) -> Result<Vec<Message>, ConversationError> {
        if self.beginning.is_some() {
            return Ok(self.window.messages());
        }
        self.settle().await?;
        let (context, known) = (self.context().clone(), self.window.known());
        let news = move |tx: &Tx<'_>| shown::news(tx, &context, known);
        self.window.add(self.conversations.read(news).await?);
        Ok(self.window.messages())
    }

    /// Which exchanges [`window`](Self::window) has shown.
    pub fn range(&self) -> ExchangeRange {
        self.window.range()
    }

    /// Adds the messages that the user has sent since the last request, where the conversation is
    /// now. Returns `None` if no message is waiting.
    pub async fn take_steering(
        &mut self,
        turn: u32,
    ) -> Result<Option<Appended>, ConversationError> {
        if !self.live.as_ref().is_some_and(LiveQuery::was_steered) {
            return Ok(None);
        }
        self.settle().await?;
        let facts = self.facts.clone();
        let write = move |tx: &Tx<'_>| turn::take_steering(tx, &facts, turn);
        self.conversations.write(write).await
    }

    /// Sets the model that answers in the place of the query's own, as its fallback.
    pub(crate) fn set_answered_by(&mut self, model: Option<String>) {
        self.facts.answered_by = model;
    }

    /// Adds the answer and ends the query, both or neither.
    pub async fn answer(
        mut self,
        turn: u32,
        content: String,
        opaque: Option<Value>,
    ) -> Result<Appended, ConversationError> {
        let stored = self.try_answer(turn, content, opaque, None).await?;
        Ok(stored.appended)
    }

    /// As [`answer`](Self::answer), where the query is still of use. Nothing is stored on an error.
    /// If the user has sent a message that the answer does not know of, the answer is stored and
    /// the query goes on. `unsent` is the call and the result that it is about to send: after a
    /// crash the stream of the call is completed with it.
    pub(crate) async fn try_answer(
        &mut self,
        turn: u32,
        content: String,
        opaque: Option<Value>,
        unsent: Option<(CallId, Value)>,
    ) -> Result<StoredAnswer, ConversationError> {
        let (exchange, opaque) = self.exchange(NewMessage::Assistant {
            content,
            calls: Vec::new(),
            opaque,
        });
        let facts = self.facts.clone();
        let write = move |tx: &Tx<'_>| {
            let appended = turn::append(tx, &facts, turn, &exchange, opaque)?;
            // In one transaction: a message that arrives later finds no running query.
            if turn::has_steering(tx, &facts.query)? {
                let is_last = false;
                return Ok(StoredAnswer { appended, is_last });
            }
            turn::end(tx, &facts.query, QueryState::Complete, None)?;
            if let Some((call, response)) = &unsent {
                let sql =
                    "insert or replace into unsent_answers (call_id, response) values (?1, ?2)";
                tx.execute(sql, (call.to_string(), response.to_string()))?;
            }
            let is_last = true;
            Ok(StoredAnswer { appended, is_last })
        };
        let stored = self.write_noted(write).await?;
        if stored.is_last {
            self.live = None;
        }
        Ok(stored)
    }

    /// Adds a message of the program: notices and what else the model reads that nobody said.
    pub(crate) async fn append_own(
        &mut self,
        turn: u32,
        origin: ExchangeOrigin,
        content: String,
    ) -> Result<Appended, ConversationError> {
        self.settle().await?;
        let mut exchange = draft(ExchangeRole::User, content);
        exchange.origin = Some(origin);
        complete(&mut exchange, None, &self.counter);
        let facts = self.facts.clone();
        let write = move |tx: &Tx<'_>| turn::append(tx, &facts, turn, &exchange, None);
        self.conversations.write(write).await
    }

    /// Adds the answer that a model gave at the turn limit, and ends the query as limited.
    pub(crate) async fn answer_at_limit(
        &mut self,
        turn: u32,
        content: String,
        reason: &str,
    ) -> Result<(), ConversationError> {
        let mut exchange = draft(ExchangeRole::Assistant, content);
        exchange.origin = Some(ExchangeOrigin::TurnLimit);
        complete(&mut exchange, None, &self.counter);
        let (facts, reason) = (self.facts.clone(), reason.to_owned());
        let write = move |tx: &Tx<'_>| {
            turn::append(tx, &facts, turn, &exchange, None)?;
            turn::end(tx, &facts.query, QueryState::Limited, Some(&reason))
        };
        self.write_noted(write).await?;
        self.live = None;
        Ok(())
    }

    /// Ends the query. Calls that are still open end with it; a query cannot be complete while
    /// there are any. What cannot be stored now is stored later, at the latest when the next query
    /// of the conversation begins.
    pub async fn finish(
        mut self,
        state: QueryState,
        reason: Option<&str>,
    ) -> Result<(), ConversationError> {
        self.try_finish(state, reason).await
    }

    /// As [`finish`](Self::finish), where the query is still of use.
    pub(crate) async fn try_finish(
        &mut self,
        state: QueryState,
        reason: Option<&str>,
    ) -> Result<(), ConversationError> {
        let (query, why) = (self.id().clone(), reason.map(str::to_owned));
        let write = move |tx: &Tx<'_>| turn::end(tx, &query, state, why.as_deref());
        let written = self.write_noted(write).await;
        match (&written, &self.live) {
            (Ok(()), _) => self.live = None,
            (Err(_), Some(live)) => live.ends_as(Left {
                state,
                reason: reason.unwrap_or_default().to_owned(),
            }),
            (Err(_), None) => {}
        }
        written
    }

    fn exchange(&self, said: NewMessage) -> (OracleExchange, Option<Value>) {
        let (mut exchange, opaque) = match said {
            NewMessage::User { content } => (draft(ExchangeRole::User, content), None),
            NewMessage::Assistant {
                content,
                calls,
                opaque,
            } => {
                let mut exchange = draft(ExchangeRole::Assistant, content);
                let calls: Vec<_> = calls.iter().map(ToolCallRecord::pending).collect();
                exchange.tool_calls = (!calls.is_empty()).then_some(calls);
                (exchange, opaque)
            }
        };
        complete(&mut exchange, opaque.as_ref(), &self.counter);
        (exchange, opaque)
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        let Some(live) = self.live.take() else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (conversations, query) = (self.conversations.clone(), self.id().clone());
        runtime.spawn(async move {
            let left = live.left();
            let mut written = conversations.end_left(&query, left.clone()).await;
            // From here on the next query may begin, and ends this one if it has to.
            drop(live);
            for wait in LATER {
                if !matches!(written, Err(ConversationError::Database(_))) {
                    return;
                }
                tokio::time::sleep(wait).await;
                written = conversations.end_left(&query, left.clone()).await;
            }
            tracing::warn!(%query, "could not end a query that was dropped");
        });
    }
}

impl Conversations {
    async fn end_left(&self, query: &QueryId, left: Left) -> Result<(), ConversationError> {
        let id = query.clone();
        let end = move |tx: &Tx<'_>| turn::end(tx, &id, left.state, Some(&left.reason));
        self.write(end).await?;
        self.inner.live.forget(query);
        Ok(())
    }
}

/// An exchange that is said now, not complete yet.
pub(super) fn draft(role: ExchangeRole, content: String) -> OracleExchange {
    OracleExchange {
        id: ExchangeId::new(),
        role,
        content,
        tool_calls: None,
        tool_call_id: None,
        origin: None,
        timestamp: Timestamp::now(),
        token_count: 0,
        key_insight: None,
        mentioned_symbols: Vec::new(),
        mentioned_files: Vec::new(),
    }
}

/// Counts its tokens and finds what it mentions. Before the transaction: the database's thread has
/// better things to do.
pub(super) fn complete(exchange: &mut OracleExchange, opaque: Option<&Value>, counter: &Counter) {
    exchange.token_count = count::tokens(counter, exchange, opaque);
    if !matches!(
        exchange.origin,
        Some(ExchangeOrigin::Notice | ExchangeOrigin::Preload | ExchangeOrigin::Remembered)
    ) {
        history::find_mentions(exchange);
    }
}
