//! `agent.pin`.

use dodona_plugin::{CallCtx, CallError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::chat;
use crate::conversation::{ContextId, Owner, PinTo, Pinned};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PinParams {
    /// What must be kept word for word.
    #[schemars(length(min = 1, max = 1000))]
    text: String,
    /// Whether it no longer needs to be kept.
    #[serde(default)]
    release: bool,
    /// In which conversation, by id or name; the default one without.
    context_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct PinResult {
    /// In which conversation.
    context_id: ContextId,
    /// Whether it was not so before.
    changed: bool,
    /// All that is pinned there now.
    pinned: Vec<String>,
}

pub(crate) async fn pin(
    agent: &Agent,
    ctx: &CallCtx,
    p: PinParams,
) -> Result<PinResult, CallError> {
    let to = match p.release {
        true => PinTo::Release,
        false => PinTo::Keep,
    };
    let counter = chat::counter(&agent.model(None)?);
    let asked = p.context_id.as_deref();
    let Pinned {
        context,
        changed,
        pinned,
    } = agent
        .conversations
        .pin(&Owner::of(ctx)?, asked, &p.text, to, &counter)
        .await?;
    Ok(PinResult {
        context_id: context,
        changed,
        pinned,
    })
}
