//! The tools a model is offered.

use std::collections::BTreeSet;
use std::sync::Arc;

use dodona_llm::ToolOffer;
use dodona_plugin::hooks::Hooks;
use dodona_plugin::hooks::point::ToolRegistryBuild;
use dodona_plugin::{CallCtx, CallError, ErrorCode};
use dodona_proto::hook::{ToolAddition, ToolTable};
use dodona_proto::{MethodDescriptor, PluginEffect};

use super::role::Role;

/// How many names are told to a model that asked for a tool there is not.
const NEAREST: usize = 3;

/// What a model may ask for, and which method each is.
pub(super) struct Toolbox {
    tools: Vec<Tool>,
    /// Who it is for.
    agent: String,
    /// Tools that there are, and that are not for this agent.
    withheld: BTreeSet<String>,
    /// What plugins want done that were asked for tools.
    effects: Vec<PluginEffect>,
}

struct Tool {
    /// On the model's side.
    name: String,
    method: Arc<MethodDescriptor>,
    /// What the model is told about it, where that is not the method's own text.
    description: Option<String>,
}

impl Toolbox {
    /// Every method that is marked as a tool for this agent and that the user may call, and what
    /// plugins add, in the order of their names; none where they are not wanted. An agent that is
    /// delegated to has those of its definition that there are, and no others.
    pub(super) async fn load(ctx: &CallCtx, wanted: bool, hooks: &Hooks, role: &Role) -> Self {
        let mut toolbox = Self {
            tools: Vec::new(),
            agent: role.name().to_owned(),
            withheld: BTreeSet::new(),
            effects: Vec::new(),
        };
        if !wanted {
            return toolbox;
        }
        let known = ctx.methods();
        let is_offered = |method: &Arc<MethodDescriptor>| {
            let tool = method.tool.as_ref();
            tool.is_some_and(|tool| role.may_use(&tool_name(method), &tool.agents))
        };
        let mut tools: Vec<Tool> = known
            .iter()
            .filter(|method| is_offered(method))
            .map(|method| Tool::new(method, None))
            .collect();
        let (additions, effects) = added(role.name(), &tools, hooks).await;
        toolbox.effects = effects;
        for addition in additions {
            if role.may_be_offered(&addition.method.as_str().replace('.', "_")) {
                add(&mut tools, &known, addition);
            }
        }
        // The same tools in another order would be another prompt to a provider's cache.
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let marked = known.iter().filter(|method| method.tool.is_some());
        toolbox.withheld = marked.map(|method| tool_name(method)).collect();
        for tool in &tools {
            toolbox.withheld.remove(&tool.name);
        }
        toolbox.tools = tools;
        toolbox
    }

    /// Takes what plugins want done. Who only looks at a prompt leaves it.
    pub(super) fn take_effects(&mut self) -> Vec<PluginEffect> {
        std::mem::take(&mut self.effects)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    pub(super) fn offers(&self) -> Vec<ToolOffer> {
        let offer = |tool: &Tool| ToolOffer {
            name: tool.name.clone(),
            description: (tool.description.clone())
                .unwrap_or_else(|| tool.method.description.clone()),
            parameters: tool.method.params.clone(),
        };
        self.tools.iter().map(offer).collect()
    }

    /// The names on the model's side.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    /// The method behind a tool's name.
    pub(super) fn method(&self, tool: &str) -> Option<&MethodDescriptor> {
        let found = self.tools.iter().find(|known| known.name == tool);
        found.map(|known| known.method.as_ref())
    }

    /// What a model is told that asked for a tool there is not, or that is not for it.
    pub(super) fn unknown(&self, tool: &str) -> CallError {
        if self.withheld.contains(tool) {
            let message = format!("the agent `{}` may not use `{tool}`", self.agent);
            return CallError::new(ErrorCode::Denied, message).hint("use the tools you are given");
        }
        let mut near: Vec<(usize, &str)> = self
            .tools
            .iter()
            .map(|known| (distance(tool, &known.name), known.name.as_str()))
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

impl Tool {
    fn new(method: &Arc<MethodDescriptor>, description: Option<String>) -> Self {
        Self {
            name: tool_name(method),
            method: Arc::clone(method),
            description,
        }
    }
}

/// What plugins add, and what else they want.
async fn added(
    agent: &str,
    tools: &[Tool],
    hooks: &Hooks,
) -> (Vec<ToolAddition>, Vec<PluginEffect>) {
    let table = || ToolTable {
        agent: agent.to_owned(),
        methods: tools.iter().map(|tool| tool.method.name.clone()).collect(),
        added: Vec::new(),
    };
    match hooks.fire_with::<ToolRegistryBuild>(table).await {
        Some(fired) => (fired.payload.added, fired.effects),
        None => (Vec::new(), Vec::new()),
    }
}

/// Adds a tool. It must be marked as one, for whichever agent: only those pass the gates.
fn add(tools: &mut Vec<Tool>, known: &[Arc<MethodDescriptor>], addition: ToolAddition) {
    let ToolAddition {
        method,
        description,
    } = addition;
    let found = known.iter().find(|known| known.name == method);
    let Some(found) = found.filter(|found| found.tool.is_some()) else {
        tracing::warn!(%method, "a plugin offers a tool that is not there or is not marked as one");
        return;
    };
    match tools.iter_mut().find(|tool| tool.method.name == method) {
        Some(tool) => tool.description = description.or(tool.description.take()),
        None => tools.push(Tool::new(found, description)),
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
