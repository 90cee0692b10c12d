//! Running a method: panics, deadlines and cancellation become errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use dodona_plugin::{BoxFuture, Handler};
use dodona_proto::{CallError, ErrorCode, ItemBody, MethodKind};
use serde_json::Value;
use tokio::task::coop::unconstrained;
use tracing::Instrument;

use crate::call::{Flush, RunningCall};
use crate::router::Route;

/// How long a cancelled call may take to store what it has and return. After that its future is
/// dropped. Also how long the end of a call waits for slow in-process readers.
pub(super) const GRACE: Duration = Duration::from_millis(50);

pub(crate) type CallFuture<'a, T = Value> = BoxFuture<'a, Result<T, CallError>>;

/// Runs the method and emits its result to readers. Emitting is part of the supervised future, so
/// that a reader that does not read cannot delay a cancelled call.
pub(super) fn execute_and_emit(
    call: &Arc<RunningCall>,
    route: &Arc<Route>,
    params: Value,
) -> CallFuture<'static> {
    let work = execute(call, route, params);
    if route.descriptor().kind == MethodKind::Streaming || !call.has_reader() {
        return work;
    }
    let (call, route) = (Arc::clone(call), Arc::clone(route));
    Box::pin(async move {
        let value = work.await?;
        emit_result(&call, &route, &value).await?;
        Ok(value)
    })
}

/// Calls the method's handler and returns its future. A handler that panics before it returns a
/// future counts as a method that panicked.
pub(super) fn execute(
    call: &Arc<RunningCall>,
    route: &Arc<Route>,
    params: Value,
) -> CallFuture<'static> {
    let start = || -> CallFuture<'static> {
        match route.method.handler() {
            Handler::Unary(run) => run(call.ctx(), params),
            Handler::Streaming(run) => {
                let (work, call) = (run(call.ctx(), params), Arc::clone(call));
                Box::pin(async move {
                    work.await?;
                    Ok(call.take_last_data().unwrap_or_default())
                })
            }
        }
    };
    let work = catch_unwind(AssertUnwindSafe(start))
        .unwrap_or_else(|_| Box::pin(std::future::ready(Err(panic_error()))));
    let span = tracing::debug_span!("call", id = %call.info.call_id, path = %call.info.path);
    // Instrumenting costs an allocation, so it is done only if someone records the span.
    if span.is_disabled() {
        work
    } else {
        Box::pin(work.instrument(span))
    }
}

/// Emits the result of a unary method as a data item. `Done` follows.
pub(super) async fn emit_result(
    call: &RunningCall,
    route: &Route,
    value: &Value,
) -> Result<(), CallError> {
    let (content_type, data) = (route.result_type.to_string().into(), value.clone());
    call.send(ItemBody::Data { content_type, data }, Flush::WithNextItem)
        .await
}

/// What happens to a result that work returns after the call was cancelled or late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LateResult {
    /// It becomes the result of the call.
    Kept,
    /// The call ends as cancelled or late.
    Discarded,
}

/// Polls the work until it completes, panics, is cancelled or passes its deadline.
pub(super) async fn supervise<T>(
    call: &RunningCall,
    work: CallFuture<'_, T>,
) -> Result<T, CallError> {
    supervise_until(call, work, LateResult::Discarded).await
}

pub(super) async fn supervise_until<T>(
    call: &RunningCall,
    work: CallFuture<'_, T>,
    late: LateResult,
) -> Result<T, CallError> {
    let mut work = CatchPanic(Some(work));
    // Most calls complete at the first poll and need neither a timer nor a cancellation listener.
    if let Poll::Ready(outcome) =
        std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut work).poll(cx))).await
    {
        return outcome;
    }
    let error = tokio::select! {
        biased;
        outcome = &mut work => return outcome,
        // Unconstrained: busy work uses up the task's budget, and then no timer would fire.
        error = unconstrained(wait_for_stop(call)) => error,
    };
    call.info.cancel.cancel();
    match tokio::time::timeout(GRACE, &mut work).await {
        Ok(Ok(result)) if late == LateResult::Kept => Ok(result),
        _ => Err(error),
    }
}

/// Completes when the call has to stop, and returns the reason.
async fn wait_for_stop(call: &RunningCall) -> CallError {
    let write_failed = async {
        match &call.tree.writer {
            Some(writer) if call.is_root() => writer.failed().await,
            _ => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = call.info.cancel.cancelled() => CallError::new(ErrorCode::Cancelled, call.tree.cancel_reason()),
        () = call.deadline.wait_until_expired() => deadline_error(call),
        () = write_failed => CallError::new(ErrorCode::Storage, "failed to store an item of the stream").hint("run `dodona doctor`"),
    }
}

fn deadline_error(call: &RunningCall) -> CallError {
    let message = match (&call.info.method, call.timeout) {
        (Some(method), Some(timeout)) => format!("`{method}` timed out after {timeout:?}"),
        (Some(method), None) => format!("`{method}` exceeded its deadline"),
        (None, _) => "the call exceeded its deadline".to_owned(),
    };
    CallError::new(ErrorCode::DeadlineExceeded, message)
}

/// A future whose panics become errors, both when it is polled and when it is dropped.
struct CatchPanic<'a, T>(Option<CallFuture<'a, T>>);

impl<T> Future for CatchPanic<'_, T> {
    type Output = Result<T, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.0 else {
            return Poll::Ready(Err(panic_error()));
        };
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| {
            self.discard();
            Poll::Ready(Err(panic_error()))
        })
    }
}

impl<T> CatchPanic<'_, T> {
    fn discard(&mut self) {
        let work = self.0.take();
        if catch_unwind(AssertUnwindSafe(|| drop(work))).is_err() {
            tracing::error!("a method panicked while its future was dropped");
        }
    }
}

impl<T> Drop for CatchPanic<'_, T> {
    fn drop(&mut self) {
        self.discard();
    }
}

fn panic_error() -> CallError {
    CallError::new(ErrorCode::Panicked, "the method panicked")
        .hint("this is a bug in the plugin; see the server log for details")
}
