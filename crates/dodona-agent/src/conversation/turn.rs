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
    /// The model that answered in its place, as its fallback.
    pub(super) answered_by: Option<String>,
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
        model: Some(facts.answered_by.as_ref().unwrap_or(&facts.model)),
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

/// Records that a call starts to run. `hub_call` is the hub's id of it, where the journal records
/// its end.
pub(super) fn start_call(
    tx: &Tx<'_>,
    facts: &Facts,
    call_id: &str,
    path: Option<&str>,
    hub_call: Option<&CallId>,
) -> Result<(), ConversationError> {
    running(tx, &facts.query)?;
    let call = open_call(tx, &facts.query, call_id)?;
    if !facts.tools.contains(&call.name) {
        let rule = format!("must match a defined tool, and `{}` does not", call.name);
        return Err(Invalid::new("tool_calls.name", rule).into());
    }
    tx.execute(
        "update tool_calls set started_at = ?3, plugin_path = ?4, hub_call_id = ?5
         where exchange_id = ?1 and call_id = ?2",
        (
            call.exchange.as_str(),
            call_id,
            rows::now(),
            path,
            hub_call.map(ToString::to_string),
        ),
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

/// Stores a message to a running query until the loop takes it.
pub(super) fn add_steering(
    tx: &Tx<'_>,
    query: &QueryId,
    message: &OracleExchange,
) -> Result<(), ConversationError> {
    message.check()?;
    let json = rows::json("exchange", message)?;
    let sql = "insert into steering (query_id, exchange) values (?1, ?2)";
    tx.execute(sql, (query.as_str(), json))?;
    Ok(())
}

/// Whether messages to a query are waiting.
pub(super) fn has_steering(tx: &Tx<'_>, query: &QueryId) -> Result<bool, ConversationError> {
    let sql = "select 1 from steering where query_id = ?1 limit 1";
    Ok(tx.query_opt(sql, (query.as_str(),), |_| Ok(()))?.is_some())
}

/// Moves the waiting messages to a query into the conversation. Returns the last one.
pub(super) fn take_steering(
    tx: &Tx<'_>,
    facts: &Facts,
    turn: u32,
) -> Result<Option<Appended>, ConversationError> {
    let sql = "select exchange from steering where query_id = ?1 order by id";
    let waiting: Vec<String> = tx.query(sql, (facts.query.as_str(),), |row| row.get(0))?;
    let mut last = None;
    for text in waiting {
        let message: OracleExchange = rows::parse("exchange", &text)?;
        last = Some(place(tx, facts, turn, &message, None)?);
    }
    tx.execute(
        "delete from steering where query_id = ?1",
        (facts.query.as_str(),),
    )?;
    Ok(last)
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
    let open: Vec<(String, String, bool)> = tx.query(
        "select exchange_id, call_id, started_at is not null from tool_calls
         where query_id = ?1 and status = 'pending' order by exchange_id, ordinal",
        (query.as_str(),),
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    for (exchange, call_id, has_started) in open {
        let ending = to.ending();
        let (exchange, result) = (
            ExchangeId::stored(exchange),
            ending.result_text(has_started),
        );
        record_ending(tx, &exchange, &call_id, ending, &result, None)?;
    }
    let reason = reason.map(|text| &text[..text.floor_char_boundary(LONGEST_REASON)]);
    let (context, turns, model): (String, u32, Option<String>) = tx.query_one(
        "update queries set state = ?2, reason = ?3, ended_at = ?4 where id = ?1
         returning context_id, turns, model",
        (query.as_str(), to.as_str(), reason, rows::now()),
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )?;
    let context = ContextId::stored(context);
    if has_steering(tx, query)? {
        // The user sent messages that no model has read. They stay in the conversation.
        let facts = Facts {
            query: query.clone(),
            context: context.clone(),
            model: model.unwrap_or_default(),
            answered_by: None,
            tools: Arc::default(),
        };
        take_steering(tx, &facts, turns)?;
    }
    window::refresh(tx, &context, Reach::Window)?;
    Ok(())
}

/// A tool call that was running when its process ended.
pub(super) struct LeftCall {
    exchange: ExchangeId,
    call_id: String,
    /// The hub's id of it.
    pub(super) hub_call: CallId,
}

/// The mutating tool calls that are stored as running. The journal may know how they ended.
pub(super) fn left_calls(tx: &Tx<'_>) -> Result<Vec<LeftCall>, ConversationError> {
    let sql = "select t.exchange_id, t.call_id, t.hub_call_id from tool_calls t
        join queries q on q.id = t.query_id
        where t.status = 'pending' and q.state = 'running' and t.hub_call_id is not null";
    let calls: Vec<(String, String, String)> =
        tx.query(sql, (), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let parsed = calls
        .into_iter()
        .filter_map(|(exchange, call_id, hub_call)| {
            Some(LeftCall {
                exchange: ExchangeId::stored(exchange),
                call_id,
                hub_call: hub_call.parse().ok()?,
            })
        });
    Ok(parsed.collect())
}

/// Ends every query that is stored as running and that no task in this process holds. Calls that
/// have `finished` according to the journal end as successful. Returns the number of queries.
pub(super) fn recover(
    tx: &Tx<'_>,
    held: impl Fn(&QueryId) -> bool,
    finished: &[LeftCall],
) -> Result<usize, ConversationError> {
    for call in finished {
        let ending = Ending::Success;
        let result = ending.result_text(true);
        record_ending(tx, &call.exchange, &call.call_id, ending, &result, None)?;
    }
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
