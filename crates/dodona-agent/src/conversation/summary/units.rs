//! Turns: what of a conversation stays together.

use std::collections::HashSet;

use super::super::exchange::{ExchangeRole, OracleExchange};
use super::super::id::QueryId;

/// Where the turns of a list of exchanges begin. A turn is a request to a model, with the question
/// before it where it is the first one, and the answers of the tools it asked for: no call is in
/// another turn than its answer.
pub(in super::super) fn turns<'a>(
    exchanges: impl Iterator<Item = (&'a QueryId, &'a OracleExchange)>,
) -> Vec<usize> {
    let mut begins = Vec::new();
    let mut query: Option<&QueryId> = None;
    let mut has_spoken = false;
    let mut open: HashSet<&str> = HashSet::new();
    for (index, (of, exchange)) in exchanges.enumerate() {
        let is_assistant = exchange.role == ExchangeRole::Assistant;
        if query != Some(of) {
            (query, has_spoken) = (Some(of), false);
            open.clear();
            begins.push(index);
        } else if is_assistant && has_spoken && open.is_empty() {
            begins.push(index);
        }
        if is_assistant {
            has_spoken = true;
            open.extend(exchange.calls().iter().map(|call| call.id.as_str()));
        }
        if let Some(id) = &exchange.tool_call_id {
            open.remove(id.as_str());
        }
    }
    begins
}
