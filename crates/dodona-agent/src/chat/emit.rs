//! The items of a conversation.

use std::borrow::Cow;
use std::time::Duration;

use dodona_plugin::{CallCtx, CallError};
use dodona_proto::{ItemBody, Notification, PluginName, QuerySnapshot, Source, ToolCall, Usage};
use serde_json::{Value, json};

use crate::conversation::Ending;

async fn data(ctx: &CallCtx, content_type: &'static str, data: Value) -> Result<(), CallError> {
    ctx.emit(body(content_type, data)).await
}

fn body(content_type: &'static str, data: Value) -> ItemBody {
    ItemBody::Data {
        content_type: Cow::Borrowed(content_type),
        data,
    }
}

pub(super) async fn text(ctx: &CallCtx, text: &str) -> Result<(), CallError> {
    data(ctx, "TextDelta", json!({ "text": text })).await
}

pub(super) async fn tool_call(
    ctx: &CallCtx,
    call: &ToolCall,
    method: Option<&str>,
) -> Result<(), CallError> {
    let shown =
        json!({ "id": call.id, "name": call.name, "method": method, "arguments": call.arguments });
    data(ctx, "ToolCall", shown).await
}

/// A part of the arguments of a call that the model is writing, as JSON text.
pub(super) async fn tool_call_delta(
    ctx: &CallCtx,
    id: &str,
    name: &str,
    arguments: &str,
) -> Result<(), CallError> {
    let shown = json!({ "id": id, "name": name, "arguments": arguments });
    data(ctx, "ToolCallDelta", shown).await
}

pub(super) async fn tool_result(
    ctx: &CallCtx,
    call: &ToolCall,
    error: Option<&str>,
    ending: Ending,
    duration: Duration,
) -> Result<(), CallError> {
    let shown = json!({
        "id": call.id,
        "name": call.name,
        "status": ending.status(),
        "ending": ending,
        "error": error,
        "duration_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
    });
    data(ctx, "ToolResult", shown).await
}

pub(super) async fn source(ctx: &CallCtx, number: usize, source: &Source) -> Result<(), CallError> {
    let shown = json!({ "number": number, "source": source });
    ctx.emit_with_next(body("Source", shown)).await
}

pub(super) async fn reasoning(ctx: &CallCtx, text: &str) -> Result<(), CallError> {
    data(ctx, "ReasoningDelta", json!({ "text": text })).await
}

pub(super) async fn notification(ctx: &CallCtx, message: &str) -> Result<(), CallError> {
    data(ctx, "Notification", json!({ "message": message })).await
}

/// What the model is told by a plugin.
pub(super) async fn delivered(
    ctx: &CallCtx,
    plugin: &PluginName,
    notification: &Notification,
) -> Result<(), CallError> {
    let mut shown = json!(notification);
    shown["plugin"] = json!(plugin);
    data(ctx, "Notification", shown).await
}

/// What a request took. What the provider did not tell was counted here.
pub(super) async fn usage(
    ctx: &CallCtx,
    usage: Usage,
    estimated: bool,
    cost_micros: Option<u64>,
    snapshot: &QuerySnapshot,
) -> Result<(), CallError> {
    let shown = json!({
        "usage": usage,
        "estimated": estimated,
        "cost_micros": cost_micros,
        "snapshot": snapshot,
    });
    ctx.emit_with_next(body("Usage", shown)).await
}
