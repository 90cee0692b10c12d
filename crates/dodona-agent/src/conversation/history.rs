//! The originals: every exchange, in the order it was said.

use dodona_plugin::store::{ToValue, Tx};
use jiff::Timestamp;

use super::error::ConversationError;
use super::exchange::OracleExchange;
use super::id::{ContextId, ExchangeId, QueryId};
use super::mention::Mentions;
use super::rows;
use super::tool_call::{Ending, ToolCallRecord, ToolCallStatus};

/// How many mentions of each kind a conversation keeps, the latest first.
const MENTIONS: u32 = 200;

/// Where an exchange stands.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) context: &'a ContextId,
    pub(super) query: &'a QueryId,
    pub(super) position: u64,
    pub(super) turn: u32,
    pub(super) model: Option<&'a str>,
    pub(super) opaque: Option<String>,
    pub(super) rewound_at: Option<Timestamp>,
    pub(super) copied_from: Option<&'a ExchangeId>,
}

/// Checks an exchange and stores it, with its tool calls and what it mentions.
pub(super) fn insert(
    tx: &Tx<'_>,
    place: &Place<'_>,
    exchange: &OracleExchange,
) -> Result<(), ConversationError> {
    exchange.check()?;
    let values: [&dyn ToValue; 13] = [
        &exchange.id.as_str(),
        &place.context.as_str(),
        &place.position,
        &place.query.as_str(),
        &place.turn,
        &exchange.role.as_str(),
        &exchange.tool_call_id,
        &exchange.token_count,
        &rows::json("exchange", exchange)?,
        &place.model,
        &place.opaque,
        &place.rewound_at.map(rows::stamp),
        &place.copied_from.map(ExchangeId::as_str),
    ];
    tx.execute(
        "insert into exchanges (id, context_id, position, query_id, turn, role, tool_call_id,
             token_count, json, model, opaque, rewound_at, copied_from)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        &values[..],
    )?;
    for (ordinal, call) in exchange.calls().iter().enumerate() {
        insert_call(tx, place.query, &exchange.id, ordinal, call)?;
    }
    if place.rewound_at.is_none() {
        mention(tx, place.context, place.position, exchange)?;
    }
    Ok(())
}

fn insert_call(
    tx: &Tx<'_>,
    query: &QueryId,
    exchange: &ExchangeId,
    ordinal: usize,
    call: &ToolCallRecord,
) -> Result<(), ConversationError> {
    let ending = call.ending.or(match call.status {
        ToolCallStatus::Pending => None,
        ToolCallStatus::Success => Some(Ending::Success),
        ToolCallStatus::Error => Some(Ending::Error),
    });
    tx.execute(
        "insert into tool_calls (exchange_id, call_id, ordinal, query_id, name, status, ending,
             duration_ms, result_size)
         values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            exchange.as_str(),
            call.id.as_str(),
            ordinal,
            query.as_str(),
            call.name.as_str(),
            status_text(call.status),
            ending.map(Ending::as_str),
            call.duration_ms,
            call.result.as_ref().map(String::len),
        ),
    )?;
    Ok(())
}

pub(super) fn status_text(status: ToolCallStatus) -> &'static str {
    match status {
        ToolCallStatus::Pending => "pending",
        ToolCallStatus::Success => "success",
        ToolCallStatus::Error => "error",
    }
}

/// Fills in what a text mentions, where nobody has said so.
pub(super) fn find_mentions(exchange: &mut OracleExchange) {
    let mut mentions = Mentions::default();
    mentions.add_text(&exchange.content);
    for call in exchange.calls() {
        mentions.add_arguments(&call.arguments);
    }
    exchange.mentioned_files = mentions.files;
    exchange.mentioned_symbols = mentions.symbols;
}

/// Adds an exchange's mentions to those of its conversation, and forgets the oldest beyond the
/// bound.
pub(super) fn mention(
    tx: &Tx<'_>,
    context: &ContextId,
    position: u64,
    exchange: &OracleExchange,
) -> Result<(), ConversationError> {
    let kinds = [
        ("file", &exchange.mentioned_files),
        ("symbol", &exchange.mentioned_symbols),
    ];
    for (kind, names) in kinds {
        if names.is_empty() {
            continue;
        }
        for name in names {
            tx.execute(
                "insert into mentions (context_id, kind, text, last_position)
                 values (?1, ?2, ?3, ?4)
                 on conflict do update set last_position = excluded.last_position",
                (context.as_str(), kind, name.as_str(), position),
            )?;
        }
        tx.execute(
            "delete from mentions where context_id = ?1 and kind = ?2 and text not in (
                 select text from mentions where context_id = ?1 and kind = ?2
                 order by last_position desc, text limit ?3)",
            (context.as_str(), kind, MENTIONS),
        )?;
    }
    Ok(())
}

/// The mentions of one kind, one per line, as a context has them.
pub(super) fn mentioned(
    tx: &Tx<'_>,
    context: &ContextId,
    kind: &str,
) -> Result<Option<String>, ConversationError> {
    let names: Vec<String> = tx.query(
        "select text from mentions where context_id = ?1 and kind = ?2
         order by last_position desc, text",
        (context.as_str(), kind),
        |row| row.get(0),
    )?;
    Ok((!names.is_empty()).then(|| names.join("\n")))
}

/// Finds the mentions of a conversation anew, after some of it was taken back.
pub(super) fn mention_again(tx: &Tx<'_>, context: &ContextId) -> Result<(), ConversationError> {
    tx.execute(
        "delete from mentions where context_id = ?1",
        (context.as_str(),),
    )?;
    // As many exchanges as can have filled the list; the newest are read first and stored last.
    let latest: Vec<(u64, String)> = tx.query(
        "select position, json from exchanges where context_id = ?1 and rewound_at is null
         order by position desc limit ?2",
        (context.as_str(), MENTIONS * 2),
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (position, text) in latest.iter().rev() {
        mention(tx, context, *position, &rows::parse("exchange", text)?)?;
    }
    Ok(())
}
