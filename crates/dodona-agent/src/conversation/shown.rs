//! What a model is shown of a conversation.

use dodona_plugin::store::{DbError, Row, Tx};
use dodona_proto::{ExchangeRange, Message};
use serde_json::Value;

use super::count;
use super::error::ConversationError;
use super::exchange::{ExchangeRole, OracleExchange};
use super::id::{ContextId, QueryId};
use super::query::QueryState;
use super::rows;
use super::tool_call::{Ending, ToolCallRecord};

/// The exchanges of a window, as they were when it was last read.
///
/// What was said once stays as it is while a query runs: others may add to the conversation, and
/// nobody may take back or count anew. So a query reads its window once, and then what is new.
#[derive(Default)]
pub(super) struct Window {
    exchanges: Vec<Shown>,
    /// The position of the last exchange of the conversation.
    last: u64,
}

/// What was added to a window since it was last read.
pub(super) struct News {
    from: u64,
    last: u64,
    exchanges: Vec<Shown>,
}

/// An exchange in the window, with the query it belongs to.
struct Shown {
    position: u64,
    exchange: OracleExchange,
    /// What the model wants to see again, if it is the one that is asked now.
    opaque: Option<Value>,
    query: QueryId,
    state: QueryState,
}

impl Window {
    /// The window of a conversation as it is now.
    pub(super) fn read(tx: &Tx<'_>, context: &ContextId) -> Result<Self, ConversationError> {
        let mut window = Self::default();
        window.add(news(tx, context, 0)?);
        Ok(window)
    }

    /// The last exchange that it knows, by its position.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The exchanges that are in it.
    pub(super) fn range(&self) -> ExchangeRange {
        ExchangeRange {
            from: self.exchanges.first().map_or(0, |shown| shown.position),
            to: self.last,
        }
    }

    /// Adds what is new, and forgets what has left the window.
    pub(super) fn add(&mut self, news: News) {
        self.exchanges.retain(|shown| shown.position >= news.from);
        self.exchanges.extend(news.exchanges);
        self.last = news.last;
    }

    /// The messages: valid for a strict provider, whatever has happened.
    ///
    /// Every tool call is answered exactly once, directly after the message that asked for it and
    /// in the order of the calls. A query that ended without an answer, or whose answer was not
    /// finished, is closed with a message that says so; half an answer is never shown as one.
    pub(super) fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::with_capacity(self.exchanges.len() + 1);
        for group in self.exchanges.chunk_by(|a, b| a.query == b.query) {
            show_query(group, &mut messages);
        }
        messages
    }
}

/// What was said after a position, as far as it is in the window.
pub(super) fn news(
    tx: &Tx<'_>,
    context: &ContextId,
    after: u64,
) -> Result<News, ConversationError> {
    let sql = "select window_from, last_position from oracle_contexts where id = ?1";
    let (from, last) = tx.query_one(sql, (context.as_str(),), |row| {
        Ok((row.get::<u64>(0)?, row.get::<u64>(1)?))
    })?;
    let sql = "select e.json, e.query_id, q.state,
            case when e.model = c.last_model then e.opaque end, e.position
        from exchanges e join queries q on q.id = e.query_id
        join oracle_contexts c on c.id = e.context_id
        where e.context_id = ?1 and e.position >= ?2 and e.rewound_at is null
        order by e.position";
    let exchanges = tx.query(sql, (context.as_str(), from.max(after + 1)), |row| {
        Ok(Shown {
            exchange: rows::parse("exchange", row.text(0)?)?,
            query: QueryId::stored(row.get(1)?),
            state: QueryState::parse(row.text(2)?)?,
            opaque: opaque(row, 3)?,
            position: row.get(4)?,
        })
    })?;
    Ok(News {
        from,
        last,
        exchanges,
    })
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
