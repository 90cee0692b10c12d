//! `agent.remember`.

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::{ContextId, Conversations, DecisionKind, KeyDecision, Owner};

#[derive(Deserialize, JsonSchema)]
pub(super) struct RememberParams {
    /// What it is.
    kind: DecisionKind,
    /// One sentence.
    #[schemars(length(min = 1, max = 1000))]
    text: String,
    /// The conversation, by id or name. Default: the one of the call, or the default one.
    context_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct RememberResult {
    /// Where it is remembered.
    context_id: ContextId,
    /// Whether it was not there already.
    added: bool,
}

pub(super) async fn remember(
    conversations: &Conversations,
    ctx: &CallCtx,
    p: RememberParams,
) -> Result<RememberResult, CallError> {
    let owner = Owner::of(ctx)?;
    let own = || conversations.context_of_call(&ctx.call_id);
    let asked = p.context_id.or_else(|| own().map(|id| id.to_string()));
    let decision = KeyDecision::new(p.kind, &p.text);
    let (context_id, added) = conversations
        .remember(&owner, asked.as_deref(), decision)
        .await?;
    Ok(RememberResult { context_id, added })
}
