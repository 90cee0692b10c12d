//! What a model is shown of a conversation.

use dodona_plugin::store::{DbError, Row, Tx};
use dodona_proto::{ExchangeRange, Message};
use serde_json::Value;

use super::count;
use super::error::ConversationError;
use super::exchange::{ExchangeOrigin, ExchangeRole, OracleExchange};
use super::id::{ContextId, QueryId};
use super::query::QueryState;
use super::rows;
use super::tool_call::{Ending, ToolCallRecord};
use super::window;

/// The exchanges of a window, as they were when it was last read.
///
/// What was said once stays as it is while a query runs: others may add to the conversation, and
/// nobody may take back or count anew. So a query reads its window once, and then what is new.
#[derive(Default)]
pub(super) struct Window {
    /// What stands for earlier ones, and its id.
    summary: Option<String>,
    summary_id: Option<i64>,
    exchanges: Vec<Shown>,
    /// Where it begins.
    from: u64,
    /// The position of the last exchange of the conversation.
    last: u64,
    /// Whether something has left it that the summary does not stand for yet.
    has_gap: bool,
}

/// What was added to a window since it was last read.
pub(super) struct News {
    /// Whether it is the whole window.
    whole: bool,
    summary: Option<String>,
    summary_id: Option<i64>,
    from: u64,
    last: u64,
    has_gap: bool,
    exchanges: Vec<Shown>,
}

/// How much of a window is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    from: u64,
    last: u64,
}

/// What a window was made of: enough to make it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WindowPlace {
    pub(super) from: u64,
    pub(super) last: u64,
    pub(super) summary_id: Option<i64>,
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
        window.add(news(tx, context, Known::default())?);
        Ok(window)
    }

    /// How much of it is known.
    pub(super) fn known(&self) -> Known {
        Known {
            from: self.from,
            last: self.last,
        }
    }

    /// Where it begins, what it ends with, and which summary it has.
    pub(super) fn place(&self) -> WindowPlace {
        WindowPlace {
            from: self.from,
            last: self.last,
            summary_id: self.summary_id,
        }
    }

    /// Whether something has left it that no summary stands for.
    pub(super) fn has_gap(&self) -> bool {
        self.has_gap
    }

    /// The exchanges that are in it.
    pub(super) fn range(&self) -> ExchangeRange {
        ExchangeRange {
            from: self.exchanges.first().map_or(0, |shown| shown.position),
            to: self.last,
        }
    }

    /// Adds what is new, or begins anew where the window itself has moved.
    pub(super) fn add(&mut self, news: News) {
        if news.whole {
            self.exchanges.clear();
        }
        self.exchanges.extend(news.exchanges);
        (self.summary, self.from, self.last) = (news.summary, news.from, news.last);
        (self.summary_id, self.has_gap) = (news.summary_id, news.has_gap);
    }

    /// The messages: valid for a strict provider, whatever has happened.
    ///
    /// Every tool call is answered exactly once, directly after the message that asked for it and
    /// in the order of the calls. A query that ended without an answer, or whose answer was not
    /// finished, is closed with a message that says so; half an answer is never shown as one.
    pub(super) fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::with_capacity(self.exchanges.len() + 2);
        let summary = self.summary.clone();
        messages.extend(summary.map(|content| Message::User { content }));
        for group in self.exchanges.chunk_by(|a, b| a.query == b.query) {
            show_query(group, &mut messages);
        }
        messages
    }
}

/// What was said since a window was last known; all of it where it has moved since.
pub(super) fn news(
    tx: &Tx<'_>,
    context: &ContextId,
    known: Known,
) -> Result<News, ConversationError> {
    let sql = "select c.window_from, c.last_position, c.compressed_summary, exists (
            select 1 from exchanges e where e.context_id = c.id and e.rewound_at is null
                and e.position > c.summarized_to and e.position < c.window_from), c.summary_id
        from oracle_contexts c where c.id = ?1";
    let (from, last, summary, has_gap, summary_id) =
        tx.query_one(sql, (context.as_str(),), |row| {
            let (from, last): (u64, u64) = (row.get(0)?, row.get(1)?);
            Ok((from, last, row.get(2)?, row.get(3)?, row.get(4)?))
        })?;
    let whole = from != known.from;
    let stretches = match whole {
        true => window::stretches(tx, context, from)?,
        false => vec![(from.max(known.last + 1), window::LAST)],
    };
    let sql = "select e.json, e.query_id, q.state,
            case when e.model = c.last_model then e.opaque end, e.position
        from exchanges e join queries q on q.id = e.query_id
        join oracle_contexts c on c.id = e.context_id
        where e.context_id = ?1 and e.position between ?2 and ?3 and e.rewound_at is null
        order by e.position";
    let mut exchanges = Vec::new();
    for (first, last) in stretches {
        exchanges.extend(tx.query(sql, (context.as_str(), first, last), read)?);
    }
    Ok(News {
        whole,
        summary,
        summary_id,
        from,
        last,
        has_gap,
        exchanges,
    })
}

fn read(row: &Row<'_>) -> Result<Shown, DbError> {
    Ok(Shown {
        exchange: rows::parse("exchange", row.text(0)?)?,
        query: QueryId::stored(row.get(1)?),
        state: QueryState::parse(row.text(2)?)?,
        opaque: opaque(row, 3)?,
        position: row.get(4)?,
    })
}

/// What a model was shown in a query, at a time when the window was so.
pub(super) fn window_then(
    tx: &Tx<'_>,
    context: &ContextId,
    query: &QueryId,
    place: WindowPlace,
) -> Result<Window, ConversationError> {
    let sql = "select text from summary_texts where id = ?1 and context_id = ?2";
    let summary = tx.query_opt(sql, (place.summary_id, context.as_str()), |row| row.get(0))?;
    let sql =
        "select e.json, e.query_id, case when e.query_id = ?4 then 'running' else o.state end,
            case when e.model = q.model then e.opaque end, e.position
        from queries q join exchanges e on e.context_id = q.context_id
        join queries o on o.id = e.query_id
        where q.id = ?4 and e.context_id = ?1 and e.position <= ?3
            and (e.rewound_at is null or e.rewound_at > q.started_at)
            and (e.position >= ?2 or e.position = (
                select min(f.position) from exchanges f where f.query_id = (
                    select w.query_id from exchanges w
                    where w.context_id = ?1 and w.position >= ?2
                        and (w.rewound_at is null or w.rewound_at > q.started_at)
                    order by w.position limit 1)))
        order by e.position";
    let values = (context.as_str(), place.from, place.last, query.as_str());
    Ok(Window {
        summary,
        exchanges: tx.query(sql, values, read)?,
        ..Window::default()
    })
}

fn show_query(group: &[Shown], messages: &mut Vec<Message>) {
    let state = group[0].state;
    let last = group.last().map(|last| &last.exchange);
    let answered = last.is_some_and(OracleExchange::is_answer);
    let at_limit = last.is_some_and(|last| last.origin == Some(ExchangeOrigin::TurnLimit));
    let half =
        answered && !at_limit && !matches!(state, QueryState::Complete | QueryState::Running);
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
        (None, None) => call.ending.unwrap_or(Ending::Interrupted).result_text(true),
    };
    Message::Tool {
        tool_call_id: call.id.clone(),
        content,
    }
}
