//! `agent.notify_self`.

use dodona_plugin::{CallCtx, CallError};
use dodona_proto::{Category, DeliverAt, Notification, PluginName, Priority};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::{ContextId, Conversations, OWN_NOTES, Owner};

#[derive(Deserialize, JsonSchema)]
pub(super) struct NotifyParams {
    /// The text.
    #[schemars(length(min = 1, max = 4096))]
    message: String,
    /// `info`, `warning`, `error` or `reminder`.
    #[serde(default)]
    category: Category,
    /// `low`, `normal`, `high` or `critical`. The highest is delivered first.
    #[serde(default)]
    priority: Priority,
    /// `turn_start`: with the next turn. `after_tool`: after the tools that run now. `immediate`:
    /// before the next request to the model, whichever comes first.
    #[serde(default)]
    deliver_at: DeliverAt,
    /// The conversation, by id or name. Default: the conversation that the call is made in, or the
    /// default one.
    context_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct NotifyResult {
    /// The conversation in which it waits.
    context_id: ContextId,
    /// Whether it waits there. `false` where too many notifications wait already.
    queued: bool,
}

pub(super) async fn notify(
    conversations: &Conversations,
    ctx: &CallCtx,
    p: NotifyParams,
) -> Result<NotifyResult, CallError> {
    let owner = Owner::of(ctx)?;
    let own = || conversations.context_of_call(&ctx.call_id);
    let asked = p.context_id.or_else(|| own().map(|id| id.to_string()));
    let notification = Notification {
        message: p.message,
        category: p.category,
        priority: p.priority,
        deliver_at: p.deliver_at,
        rule: None,
        is_core: false,
    };
    let plugin = PluginName::new(OWN_NOTES)
        .map_err(|error| CallError::new(dodona_plugin::ErrorCode::Internal, error.to_string()))?;
    let (context_id, queued) = conversations
        .leave_note(&owner, asked.as_deref(), plugin, notification)
        .await?;
    Ok(NotifyResult { context_id, queued })
}
