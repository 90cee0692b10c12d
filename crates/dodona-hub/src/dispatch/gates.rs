//! The gates of a tool call. They decide whether it runs, with which arguments, or what is answered
//! in its place.

use std::sync::Arc;

use dodona_proto::hook::ToolPending;
use dodona_proto::{Approval, CallError, ErrorCode, PluginName};
use serde_json::Value;

use super::tool_hooks::ToolHooks;
use crate::approvals::ApprovalQuestion;
use crate::call::RunningCall;
use crate::meter;
use crate::router::Route;
use crate::validate::check_params;

/// What the gates decided about a call that they did not deny.
pub(crate) enum GateOutcome {
    /// Run the method with these arguments.
    Proceed(Value),
    /// Skip the method and return this result.
    Answered(Value),
}

/// Runs the `PRE_TOOL_EXECUTE` hooks of a tool call, and requests approval where a hook, the method
/// or the configuration requires it. Can be cancelled, and counts against the call's deadline except
/// for the time in which an approval is pending.
pub(crate) async fn pass_gates(
    hooks: &ToolHooks,
    call: &Arc<RunningCall>,
    route: &Route,
    params: Value,
) -> Result<GateOutcome, CallError> {
    let outcome = run_gates(hooks, call, route, params).await;
    outcome.inspect_err(|error| meter::count_rejected(&error.code))
}

async fn run_gates(
    hooks: &ToolHooks,
    call: &Arc<RunningCall>,
    route: &Route,
    params: Value,
) -> Result<GateOutcome, CallError> {
    if let Some(reason) = &call.hub.snapshot.load().tools_disabled_reason {
        // Fail closed: without the rules plugin nothing forbids what a tool must not do.
        let message = format!("tools are disabled while rules are not enforced: {reason}");
        let error = CallError::new(ErrorCode::Denied, message);
        return Err(
            error.hint("run `dodona plugins list` and fix the plugins it reports as failed")
        );
    }
    let Some(pending) = hooks.fire_pre_execute(params).await else {
        // There are no gates, so the arguments are those that the dispatcher validated.
        let params = hooks.arguments();
        route.method.check(&call.info, &params)?;
        request_approval(call, route, None, &params).await?;
        return Ok(GateOutcome::Proceed(params));
    };
    let ToolPending {
        arguments,
        ask,
        answer,
        denied,
        ..
    } = pending;
    if let Some((plugin, message)) = denied {
        let method = &route.descriptor().name;
        let hint = format!("plugin `{plugin}` denied `{method}`");
        return Err(CallError::new(ErrorCode::Denied, message).hint(hint));
    }
    // If one gate wants approval and another has an answer, the approval counts.
    let answer = answer.filter(|_| ask.is_none());
    if answer.is_none() {
        // A gate may have changed the arguments, so they are validated again.
        let limits = &call.hub.config.limits;
        let schema = &route.descriptor().params;
        check_params(&arguments, schema, &route.validator, limits)?;
        route.method.check(&call.info, &arguments)?;
    }
    request_approval(call, route, ask, &arguments).await?;
    Ok(match answer {
        Some((_, value)) => GateOutcome::Answered(value),
        None => GateOutcome::Proceed(arguments),
    })
}

/// Waits for a person's approval if a gate asks for it (`ask`) or the method requires it.
async fn request_approval(
    call: &Arc<RunningCall>,
    route: &Route,
    ask: Option<(PluginName, String)>,
    params: &Value,
) -> Result<(), CallError> {
    let method = &route.descriptor().name;
    let (plugin, message) = match ask {
        Some((plugin, message)) => (Some(plugin), message),
        None if requires_approval(call, route) => (None, format!("`{method}` requires approval")),
        None => return Ok(()),
    };
    let question = ApprovalQuestion {
        method: method.clone(),
        plugin,
        message,
        params: params.clone(),
    };
    call.hub.approvals.ask(call, question).await
}

/// Whether the method or the configuration requires approval, independent of the gates.
fn requires_approval(call: &RunningCall, route: &Route) -> bool {
    let descriptor = route.descriptor();
    let config = &call.hub.config.approvals;
    let by_method = match descriptor.tool.as_ref().map(|tool| tool.approval) {
        Some(Approval::Always) => true,
        // Only calls made by an agent carry the snapshot of a query.
        Some(Approval::Agents) => {
            call.info.snapshot.is_some() && !config.unattended.contains(&descriptor.name)
        }
        Some(Approval::Never) | None => false,
    };
    by_method || config.methods.contains(&descriptor.name)
}
