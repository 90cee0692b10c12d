//! The requests of a query as they were: what tells them apart, what was said to each, and what the
//! tools did.

use dodona_plugin::store::{DbError, Row, ToValue, Tx};
use dodona_proto::{Message, Usage};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Conversations;
use super::count;
use super::error::{ConversationError, not_found};
use super::exchange::{ExchangeRole, OracleExchange};
use super::found::ToolsTold;
use super::id::{ContextId, QueryId};
use super::query::{INFO, QueryInfo, QueryState};
use super::rows::{self, Owner};
use super::shown::{self, WindowPlace};
use super::tool_call::Ending;

/// What tells a request from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentRequest {
    /// Its digest, as JSON.
    pub digest: String,
    /// What was looked up for the question; it is no part of the conversation.
    pub preloaded: Option<String>,
    /// How many tools the model was told of.
    pub tools: ToolsTold,
    /// Its digest as plugins left it, where they changed it.
    pub changed: Option<String>,
    /// What the model said, as JSON, where plugins changed that.
    pub heard: Option<String>,
}

/// A query as it was.
#[derive(Debug, Clone)]
pub struct RecordedQuery {
    /// What is known of it.
    pub info: QueryInfo,
    /// In which conversation.
    pub context: ContextId,
    /// Its requests, in order.
    pub turns: Vec<RecordedTurn>,
}

/// A request and what came of it.
#[derive(Debug, Clone)]
pub struct RecordedTurn {
    /// Which, from 1.
    pub turn: u32,
    /// When it had been answered.
    pub at: Timestamp,
    /// What tells it from others.
    pub sent: SentRequest,
    /// The messages that were shown, without what was looked up and what plugins changed.
    pub messages: Vec<Message>,
    /// The first exchange that was shown, by its position; 0 for none.
    pub from: u64,
    /// What the model said, if it was kept.
    pub said: Option<Message>,
    /// The tools that it asked for.
    pub calls: Vec<RecordedCall>,
    /// What it took.
    pub usage: Usage,
    /// What that cost, where it is known.
    pub cost_micros: Option<u64>,
}

/// A tool as it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedCall {
    /// The model's id for it.
    pub id: String,
    /// Its name on the model's side.
    pub name: String,
    /// Its parameters.
    pub arguments: Map<String, Value>,
    /// The names that led to it.
    pub path: Option<String>,
    /// How it ended.
    pub ending: Option<Ending>,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How many bytes it answered.
    pub result_size: Option<u64>,
}

impl Conversations {
    /// A query as it was, by its id or the end of it.
    pub async fn recorded(
        &self,
        owner: &Owner,
        query: &str,
    ) -> Result<RecordedQuery, ConversationError> {
        let (owner, asked) = (owner.clone(), query.to_owned());
        self.read(move |tx| {
            let (context, info) = find(tx, &owner, &asked)?;
            let turns = turns(tx, &context, &info)?;
            Ok(RecordedQuery {
                info,
                context,
                turns,
            })
        })
        .await
    }
}

/// A query of an agent that was delegated to.
#[derive(Debug, Clone)]
pub struct QueryBelow {
    /// Which agent.
    pub agent: String,
    /// Which query.
    pub info: QueryInfo,
}

impl Conversations {
    /// The queries that were begun below another, in the order in which they were begun, and at most
    /// so many.
    pub async fn below(
        &self,
        owner: &Owner,
        above: &QueryInfo,
        most: usize,
    ) -> Result<Vec<QueryBelow>, ConversationError> {
        let Some(root) = above.call_id else {
            return Ok(Vec::new());
        };
        let (owner, since) = (owner.clone(), rows::stamp(above.started_at));
        let until = above.ended_at.map(rows::stamp);
        let mut found = self
            .read(move |tx| begun_by_agents(tx, &owner, &since, until.as_deref()))
            .await?;
        found.retain(|below| {
            let call = below.info.call_id.as_ref();
            call.is_some_and(|call| *call != root && call.is_within(&root))
        });
        found.truncate(most);
        Ok(found)
    }
}

fn begun_by_agents(
    tx: &Tx<'_>,
    owner: &Owner,
    since: &str,
    until: Option<&str>,
) -> Result<Vec<QueryBelow>, ConversationError> {
    let sql = format!(
        "select {INFO}, (select c.agent_id from oracle_contexts c where c.id = context_id)
         from queries
         where started_at >= ?3 and (?4 is null or started_at <= ?4) and call_id is not null
             and copied_from is null and context_id in (
                 select c.id from oracle_contexts c
                 where c.user_id = ?1 and c.project_id = ?2 and c.is_delegated = 1)
         order by id"
    );
    let whose = (owner.user.as_str(), owner.project.as_str(), since, until);
    Ok(tx.query(&sql, whose, |row| {
        Ok(QueryBelow {
            agent: row.get(9)?,
            info: QueryInfo::read(row)?,
        })
    })?)
}

/// Stores what tells a request from others.
pub(super) fn insert(
    tx: &Tx<'_>,
    query: &QueryId,
    turn: u32,
    place: WindowPlace,
    sent: &SentRequest,
) -> Result<(), ConversationError> {
    let values: [&dyn ToValue; 13] = [
        &query.as_str(),
        &turn,
        &rows::now(),
        &sent.digest,
        &sent.preloaded,
        &place.summary_id,
        &place.from,
        &place.last,
        &sent.tools.told,
        &sent.tools.known,
        &sent.tools.saved,
        &sent.changed,
        &sent.heard,
    ];
    tx.execute(
        "insert or replace into requests (query_id, turn, at, digest, preloaded, summary_id,
             window_from, last_position, tools_told, tools_known, tokens_saved, changed,
             heard)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        &values[..],
    )?;
    Ok(())
}

fn find(
    tx: &Tx<'_>,
    owner: &Owner,
    asked: &str,
) -> Result<(ContextId, QueryInfo), ConversationError> {
    let sql = format!(
        "select {INFO}, context_id from queries
         where (id = ?1 or {}) and context_id in (
             select c.id from oracle_contexts c where c.user_id = ?2 and c.project_id = ?3)
         order by id = ?1 desc limit 2",
        rows::ends_with(1)
    );
    let whose = (asked, owner.user.as_str(), owner.project.as_str());
    let mut found = tx.query(&sql, whose, |row| {
        Ok((ContextId::stored(row.get(9)?), QueryInfo::read(row)?))
    })?;
    match found.len() {
        2 if found[0].1.id.as_str() != asked => Err(rows::ambiguous("query_id", asked).into()),
        0 => Err(not_found("query", asked)),
        _ => Ok(found.swap_remove(0)),
    }
}

fn turns(
    tx: &Tx<'_>,
    context: &ContextId,
    info: &QueryInfo,
) -> Result<Vec<RecordedTurn>, ConversationError> {
    let sql = "select turn, at, digest, preloaded, summary_id, window_from, last_position,
            tools_told, tools_known, tokens_saved, changed, heard
        from requests where query_id = ?1 order by turn";
    let rows = tx.query(sql, (info.id.as_str(),), |row| {
        let sent = SentRequest {
            digest: row.get(2)?,
            preloaded: row.get(3)?,
            tools: ToolsTold {
                told: row.get(7)?,
                known: row.get(8)?,
                saved: row.get(9)?,
            },
            changed: row.get(10)?,
            heard: row.get(11)?,
        };
        let place = WindowPlace {
            summary_id: row.get(4)?,
            from: row.get(5)?,
            last: row.get(6)?,
        };
        Ok((row.get(0)?, rows::time(row, 1)?, sent, place))
    })?;
    let mut turns = Vec::with_capacity(rows.len());
    for (turn, at, sent, place) in rows {
        let said = said(tx, info, turn)?;
        let window = shown::window_then(tx, context, &info.id, place)?;
        let (usage, cost_micros) = used(tx, &info.id, turn)?;
        turns.push(RecordedTurn {
            turn,
            at,
            sent,
            messages: window.messages(),
            from: window.range().from,
            calls: match &said {
                Some((exchange, _)) => calls(tx, exchange)?,
                None => Vec::new(),
            },
            said: said.map(|(exchange, opaque)| count::message(&exchange, opaque)),
            usage,
            cost_micros,
        });
    }
    Ok(turns)
}

/// What the model said in a turn. The beginning of an answer that did not come to its end is not
/// what it said.
fn said(
    tx: &Tx<'_>,
    info: &QueryInfo,
    turn: u32,
) -> Result<Option<(OracleExchange, Option<Value>)>, ConversationError> {
    let sql = "select json, opaque from exchanges
        where query_id = ?1 and turn = ?2 and role = 'assistant' order by position limit 1";
    let found = tx.query_opt(sql, (info.id.as_str(), turn), |row| {
        let exchange: OracleExchange = rows::parse("exchange", row.text(0)?)?;
        Ok((exchange, shown::opaque(row, 1)?))
    })?;
    Ok(found.filter(|(exchange, _)| {
        debug_assert_eq!(exchange.role, ExchangeRole::Assistant);
        !exchange.calls().is_empty() || info.state == QueryState::Complete
    }))
}

fn calls(tx: &Tx<'_>, exchange: &OracleExchange) -> Result<Vec<RecordedCall>, ConversationError> {
    let sql = "select call_id, plugin_path, result_size from tool_calls where exchange_id = ?1";
    type Facts = (String, Option<String>, Option<u64>);
    let facts: Vec<Facts> = tx.query(sql, (exchange.id.as_str(),), |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let calls = exchange.calls().iter().map(|call| {
        let facts = facts.iter().find(|(id, ..)| *id == call.id);
        RecordedCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            path: facts.and_then(|(_, path, _)| path.clone()),
            ending: call.ending,
            duration_ms: call.duration_ms,
            result_size: facts.and_then(|(.., size)| *size),
        }
    });
    Ok(calls.collect())
}

fn used(
    tx: &Tx<'_>,
    query: &QueryId,
    turn: u32,
) -> Result<(Usage, Option<u64>), ConversationError> {
    let sql = "select coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
            coalesce(sum(cached_input_tokens), 0), coalesce(sum(cache_write_tokens), 0),
            coalesce(sum(reasoning_tokens), 0),
            case when count(*) = count(cost_micros) then sum(cost_micros) end
        from usage where query_id = ?1 and turn = ?2";
    let read = |row: &Row<'_>| -> Result<(Usage, Option<u64>), DbError> {
        let usage = Usage {
            input_tokens: row.get(0)?,
            output_tokens: row.get(1)?,
            cached_input_tokens: row.get(2)?,
            cache_write_tokens: row.get(3)?,
            reasoning_tokens: row.get(4)?,
        };
        Ok((usage, row.get(5)?))
    };
    Ok(tx.query_one(sql, (query.as_str(), turn), read)?)
}
