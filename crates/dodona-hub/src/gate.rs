//! The gates before a tool: whether it runs, with what, or what is answered in its place.

use std::sync::Arc;

use dodona_hooks::{Decision, PendingCall};
use dodona_proto::{Approval, CallError, ErrorCode};
use serde_json::Value;

use crate::node::Node;
use crate::router::Route;
use crate::{meter, validate};

/// A call that may go on.
pub(crate) enum Passed {
    /// Run it with these parameters.
    Run(Value),
    /// Do not run it; this is its result.
    Answered(Value),
}

/// Whether a call goes on without anybody being asked.
pub(crate) fn is_open(node: &Node, route: &Route) -> bool {
    match &route.descriptor().tool {
        None => true,
        Some(tool) => {
            tool.approval == Approval::Never && node.core.snapshot.load().gates.is_empty()
        }
    }
}

/// Asks the gates about a call of a tool-marked method. A part of the call like its work: it can
/// be cancelled and takes of its time.
pub(crate) async fn pass(
    node: Arc<Node>,
    route: Arc<Route>,
    params: Value,
) -> Result<Passed, CallError> {
    decide(&node, &route, params).inspect_err(|error| meter::refused(&error.code))
}

/// Until a person can be asked, a question is a refusal.
fn decide(node: &Node, route: &Route, params: Value) -> Result<Passed, CallError> {
    let descriptor = route.descriptor();
    let always = descriptor
        .tool
        .as_ref()
        .is_some_and(|tool| tool.approval == Approval::Always);
    let snapshot = node.core.snapshot.load();
    let call = PendingCall::new(&descriptor.name, params);
    match snapshot.gates.decide(call) {
        Decision::Run(_) | Decision::Answer(_) if always => Err(unanswered(&format!(
            "`{}` needs a person's agreement",
            descriptor.name
        ))),
        Decision::Run(params) => {
            // A gate may have changed them.
            validate::check(
                &params,
                &descriptor.params,
                &route.validator,
                &node.core.config.limits,
            )?;
            Ok(Passed::Run(params))
        }
        Decision::Answer(value) => Ok(Passed::Answered(value)),
        Decision::Ask { message, .. } => Err(unanswered(&message)),
        Decision::Deny { plugin, message } => Err(CallError::new(ErrorCode::Denied, message).hint(
            format!("plugin `{plugin}` decides over `{}`", descriptor.name),
        )),
    }
}

fn unanswered(message: &str) -> CallError {
    CallError::new(
        ErrorCode::ApprovalRequired,
        format!("{message}; nobody is there to answer"),
    )
}
