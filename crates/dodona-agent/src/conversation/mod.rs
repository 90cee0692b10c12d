//! Conversations: what was said, kept.
//!
//! Start from [`Conversations`]. A turn loop [begins](Conversations::begin_query) a [`Query`],
//! adds what is said, records how tool calls went, and ends it; [`Query::window`] is what a model
//! is shown meanwhile. Each of these is one transaction: once it has answered it is stored, and
//! whenever the process ends, what is stored is a conversation that a provider accepts.
//!
//! The data model (`OracleContext`, `OracleExchange`, tool calls) and its rules are described in
//! `docs/reference/conversations.md`.

mod archive;
mod begin;
mod compact;
mod context;
mod count;
mod decision;
mod error;
mod exchange;
mod fork;
mod found;
mod history;
mod id;
mod inbox;
mod lifecycle;
mod live;
mod memory;
mod mention;
mod model;
mod query;
mod report;
mod request;
mod restore;
mod result;
mod rewind;
mod rows;
mod schema;
mod seed;
mod session;
mod shown;
mod sources;
mod steer;
mod summary;
mod tool_call;
mod turn;
mod usage;
mod window;

use std::sync::Arc;

use dodona_plugin::EventHistory;
use dodona_plugin::store::{Commit, Db, Tx};
use dodona_proto::{CallId, DoneStatus, Message};
use serde_json::Value;
use tokio::sync::OnceCell;
use uuid::Uuid;

pub use archive::{Archive, ArchivedExchange};
pub use begin::NewQuery;
pub use compact::{Compaction, PinTo, Pinned, Plan};
pub use context::{
    ContextStatus, DEFAULT_AGENT, DEFAULT_TOKEN_BUDGET, ForkPoint, OracleContext, TOKEN_BUDGETS,
};
pub use count::Counter;
pub use decision::{DecisionKind, KeyDecision};
pub use error::{ConversationError, Invalid};
pub use exchange::{ExchangeOrigin, ExchangeRole, OracleExchange};
pub use found::ToolsTold;
pub use id::{ContextId, ExchangeId, QueryId};
pub use inbox::Delivered;
pub(crate) use inbox::OWN_NOTES;
pub use lifecycle::{ContextSummary, NewContext, Which};
pub(crate) use memory::hash_of;
pub use memory::{Found as FoundMemory, MemoryKind};
pub use model::Recounted;
pub use query::{Appended, NewMessage, Query, QueryInfo, QueryState, ToolOutcome};
pub use report::{UsageBy, UsageFilter, UsageReport, UsageRow};
pub use request::{QueryBelow, RecordedCall, RecordedQuery, RecordedTurn, SentRequest};
pub use restore::Restored;
pub(crate) use result::new_handle;
pub use rewind::Rewound;
pub use rows::Owner;
pub use schema::MIGRATIONS;
pub(crate) use seed::EXCHANGES as SEED_EXCHANGES;
pub use seed::{JsonText, SeedContext};
pub use session::{EndedSession, Ending as SessionEnding};
pub use sources::NumberedSource;
pub use summary::{LineKind, SummaryLine};
pub use tool_call::{Ending, ToolCallRecord, ToolCallStatus};
pub use usage::UsageRecord;

use live::LiveQueries;
use shown::Window;

/// The conversations of one database. Cheap to clone.
#[derive(Clone)]
pub struct Conversations {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    live: LiveQueries,
    /// Tells the sessions of this process from those that an earlier one left open.
    process: Uuid,
    /// Set once what an earlier process left behind is cleared up.
    recovered: OnceCell<()>,
    history: std::sync::OnceLock<Arc<dyn EventHistory>>,
}

impl Conversations {
    /// The conversations in a database that has, or is about to get, the schema of
    /// [`MIGRATIONS`]. Nothing is read before the first use, which clears up what an earlier
    /// process left behind.
    pub fn open(db: Db) -> Self {
        Self {
            inner: Arc::new(Inner {
                db,
                live: LiveQueries::default(),
                process: Uuid::now_v7(),
                recovered: OnceCell::new(),
                history: std::sync::OnceLock::new(),
            }),
        }
    }

    /// Sets the journal in which recovery finds how interrupted tool calls ended. Before the first
    /// use.
    pub(crate) fn with_history(self, history: Arc<dyn EventHistory>) -> Self {
        // A second call has no effect.
        let _ = self.inner.history.set(history);
        self
    }

    /// Ends the queries, and their tool calls, that are stored as running and that nobody in this
    /// process holds: the process that did has ended. Answers how many there were; a second time
    /// there are none.
    pub async fn recover(&self) -> Result<usize, ConversationError> {
        let finished = self.finished_calls().await?;
        let live = self.inner.live.clone();
        let recover =
            move |tx: &Tx<'_>| Ok(turn::recover(tx, |query| live.contains(query), &finished)?);
        Ok(self.inner.db.write(recover).await?)
    }

    /// The tool calls that an earlier process left running here and that finished according to the
    /// journal: the process ended after the call did and before its result was stored.
    async fn finished_calls(&self) -> Result<Vec<turn::LeftCall>, ConversationError> {
        let Some(history) = self.inner.history.get() else {
            return Ok(Vec::new());
        };
        let left = self.inner.db.read(|tx| Ok(turn::left_calls(tx)?)).await?;
        let mut finished = Vec::new();
        for call in left {
            match history.call_status(call.hub_call).await {
                Ok(Some(DoneStatus::Complete)) => finished.push(call),
                Ok(_) => {}
                Err(error) => {
                    let (call, error) = (call.hub_call, error.message);
                    tracing::warn!(%call, error, "cannot read how an interrupted call ended");
                }
            }
        }
        Ok(finished)
    }

    async fn ready(&self) -> Result<&Db, ConversationError> {
        let recover = || async {
            let left = self.recover().await?;
            if left > 0 {
                tracing::info!(left, "queries were interrupted when the process last ended");
            }
            Ok::<(), ConversationError>(())
        };
        self.inner.recovered.get_or_try_init(recover).await?;
        Ok(&self.inner.db)
    }

    async fn write<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<R, ConversationError> + Send + 'static,
    ) -> Result<R, ConversationError> {
        let db = self.ready().await?;
        Ok(db.write(move |tx| Ok(work(tx)?)).await?)
    }

    /// As `write`, without waiting for the commit.
    async fn write_ahead<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<R, ConversationError> + Send + 'static,
    ) -> Result<(R, Commit), ConversationError> {
        let db = self.ready().await?;
        Ok(db.write_ahead(move |tx| Ok(work(tx)?)).await?)
    }

    async fn read<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Tx<'_>) -> Result<R, ConversationError> + Send + 'static,
    ) -> Result<R, ConversationError> {
        let db = self.ready().await?;
        Ok(db.read(move |tx| Ok(work(tx)?)).await?)
    }

    /// Whether a call has a query in some conversation.
    pub(crate) async fn has_query_of(&self, call: CallId) -> Result<bool, ConversationError> {
        self.read(move |tx| {
            let sql = "select 1 from queries where call_id = ?1 limit 1";
            Ok(tx
                .query_opt(sql, (call.to_string(),), |_| Ok(()))?
                .is_some())
        })
        .await
    }

    /// The result of a call whose answer is stored and whose stream may lack it.
    pub(crate) async fn unsent(&self, call: CallId) -> Result<Option<Value>, ConversationError> {
        let text = self.read(move |tx| {
            let sql = "select response from unsent_answers where call_id = ?1";
            Ok(tx.query_opt(sql, (call.to_string(),), |row| row.get::<String>(0))?)
        });
        Ok(text
            .await?
            .and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Removes the results of calls that have ended. No call may be running.
    pub(crate) async fn forget_unsent(&self) -> Result<(), ConversationError> {
        let forget = |tx: &Tx<'_>| Ok(tx.execute("delete from unsent_answers", ())?);
        self.write(forget).await.map(drop)
    }

    /// What a model is shown of a conversation.
    pub async fn window(
        &self,
        owner: &Owner,
        context: &str,
    ) -> Result<Vec<Message>, ConversationError> {
        let (owner, context) = (owner.clone(), context.to_owned());
        self.read(move |tx| {
            let head = rows::Head::find(tx, &owner, &context)?;
            Ok(Window::read(tx, &head.id)?.messages())
        })
        .await
    }

    /// The conversation of the running query that a call is made for, if it is made for one.
    pub fn context_of_call(&self, call: &CallId) -> Option<ContextId> {
        self.inner.live.context_of(call)
    }
}
