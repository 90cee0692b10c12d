//! Running the tools that a model calls.
//!
//! Each result is stored as soon as its tool ends, in the order of ending. The model sees results in
//! the order of its calls. A cancel waits here until the tools have ended and their results are
//! stored, so that a tool that finished is recorded as finished.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dodona_plugin::hooks::Hooks;
use dodona_plugin::{
    CallCtx, CallError, ErrorCode, Params, ToolRenderer, ToolReply, ToolRequest, ToolStart,
};
use dodona_proto::{
    MethodDescriptor, Mutation, Notification, PluginName, PluginPath, QuerySnapshot, ToolCall,
};
use futures_util::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard, watch};

use super::ending::QueryError;
use super::fire::TurnEnd;
use super::present::Presented;
use super::report::Unreported;
use super::tools::Toolbox;
use super::turn::ModelOutput;
use super::{QueryRun, emit, history};
use crate::agent::Agent;
use crate::conversation::{Ending, NewMessage, ToolOutcome};

/// What the tools of one turn are called with.
pub(super) struct Bench<'a> {
    pub(super) agent: &'a Agent,
    pub(super) hooks: Arc<Hooks>,
    pub(super) ctx: CallCtx,
    timeout: Duration,
    pub(super) snapshot: Arc<QuerySnapshot>,
    /// For each plugin that something is changed in.
    changes: HashMap<String, Mutex<()>>,
}

impl Bench<'_> {
    /// Calls that change something in one plugin follow each other as they were asked for: the
    /// second may mean what the first has left.
    fn changing(toolbox: &Toolbox, calls: &[ToolCall]) -> HashMap<String, Mutex<()>> {
        let methods = calls.iter().filter_map(|call| toolbox.method(&call.name));
        methods
            .filter(|method| method.mutation == Mutation::Mutates)
            .map(|method| (method.name.plugin().to_owned(), Mutex::default()))
            .collect()
    }

    /// Waits until it is a call's turn, where it has to.
    async fn turn(&self, method: &MethodDescriptor) -> Option<MutexGuard<'_, ()>> {
        let changes = self.changes.get(method.name.plugin());
        match changes.filter(|_| method.mutation == Mutation::Mutates) {
            Some(turn) => Some(turn.lock().await),
            None => None,
        }
    }
}

/// The end of a call.
struct Ended {
    outcome: Result<Value, CallError>,
    renderer: Option<ToolRenderer>,
    ending: Ending,
    /// Whether the method ran. False where a gate denied or answered the call.
    has_run: bool,
    /// How long the method ran, without waiting for other calls, gates and approvals.
    duration: Duration,
    /// Notifications of hooks for the model.
    notifications: Vec<(PluginName, Notification)>,
}

/// Marks the time in which tools run, see [`QueryRun::tools_running`].
struct RunningTools(Arc<watch::Sender<bool>>);

impl RunningTools {
    fn enter(running: &Arc<watch::Sender<bool>>) -> Self {
        running.send_replace(true);
        Self(Arc::clone(running))
    }
}

impl Drop for RunningTools {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

impl QueryRun<'_> {
    /// Stores the model's message and runs the tools it calls concurrently. Calls that change
    /// something in one plugin run one after the other. Each result is stored when its tool ends.
    /// The model gets the errors of tools as results: it may know another way.
    pub(super) async fn run_tools(
        &mut self,
        turn: u32,
        said: ModelOutput,
    ) -> Result<(), QueryError> {
        let stored = NewMessage::Assistant {
            content: said.text,
            calls: said.calls.clone(),
            opaque: said.opaque,
        };
        let started = self.started(&said.calls);
        let appended = self.query.append_started(turn, stored, started).await?;
        self.stored(&appended);
        self.tell_usage().await?;
        self.partial.clear();
        for call in &said.calls {
            let method = self.toolbox.method(&call.name);
            emit::tool_call(self.ctx, call, method.map(|method| method.name.as_str())).await?;
        }
        let mut waiting = said.calls.len();
        let toolbox = Arc::clone(&self.toolbox);
        let bench = Bench {
            agent: self.agent,
            hooks: Arc::clone(&self.hooks),
            ctx: self.tool_ctx.clone(),
            timeout: self.agent.options.tool_timeout,
            snapshot: Arc::new(self.snapshot.clone()),
            changes: Bench::changing(&toolbox, &said.calls),
        };
        let mut running: FuturesUnordered<_> = said
            .calls
            .iter()
            .map(|call| {
                let (bench, toolbox) = (&bench, &toolbox);
                let run = ToolRun {
                    call,
                    refusal: self.repeats.refusal(call),
                    on_start: self.start_callback(call),
                };
                async move { (call, run.run(bench, toolbox).await) }
            })
            .collect();
        let entered = RunningTools::enter(&self.tools_running);
        while let Some((call, ended)) = running.next().await {
            match self.record(turn, call, ended, waiting).await {
                // The readers of a cancelled call may be gone. The other results are still stored.
                Err(_) if self.tool_ctx.is_cancelled() => {}
                recorded => recorded?,
            }
            waiting -= 1;
        }
        drop(entered);
        if self.tool_ctx.is_cancelled() {
            return Err(QueryError::cancelled());
        }
        self.ran_tools = true;
        let ended = TurnEnd {
            tool_calls: said.calls.len(),
            ..TurnEnd::default()
        };
        self.turn_completed(ended).await
    }

    /// The calls that start at once, with their paths: those of known tools that change nothing. A
    /// call that changes something starts when its gates have passed.
    fn started(&self, calls: &[ToolCall]) -> Vec<(String, Option<PluginPath>)> {
        let started = |call: &ToolCall| {
            let method = self.toolbox.method(&call.name)?;
            (method.mutation == Mutation::Reads).then(|| (call.id.clone(), self.path_of(method)))
        };
        calls.iter().filter_map(started).collect()
    }

    fn path_of(&self, method: &MethodDescriptor) -> Option<PluginPath> {
        self.tool_ctx.path.join(method.name.plugin()).ok()
    }

    /// The callback that records the start of a call that changes something.
    fn start_callback(&self, call: &ToolCall) -> Option<ToolStart> {
        let method = self.toolbox.method(&call.name)?;
        (method.mutation == Mutation::Mutates)
            .then(|| self.query.start_callback(&call.id, self.path_of(method)))
    }

    /// Stores the ending and the result of a call, and then emits them. `waiting` calls, this one
    /// included, share the room that is left in the window.
    async fn record(
        &mut self,
        turn: u32,
        call: &ToolCall,
        ended: Ended,
        waiting: usize,
    ) -> Result<(), QueryError> {
        let Ended {
            outcome,
            renderer,
            ending,
            has_run,
            duration,
            notifications,
        } = ended;
        self.repeats.ended(call, outcome.as_ref().err());
        let error = outcome.as_ref().err().map(|error| error.message.clone());
        let outcome = match ending {
            Ending::Cancelled => Err(cancelled(has_run)),
            _ => outcome,
        };
        let notice = self.repeats.seen(turn, call);
        let presented = Presented {
            call,
            outcome,
            renderer,
            notice: notice.clone(),
            waiting,
        };
        let told = self.present(presented).await?;
        history::record(&mut self.snapshot.history, call, ending, &told);
        let outcome = ToolOutcome {
            ending,
            result: told,
            duration,
        };
        if ending == Ending::Success && !has_run {
            // A gate answered in place of the method.
            self.query.tool_started(&call.id, None).await?;
        }
        let appended = self.query.tool_ended(&call.id, outcome).await?;
        self.stored(&appended);
        if let Some(notice) = notice {
            emit::notification(self.ctx, &notice).await?;
        }
        self.notify(notifications).await?;
        emit::tool_result(self.ctx, call, error.as_deref(), ending, duration).await?;
        Ok(())
    }
}

/// A tool call that is about to run.
struct ToolRun<'a> {
    call: &'a ToolCall,
    /// Why it does not run: it failed too often with the same arguments.
    refusal: Option<CallError>,
    on_start: Option<ToolStart>,
}

impl ToolRun<'_> {
    async fn run(self, bench: &Bench<'_>, toolbox: &Toolbox) -> Ended {
        let call = self.call;
        let method = toolbox.method(&call.name);
        let reply = match (method, self.refusal) {
            (None, _) => refused(toolbox.unknown(&call.name)),
            (Some(_), Some(refusal)) => refused(refusal),
            (Some(_), None) if !call.arguments.is_object() => {
                refused(not_an_object(&call.arguments))
            }
            (Some(method), None) => {
                let request = ToolRequest {
                    params: Params::foreign(call.arguments.clone()),
                    timeout: method.timeout.or(Some(bench.timeout)),
                    snapshot: Some(Arc::clone(&bench.snapshot)),
                    on_start: self.on_start,
                };
                let _turn = bench.turn(method).await;
                match bench.ctx.is_cancelled() {
                    // It waited for another call when the query was cancelled.
                    true => refused(CallError::new(
                        ErrorCode::Cancelled,
                        "the query was cancelled",
                    )),
                    false => bench.ctx.call_tool(method.name.as_str(), request).await,
                }
            }
        };
        let ToolReply {
            outcome,
            has_run,
            duration,
            mut notifications,
            is_reported,
            renderer,
        } = reply;
        if let (Err(error), false) = (&outcome, is_reported) {
            let unreported = Unreported {
                call,
                method: method.map(|method| &method.name),
                error,
                duration,
            };
            notifications.extend(bench.report(unreported).await);
        }
        Ended {
            ending: ending(&outcome),
            outcome,
            renderer,
            has_run,
            notifications,
            duration,
        }
    }
}

/// What the model is shown of a cancelled call: whether it may have taken effect.
fn cancelled(has_run: bool) -> CallError {
    let message = match has_run {
        true => "the call was cancelled while it ran; it may have taken effect",
        false => "the call was cancelled before it started; it had no effect",
    };
    CallError::new(ErrorCode::Cancelled, message)
}

/// The reply to a call that the hub has not seen.
fn refused(error: CallError) -> ToolReply {
    ToolReply {
        outcome: Err(error),
        has_run: false,
        duration: Duration::ZERO,
        notifications: Vec::new(),
        is_reported: false,
        renderer: None,
    }
}

fn ending(outcome: &Result<Value, CallError>) -> Ending {
    match outcome {
        Ok(_) => Ending::Success,
        Err(error) => match error.code {
            ErrorCode::DeadlineExceeded => Ending::Timeout,
            ErrorCode::Denied | ErrorCode::ApprovalRequired => Ending::Denied,
            ErrorCode::Cancelled => Ending::Cancelled,
            _ => Ending::Error,
        },
    }
}

/// The model wrote something that is no JSON, or JSON that is no object.
fn not_an_object(arguments: &Value) -> CallError {
    let why = match arguments {
        Value::String(raw) => match serde_json::from_str::<Value>(raw) {
            Err(error) => format!("they are not valid JSON: {error}"),
            Ok(_) => "they must be a JSON object".to_owned(),
        },
        _ => "they must be a JSON object".to_owned(),
    };
    CallError::new(
        ErrorCode::InvalidParams,
        format!("the arguments cannot be used: {why}"),
    )
}
