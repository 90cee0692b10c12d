//! The hook points and events of a tool call.
//!
//! The hub fires them and not the agent, so that they see every tool call, from any caller.

use std::sync::{Arc, Mutex, PoisonError};

use dodona_hooks::Hooks;
use dodona_hooks::point::{PostToolExecute, PreToolExecute};
use dodona_plugin::activation::EventDraft;
use dodona_plugin::{Behalf, DroppedNotification};
use dodona_proto::hook::{ToolEnded, ToolEnding, ToolPending};
use dodona_proto::{
    CallError, ErrorCode, MethodName, Notification, PluginEffect, PluginName, ProjectId, Severity,
    UserId,
};
use serde_json::{Value, json};

use super::ending::CALLER_GONE;
use crate::call::RunningCall;
use crate::hub::HubInner;
use crate::router::Route;

/// Upper bound for a result in an event, in bytes of JSON. For a larger result the event has only
/// its size.
const MAX_RESULT_BYTES: usize = 256 * 1024;

/// Fires the hook points and publishes the events of one tool call. If it is dropped before
/// [`ToolHooks::finish`], the end is reported as cancelled.
pub(crate) struct ToolHooks {
    call: Arc<RunningCall>,
    hooks: Arc<Hooks>,
    method: MethodName,
    tool_name: String,
    state: Mutex<ToolState>,
}

#[derive(Default)]
struct ToolState {
    arguments: Value,
    effects: Vec<PluginEffect>,
    /// A gate answered in place of the method.
    answered: bool,
    /// The end was published.
    is_reported: bool,
    /// A background task was started to report the end after a drop.
    is_dropped: bool,
}

impl ToolHooks {
    /// Publishes `tool.call.pending`. The end of the call will be published too.
    pub(crate) async fn start(
        call: &Arc<RunningCall>,
        route: &Route,
        params: &Value,
    ) -> Result<Self, CallError> {
        let method = route.descriptor().name.clone();
        let hooks = Self {
            call: Arc::clone(call),
            hooks: Arc::clone(&call.hub.snapshot.load().hooks),
            tool_name: method.as_str().replace('.', "_"),
            method,
            state: Mutex::new(ToolState {
                arguments: params.clone(),
                ..ToolState::default()
            }),
        };
        let payload = hooks.start_payload(params);
        hooks
            .publish("tool.call.pending", Severity::Info, payload)
            .await?;
        Ok(hooks)
    }

    /// Fires `PRE_TOOL_EXECUTE` and returns the payload as the gates changed it, or `None` if there
    /// are no gates.
    pub(crate) async fn fire_pre_execute(&self, params: Value) -> Option<ToolPending> {
        if !self.hooks.has_subscribers::<PreToolExecute>() {
            self.state().arguments = params;
            return None;
        }
        let info = &self.call.info;
        let pending = ToolPending {
            call_id: info.call_id,
            path: info.path.clone(),
            method: self.method.clone(),
            tool_name: self.tool_name.clone(),
            arguments: params,
            user: info.principal.user.clone(),
            surface: info.principal.surface,
            project: info.project.as_ref().map(|project| project.id.clone()),
            snapshot: info.snapshot.clone(),
            ask: None,
            answer: None,
            denied: None,
        };
        let fired = self.hooks.fire::<PreToolExecute>(pending).await;
        let mut state = self.state();
        state.effects.extend(fired.effects);
        state.arguments.clone_from(&fired.payload.arguments);
        state.answered = fired.payload.answer.is_some() && fired.payload.ask.is_none();
        Some(fired.payload)
    }

    /// The arguments after the gates.
    pub(crate) fn arguments(&self) -> Value {
        self.state().arguments.clone()
    }

    /// Fires `POST_TOOL_EXECUTE`, whose hooks may change the result, publishes the end of the call
    /// and applies the effects of all its hooks. Notifications are stored in the call for the agent.
    pub(crate) async fn finish(
        self,
        outcome: Result<Value, CallError>,
    ) -> Result<Value, CallError> {
        let outcome = self.fire_post_execute(outcome).await;
        let (kind, severity) = match &outcome {
            Ok(_) => ("tool.call.success", Severity::Info),
            Err(_) => ("tool.call.failure", Severity::Warning),
        };
        let payload = self.end_payload(&outcome);
        self.state().is_reported = true;
        self.call.state().is_reported = true;
        if let Err(error) = self.publish(kind, severity, payload).await {
            tracing::warn!(call = %self.call.info.call_id, error = error.message, "failed to journal the end of a tool call");
        }
        let effects = std::mem::take(&mut self.state().effects);
        if !effects.is_empty() {
            let behalf = Behalf::of(&self.call.info);
            let notifications = self.call.hub.apply_effects(behalf, effects).await;
            if !notifications.is_empty() {
                let pending = PendingNotifications::new(&self.call, notifications);
                self.call.add_notifications(pending);
            }
        }
        outcome
    }

    /// Lets the hooks change the result. An error cannot be turned into a success.
    async fn fire_post_execute(
        &self,
        outcome: Result<Value, CallError>,
    ) -> Result<Value, CallError> {
        if !self.hooks.has_subscribers::<PostToolExecute>() {
            return outcome;
        }
        let (result, error) = match outcome {
            Ok(result) => (result, None),
            Err(error) => (Value::Null, Some(error)),
        };
        let info = &self.call.info;
        let (arguments, answered) = {
            let state = self.state();
            (state.arguments.clone(), state.answered)
        };
        let ended = ToolEnded {
            call_id: info.call_id,
            path: info.path.clone(),
            method: self.method.clone(),
            tool_name: self.tool_name.clone(),
            arguments,
            user: info.principal.user.clone(),
            surface: info.principal.surface,
            project: info.project.as_ref().map(|project| project.id.clone()),
            snapshot: info.snapshot.clone(),
            ending: tool_ending(error.as_ref()),
            answered,
            result,
            error: error.as_ref().map(|error| error.message.clone()),
            duration_ms: self.call.elapsed().as_secs_f64() * 1e3,
        };
        let fired = self.hooks.fire::<PostToolExecute>(ended).await;
        self.state().effects.extend(fired.effects);
        match error {
            Some(error) => Err(error),
            None => Ok(fired.payload.result),
        }
    }

    fn start_payload(&self, arguments: &Value) -> Value {
        json!({
            "tool_name": self.tool_name,
            "method": self.method,
            "path": self.call.info.path,
            "surface": self.call.info.principal.surface,
            "arguments": arguments,
            "snapshot": self.call.info.snapshot,
        })
    }

    /// Contains enough to evaluate rules on the event again later.
    fn end_payload(&self, outcome: &Result<Value, CallError>) -> Value {
        let error = outcome.as_ref().err();
        let state = self.state();
        let mut payload = self.start_payload(&state.arguments);
        payload["ending"] = json!(tool_ending(error));
        payload["answered"] = json!(state.answered);
        payload["error"] = json!(error.map(|error| &error.message));
        payload["duration_ms"] = json!(self.call.elapsed().as_secs_f64() * 1e3);
        if let Ok(result) = outcome {
            match json_bytes(result) {
                0..=MAX_RESULT_BYTES => payload["result"] = result.clone(),
                bytes => payload["result_bytes"] = json!(bytes),
            }
        }
        payload
    }

    async fn publish(
        &self,
        kind: &str,
        severity: Severity,
        payload: Value,
    ) -> Result<(), CallError> {
        let draft = EventDraft {
            kind,
            source: self.method.plugin(),
            severity,
            payload,
            behalf: Some(Behalf::of(&self.call.info)),
            id: None,
        };
        self.call.hub.bus.publish(draft).await
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ToolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ToolHooks {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A runtime that shuts down drops new tasks at once. Without the second condition the drop
        // of the task would start another task, without end.
        if std::mem::replace(&mut state.is_reported, true) || state.is_dropped {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let hooks = Self {
            call: Arc::clone(&self.call),
            hooks: Arc::clone(&self.hooks),
            method: self.method.clone(),
            tool_name: std::mem::take(&mut self.tool_name),
            state: Mutex::new(ToolState {
                is_reported: false,
                is_dropped: true,
                ..std::mem::take(state)
            }),
        };
        runtime.spawn(async move {
            let cancelled = CallError::new(ErrorCode::Cancelled, CALLER_GONE);
            let _ = hooks.finish(Err(cancelled)).await;
        });
    }
}

fn tool_ending(error: Option<&CallError>) -> ToolEnding {
    let Some(error) = error else {
        return ToolEnding::Success;
    };
    match error.code {
        ErrorCode::DeadlineExceeded => ToolEnding::Timeout,
        ErrorCode::Denied | ErrorCode::ApprovalRequired => ToolEnding::Denied,
        ErrorCode::Cancelled => ToolEnding::Cancelled,
        _ => ToolEnding::Error,
    }
}

/// The size of a value as JSON text, without writing the text.
fn json_bytes(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// Notifications for the agent that made a call. If no agent takes them, because the call was not
/// made by one or it stopped waiting, they are reported as dropped.
pub(crate) struct PendingNotifications {
    hub: Arc<HubInner>,
    user: UserId,
    project: Option<ProjectId>,
    context_id: Option<String>,
    notifications: Vec<(PluginName, Notification)>,
}

impl PendingNotifications {
    fn new(call: &RunningCall, notifications: Vec<(PluginName, Notification)>) -> Self {
        let info = &call.info;
        Self {
            hub: Arc::clone(&call.hub),
            user: info.principal.user.clone(),
            project: info.project.as_ref().map(|project| project.id.clone()),
            context_id: (info.snapshot.as_ref()).map(|snapshot| snapshot.context_id.clone()),
            notifications,
        }
    }

    /// Removes and returns them, for delivery to the agent.
    pub(crate) fn take(mut self) -> Vec<(PluginName, Notification)> {
        std::mem::take(&mut self.notifications)
    }
}

impl Drop for PendingNotifications {
    fn drop(&mut self) {
        for (_, notification) in self.notifications.drain(..) {
            let Some(rule) = notification.rule else {
                continue;
            };
            self.hub.manager.notification_dropped(DroppedNotification {
                user: self.user.clone(),
                project: self.project.clone(),
                rule,
                message: notification.message,
                context_id: self.context_id.clone(),
                reason: match self.context_id {
                    Some(_) => "the agent did not wait for the call".to_owned(),
                    None => "the call was made outside of a query".to_owned(),
                },
            });
        }
    }
}
