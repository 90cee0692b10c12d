//! Tokens of exchanges.

use std::collections::HashSet;
use std::sync::Arc;

use dodona_proto::Message;
use serde_json::Value;

use super::exchange::{ExchangeRole, OracleExchange};
use super::tool_call::ToolCallRecord;

/// Counts the tokens of a message, as one model does.
pub type Counter = Arc<dyn Fn(&Message) -> u64 + Send + Sync>;

/// The message that an exchange is, to a model.
pub(super) fn message(exchange: &OracleExchange, opaque: Option<Value>) -> Message {
    let content = exchange.content.clone();
    match exchange.role {
        ExchangeRole::User => Message::User { content },
        ExchangeRole::Assistant => Message::Assistant {
            content,
            tool_calls: exchange.calls().iter().map(ToolCallRecord::shown).collect(),
            opaque,
        },
        ExchangeRole::Tool => Message::Tool {
            tool_call_id: exchange.tool_call_id.clone().unwrap_or_default(),
            content,
        },
    }
}

/// The tokens of an exchange that is said now.
pub(super) fn tokens(counter: &Counter, exchange: &OracleExchange, opaque: Option<&Value>) -> u64 {
    counter(&message(exchange, opaque.cloned())).max(1)
}

/// Counts the exchanges of a window anew, each with what its own model wants to see again. The
/// results of calls that no exchange answers count with the message that asked for them.
pub(super) fn recount(counter: &Counter, exchanges: &mut [(OracleExchange, Option<Value>)]) {
    let answered: HashSet<String> = exchanges
        .iter()
        .filter_map(|(exchange, _)| exchange.tool_call_id.clone())
        .collect();
    for (exchange, opaque) in exchanges {
        let alone = exchange.calls().iter().filter_map(|call| {
            let content = call
                .result
                .clone()
                .filter(|_| !answered.contains(&call.id))?;
            let tool_call_id = call.id.clone();
            Some(counter(&Message::Tool {
                tool_call_id,
                content,
            }))
        });
        let alone: u64 = alone.sum();
        exchange.token_count = tokens(counter, exchange, opaque.as_ref()) + alone;
    }
}
