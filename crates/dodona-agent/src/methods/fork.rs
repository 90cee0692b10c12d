//! `agent.fork` and `agent.rewind`.

use dodona_plugin::CallError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::named;
use crate::conversation::{ContextId, Conversations, Owner, Restored};

#[derive(Deserialize, JsonSchema)]
pub(super) struct ForkParams {
    /// Which one, by id or name; the default one without.
    context_id: Option<String>,
    /// The last exchange to copy, by its id or the end of it; all of them without.
    exchange_id: Option<String>,
    /// A name for the copy.
    #[schemars(length(min = 1, max = 64))]
    name: Option<String>,
}

/// A conversation that was made from another one or from a document.
#[derive(Serialize, JsonSchema)]
pub(super) struct Copied {
    /// Its id.
    context_id: ContextId,
    /// How many exchanges it has.
    exchanges: usize,
    /// How many tokens a model is shown of it.
    tokens_used: u64,
}

impl From<Restored> for Copied {
    fn from(restored: Restored) -> Self {
        Self {
            context_id: restored.context,
            exchanges: restored.exchanges,
            tokens_used: restored.tokens_used,
        }
    }
}

pub(super) async fn fork(
    conversations: &Conversations,
    owner: &Owner,
    p: ForkParams,
) -> Result<Copied, CallError> {
    let from = named(p.context_id.as_deref());
    let fork = conversations.fork(owner, from, p.exchange_id.as_deref(), p.name.as_deref());
    Ok(fork.await?.into())
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RewindParams {
    /// Which one, by id or name; the default one without.
    context_id: Option<String>,
    /// The first exchange to take back, by its id or the end of it.
    #[schemars(length(min = 1))]
    exchange_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct RewindResult {
    /// In which conversation.
    context_id: ContextId,
    /// How many exchanges were taken back.
    exchanges: u64,
    /// How many tokens a model is shown of it now.
    tokens_used: u64,
}

pub(super) async fn rewind(
    conversations: &Conversations,
    owner: &Owner,
    p: RewindParams,
) -> Result<RewindResult, CallError> {
    let of = named(p.context_id.as_deref());
    let rewound = conversations.rewind(owner, of, &p.exchange_id).await?;
    Ok(RewindResult {
        context_id: rewound.context,
        exchanges: rewound.exchanges,
        tokens_used: rewound.tokens_used,
    })
}
