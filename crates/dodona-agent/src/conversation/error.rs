//! What can go wrong with a conversation, sorted by what the caller does next.

use std::borrow::Cow;

use dodona_plugin::store::DbError;
use dodona_plugin::{CallError, ErrorCode};
use thiserror::Error;

use super::context::ContextStatus;
use super::id::{ContextId, QueryId};
use super::query::QueryState;

/// A value that breaks a rule: which field, and which rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{field}`: {rule}")]
pub struct Invalid {
    /// Where the value is, dotted: `exchanges[3].token_count`.
    pub field: String,
    /// What it should be.
    pub rule: Cow<'static, str>,
}

impl Invalid {
    pub(super) fn new(field: impl Into<String>, rule: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field: field.into(),
            rule: rule.into(),
        }
    }

    /// The same, seen from further out.
    #[must_use]
    pub(super) fn within(mut self, outer: &str) -> Self {
        self.field = format!("{outer}.{}", self.field);
        self
    }
}

/// An operation on a conversation that did not happen. Nothing of it was stored.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum ConversationError {
    /// There is none, or it is somebody else's. Tell the user.
    #[error("there is no {what} `{id}`")]
    NotFound {
        /// `conversation`, `exchange`, `query` or `tool call`.
        what: &'static str,
        /// As it was asked for.
        id: String,
    },
    /// A value breaks a rule of the data model. Mend it.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The conversation has ended. Use another one.
    #[error("the conversation `{0}` is closed")]
    Closed(ContextId),
    /// A query is running in the conversation. Wait for it, or cancel it.
    #[error("a query is running in the conversation `{context}`")]
    Busy {
        /// Which conversation.
        context: ContextId,
        /// What is running there.
        query: QueryId,
    },
    /// No query is running in the conversation. Ask a question.
    #[error("no query is running in the conversation `{0}`")]
    NotRunning(String),
    /// The conversation belongs to another agent than the one that was asked. Use that agent, or
    /// another conversation.
    #[error("the conversation `{context}` belongs to the agent `{agent}`, not to `{asked}`")]
    OtherAgent {
        /// The name or id of the conversation in the request.
        context: String,
        /// The agent it belongs to.
        agent: String,
        /// The agent in the request.
        asked: String,
    },
    /// The conversation's state does not allow it.
    #[error("{}", transition(*from, *to))]
    Transition {
        /// What it is.
        from: ContextStatus,
        /// What it should have become.
        to: ContextStatus,
    },
    /// The query has ended; nothing can be added to it. Begin another one.
    #[error("the query `{query}` has ended: {state}")]
    Ended {
        /// Which query.
        query: QueryId,
        /// How it ended.
        state: QueryState,
    },
    /// The running query alone needs more tokens than the budget and its tenth allow. Shorten
    /// what is added, or end the query as limited.
    #[error(
        "{tokens} tokens do not fit into the conversation: \
         its budget of {budget} allows at most {limit}"
    )]
    OverBudget {
        /// What the query would need.
        tokens: u64,
        /// The budget.
        budget: u64,
        /// The budget and a tenth.
        limit: u64,
    },
    /// The name is in use. Choose another one.
    #[error("there is a conversation named `{0}` already")]
    NameTaken(String),
    /// A list has reached its bound. Tell the user.
    #[error("the conversation holds {limit} {what} already, and no more")]
    Full {
        /// What there are too many of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// What is pinned has filled the room there is for it. Release something.
    #[error("there is no room for it: what is pinned may take {room} tokens")]
    PinsFull {
        /// How many tokens all pinned texts may take.
        room: u64,
    },
    /// A stored value cannot be read: the file was changed by hand, or by a newer version.
    #[error("the stored {what} cannot be read")]
    Unreadable {
        /// What was being read.
        what: &'static str,
        /// Why, for the log.
        reason: String,
    },
    /// The database did not do its part.
    #[error("the database of the conversations failed")]
    Database(#[source] DbError),
}

impl From<DbError> for ConversationError {
    fn from(error: DbError) -> Self {
        let ours = match &error {
            DbError::Abort { source } => source.downcast_ref::<Self>().cloned(),
            _ => None,
        };
        ours.unwrap_or(Self::Database(error))
    }
}

impl From<ConversationError> for DbError {
    fn from(error: ConversationError) -> Self {
        match error {
            ConversationError::Database(inner) => inner,
            other => DbError::abort(other),
        }
    }
}

impl From<ConversationError> for CallError {
    fn from(error: ConversationError) -> Self {
        use ConversationError as E;
        let text = error.to_string();
        let plugin = |code, hint: &'static str| CallError::plugin(code, text.clone()).hint(hint);
        match error {
            E::NotFound { what, .. } => {
                CallError::new(ErrorCode::NotFound, text).hint(match what {
                    "query" => "`dodona query list` shows the questions of a conversation",
                    "result" => "use a handle that a truncated result names",
                    "exchange" => "`dodona contexts show` shows what was said, with its ids",
                    _ => "`dodona contexts list` shows the conversations of this project, `dodona contexts new` begins one",
                })
            }
            E::Invalid(_) => CallError::new(ErrorCode::InvalidParams, text),
            E::Closed(_) => plugin("agent.closed", "leave out `context_id`, or fork it"),
            E::Busy { .. } => {
                plugin("agent.busy", "wait for it, or stop it with `dodona cancel`").retry(true)
            }
            E::NotRunning(_) => CallError::new(ErrorCode::NotFound, text)
                .hint("send the message as a question: `dodona ask MESSAGE`"),
            E::OtherAgent { agent, .. } => {
                let hint = format!(
                    "leave out `agent_id` to continue with `{agent}`, or leave out `context_id`"
                );
                CallError::plugin("agent.other_agent", text).hint(hint)
            }
            E::Transition { .. } => plugin("agent.state", "`dodona contexts list` shows the state"),
            E::Ended { .. } => plugin("agent.query_ended", "ask again"),
            E::OverBudget { .. } => {
                let hint = "ask for less at once, or begin a conversation with a larger budget";
                CallError::new(ErrorCode::TooLarge, text).hint(hint)
            }
            E::NameTaken(_) => plugin("agent.name_taken", "choose another name"),
            E::Full { .. } => CallError::new(ErrorCode::TooLarge, text),
            E::PinsFull { .. } => CallError::new(ErrorCode::TooLarge, text)
                .hint("pin something shorter, or release what is no longer needed"),
            E::Unreadable { reason, .. } => CallError::new(ErrorCode::Storage, text)
                .hint("run `dodona doctor`")
                .log(reason),
            E::Database(error) => error.into(),
        }
    }
}

fn transition(from: ContextStatus, to: ContextStatus) -> String {
    match from == to {
        true => format!("the conversation is {to} already"),
        false => format!("a conversation that is {from} cannot become {to}"),
    }
}

pub(super) fn not_found(what: &'static str, id: impl Into<String>) -> ConversationError {
    ConversationError::NotFound {
        what,
        id: id.into(),
    }
}
