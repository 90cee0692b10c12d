//! Running the tools that a model wants.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dodona_plugin::hooks::Hooks;
use dodona_plugin::{CallCtx, CallError, ErrorCode, Params, ToolRequest};
use dodona_proto::{
    MethodDescriptor, Mutation, Notification, PluginName, PluginPath, QuerySnapshot, ToolCall,
};
use futures_util::stream::{FuturesOrdered, StreamExt};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use super::ending::QueryError;
use super::fire::TurnEnd;
use super::report::Unreported;
use super::tools::Toolbox;
use super::turn::ModelOutput;
use super::{QueryRun, cut, emit, history};
use crate::agent::Agent;
use crate::conversation::{Ending, NewMessage, ToolOutcome};

/// What a part of a file takes in JSON beside its text: its source, and how to read on.
const AROUND_TEXT: usize = 500;

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

/// How a call went.
struct Ended {
    outcome: Result<Value, CallError>,
    ending: Ending,
    duration: Duration,
    /// What hooks want the model to be told of it.
    notifications: Vec<(PluginName, Notification)>,
}

impl QueryRun<'_> {
    /// Stores what the model said, runs the tools it wants side by side (those that change something
    /// in one plugin follow each other), and stores what came of each in the order of the calls. What went wrong is told to the model, not to the user: it
    /// may know another way.
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
        let mut running: FuturesOrdered<_> = said
            .calls
            .iter()
            .map(|call| run_one(&bench, &toolbox, call, self.repeats.refusal(call)))
            .collect();
        for call in &said.calls {
            let Some(ended) = running.next().await else {
                break;
            };
            self.record(turn, call, ended, waiting).await?;
            waiting -= 1;
        }
        self.ran_tools = true;
        let ended = TurnEnd {
            tool_calls: said.calls.len(),
            ..TurnEnd::default()
        };
        self.turn_completed(ended).await
    }

    /// The calls that will run, and on which path. One of a tool that is not there does not.
    fn started(&self, calls: &[ToolCall]) -> Vec<(String, Option<PluginPath>)> {
        let started = |call: &ToolCall| {
            let method = self.toolbox.method(&call.name)?;
            let path = self.tool_ctx.path.join(method.name.plugin()).ok();
            Some((call.id.clone(), path))
        };
        calls.iter().filter_map(started).collect()
    }

    /// Stores how a call ended and what the model is told of it, and only then tells it. `waiting` calls, this one
    /// included, share what room there is.
    async fn record(
        &mut self,
        turn: u32,
        call: &ToolCall,
        ended: Ended,
        waiting: usize,
    ) -> Result<(), QueryError> {
        let Ended {
            outcome,
            ending,
            duration,
            notifications,
        } = ended;
        self.repeats.ended(call, outcome.as_ref().err());
        let error = outcome.as_ref().err().map(|error| error.message.clone());
        let mut result = outcome.unwrap_or_else(|error| failure(&error));
        // Before sources are numbered: a citation covers the lines that the model has read.
        self.fit_lines(call, &mut result, waiting);
        self.citations.number(&mut result);
        if let Some(notice) = self.repeats.seen(turn, call) {
            emit::notification(self.ctx, &notice).await?;
            result = json!({ "notice": notice, "result": result });
        }
        let found = self.found_by(call, &result);
        let told = self.fit(call, result, waiting).await?;
        history::record(&mut self.snapshot.history, call, ending, &told);
        let outcome = ToolOutcome {
            ending,
            result: told,
            duration,
        };
        let appended = self.query.tool_ended(&call.id, outcome).await?;
        self.stored(&appended);
        self.notify(notifications).await?;
        emit::tool_result(self.ctx, call, error.as_deref(), ending, duration).await?;
        self.tell_of(turn, &found).await
    }

    /// Shortens a part of a file to whole lines, where the tool can read on from a line.
    fn fit_lines(&self, call: &ToolCall, result: &mut Value, waiting: usize) {
        let method = self.toolbox.method(&call.name);
        if !method.is_some_and(|method| takes(method, "from")) {
            return;
        }
        let counter = self.model.counter();
        let room = self.room(waiting);
        // The tokens of the lines that are kept are known only afterwards.
        for eighths in (1..=8).rev() {
            let whole = result.to_string();
            let tokens = counter.count(&whole) as u64;
            if tokens <= room {
                return;
            }
            let bytes = whole.len() as u64 * room / tokens.max(1) * eighths / 8;
            let text = usize::try_from(bytes).unwrap_or(usize::MAX);
            if !cut::to_lines(result, text.saturating_sub(AROUND_TEXT)) {
                return;
            }
        }
    }

    /// How many tokens a result may take when `waiting` of them, itself included, share the room.
    fn room(&self, waiting: usize) -> u64 {
        let snapshot = &self.snapshot;
        cut::room(snapshot.tokens_used, snapshot.token_budget, waiting)
    }

    /// A result as the model sees it: whole, or cut, with a handle to read the rest.
    async fn fit(
        &self,
        call: &ToolCall,
        result: Value,
        waiting: usize,
    ) -> Result<String, QueryError> {
        let counter = self.model.counter();
        let whole = result.to_string();
        let room = self.room(waiting);
        let tokens = counter.count(&whole) as u64;
        if tokens <= room {
            return Ok(whole);
        }
        let bytes = whole.len() as u64 * room / tokens.max(1);
        let handle = self.query.keep_result(&call.id, whole).await?;
        Ok(cut::to_size(
            result,
            usize::try_from(bytes).unwrap_or(usize::MAX),
            &handle,
        ))
    }
}

/// Whether a method has this parameter.
fn takes(method: &MethodDescriptor, parameter: &str) -> bool {
    let properties = method.params.get("properties");
    properties.is_some_and(|known| known.get(parameter).is_some())
}

async fn run_one(
    bench: &Bench<'_>,
    toolbox: &Toolbox,
    call: &ToolCall,
    refusal: Option<CallError>,
) -> Ended {
    let mut notifications = Vec::new();
    let mut is_reported = false;
    let began = Instant::now();
    let method = toolbox.method(&call.name);
    let outcome = match (method, refusal) {
        (None, _) => Err(toolbox.unknown(&call.name)),
        (Some(_), Some(refusal)) => Err(refusal),
        (Some(_), None) if !call.arguments.is_object() => Err(not_an_object(&call.arguments)),
        (Some(method), None) => {
            let request = ToolRequest {
                params: Params::foreign(call.arguments.clone()),
                timeout: method.timeout.or(Some(bench.timeout)),
                snapshot: Some(Arc::clone(&bench.snapshot)),
            };
            let name = method.name.as_str();
            let _turn = bench.turn(method).await;
            let reply = bench.ctx.call_tool(name, request).await;
            notifications = reply.notifications;
            is_reported = reply.is_reported;
            reply.outcome
        }
    };
    if let (Err(error), false) = (&outcome, is_reported) {
        let unreported = Unreported {
            call,
            method: method.map(|method| &method.name),
            error,
            duration: began.elapsed(),
        };
        notifications.extend(bench.report(unreported).await);
    }
    Ended {
        ending: ending(&outcome),
        outcome,
        notifications,
        duration: began.elapsed(),
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

fn failure(error: &CallError) -> Value {
    json!({ "error": error.message, "code": error.code, "hint": error.hint_text() })
}
