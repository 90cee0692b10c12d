//! Calling a tool.

use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{
    ApprovalAnswer, ApprovalRequest, CallError, DoneStatus, ErrorCode, Item, ItemBody,
    MethodDescriptor, MethodKind, Mutation,
};
use rmcp::model::{CallToolResult, JsonObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use super::catalogue::Work;
use super::desk::{Desk, Items};
use super::progress::Progress;
use super::{ask, blocks};

/// How often a call that is quiet shows that it is alive.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Calls a tool, until its client does not want it any more.
pub(super) async fn run(
    desk: &Desk,
    work: &Work,
    arguments: Option<JsonObject>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    let progress = Progress::new(&context.peer, context.meta.get_progress_token());
    let arguments = Value::Object(arguments.unwrap_or_default());
    let work = async {
        match work {
            Work::Method(method) => one(desk, method, arguments, progress).await,
            Work::Ask => ask::run(desk, arguments, progress).await,
        }
    };
    let ended = tokio::select! {
        ended = work => ended,
        // What was begun is dropped, and with that cancelled. Nobody reads what is answered.
        () = context.ct.cancelled() => Err(CallError::new(ErrorCode::Cancelled, "cancelled")),
    };
    let outcome = if ended.is_ok() { "ok" } else { "error" };
    metrics::counter!("dodona_mcp_calls_total", "outcome" => outcome).increment(1);
    Ok(ended.unwrap_or_else(|error| blocks::failure(&error)))
}

async fn one(
    desk: &Desk,
    method: &Arc<MethodDescriptor>,
    arguments: Value,
    progress: Progress,
) -> Result<CallToolResult, CallError> {
    let name = method.name.as_str();
    let is_read = method.kind == MethodKind::Unary && method.mutation == Mutation::Reads;
    let value = match desk.is_here() && is_read && !progress.is_wanted() {
        // Nothing that would have to be journaled.
        true => desk.call(name, arguments).await?,
        false => watched(desk.open(name, arguments).await?, progress).await?,
    };
    Ok(blocks::success(method, value))
}

/// Reads a call to its end, telling how it goes: the last data of the root, or its error.
pub(super) async fn watched(mut items: Items, mut progress: Progress) -> Result<Value, CallError> {
    let mut end = End::default();
    loop {
        match tokio::time::timeout(SIGN_OF_LIFE, items.next()).await {
            Err(_) => progress.again().await,
            Ok(Err(error)) => return Err(error),
            Ok(Ok(None)) => return end.result(),
            Ok(Ok(Some(item))) => {
                progress.item(&item).await;
                end.take(item);
            }
        }
    }
}

/// How a call ended, as far as its items tell.
#[derive(Default)]
struct End {
    value: Value,
    failure: Option<CallError>,
    status: Option<(DoneStatus, Option<String>)>,
}

impl End {
    fn take(&mut self, item: Item) {
        if item.call_id.depth() > 0 {
            return;
        }
        match item.body {
            ItemBody::Data { content_type, data } if !is_about_approval(&content_type) => {
                self.value = data;
            }
            ItemBody::Error {
                error,
                code,
                recoverable: false,
                hint,
            } => {
                let error = CallError::new(code, error);
                self.failure = Some(match hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                });
            }
            ItemBody::Done { status, reason } => self.status = Some((status, reason)),
            _ => {}
        }
    }

    fn result(self) -> Result<Value, CallError> {
        let lost = || CallError::new(ErrorCode::Interrupted, "the call ended without a word");
        let (status, reason) = self.status.ok_or_else(lost)?;
        if status == DoneStatus::Complete {
            return Ok(self.value);
        }
        let reason = reason.unwrap_or_else(|| status.as_str().to_owned());
        Err(self
            .failure
            .unwrap_or_else(|| CallError::new(ErrorCode::Cancelled, reason)))
    }
}

/// Whether data says that a call waits, or waited, and is no part of its result.
fn is_about_approval(content_type: &str) -> bool {
    [ApprovalRequest::CONTENT_TYPE, ApprovalAnswer::CONTENT_TYPE].contains(&content_type)
}
