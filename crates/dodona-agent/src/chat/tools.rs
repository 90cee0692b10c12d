//! The tools a model is offered.

use std::collections::BTreeSet;
use std::sync::Arc;

use dodona_llm::ToolOffer;
use dodona_plugin::{CallCtx, CallError, ErrorCode};
use dodona_proto::MethodDescriptor;

/// The agent's name, by which tools say who is offered them.
const AGENT: &str = "oracle";

/// How many names are told to a model that asked for a tool there is not.
const NEAREST: usize = 3;

/// What a model may ask for, and which method each is.
pub(super) struct Toolbox {
    tools: Vec<(String, Arc<MethodDescriptor>)>,
}

impl Toolbox {
    /// Every method that is marked as a tool for this agent and that the user may call, in the
    /// order of their names; none where they are not wanted.
    pub(super) fn load(ctx: &CallCtx, wanted: bool) -> Self {
        if !wanted {
            return Self { tools: Vec::new() };
        }
        let is_offered = |method: &Arc<MethodDescriptor>| {
            let tool = method.tool.as_ref();
            tool.is_some_and(|tool| tool.agents.iter().any(|agent| agent == AGENT))
        };
        let mut tools: Vec<_> = ctx
            .methods()
            .into_iter()
            .filter(is_offered)
            .map(|method| (tool_name(&method), method))
            .collect();
        // The same tools in another order would be another prompt to a provider's cache.
        tools.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self { tools }
    }

    pub(super) fn offers(&self) -> Vec<ToolOffer> {
        let offer = |(name, method): &(String, Arc<MethodDescriptor>)| ToolOffer {
            name: name.clone(),
            description: method.description.clone(),
            parameters: method.params.clone(),
        };
        self.tools.iter().map(offer).collect()
    }

    /// The names on the model's side.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.tools.iter().map(|(name, _)| name.clone()).collect()
    }

    /// The method behind a tool's name.
    pub(super) fn method(&self, tool: &str) -> Option<&MethodDescriptor> {
        let found = self.tools.iter().find(|(name, _)| name == tool);
        found.map(|(_, method)| method.as_ref())
    }

    /// What a model is told that asked for a tool there is not.
    pub(super) fn unknown(&self, tool: &str) -> CallError {
        let mut near: Vec<(usize, &str)> = self
            .tools
            .iter()
            .map(|(name, _)| (distance(tool, name), name.as_str()))
            .collect();
        near.sort();
        let names: Vec<&str> = near.iter().take(NEAREST).map(|(_, name)| *name).collect();
        let shown: String = tool.chars().take(80).collect();
        let error = CallError::new(
            ErrorCode::MethodNotFound,
            format!("there is no tool `{shown}`"),
        );
        match names.is_empty() {
            true => error.hint("answer without tools"),
            false => error.hint(format!("the nearest are {}", names.join(", "))),
        }
    }
}

/// How little two names have in common: letters of either that the other has not.
fn distance(a: &str, b: &str) -> usize {
    let lacks = |a: &str, b: &str| a.chars().filter(|letter| !b.contains(*letter)).count();
    lacks(a, b) + lacks(b, a)
}

/// A tool's name has no dot, because models do not allow one.
fn tool_name(method: &MethodDescriptor) -> String {
    method.name.as_str().replace('.', "_")
}
