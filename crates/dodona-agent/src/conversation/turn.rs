//! What happens to a running query, each as one transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use dodona_plugin::store::Tx;
use dodona_proto::CallId;
use serde_json::Value;

use super::error::{ConversationError, Invalid, not_found};
use super::exchange::{ExchangeRole, OracleExchange};
use super::history::{self, Place};
use super::id::{ContextId, ExchangeId, QueryId};
use super::query::{Appended, QueryState, ToolOutcome};
use super::rows::{self, Head};
use super::tool_call::Ending;
use super::window::{self, Reach};

/// The longest reason that is stored, in bytes.
const LONGEST_REASON: usize = 2_000;

/// What is the same for all of a query.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) query: QueryId,
    pub(super) context: ContextId,
    pub(super) model: String,
    /// The names of the tools that are defined for it.
    pub(super) tools: Arc<BTreeSet<String>>,
}

/// Adds an exchange to a running query.
pub(super) fn append(
    tx: &Tx<'_>,
    facts: &Facts,
    turn: u32,
    exchange: &OracleExchange,
    opaque: Option<Value>,
) -> Result<Appended, ConversationError> {
    running(tx, &facts.query)?;
    if exchange.role == ExchangeRole::Assistant {
        none_open(tx, &facts.query)?;
    }
    place(tx, facts, turn, exchange, opaque)
}

fn place(
    tx: &Tx<'_>,
    facts: &Facts,
    turn: u32,
    exchange: &OracleExchange,
    opaque: Option<Value>,
) -> Result<Appended, ConversationError> {
    let head = Head::of(tx, &facts.context)?;
    let position = head.last_position + 1;
    let place = Place {
        context: &facts.context,
        query: &facts.query,
        position,
        turn,
        model: Some(&facts.model),
        opaque: opaque.map(|opaque| opaque.to_string()),
        rewound_at: None,
        copied_from: None,
    };
    history::insert(tx, &place, exchange)?;
    tx.execute(
        "update oracle_contexts set last_position = ?2, last_activity = ?3, last_model = ?4
         where id = ?1",
        (
            facts.context.as_str(),
            position,
            rows::stamp(exchange.timestamp),
            facts.model.as_str(),
        ),
    )?;
    tx.execute(
        "update queries set turns = max(turns, ?2) where id = ?1",
        (facts.query.as_str(), turn),
    )?;
    let fitted = window::make_room(tx, &head, exchange.token_count)?;
    Ok(Appended {
        exchange: exchange.id.clone(),
        position,
        tokens: exchange.token_count,
        tokens_used: fitted.tokens_used,
        token_budget: head.token_budget,
        dropped: fitted.dropped,
    })
}

/// Refuses a query that has ended.
pub(super) fn running(tx: &Tx<'_>, query: &QueryId) -> Result<(), ConversationError> {
    match state(tx, query)? {
        QueryState::Running => Ok(()),
        state => Err(ConversationError::Ended {
            query: query.clone(),
            state,
        }),
    }
}

fn state(tx: &Tx<'_>, query: &QueryId) -> Result<QueryState, ConversationError> {
    let sql = "select state from queries where id = ?1";
    let found = tx.query_opt(sql, (query.as_str(),), |row| {
        Ok(QueryState::parse(row.text(0)?)?)
    })?;
    found.ok_or_else(|| not_found("query", query.as_str()))
}

fn none_open(tx: &Tx<'_>, query: &QueryId) -> Result<(), ConversationError> {
    let sql = "select call_id from tool_calls where query_id = ?1 and status = 'pending' limit 1";
    let open: Option<String> = tx.query_opt(sql, (query.as_str(),), |row| row.get(0))?;
    match open {
        None => Ok(()),
        Some(call) => {
            let rule = format!("`{call}` is pending and must be updated after execution");
            Err(Invalid::new("tool_calls.status", rule).into())
        }
    }
}

/// A call that has not ended.
struct Open {
    exchange: ExchangeId,
    turn: u32,
    name: String,
    started: bool,
}

fn open_call(tx: &Tx<'_>, query: &QueryId, call_id: &str) -> Result<Open, ConversationError> {
    let sql = "select t.exchange_id, e.turn, t.name, t.started_at is not null
        from tool_calls t join exchanges e on e.id = t.exchange_id
        where t.query_id = ?1 and t.call_id = ?2 and t.status = 'pending'";
    let open = tx.query_opt(sql, (query.as_str(), call_id), |row| {
        Ok(Open {
            exchange: ExchangeId::stored(row.get(0)?),
            turn: row.get(1)?,
            name: row.get(2)?,
            started: row.get(3)?,
        })
    })?;
    open.ok_or_else(|| not_found("open tool call", call_id))
}

/// Records that a call begins to run.
pub(super) fn start_call(
    tx: &Tx<'_>,
    facts: &Facts,
    call_id: &str,
    path: Option<&str>,
) -> Result<(), ConversationError> {
    running(tx, &facts.query)?;
    let call = open_call(tx, &facts.query, call_id)?;
    if !facts.tools.contains(&call.name) {
        let rule = format!("must match a defined tool, and `{}` does not", call.name);
        return Err(Invalid::new("tool_calls.name", rule).into());
    }
    tx.execute(
        "update tool_calls set started_at = ?3, plugin_path = ?4
         where exchange_id = ?1 and call_id = ?2",
        (call.exchange.as_str(), call_id, rows::now(), path),
    )?;
    Ok(())
}

/// Records how a call ended, and adds what it answered.
pub(super) fn end_call(
    tx: &Tx<'_>,
    facts: &Facts,
    answer: &OracleExchange,
    outcome: &ToolOutcome,
) -> Result<Appended, ConversationError> {
    running(tx, &facts.query)?;
    let call_id = answer.tool_call_id.clone().unwrap_or_default();
    let call = open_call(tx, &facts.query, &call_id)?;
    if outcome.ending == Ending::Success && !call.started {
        let rule = "a call that was never started cannot have succeeded";
        return Err(Invalid::new("tool_calls.ending", rule).into());
    }
    let duration_ms = u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX);
    record_ending(
        tx,
        &call.exchange,
        &call_id,
        outcome.ending,
        &outcome.result,
        Some(duration_ms),
    )?;
    place(tx, facts, call.turn, answer, None)
}

/// Writes a call's ending into its row and into the exchange that asked for it.
fn record_ending(
    tx: &Tx<'_>,
    exchange: &ExchangeId,
    call_id: &str,
    ending: Ending,
    result: &str,
    duration_ms: Option<u64>,
) -> Result<(), ConversationError> {
    tx.execute(
        "update tool_calls set status = ?3, ending = ?4, ended_at = ?5, duration_ms = ?6,
             result_size = ?7
         where exchange_id = ?1 and call_id = ?2",
        (
            exchange.as_str(),
            call_id,
            history::status_text(ending.status()),
            ending.as_str(),
            rows::now(),
            duration_ms,
            result.len(),
        ),
    )?;
    let text: String = tx.query_one(
        "select json from exchanges where id = ?1",
        (exchange.as_str(),),
        |row| row.get(0),
    )?;
    let mut asked: OracleExchange = rows::parse("exchange", &text)?;
    let calls = asked.tool_calls.iter_mut().flatten();
    for call in calls.filter(|call| call.id == call_id) {
        call.end(ending, result.to_owned(), duration_ms);
    }
    tx.execute(
        "update exchanges set json = ?2 where id = ?1",
        (exchange.as_str(), rows::json("exchange", &asked)?),
    )?;
    Ok(())
}

/// Ends a query, and the calls that are open in it. A query that has ended is left as it is.
pub(super) fn end(
    tx: &Tx<'_>,
    query: &QueryId,
    to: QueryState,
    reason: Option<&str>,
) -> Result<(), ConversationError> {
    if to == QueryState::Running {
        return Err(Invalid::new("state", "a query cannot end as running").into());
    }
    running(tx, query)?;
    if to == QueryState::Complete {
        none_open(tx, query)?;
    }
    let open: Vec<(String, String)> = tx.query(
        "select exchange_id, call_id from tool_calls
         where query_id = ?1 and status = 'pending' order by exchange_id, ordinal",
        (query.as_str(),),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (exchange, call_id) in open {
        let ending = to.ending();
        let exchange = ExchangeId::stored(exchange);
        record_ending(tx, &exchange, &call_id, ending, &ending.told(), None)?;
    }
    let reason = reason.map(|text| &text[..text.floor_char_boundary(LONGEST_REASON)]);
    let context: String = tx.query_one(
        "update queries set state = ?2, reason = ?3, ended_at = ?4 where id = ?1
         returning context_id",
        (query.as_str(), to.as_str(), reason, rows::now()),
        |row| row.get(0),
    )?;
    window::refresh(tx, &ContextId::stored(context), Reach::Window)?;
    Ok(())
}

/// Ends every query that is stored as running and that nobody holds. Answers how many.
pub(super) fn recover(
    tx: &Tx<'_>,
    held: impl Fn(&QueryId) -> bool,
) -> Result<usize, ConversationError> {
    let sql = "select id from queries where state = 'running' order by id";
    let running = tx.query(sql, (), |row| Ok(QueryId::stored(row.get(0)?)))?;
    let left: Vec<QueryId> = running.into_iter().filter(|id| !held(id)).collect();
    for query in &left {
        let reason = "the process ended before the query did";
        end(tx, query, QueryState::Interrupted, Some(reason))?;
    }
    Ok(left.len())
}

/// Stores the question of a new query.
pub(super) fn begin(
    tx: &Tx<'_>,
    facts: &Facts,
    call: Option<CallId>,
    question: &OracleExchange,
) -> Result<Appended, ConversationError> {
    tx.execute(
        "insert into queries (id, context_id, question, state, started_at, model,
             call_id)
         values (?1, ?2, ?3, 'running', ?4, ?5, ?6)",
        (
            facts.query.as_str(),
            facts.context.as_str(),
            question.content.as_str(),
            rows::stamp(question.timestamp),
            facts.model.as_str(),
            call.map(|call| call.to_string()),
        ),
    )?;
    place(tx, facts, 0, question, None)
}
