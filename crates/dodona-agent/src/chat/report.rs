//! Reporting tool calls that failed before the hub ran them.
//!
//! The hub reports every call that it runs. A call with malformed arguments, of an unknown tool or
//! with arguments of the wrong type never gets that far, and is what small models do most: rules and
//! hooks see it with the same payload.

use std::time::Duration;

use dodona_plugin::activation::EventDraft;
use dodona_plugin::hooks::point;
use dodona_plugin::{Behalf, CallError, ErrorCode};
use dodona_proto::hook::{ToolEnded, ToolEnding};
use dodona_proto::{MethodName, Notification, PluginName, Severity, ToolCall};
use serde_json::{Value, json};

use super::run::Bench;

/// The longest name of an unknown tool that is reported, in bytes.
const LONGEST_NAME: usize = 200;

/// A call that failed and that the hub has not reported.
pub(super) struct Unreported<'c> {
    pub(super) call: &'c ToolCall,
    /// Nothing for an unknown tool.
    pub(super) method: Option<&'c MethodName>,
    pub(super) error: &'c CallError,
    pub(super) duration: Duration,
}

impl Bench<'_> {
    /// Fires `POST_TOOL_EXECUTE`, journals `tool.call.failure`, and returns what hooks want the model
    /// to be told.
    pub(super) async fn report(&self, failed: Unreported<'_>) -> Vec<(PluginName, Notification)> {
        let ended = self.ended(&failed);
        let about = json!({
            "tool_name": ended.tool_name,
            "method": ended.method,
            "path": ended.path,
            "surface": ended.surface,
            "arguments": ended.arguments,
            "snapshot": ended.snapshot,
            "ending": ended.ending,
            "answered": false,
            "error": ended.error,
            "duration_ms": ended.duration_ms,
        });
        let source = ended.method.plugin().to_owned();
        let effects = match self.hooks.has_subscribers::<point::PostToolExecute>() {
            true => {
                self.hooks
                    .fire::<point::PostToolExecute>(ended)
                    .await
                    .effects
            }
            false => Vec::new(),
        };
        let behalf = Behalf::of(&self.ctx);
        let draft = EventDraft {
            kind: "tool.call.failure",
            source: &source,
            severity: Severity::Warning,
            payload: about,
            behalf: Some(behalf),
            id: None,
        };
        if let Err(error) = self.agent.bus.publish(draft).await {
            tracing::warn!(
                error = error.message,
                "a failed tool call was not journaled"
            );
        }
        match effects.is_empty() {
            true => Vec::new(),
            false => self.agent.host.apply_effects(behalf, effects).await,
        }
    }

    fn ended(&self, failed: &Unreported<'_>) -> ToolEnded {
        let name = &failed.call.name;
        let tool_name = name[..name.floor_char_boundary(LONGEST_NAME)].to_owned();
        let method = match failed.method {
            Some(method) => method.clone(),
            None => unknown(&tool_name),
        };
        let path = match failed.method {
            Some(method) => self.ctx.path.join(method.plugin()).ok(),
            None => None,
        };
        ToolEnded {
            call_id: self.ctx.call_id,
            path: path.unwrap_or_else(|| self.ctx.path.clone()),
            method,
            tool_name,
            arguments: failed.call.arguments.clone(),
            user: self.ctx.principal.user.clone(),
            surface: self.ctx.principal.surface,
            project: self.ctx.project.as_ref().map(|project| project.id.clone()),
            snapshot: Some(std::sync::Arc::clone(&self.snapshot)),
            ending: match failed.error.code {
                ErrorCode::Denied | ErrorCode::ApprovalRequired => ToolEnding::Denied,
                ErrorCode::DeadlineExceeded => ToolEnding::Timeout,
                ErrorCode::Cancelled => ToolEnding::Cancelled,
                _ => ToolEnding::Error,
            },
            answered: false,
            result: Value::Null,
            error: Some(failed.error.message.clone()),
            duration_ms: failed.duration.as_secs_f64() * 1e3,
        }
    }
}

/// The method that an unknown tool would be, or a fixed one where its name cannot be a method's.
fn unknown(tool: &str) -> MethodName {
    let method = MethodName::new(&tool.replacen('_', ".", 1));
    method.unwrap_or_else(|_| {
        MethodName::new("agent.unknown_tool").expect("`agent.unknown_tool` is a method name")
    })
}
