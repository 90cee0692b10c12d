//! The items of a conversation.

use std::borrow::Cow;

use dodona_plugin::{CallCtx, CallError};
use dodona_proto::{ItemBody, Source, ToolCall};
use serde_json::{Value, json};

async fn data(ctx: &CallCtx, content_type: &'static str, data: Value) -> Result<(), CallError> {
    ctx.emit(ItemBody::Data {
        content_type: Cow::Borrowed(content_type),
        data,
    })
    .await
}

pub(crate) async fn text(ctx: &CallCtx, text: &str) -> Result<(), CallError> {
    data(ctx, "TextDelta", json!({ "text": text })).await
}

pub(crate) async fn tool_call(
    ctx: &CallCtx,
    call: &ToolCall,
    method: Option<&str>,
) -> Result<(), CallError> {
    let shown =
        json!({ "id": call.id, "name": call.name, "method": method, "arguments": call.arguments });
    data(ctx, "ToolCall", shown).await
}

pub(crate) async fn tool_result(
    ctx: &CallCtx,
    call: &ToolCall,
    outcome: &Result<Value, CallError>,
) -> Result<(), CallError> {
    let (status, error) = match outcome {
        Ok(_) => ("success", None),
        Err(error) => ("error", Some(&error.message)),
    };
    data(
        ctx,
        "ToolResult",
        json!({ "id": call.id, "name": call.name, "status": status, "error": error }),
    )
    .await
}

pub(crate) async fn source(ctx: &CallCtx, number: usize, source: &Source) -> Result<(), CallError> {
    data(ctx, "Source", json!({ "number": number, "source": source })).await
}
