//! The working window: which exchanges are in it, and what a model is shown of them.

use dodona_plugin::store::{DbError, Row, Tx};
use dodona_proto::Message;
use serde_json::Value;

use super::context::overflow_limit;
use super::count;
use super::error::ConversationError;
use super::exchange::{ExchangeRole, OracleExchange};
use super::history;
use super::id::{ContextId, QueryId};
use super::query::QueryState;
use super::rows::{self, Head};
use super::tool_call::{Ending, ToolCallRecord};

/// From where a window is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// From where it begins: what has left it stays out.
    Window,
    /// From the first exchange: what has left it may come back where there is room.
    All,
}

/// A window that was brought in step with the originals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fitted {
    pub(super) tokens_used: u64,
    /// How many queries do not fit.
    pub(super) dropped: usize,
    /// The tokens of the newest query, if it alone is too large.
    pub(super) too_large: Option<u64>,
}

/// The exchanges of one query that could be in the window.
struct Group {
    first: u64,
    tokens: u64,
    state: QueryState,
}

/// Brings everything that is derived from the exchanges in step with them: which of them are in
/// the window, its JSON, its tokens, the mentions.
///
/// Whole queries leave the window, the oldest first, until the rest is within the budget; the
/// newest may use the tenth above it. So a tool call is never parted from its result.
pub(super) fn refresh(
    tx: &Tx<'_>,
    context: &ContextId,
    reach: Reach,
) -> Result<Fitted, ConversationError> {
    let head = Head::of(tx, context)?;
    let groups = groups(tx, &head, reach)?;
    let (from, fitted) = fit(&groups, &head)?;
    let exchanges: Vec<String> = tx.query(
        "select json from exchanges
         where context_id = ?1 and position >= ?2 and rewound_at is null order by position",
        (context.as_str(), from),
        |row| row.get(0),
    )?;
    tx.execute(
        "update oracle_contexts set window_from = ?2, tokens_used = ?3, recent_exchanges_json = ?4,
             mentioned_files = ?5, mentioned_symbols = ?6
         where id = ?1",
        (
            context.as_str(),
            from,
            fitted.tokens_used,
            format!("[{}]", exchanges.join(",")),
            history::mentioned(tx, context, "file")?,
            history::mentioned(tx, context, "symbol")?,
        ),
    )?;
    Ok(fitted)
}

/// The groups that are candidates, the newest first.
fn groups(tx: &Tx<'_>, head: &Head, reach: Reach) -> Result<Vec<Group>, ConversationError> {
    let from = match reach {
        Reach::Window => head.window_from,
        Reach::All => 0,
    };
    let sql = "select min(e.position), sum(e.token_count), q.state
        from exchanges e join queries q on q.id = e.query_id
        where e.context_id = ?1 and e.position >= ?2 and e.rewound_at is null
        group by e.query_id order by min(e.position) desc";
    Ok(tx.query(sql, (head.id.as_str(), from), |row| {
        Ok(Group {
            first: row.get(0)?,
            tokens: row.get(1)?,
            state: QueryState::parse(row.text(2)?)?,
        })
    })?)
}

/// Where the window begins, and what that comes to.
fn fit(groups: &[Group], head: &Head) -> Result<(u64, Fitted), ConversationError> {
    let (budget, limit) = (head.token_budget, overflow_limit(head.token_budget));
    let mut from = head.last_position + 1;
    let mut fitted = Fitted {
        tokens_used: 0,
        dropped: groups.len(),
        too_large: None,
    };
    for (index, group) in groups.iter().enumerate() {
        let tokens = fitted.tokens_used + group.tokens;
        match index {
            0 if tokens > limit && group.state == QueryState::Running => {
                return Err(ConversationError::OverBudget {
                    tokens,
                    budget,
                    limit,
                });
            }
            0 if tokens > limit => {
                fitted.too_large = Some(tokens);
                break;
            }
            0 => {}
            _ if tokens > budget => break,
            _ => {}
        }
        (from, fitted.tokens_used) = (group.first, tokens);
        fitted.dropped -= 1;
    }
    Ok((from, fitted))
}

/// An exchange in the window, with the query it belongs to.
struct Shown {
    exchange: OracleExchange,
    /// What the model wants to see again, if it is the one that is asked now.
    opaque: Option<Value>,
    query: QueryId,
    state: QueryState,
}

/// What a model is shown: valid for a strict provider, whatever has happened.
///
/// Every tool call is answered exactly once, directly after the message that asked for it and in
/// the order of the calls. A query that ended without an answer, or whose answer was not
/// finished, is closed with a message that says so; half an answer is never shown as one.
pub(super) fn messages(
    tx: &Tx<'_>,
    context: &ContextId,
) -> Result<Vec<Message>, ConversationError> {
    let sql = "select e.json, e.query_id, q.state,
            case when e.model = c.last_model then e.opaque end
        from exchanges e join queries q on q.id = e.query_id
        join oracle_contexts c on c.id = e.context_id
        where e.context_id = ?1 and e.position >= c.window_from and e.rewound_at is null
        order by e.position";
    let shown = tx.query(sql, (context.as_str(),), |row| {
        Ok(Shown {
            exchange: rows::parse("exchange", row.text(0)?)?,
            query: QueryId::stored(row.get(1)?),
            state: QueryState::parse(row.text(2)?)?,
            opaque: opaque(row, 3)?,
        })
    })?;
    let mut messages = Vec::with_capacity(shown.len() + 1);
    for group in shown.chunk_by(|a, b| a.query == b.query) {
        show_query(group, &mut messages);
    }
    Ok(messages)
}

fn show_query(group: &[Shown], messages: &mut Vec<Message>) {
    let state = group[0].state;
    let answered = group.last().is_some_and(|last| last.exchange.is_answer());
    let half = answered && !matches!(state, QueryState::Complete | QueryState::Running);
    let whole = if half {
        &group[..group.len() - 1]
    } else {
        group
    };
    for (index, shown) in whole.iter().enumerate() {
        show_exchange(shown, &whole[index + 1..], messages);
    }
    if state != QueryState::Running && (half || !answered) {
        messages.push(Message::Assistant {
            content: state.told().to_owned(),
            tool_calls: Vec::new(),
            opaque: None,
        });
    }
}

fn show_exchange(shown: &Shown, later: &[Shown], messages: &mut Vec<Message>) {
    // A tool's answer is shown with the message that asked for it.
    if shown.exchange.role == ExchangeRole::Tool {
        return;
    }
    messages.push(count::message(&shown.exchange, shown.opaque.clone()));
    let calls = shown.exchange.calls().iter();
    messages.extend(calls.map(|call| result(call, later)));
}

pub(super) fn opaque(row: &Row<'_>, index: usize) -> Result<Option<Value>, DbError> {
    let text: Option<String> = row.get(index)?;
    let parsed = text.map(|text| rows::parse("exchange", &text)).transpose();
    Ok(parsed?)
}

/// The message that answers a call: what the tool said, or what became of it.
fn result(call: &ToolCallRecord, later: &[Shown]) -> Message {
    let said = later
        .iter()
        .map(|shown| &shown.exchange)
        .take_while(|exchange| exchange.role != ExchangeRole::Assistant)
        .find(|exchange| exchange.tool_call_id.as_ref() == Some(&call.id));
    let content = match (said, &call.result) {
        (Some(exchange), _) => exchange.content.clone(),
        (None, Some(result)) => result.clone(),
        (None, None) => call.ending.unwrap_or(Ending::Interrupted).told(),
    };
    Message::Tool {
        tool_call_id: call.id.clone(),
        content,
    }
}
