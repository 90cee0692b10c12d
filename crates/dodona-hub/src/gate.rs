//! The gates before a tool: whether it runs, with what, or what is answered in its place.

use std::sync::Arc;

use dodona_proto::hook::ToolPending;
use dodona_proto::{Approval, CallError, ErrorCode, PluginName};
use serde_json::Value;

use crate::approvals::Question;
use crate::node::Node;
use crate::router::Route;
use crate::tool::ToolRun;
use crate::{meter, validate};

/// A call that may go on.
pub(crate) enum Passed {
    /// Run it with these parameters.
    Run(Value),
    /// Do not run it; this is its result.
    Answered(Value),
}

/// Whether a person must agree to this call of a tool, whatever the gates say.
fn asks(node: &Node, route: &Route) -> bool {
    let descriptor = route.descriptor();
    let config = &node.core.config.approvals;
    let marked = match descriptor.tool.as_ref().map(|tool| tool.approval) {
        Some(Approval::Always) => true,
        // A snapshot of a query comes with what an agent calls, and with nothing else.
        Some(Approval::Agents) => {
            node.info.snapshot.is_some() && !config.unattended.contains(&descriptor.name)
        }
        Some(Approval::Never) | None => false,
    };
    marked || config.methods.contains(&descriptor.name)
}

/// Asks the gates about a call of a tool-marked method, and a person where they or the method
/// want that. A part of the call like its work: it can be cancelled and takes of its time, but
/// for the time in which a person is asked.
pub(crate) async fn pass(
    run: &ToolRun,
    node: &Arc<Node>,
    route: &Route,
    params: Value,
) -> Result<Passed, CallError> {
    let passed = decide(run, node, route, params).await;
    passed.inspect_err(|error| meter::refused(&error.code))
}

async fn decide(
    run: &ToolRun,
    node: &Arc<Node>,
    route: &Route,
    params: Value,
) -> Result<Passed, CallError> {
    if let Some(why) = &node.core.snapshot.load().ungoverned {
        // Without the rules nothing says what a tool must not do.
        let message = format!("no tool runs while rules are not in force: {why}");
        let error = CallError::new(ErrorCode::Denied, message);
        return Err(error.hint("run `dodona plugins list` and correct what it reports"));
    }
    let Some(call) = run.ask(params).await else {
        // Nobody has changed anything.
        let params = run.arguments();
        route.method.check(&node.info, &params)?;
        ask_person(node, route, None, &params).await?;
        return Ok(Passed::Run(params));
    };
    let ToolPending {
        arguments,
        ask,
        answer,
        denied,
        ..
    } = call;
    if let Some((plugin, message)) = denied {
        let hint = format!(
            "plugin `{plugin}` decides over `{}`",
            route.descriptor().name
        );
        return Err(CallError::new(ErrorCode::Denied, message).hint(hint));
    }
    // A question beats an answer.
    let answer = answer.filter(|_| ask.is_none());
    if answer.is_none() {
        let limits = &node.core.config.limits;
        let schema = &route.descriptor().params;
        validate::check(&arguments, schema, &route.validator, limits)?;
        route.method.check(&node.info, &arguments)?;
    }
    ask_person(node, route, ask, &arguments).await?;
    Ok(match answer {
        Some((_, value)) => Passed::Answered(value),
        None => Passed::Run(arguments),
    })
}

/// Waits for a person's word where a gate has a question, or where the method always has one.
async fn ask_person(
    node: &Arc<Node>,
    route: &Route,
    ask: Option<(PluginName, String)>,
    params: &Value,
) -> Result<(), CallError> {
    let method = &route.descriptor().name;
    let (plugin, message) = match ask {
        Some((plugin, message)) => (Some(plugin), message),
        None if asks(node, route) => (None, format!("`{method}` needs a person's agreement")),
        None => return Ok(()),
    };
    let question = Question {
        method: method.clone(),
        plugin,
        message,
        params: params.clone(),
    };
    node.core.approvals.ask(node, question).await
}
