//! Conversations as wholes: made, listed, shown, closed; and what they remember.

use dodona_plugin::store::{ConstraintKind, DbError, Row, ToValue, Tx};
use dodona_proto::hook::SessionEnd;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::begin::not_busy;
use super::context::{
    ContextStatus, DEFAULT_AGENT, DEFAULT_TOKEN_BUDGET, ForkPoint, OracleContext, check_budget,
    check_name, default_name, is_reserved,
};
use super::decision::{self, KeyDecision};
use super::error::{ConversationError, Invalid, not_found};
use super::id::{ContextId, ExchangeId};
use super::query::{INFO, QueryInfo};
use super::rows::{self, Head, Owner};
use super::{Conversations, session};

/// The name of the conversation that questions go to which name none.
pub(super) const DEFAULT_NAME: &str = "default";

/// A conversation to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewContext {
    /// A name that no other one of the project has.
    pub name: Option<String>,
    /// How many tokens its window may have.
    pub token_budget: u64,
    /// The agent definition it belongs to.
    pub agent_id: String,
    /// Whether questions go there that name no conversation.
    pub is_default: bool,
    /// Where it was copied from.
    pub forked_from: Option<ForkPoint>,
    /// Whether it was created for a delegated task. Such a conversation is listed only with
    /// [`Which::All`].
    pub is_delegated: bool,
}

impl NewContext {
    /// One with a name or without.
    pub fn named(name: Option<&str>) -> Self {
        Self {
            name: name.map(str::to_owned),
            token_budget: DEFAULT_TOKEN_BUDGET,
            agent_id: DEFAULT_AGENT.to_owned(),
            is_default: false,
            forked_from: None,
            is_delegated: false,
        }
    }

    /// The conversation that questions to an agent go to which name none.
    pub(super) fn default_of(agent: &str) -> Self {
        Self {
            agent_id: agent.to_owned(),
            is_default: agent == DEFAULT_AGENT,
            ..Self::named(Some(&default_name(agent)))
        }
    }
}

/// Which conversations to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Conversations that can be continued, of every agent.
    Open,
    /// Also closed conversations and those of delegated tasks.
    All,
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextSummary {
    /// Which one.
    pub id: ContextId,
    /// Its name.
    pub name: Option<String>,
    /// The agent it belongs to.
    pub agent_id: String,
    /// Whether questions go there that name no conversation.
    pub is_default: bool,
    /// Whether it was created for a delegated task.
    #[serde(default)]
    pub is_delegated: bool,
    /// What it is now.
    pub status: ContextStatus,
    /// When it was begun.
    pub session_start: Timestamp,
    /// When something last happened in it.
    pub last_activity: Option<Timestamp>,
    /// The model of the last query.
    pub last_model: Option<String>,
    /// How many tokens its window may have.
    pub token_budget: u64,
    /// How many it has.
    pub tokens_used: u64,
    /// How many queries there were.
    pub queries: u64,
    /// The first question, shortened.
    pub first_question: Option<String>,
    /// Where it was copied from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub forked_from: Option<ForkPoint>,
}

impl Conversations {
    /// Makes a conversation.
    pub async fn create(
        &self,
        owner: &Owner,
        new: NewContext,
    ) -> Result<OracleContext, ConversationError> {
        let owner = owner.clone();
        self.write(move |tx| {
            let id = create(tx, &owner, &new)?;
            rows::context(tx, &id)
        })
        .await
    }

    /// The conversations, the latest first.
    pub async fn list(
        &self,
        owner: &Owner,
        which: Which,
        limit: u32,
    ) -> Result<Vec<ContextSummary>, ConversationError> {
        self.list_of(owner, which, None, limit).await
    }

    /// The conversations of one agent, or of all without a name, the latest first.
    pub async fn list_of(
        &self,
        owner: &Owner,
        which: Which,
        agent: Option<&str>,
        limit: u32,
    ) -> Result<Vec<ContextSummary>, ConversationError> {
        let (owner, agent) = (owner.clone(), agent.map(str::to_owned));
        self.read(move |tx| {
            let (user, project) = (owner.user.as_str(), owner.project.as_str());
            let all = which == Which::All;
            let params = (user, project, all, limit, agent.as_deref());
            Ok(tx.query(LIST, params, read_summary)?)
        })
        .await
    }

    /// The agent that a conversation belongs to.
    pub async fn agent_of(
        &self,
        owner: &Owner,
        context: &str,
    ) -> Result<String, ConversationError> {
        let (owner, asked) = (owner.clone(), context.to_owned());
        self.read(move |tx| Ok(Head::find(tx, &owner, &asked)?.agent_id))
            .await
    }

    /// The whole state of one, by id or name; the default one without.
    pub async fn show(
        &self,
        owner: &Owner,
        context: Option<&str>,
    ) -> Result<OracleContext, ConversationError> {
        let (owner, asked) = (owner.clone(), context.map(str::to_owned));
        self.read(move |tx| {
            let head = find(tx, &owner, asked.as_deref())?;
            rows::context(tx, &head.id)
        })
        .await
    }

    /// Ends a conversation. It can still be read, exported and forked.
    pub async fn close(
        &self,
        owner: &Owner,
        context: &str,
    ) -> Result<ContextId, ConversationError> {
        let (owner, asked, live) = (owner.clone(), context.to_owned(), self.inner.live.clone());
        self.write(move |tx| {
            let head = Head::find(tx, &owner, &asked)?;
            not_busy(tx, &head.id, &live)?;
            head.change(tx, ContextStatus::Closed)?;
            session::end(tx, &head.id, SessionEnd::Closed)?;
            Ok(head.id)
        })
        .await
    }

    /// Rename a conversation. The default one keeps its name: questions find it by that.
    pub async fn rename(
        &self,
        owner: &Owner,
        context: &str,
        name: &str,
    ) -> Result<ContextId, ConversationError> {
        let (owner, asked, name) = (owner.clone(), context.to_owned(), name.to_owned());
        self.write(move |tx| {
            let head = Head::find(tx, &owner, &asked)?;
            check_name(&name)?;
            if is_reserved(&name) || name == DEFAULT_NAME {
                let rule = "is reserved for the default conversation of an agent";
                return Err(Invalid::new("name", rule).into());
            }
            let renamed = tx.execute(
                "update oracle_contexts set name = ?2 where id = ?1 and is_default = 0",
                (head.id.as_str(), name.as_str()),
            );
            match renamed {
                Ok(0) => {
                    let rule = "the default conversation cannot be renamed";
                    Err(Invalid::new("context_id", rule).into())
                }
                Ok(_) => Ok(head.id),
                Err(DbError::Constraint {
                    kind: ConstraintKind::Unique,
                    ..
                }) => Err(ConversationError::NameTaken(name)),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    /// Remembers something in a conversation, the default one if none is named. Saying the same
    /// again changes nothing. Answers whether it is new.
    pub async fn remember(
        &self,
        owner: &Owner,
        context: Option<&str>,
        decision: KeyDecision,
    ) -> Result<(ContextId, bool), ConversationError> {
        let (owner, asked) = (owner.clone(), context.map(str::to_owned));
        self.write(move |tx| {
            let head = find_or_default(tx, &owner, asked.as_deref())?;
            let new = decision::add(tx, &head.id, &decision)?;
            Ok((head.id, new))
        })
        .await
    }

    /// What a conversation remembers, in the order it was said.
    pub async fn decisions(
        &self,
        owner: &Owner,
        context: Option<&str>,
    ) -> Result<Vec<KeyDecision>, ConversationError> {
        let (owner, asked) = (owner.clone(), context.map(str::to_owned));
        self.read(move |tx| decision::of(tx, &find(tx, &owner, asked.as_deref())?.id))
            .await
    }

    /// The queries of a conversation, the latest first.
    pub async fn queries(
        &self,
        owner: &Owner,
        context: Option<&str>,
        limit: u32,
    ) -> Result<Vec<QueryInfo>, ConversationError> {
        let (owner, asked) = (owner.clone(), context.map(str::to_owned));
        self.read(move |tx| {
            let head = find(tx, &owner, asked.as_deref())?;
            let sql = format!(
                "select {INFO} from queries where context_id = ?1
                 order by id desc limit ?2"
            );
            Ok(tx.query(&sql, (head.id.as_str(), limit), QueryInfo::read)?)
        })
        .await
    }
}

/// One that is open, by id or name; without, the default one, which is made if there is none.
pub(super) fn find_or_default(
    tx: &Tx<'_>,
    owner: &Owner,
    asked: Option<&str>,
) -> Result<Head, ConversationError> {
    match (asked, Head::default(tx, owner)?) {
        (Some(asked), _) => Head::find(tx, owner, asked)?.open(),
        (None, Some(head)) => Ok(head),
        (None, None) => {
            let id = create(tx, owner, &NewContext::default_of(DEFAULT_AGENT))?;
            Head::of(tx, &id)
        }
    }
}

/// By id or name, or the default one.
pub(super) fn find(
    tx: &Tx<'_>,
    owner: &Owner,
    asked: Option<&str>,
) -> Result<Head, ConversationError> {
    match asked {
        Some(asked) => Head::find(tx, owner, asked),
        None => Head::default(tx, owner)?.ok_or_else(|| not_found("conversation", DEFAULT_NAME)),
    }
}

/// Makes a conversation.
pub(super) fn create(
    tx: &Tx<'_>,
    owner: &Owner,
    new: &NewContext,
) -> Result<ContextId, ConversationError> {
    check_budget(new.token_budget)?;
    if let Some(name) = &new.name {
        check_name(name)?;
        if is_reserved(name) && *name != default_name(&new.agent_id) {
            let rule = "is reserved for the default conversation of an agent";
            return Err(Invalid::new("name", rule).into());
        }
        if name == DEFAULT_NAME && !new.is_default {
            let rule = "is the name of the conversation that questions go to by default";
            return Err(Invalid::new("name", rule).into());
        }
    }
    let id = ContextId::new();
    let now = rows::now();
    let forked = new.forked_from.as_ref();
    let exchange = forked.and_then(|fork| fork.exchange_id.as_ref());
    let values: [&dyn ToValue; 11] = [
        &id.as_str(),
        &owner.user.as_str(),
        &owner.project.as_str(),
        &now,
        &new.token_budget,
        &new.agent_id,
        &new.name,
        &new.is_default,
        &forked.map(|fork| fork.context_id.as_str()),
        &exchange.map(ExchangeId::as_str),
        &new.is_delegated,
    ];
    let inserted = tx.execute(
        "insert into oracle_contexts (id, user_id, project_id, session_start, last_activity,
             token_budget, agent_id, name, is_default, forked_from, forked_exchange,
             is_delegated)
         values (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        &values[..],
    );
    match inserted {
        Ok(_) => Ok(id),
        // The only other unique thing is the default, which is looked for before it is made.
        Err(DbError::Constraint {
            kind: ConstraintKind::Unique,
            ..
        }) => Err(ConversationError::NameTaken(
            new.name.clone().unwrap_or_else(|| DEFAULT_NAME.to_owned()),
        )),
        Err(error) => Err(error.into()),
    }
}

const LIST: &str = "
    select c.id, c.name, c.is_default, c.status, c.session_start, c.last_activity, c.last_model,
        c.token_budget, c.tokens_used,
        (select count(*) from queries q where q.context_id = c.id),
        (select substr(q.question, 1, 200) from queries q where q.context_id = c.id
            order by q.id limit 1),
        c.forked_from, c.forked_exchange, c.agent_id, c.is_delegated
    from oracle_contexts c
    where c.user_id = ?1 and c.project_id = ?2
        and (?3 or (c.status <> 'closed' and c.is_delegated = 0))
        and (?5 is null or c.agent_id = ?5)
    order by c.last_activity desc, c.id desc limit ?4";

fn read_summary(row: &Row<'_>) -> Result<ContextSummary, DbError> {
    let status = ContextStatus::parse(row.text(3)?).map_err(ConversationError::from)?;
    let forked: Option<String> = row.get(11)?;
    let exchange: Option<String> = row.get(12)?;
    Ok(ContextSummary {
        id: ContextId::stored(row.get(0)?),
        name: row.get(1)?,
        agent_id: row.get(13)?,
        is_default: row.get(2)?,
        is_delegated: row.get(14)?,
        status,
        session_start: rows::time(row, 4)?,
        last_activity: rows::time_opt(row, 5)?,
        last_model: row.get(6)?,
        token_budget: row.get(7)?,
        tokens_used: row.get(8)?,
        queries: row.get(9)?,
        first_question: row.get(10)?,
        forked_from: forked.map(|context| ForkPoint {
            context_id: ContextId::stored(context),
            exchange_id: exchange.map(ExchangeId::stored),
        }),
    })
}
