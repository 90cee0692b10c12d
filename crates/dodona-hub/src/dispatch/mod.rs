//! The dispatcher. Every call, from a surface or from another call, runs through [`Dispatcher`].
//!
//! The steps of a call, in order:
//!
//! 1. **check** ([`check`]): may this caller make this call now? Scope, rate and concurrency limits,
//!    method lookup, parameter validation. A failure here is an error answer; no call exists yet.
//! 2. **enter** ([`CallGuard::enter`]): the call joins its call tree. It is visible in `hub.calls` and
//!    can be cancelled from here on, and exactly one `Done` item will be written for it.
//! 3. **gates** ([`gates`], tools only): hooks and, where required, a person allow, deny, change or
//!    answer the call.
//! 4. **journal** (mutating methods only): the start is recorded before the method runs.
//! 5. **execute** ([`execute`]): the method runs. Panics, deadlines and cancellation become errors.
//! 6. **end** ([`CallGuard::end`]): running child calls are cancelled, then `Error` and `Done` are written.

mod check;
mod ending;
mod execute;
mod gates;
mod root;
mod tool_hooks;

use std::sync::Arc;

use dodona_proto::{CallError, ErrorCode, MethodKind, Mutation};
use serde_json::Value;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use crate::call::RunningCall;
use crate::hub::HubInner;
use crate::router::Route;

pub(crate) use check::{CallOrigin, CheckedCall};
pub(crate) use ending::{CALLER_GONE, CallGuard, PARENT_ENDED};
pub use root::PreparedCall;
pub(crate) use tool_hooks::PendingNotifications;

use execute::{
    CallFuture, LateResult, emit_result, execute, execute_and_emit, supervise, supervise_until,
};
use gates::GateOutcome;
use tool_hooks::ToolHooks;

/// Checks and runs calls. A borrowed view of the hub, created with [`HubInner::dispatcher`].
#[derive(Clone, Copy)]
pub(crate) struct Dispatcher<'a> {
    hub: &'a Arc<HubInner>,
}

impl HubInner {
    pub(crate) fn dispatcher(self: &Arc<Self>) -> Dispatcher<'_> {
        Dispatcher { hub: self }
    }
}

impl Dispatcher<'_> {
    /// Runs a checked call and returns its result. Dropping the future cancels the call.
    pub(crate) async fn dispatch(
        call: Arc<RunningCall>,
        checked: CheckedCall,
    ) -> Result<Value, CallError> {
        Self::dispatch_entered(CallGuard::enter(call)?, checked).await
    }

    /// Runs a checked call that has entered its call tree.
    pub(crate) async fn dispatch_entered(
        mut guard: CallGuard,
        checked: CheckedCall,
    ) -> Result<Value, CallError> {
        // A method that only calls other methods has no other await point at which it could be
        // cancelled.
        consume_budget().await;
        let CheckedCall {
            route,
            params,
            slots,
        } = checked;
        let outcome = run_steps(&mut guard, &route, params).await;
        let outcome = guard.end(outcome, Some(&route)).await;
        // Freed after the call has left its tree, so that no more calls run than the limit allows.
        drop(slots);
        outcome
    }

    /// Runs a named part of a call, see `CallCtx::scope`. It has its own path segment and its own
    /// `Done`, but no method: it is neither checked nor journaled.
    pub(crate) async fn dispatch_scope(
        call: Arc<RunningCall>,
        work: CallFuture<'_>,
    ) -> Result<Value, CallError> {
        let guard = CallGuard::enter(call)?;
        consume_budget().await;
        let outcome = supervise(guard.call(), work).await;
        guard.end(outcome, None).await
    }
}

async fn run_steps(
    guard: &mut CallGuard,
    route: &Arc<Route>,
    params: Value,
) -> Result<Value, CallError> {
    if route.descriptor().tool.is_some() {
        // Boxed, because it is by far the largest part of the future: without this every running call,
        // an idle stream for example, would hold the memory that only tool calls need.
        return Box::pin(run_tool_steps(guard, route, params)).await;
    }
    guard.journal_start(route, &params).await?;
    let call = guard.call();
    supervise(call, execute_and_emit(call, route, params)).await
}

/// The steps of a tool call: the same, with the gates before and the `POST_TOOL_EXECUTE` hooks after
/// the method. The result is emitted last, because the hooks may change it.
async fn run_tool_steps(
    guard: &mut CallGuard,
    route: &Arc<Route>,
    params: Value,
) -> Result<Value, CallError> {
    let call = Arc::clone(guard.call());
    let hooks = ToolHooks::start(&call, route, &params).await?;
    let gates = gates::pass_gates(&hooks, &call, route, params);
    let gate_outcome = supervise(&call, Box::pin(gates)).await;
    // A streaming method that ran has emitted its items itself.
    let is_emitted = matches!(gate_outcome, Ok(GateOutcome::Proceed(_)))
        && route.descriptor().kind == MethodKind::Streaming;
    let outcome = match gate_outcome {
        Ok(GateOutcome::Proceed(params)) => journal_and_execute(guard, route, params).await,
        Ok(GateOutcome::Answered(value)) => Ok(value),
        Err(error) => Err(error),
    };
    let value = hooks.finish(outcome).await?;
    if call.has_reader() && !is_emitted {
        match supervise(&call, Box::pin(emit_result(&call, route, &value))).await {
            // The tool has finished. A cancel that arrives while its result is emitted must not
            // report it as cancelled to the agent that called it.
            Err(error) if !call.is_root() && is_stop(&error) => {}
            emitted => emitted?,
        }
    }
    Ok(value)
}

/// Whether a call ended because it was cancelled or late, and not because of a fault.
fn is_stop(error: &CallError) -> bool {
    matches!(
        error.code,
        ErrorCode::Cancelled | ErrorCode::DeadlineExceeded
    )
}

async fn journal_and_execute(
    guard: &mut CallGuard,
    route: &Arc<Route>,
    params: Value,
) -> Result<Value, CallError> {
    let call = Arc::clone(guard.call());
    if call.info.cancel.is_cancelled() && !call.is_root() {
        // Cancelled while its gates ran: the method must not start any more.
        let reason = call.tree.cancel_reason();
        return Err(CallError::new(ErrorCode::Cancelled, reason));
    }
    guard.journal_start(route, &params).await?;
    let on_start = call.state().on_start.take();
    if let Some(on_start) = on_start {
        on_start.run(call.info.call_id).await?;
    }
    let late = match route.descriptor().mutation {
        // What the method changed stays changed: the caller must learn that it finished.
        Mutation::Mutates if !call.is_root() => LateResult::Kept,
        _ => LateResult::Discarded,
    };
    let (start, paused) = (Instant::now(), call.deadline.paused_so_far());
    let outcome = supervise_until(&call, execute(&call, route, params), late).await;
    let paused = call.deadline.paused_so_far().saturating_sub(paused);
    call.state().ran = Some(start.elapsed().saturating_sub(paused));
    outcome
}
