//! The gates before a tool: whether it runs, with what, or what is answered in its place.

use std::sync::Arc;

use dodona_hooks::{Decision, PendingCall};
use dodona_proto::{Approval, CallError, ErrorCode, PluginName};
use serde_json::Value;

use crate::approvals::Question;
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
    route.descriptor().tool.is_none() || !(always_asks(node, route) || has_gates(node))
}

fn has_gates(node: &Node) -> bool {
    !node.core.snapshot.load().gates.is_empty()
}

/// Whether a person must agree to every call of a tool.
fn always_asks(node: &Node, route: &Route) -> bool {
    let descriptor = route.descriptor();
    let marked = |tool: &dodona_proto::ToolMark| tool.approval == Approval::Always;
    let methods = &node.core.config.approvals.methods;
    descriptor.tool.as_ref().is_some_and(marked)
        || (!methods.is_empty() && methods.contains(&descriptor.name))
}

/// Asks the gates about a call of a tool-marked method, and a person where they or the method
/// want that. A part of the call like its work: it can be cancelled and takes of its time, but
/// for the time in which a person is asked.
pub(crate) async fn pass(
    node: Arc<Node>,
    route: Arc<Route>,
    params: Value,
) -> Result<Passed, CallError> {
    let passed = decide(&node, &route, params).await;
    passed.inspect_err(|error| meter::refused(&error.code))
}

async fn decide(node: &Arc<Node>, route: &Route, params: Value) -> Result<Passed, CallError> {
    let name = &route.descriptor().name;
    let always = always_asks(node, route);
    // Where a gate answers, what was asked is gone.
    let asked = if always { params.clone() } else { Value::Null };
    let snapshot = node.core.snapshot.load_full();
    let decision = snapshot.gates.decide(PendingCall::new(name, params));
    let (passed, ask) = match decision {
        Decision::Run(params) => (Passed::Run(params), None),
        Decision::Answer(value) => (Passed::Answered(value), None),
        Decision::Ask {
            plugin,
            message,
            params,
        } => (Passed::Run(params), Some((plugin, message))),
        Decision::Deny { plugin, message } => {
            let hint = format!("plugin `{plugin}` decides over `{name}`");
            return Err(CallError::new(ErrorCode::Denied, message).hint(hint));
        }
    };
    if let Passed::Run(params) = &passed {
        // A gate may have changed them.
        let limits = &node.core.config.limits;
        validate::check(params, &route.descriptor().params, &route.validator, limits)?;
    }
    if let Some(question) = question(route, &passed, ask, always.then_some(asked)) {
        node.core.approvals.ask(node, question).await?;
    }
    Ok(passed)
}

/// What a person is asked, if anything: a gate's question, or that of a method which always asks.
/// `asked` is what such a method was called with.
fn question(
    route: &Route,
    passed: &Passed,
    ask: Option<(PluginName, String)>,
    asked: Option<Value>,
) -> Option<Question> {
    let method = route.descriptor().name.clone();
    let params = match (passed, &asked) {
        (Passed::Run(params), _) => params.clone(),
        (Passed::Answered(_), asked) => asked.clone().unwrap_or_default(),
    };
    let (plugin, message) = match (ask, asked) {
        (Some((plugin, message)), _) => (Some(plugin), message),
        (None, Some(_)) => (None, format!("`{method}` needs a person's agreement")),
        (None, None) => return None,
    };
    Some(Question {
        method,
        plugin,
        message,
        params,
    })
}
