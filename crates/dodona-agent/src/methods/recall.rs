//! `agent.recall`.

use dodona_plugin::{CallCtx, CallError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named;
use crate::conversation::{Conversations, ExchangeId, ExchangeRole, Owner};

#[derive(Deserialize, JsonSchema)]
pub(super) struct RecallParams {
    /// The number, as a summary tells it: 12 for #12.
    #[schemars(range(min = 1))]
    number: u64,
    /// Where to begin, in characters.
    #[serde(default)]
    from: usize,
    /// How many characters at most.
    #[serde(default = "some")]
    #[schemars(range(min = 1, max = 20000))]
    limit: usize,
    /// In which conversation, by id or name; without, the one that the call is made in, or the
    /// default one.
    context_id: Option<String>,
}

fn some() -> usize {
    4_000
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Recalled {
    /// Its id.
    exchange_id: ExchangeId,
    /// Who said it.
    role: ExchangeRole,
    /// When.
    timestamp: Timestamp,
    /// That part of what was said.
    text: String,
    /// Where the next part begins, if there is one.
    next: Option<usize>,
}

pub(super) async fn recall(
    conversations: &Conversations,
    ctx: &CallCtx,
    p: RecallParams,
) -> Result<Recalled, CallError> {
    let own = || conversations.context_of_call(&ctx.call_id);
    let asked = p.context_id.or_else(|| own().map(|id| id.to_string()));
    let asked = named(asked.as_deref());
    let exchange = conversations
        .original(&Owner::of(ctx)?, asked, p.number)
        .await?;
    let mut rest = exchange.content.chars().skip(p.from);
    let text: String = rest.by_ref().take(p.limit).collect();
    Ok(Recalled {
        exchange_id: exchange.id,
        role: exchange.role,
        timestamp: exchange.timestamp,
        next: rest.next().map(|_| p.from + p.limit),
        text,
    })
}
