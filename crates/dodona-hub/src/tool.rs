//! A call of a tool-marked method: the hook points before and after it, and their events.
//!
//! They are the hub's and not the agent's, so that they see every such call, whoever makes it.

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

use crate::hub::Core;
use crate::node::Node;
use crate::router::Route;

/// The largest result, in bytes of JSON, that an event carries.
const LARGEST: usize = 256 * 1024;

/// A tool call from before its gates until it has been told how it ended. Dropped before that, it
/// was cancelled.
pub(crate) struct ToolRun {
    node: Arc<Node>,
    hooks: Arc<Hooks>,
    method: MethodName,
    tool_name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    arguments: Value,
    effects: Vec<PluginEffect>,
    answered: bool,
    told: bool,
    /// It was dropped already, and somebody was to tell its end.
    dropped: bool,
}

impl ToolRun {
    /// Begins a call: from here on it has an end that is told.
    pub(crate) async fn begin(
        node: &Arc<Node>,
        route: &Route,
        params: &Value,
    ) -> Result<Self, CallError> {
        let method = route.descriptor().name.clone();
        let run = Self {
            node: Arc::clone(node),
            hooks: Arc::clone(&node.core.snapshot.load().hooks),
            tool_name: method.as_str().replace('.', "_"),
            method,
            state: Mutex::new(State {
                arguments: params.clone(),
                ..State::default()
            }),
        };
        let about = run.about(params);
        run.publish("tool.call.pending", Severity::Info, about)
            .await?;
        Ok(run)
    }

    /// Asks the gates, and answers with what they made of the call.
    pub(crate) async fn ask(&self, params: Value) -> Option<ToolPending> {
        if !self.hooks.has_subscribers::<PreToolExecute>() {
            self.state().arguments = params;
            return None;
        }
        let info = &self.node.info;
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

    /// The parameters as they are used.
    pub(crate) fn arguments(&self) -> Value {
        self.state().arguments.clone()
    }

    /// Tells how the call ended: to the hooks, which may change the result, and to the bus. What
    /// they want the agent to be told is left with the node.
    pub(crate) async fn ended(self, outcome: Result<Value, CallError>) -> Result<Value, CallError> {
        let outcome = self.changed(outcome).await;
        let (kind, severity) = match &outcome {
            Ok(_) => ("tool.call.success", Severity::Info),
            Err(_) => ("tool.call.failure", Severity::Warning),
        };
        let about = self.end_of(&outcome);
        self.state().told = true;
        self.node.state().is_reported = true;
        if let Err(error) = self.publish(kind, severity, about).await {
            tracing::warn!(call = %self.node.info.call_id, error = error.message, "how a tool call ended was not journaled");
        }
        let effects = std::mem::take(&mut self.state().effects);
        if !effects.is_empty() {
            let behalf = Behalf::of(&self.node.info);
            let told = self.node.core.carry_out(behalf, effects).await;
            if !told.is_empty() {
                self.node.notify(Undelivered::new(&self.node, told));
            }
        }
        outcome
    }

    /// What the hooks make of the outcome. An error stays one.
    async fn changed(&self, outcome: Result<Value, CallError>) -> Result<Value, CallError> {
        if !self.hooks.has_subscribers::<PostToolExecute>() {
            return outcome;
        }
        let (result, error) = match outcome {
            Ok(result) => (result, None),
            Err(error) => (Value::Null, Some(error)),
        };
        let info = &self.node.info;
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
            ending: ending(error.as_ref()),
            answered,
            result,
            error: error.as_ref().map(|error| error.message.clone()),
            duration_ms: self.node.elapsed().as_secs_f64() * 1e3,
        };
        let fired = self.hooks.fire::<PostToolExecute>(ended).await;
        self.state().effects.extend(fired.effects);
        match error {
            Some(error) => Err(error),
            None => Ok(fired.payload.result),
        }
    }

    /// What an event says of the call.
    fn about(&self, arguments: &Value) -> Value {
        json!({
            "tool_name": self.tool_name,
            "method": self.method,
            "path": self.node.info.path,
            "surface": self.node.info.principal.surface,
            "arguments": arguments,
            "snapshot": self.node.info.snapshot,
        })
    }

    /// The same of its end: enough for a rule to be evaluated again.
    fn end_of(&self, outcome: &Result<Value, CallError>) -> Value {
        let error = outcome.as_ref().err();
        let state = self.state();
        let mut about = self.about(&state.arguments);
        about["ending"] = json!(ending(error));
        about["answered"] = json!(state.answered);
        about["error"] = json!(error.map(|error| &error.message));
        about["duration_ms"] = json!(self.node.elapsed().as_secs_f64() * 1e3);
        if let Ok(result) = outcome {
            match size(result) {
                0..=LARGEST => about["result"] = result.clone(),
                bytes => about["result_bytes"] = json!(bytes),
            }
        }
        about
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
            behalf: Some(Behalf::of(&self.node.info)),
            id: None,
        };
        self.node.core.bus.publish(draft).await
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ToolRun {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A runtime that ends drops what it is given at once: nobody is left to tell.
        if std::mem::replace(&mut state.told, true) || state.dropped {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let run = Self {
            node: Arc::clone(&self.node),
            hooks: Arc::clone(&self.hooks),
            method: self.method.clone(),
            tool_name: std::mem::take(&mut self.tool_name),
            state: Mutex::new(State {
                told: false,
                dropped: true,
                ..std::mem::take(state)
            }),
        };
        runtime.spawn(async move {
            let why = "nobody waits for the result any more";
            let gone = CallError::new(ErrorCode::Cancelled, why);
            let _ = run.ended(Err(gone)).await;
        });
    }
}

/// How a call ended.
fn ending(error: Option<&CallError>) -> ToolEnding {
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

/// How large a value is as JSON, without writing it down.
fn size(value: &Value) -> usize {
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

/// Notifications for the agent that made a call. Those that no agent takes, because there is none
/// or it stopped waiting, are reported as dropped.
pub(crate) struct Undelivered {
    core: Arc<Core>,
    user: UserId,
    project: Option<ProjectId>,
    context_id: Option<String>,
    notifications: Vec<(PluginName, Notification)>,
}

impl Undelivered {
    fn new(node: &Node, notifications: Vec<(PluginName, Notification)>) -> Self {
        let info = &node.info;
        Self {
            core: Arc::clone(&node.core),
            user: info.principal.user.clone(),
            project: info.project.as_ref().map(|project| project.id.clone()),
            context_id: (info.snapshot.as_ref()).map(|snapshot| snapshot.context_id.clone()),
            notifications,
        }
    }

    /// Hands them to the agent.
    pub(crate) fn take(mut self) -> Vec<(PluginName, Notification)> {
        std::mem::take(&mut self.notifications)
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        for (_, notification) in self.notifications.drain(..) {
            let Some(rule) = notification.rule else {
                continue;
            };
            self.core.manager.notification_dropped(DroppedNotification {
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
