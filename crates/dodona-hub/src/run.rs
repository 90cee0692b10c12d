//! Running a call, and what is certain about it: exactly one terminal, whatever happens.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dodona_plugin::{BoxFuture, Handler};
use dodona_proto::{CallError, DoneStatus, ErrorCode, ItemBody, MethodKind, Mutation};
use dodona_store::journal::CallHead;
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::coop::{consume_budget, unconstrained};
use tracing::Instrument;

use crate::admit::Admitted;
use crate::gate::{self, Passed};
use crate::node::{Haste, Node};
use crate::router::Route;
use crate::tool::ToolRun;

/// How long a call that was told to stop may take to record what it has and return.
const GRACE: Duration = Duration::from_millis(50);

type Work<'a, T = Value> = BoxFuture<'a, Result<T, CallError>>;

/// Runs a call that the dispatcher let in.
pub(crate) async fn admitted(node: Arc<Node>, admitted: Admitted) -> Result<Value, CallError> {
    entered(Guard::enter(node)?, admitted).await
}

/// Runs a call that has its place in the tree.
pub(crate) async fn entered(mut guard: Guard, admitted: Admitted) -> Result<Value, CallError> {
    // A method that does nothing but call has no other moment at which it could be stopped.
    consume_budget().await;
    let Admitted {
        route,
        params,
        places,
    } = admitted;
    let outcome = passed(&mut guard, &route, params).await;
    let result = guard.finish(outcome, Some(&route)).await;
    drop(places);
    result
}

/// Notes the beginning of a call and does its work; a tool's in between its hook points.
async fn passed(guard: &mut Guard, route: &Arc<Route>, params: Value) -> Result<Value, CallError> {
    if route.descriptor().tool.is_some() {
        return tool(guard, route, params).await;
    }
    if journals_call(&guard.node, route) {
        guard.journal(route, &params).await?;
    }
    supervise(&guard.node, start(&guard.node, route, params)).await
}

/// Lets a tool's call pass its gates, does its work, and tells how that went.
async fn tool(guard: &mut Guard, route: &Arc<Route>, params: Value) -> Result<Value, CallError> {
    let node = Arc::clone(&guard.node);
    let run = ToolRun::begin(&node, route, &params).await?;
    let gates = gate::pass(&run, &node, route, params);
    let passed = supervise(&node, Box::pin(gates)).await;
    // A streaming method that runs has told its items itself.
    let is_told =
        matches!(passed, Ok(Passed::Run(_))) && route.descriptor().kind == MethodKind::Streaming;
    let outcome = match passed {
        Ok(Passed::Run(params)) => let_in(guard, route, params).await,
        Ok(Passed::Answered(value)) => Ok(value),
        Err(error) => Err(error),
    };
    let value = run.ended(outcome).await?;
    if node.is_watched() && !is_told {
        supervise(&node, Box::pin(tell(&node, route, &value))).await?;
    }
    Ok(value)
}

async fn let_in(guard: &mut Guard, route: &Arc<Route>, params: Value) -> Result<Value, CallError> {
    if journals_call(&guard.node, route) {
        guard.journal(route, &params).await?;
    }
    supervise(&guard.node, work(&guard.node, route, params)).await
}

/// Runs a named inner part of a call.
pub(crate) async fn scope(node: Arc<Node>, work: Work<'_>) -> Result<Value, CallError> {
    let guard = Guard::enter(node)?;
    consume_budget().await;
    let outcome = supervise(&guard.node, work).await;
    guard.finish(outcome, None).await
}

/// The items of a streaming root are its record already.
fn journals_call(node: &Node, route: &Route) -> bool {
    let descriptor = route.descriptor();
    descriptor.mutation == Mutation::Mutates && !(node.is_root() && node.root.writer.is_some())
}

/// The work of a call, and telling its result to whoever watches: as part of the work, so that a
/// consumer who does not read cannot hold up a call that was stopped.
fn start(node: &Arc<Node>, route: &Arc<Route>, params: Value) -> Work<'static> {
    let work = work(node, route, params);
    if route.descriptor().kind == MethodKind::Streaming || !node.is_watched() {
        return work;
    }
    let (node, route) = (Arc::clone(node), Arc::clone(route));
    Box::pin(async move {
        let value = work.await?;
        tell(&node, &route, &value).await?;
        Ok(value)
    })
}

/// The method's own future, or what its panic comes to.
fn work(node: &Arc<Node>, route: &Arc<Route>, params: Value) -> Work<'static> {
    let make = || -> Work<'static> {
        match route.method.handler() {
            Handler::Unary(run) => run(node.ctx(), params),
            Handler::Streaming(run) => {
                let (work, node) = (run(node.ctx(), params), Arc::clone(node));
                Box::pin(async move {
                    work.await?;
                    Ok(node.take_last().unwrap_or_default())
                })
            }
        }
    };
    let work = catch_unwind(AssertUnwindSafe(make))
        .unwrap_or_else(|_| Box::pin(std::future::ready(Err(panicked()))));
    let span = tracing::debug_span!("call", id = %node.info.call_id, path = %node.info.path);
    match span.is_disabled() {
        true => work,
        false => Box::pin(work.instrument(span)),
    }
}

/// Emits the result of a unary method; its terminal follows.
async fn tell(node: &Node, route: &Route, value: &Value) -> Result<(), CallError> {
    let (content_type, data) = (route.result_type.to_string().into(), value.clone());
    node.send(ItemBody::Data { content_type, data }, Haste::WithNext)
        .await
}

/// Polls the work until it is done, panics, is cancelled or runs out of time.
async fn supervise<T>(node: &Node, work: Work<'_, T>) -> Result<T, CallError> {
    let mut work = Caught(Some(work));
    // Most calls are done at the first poll and need neither timer nor waiting list.
    if let Poll::Ready(outcome) =
        std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut work).poll(cx))).await
    {
        return outcome;
    }
    let stopped = tokio::select! {
        biased;
        outcome = &mut work => return outcome,
        // Busy work uses up the task's budget, without which no timer would fire.
        error = unconstrained(stopped(node)) => error,
    };
    node.info.cancel.cancel();
    // Whatever it returns in its last moments, it was stopped.
    let _ = tokio::time::timeout(GRACE, &mut work).await;
    Err(stopped)
}

/// Completes when the call has to end, with the reason.
async fn stopped(node: &Node) -> CallError {
    let unwritable = async {
        match &node.root.writer {
            Some(writer) if node.is_root() => writer.failed().await,
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = node.info.cancel.cancelled() => CallError::new(ErrorCode::Cancelled, node.root.stop_reason()),
        () = node.clock.over() => late(node),
        () = unwritable => CallError::new(ErrorCode::Storage, "an item could not be stored").hint("run `dodona doctor`"),
    }
}

fn late(node: &Node) -> CallError {
    let message = match (&node.info.method, node.timeout) {
        (Some(method), Some(timeout)) => {
            format!("`{method}` took longer than {timeout:?} and was stopped")
        }
        (Some(method), None) => format!("`{method}` did not finish in the time allowed"),
        (None, _) => "the call did not finish in the time allowed".to_owned(),
    };
    CallError::new(ErrorCode::DeadlineExceeded, message)
}

/// Work whose panics become errors, when polled and when dropped.
struct Caught<'a, T>(Option<Work<'a, T>>);

impl<T> Future for Caught<'_, T> {
    type Output = Result<T, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.0 else {
            return Poll::Ready(Err(panicked()));
        };
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| {
            self.discard();
            Poll::Ready(Err(panicked()))
        })
    }
}

impl<T> Caught<'_, T> {
    fn discard(&mut self) {
        let work = self.0.take();
        if catch_unwind(AssertUnwindSafe(|| drop(work))).is_err() {
            tracing::error!("a method panicked while it was being dropped");
        }
    }
}

impl<T> Drop for Caught<'_, T> {
    fn drop(&mut self) {
        self.discard();
    }
}

fn panicked() -> CallError {
    CallError::new(ErrorCode::Panicked, "the method panicked")
        .hint("this is a fault of the plugin; its log has the details")
}

/// Stands for a running call. However it is left, the call leaves the tree and has its terminal.
pub(crate) struct Guard {
    node: Arc<Node>,
    /// Whether the journal has a beginning of this call and no end.
    journaled: bool,
    left: bool,
}

impl Guard {
    /// Gives a call its place in the tree.
    pub(crate) fn enter(node: Arc<Node>) -> Result<Self, CallError> {
        node.root
            .add(Arc::clone(&node), node.core.config.limits.nested)?;
        if node.is_root() {
            node.core.calls.add(Arc::clone(&node.root));
        }
        Ok(Self {
            node,
            journaled: false,
            left: false,
        })
    }

    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Notes the beginning of a mutating call; if that cannot be done, the call does not run.
    async fn journal(&mut self, route: &Route, params: &Value) -> Result<(), CallError> {
        let info = &self.node.info;
        let head = CallHead {
            call: info.call_id,
            path: info.path.clone(),
            method: route.descriptor().name.clone(),
            user: info.principal.user.clone(),
            project: info.project.as_ref().map(|project| project.id.clone()),
            params: params.clone(),
            began: Timestamp::now(),
        };
        self.node.core.journal.begin_call(head).await?;
        self.journaled = true;
        Ok(())
    }

    /// Tells how the call ended: to whoever watches, to the journal, to the caller.
    async fn finish(
        mut self,
        outcome: Result<Value, CallError>,
        route: Option<&Route>,
    ) -> Result<Value, CallError> {
        self.stop_below();
        let (status, code) = match &outcome {
            Ok(_) => (DoneStatus::Complete, None),
            Err(error) => (error.code.status(), Some(error.code.clone())),
        };
        if status != DoneStatus::Cancelled {
            self.node.make_room(GRACE).await;
            self.tell(&outcome).await;
        }
        let reason = outcome.as_ref().err().map(|error| error.message.as_str());
        self.leave(status, reason);
        if let Some(route) = route {
            route.meter.ended(status, self.node.elapsed());
        }
        if std::mem::take(&mut self.journaled) {
            self.node
                .core
                .journal
                .end_call(self.node.info.call_id, status, code)
                .await?;
        }
        if let Err(error) = &outcome {
            self.log(error);
        }
        outcome
    }

    /// Emits the error, if there is one.
    async fn tell(&self, outcome: &Result<Value, CallError>) {
        if let Err(error) = outcome
            && self.node.is_watched()
        {
            let body = ItemBody::Error {
                error: error.message.clone(),
                code: error.code.clone(),
                recoverable: false,
                hint: error.hint_text().map(str::to_owned),
            };
            // Where not even this can be stored, the terminal says what there is to say.
            let _ = self.node.send_error(body).await;
        }
    }

    /// Stops whatever the call started and did not wait for: nothing below it may be left to
    /// say when its terminal is written.
    fn stop_below(&self) {
        if !self.node.has_children() {
            return;
        }
        self.node.info.cancel.cancel();
        for node in self.node.root.close(&self.node.info.call_id) {
            node.end(
                DoneStatus::Cancelled,
                Some("the call that made this one has ended"),
            );
        }
    }

    fn leave(&mut self, status: DoneStatus, reason: Option<&str>) {
        self.left = true;
        self.node.end(status, reason);
        self.node.root.remove(&self.node.info.call_id);
        if self.node.is_root() {
            self.node.core.calls.remove(self.node.root.stream);
        }
    }

    /// A fault of ours is worth an operator's look; a call that failed as calls do is not.
    fn log(&self, error: &CallError) {
        let info = &self.node.info;
        let ours = matches!(
            error.code,
            ErrorCode::Internal | ErrorCode::Panicked | ErrorCode::Storage
        );
        if let Some(detail) = error.log_text() {
            tracing::warn!(call = %info.call_id, path = %info.path, code = %error.code, detail, "{}", error.message);
        } else if ours {
            tracing::warn!(call = %info.call_id, path = %info.path, code = %error.code, "{}", error.message);
        } else {
            tracing::debug!(call = %info.call_id, path = %info.path, code = %error.code, "{}", error.message);
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.left {
            self.node.info.cancel.cancel();
            self.stop_below();
            self.leave(
                DoneStatus::Cancelled,
                Some("nobody waits for the result any more"),
            );
        }
        if self.journaled {
            self.node
                .core
                .journal
                .end_dropped_call(self.node.info.call_id);
        }
    }
}
