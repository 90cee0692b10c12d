//! Reading and writing rows.

use dodona_plugin::store::{DbError, Row, Tx};
use dodona_plugin::{CallCtx, CallError};
use dodona_proto::{ProjectId, UserId};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::{ContextStatus, DEFAULT_AGENT, ForkPoint, OracleContext, default_name};
use super::error::{ConversationError, Invalid, not_found};
use super::id::{ContextId, ExchangeId};
use super::{history, window};

/// Whose conversations, and about which project. Everything is found within one owner only:
/// somebody else's ids do not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The user.
    pub user: UserId,
    /// The project, which the hub has checked to be one of the user's.
    pub project: ProjectId,
}

impl Owner {
    /// Who is asking in a call.
    pub fn of(ctx: &CallCtx) -> Result<Self, CallError> {
        let project = ctx.require_project()?;
        Ok(Self {
            user: ctx.principal.user.clone(),
            project: project.id.clone(),
        })
    }
}

/// The fewest characters at the end of an id that stand for it.
const SHORTEST_END: usize = 6;

/// The condition that an id ends with a parameter.
pub(super) fn ends_with(parameter: usize) -> String {
    format!(
        "(length(?{parameter}) >= {SHORTEST_END} and substr(id, -length(?{parameter})) = ?{parameter})"
    )
}

pub(super) fn ambiguous(field: &str, asked: &str) -> Invalid {
    Invalid::new(field, format!("more than one ends with `{asked}`"))
}

/// What operations need to know of a context, without its window.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) id: ContextId,
    pub(super) agent_id: String,
    pub(super) status: ContextStatus,
    pub(super) token_budget: u64,
    pub(super) tokens_used: u64,
    pub(super) last_model: Option<String>,
    pub(super) window_from: u64,
    pub(super) last_position: u64,
    /// Up to where the summary stands for what was said.
    pub(super) summarized_to: u64,
    pub(super) summary_tokens: u64,
}

const HEAD: &str = "id, status, token_budget, tokens_used, last_model, window_from, \
     last_position, summarized_to, summary_tokens, agent_id";

impl Head {
    /// By id, whosever it is. For ids that were already found within an owner.
    pub(super) fn of(tx: &Tx<'_>, id: &ContextId) -> Result<Self, ConversationError> {
        let sql = format!("select {HEAD} from oracle_contexts where id = ?1");
        tx.query_opt(&sql, (id.as_str(),), Self::read)?
            .ok_or_else(|| not_found("conversation", id.as_str()))
    }

    /// By the name of one that is not closed, by id, or by the end of an id.
    pub(super) fn find(tx: &Tx<'_>, owner: &Owner, asked: &str) -> Result<Self, ConversationError> {
        let sql = format!(
            "select {HEAD} from oracle_contexts
             where user_id = ?1 and project_id = ?2
               and ((name = ?3 and status <> 'closed') or id = ?3 or {})
             order by id = ?3 desc, name is ?3 desc limit 2",
            ends_with(3)
        );
        let (user, project) = (owner.user.as_str(), owner.project.as_str());
        let mut found = tx.query(&sql, (user, project, asked), Self::read)?;
        let whole = |head: &Self| head.id.as_str() == asked || !head.id.as_str().ends_with(asked);
        match found.len() {
            2 if !whole(&found[0]) => Err(ambiguous("context_id", asked).into()),
            0 => Err(not_found("conversation", asked)),
            _ => Ok(found.swap_remove(0)),
        }
    }

    /// The one that questions go to which name none, unless it is closed.
    pub(super) fn default(tx: &Tx<'_>, owner: &Owner) -> Result<Option<Self>, ConversationError> {
        let sql = format!(
            "select {HEAD} from oracle_contexts
             where user_id = ?1 and project_id = ?2 and is_default = 1 and status <> 'closed'"
        );
        let (user, project) = (owner.user.as_str(), owner.project.as_str());
        Ok(tx.query_opt(&sql, (user, project), Self::read)?)
    }

    /// The conversation that questions to an agent go to which name none, unless it is closed.
    pub(super) fn default_of(
        tx: &Tx<'_>,
        owner: &Owner,
        agent: &str,
    ) -> Result<Option<Self>, ConversationError> {
        if agent == DEFAULT_AGENT {
            return Self::default(tx, owner);
        }
        let sql = format!(
            "select {HEAD} from oracle_contexts
             where user_id = ?1 and project_id = ?2 and name = ?3 and status <> 'closed'"
        );
        let (user, project) = (owner.user.as_str(), owner.project.as_str());
        Ok(tx.query_opt(&sql, (user, project, default_name(agent)), Self::read)?)
    }

    /// Refuses a conversation of another agent. Without a name any agent is accepted.
    /// `shown` is the conversation as the caller named it.
    pub(super) fn of_agent(
        self,
        agent: Option<&str>,
        shown: &str,
    ) -> Result<Self, ConversationError> {
        match agent.is_none_or(|agent| agent == self.agent_id) {
            true => Ok(self),
            false => Err(ConversationError::OtherAgent {
                context: shown.to_owned(),
                agent: self.agent_id,
                asked: agent.unwrap_or_default().to_owned(),
            }),
        }
    }

    fn read(row: &Row<'_>) -> Result<Self, DbError> {
        Ok(Self {
            id: ContextId::stored(row.get(0)?),
            status: status(row, 1)?,
            token_budget: row.get(2)?,
            tokens_used: row.get(3)?,
            last_model: row.get(4)?,
            window_from: row.get(5)?,
            last_position: row.get(6)?,
            summarized_to: row.get(7)?,
            summary_tokens: row.get(8)?,
            agent_id: row.get(9)?,
        })
    }

    /// Refuses one that has ended.
    pub(super) fn open(self) -> Result<Self, ConversationError> {
        match self.status {
            ContextStatus::Closed => Err(ConversationError::Closed(self.id)),
            _ => Ok(self),
        }
    }

    /// Changes the state, if it may change so.
    pub(super) fn change(
        &self,
        tx: &Tx<'_>,
        to: ContextStatus,
    ) -> Result<ContextStatus, ConversationError> {
        let to = self.status.change(to)?;
        tx.execute(
            "update oracle_contexts set status = ?2, last_activity = ?3 where id = ?1",
            (self.id.as_str(), to.as_str(), now()),
        )?;
        Ok(to)
    }
}

const CONTEXT: &str = "id, user_id, project_id, session_start, last_activity, last_model, \
     token_budget, tokens_used, compressed_summary, key_decisions_json, status, \
     compression_count, agent_id, name, is_default, forked_from, forked_exchange, summary_tokens";

/// The whole state of a conversation. What the row only has copies of is read where it is true: a
/// query that is running has added to it, and the copies are made when it has ended.
pub(super) fn context(tx: &Tx<'_>, id: &ContextId) -> Result<OracleContext, ConversationError> {
    let sql = format!("select {CONTEXT} from oracle_contexts where id = ?1");
    let context = tx.query_one(&sql, (id.as_str(),), read_context)?;
    Ok(OracleContext {
        recent_exchanges: window::exchanges(tx, id)?,
        mentioned_symbols: history::mentioned(tx, id, "symbol")?,
        mentioned_files: history::mentioned(tx, id, "file")?,
        ..context
    })
}

fn read_context(row: &Row<'_>) -> Result<OracleContext, DbError> {
    let forked_from = row.get::<Option<String>>(15)?;
    let forked_exchange = row.get::<Option<String>>(16)?;
    Ok(OracleContext {
        id: ContextId::stored(row.get(0)?),
        user_id: row.get(1)?,
        project_id: row.get(2)?,
        session_start: time(row, 3)?,
        last_activity: time_opt(row, 4)?,
        last_model: row.get(5)?,
        token_budget: row.get(6)?,
        tokens_used: row.get(7)?,
        compressed_summary: row.get(8)?,
        recent_exchanges: Vec::new(),
        key_decisions: parse("decisions", row.text(9)?)?,
        mentioned_symbols: None,
        mentioned_files: None,
        status: status(row, 10)?,
        compression_count: row.get(11)?,
        agent_id: row.get(12)?,
        name: row.get(13)?,
        is_default: row.get(14)?,
        summary_tokens: row.get(17)?,
        forked_from: forked_from.map(|context| ForkPoint {
            context_id: ContextId::stored(context),
            exchange_id: forked_exchange.map(ExchangeId::stored),
        }),
    })
}

fn status(row: &Row<'_>, index: usize) -> Result<ContextStatus, DbError> {
    let parsed = ContextStatus::parse(row.text(index)?);
    parsed.map_err(|error| unreadable("status", error.to_string()).into())
}

/// A time as it is stored: always as many digits, so that texts sort as times do.
pub(super) fn stamp(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// The current time, as it is stored.
pub(super) fn now() -> String {
    stamp(Timestamp::now())
}

pub(super) fn time(row: &Row<'_>, index: usize) -> Result<Timestamp, DbError> {
    let parsed = row.text(index)?.parse();
    parsed.map_err(|error: jiff::Error| unreadable("time", error.to_string()).into())
}

pub(super) fn time_opt(row: &Row<'_>, index: usize) -> Result<Option<Timestamp>, DbError> {
    match row.get::<Option<String>>(index)? {
        None => Ok(None),
        Some(_) => time(row, index).map(Some),
    }
}

pub(super) fn parse<T: DeserializeOwned>(
    what: &'static str,
    text: &str,
) -> Result<T, ConversationError> {
    serde_json::from_str(text).map_err(|error| unreadable(what, error.to_string()))
}

pub(super) fn json(
    what: &'static str,
    value: &impl Serialize,
) -> Result<String, ConversationError> {
    serde_json::to_string(value).map_err(|error| unreadable(what, error.to_string()))
}

pub(super) fn unreadable(what: &'static str, reason: String) -> ConversationError {
    ConversationError::Unreadable { what, reason }
}
