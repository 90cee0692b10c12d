//! The tools a model is offered.

use std::collections::BTreeSet;
use std::sync::Arc;

use dodona_llm::ToolOffer;
use dodona_plugin::hooks::Hooks;
use dodona_plugin::hooks::point::ToolRegistryBuild;
use dodona_plugin::{CallCtx, CallError, ErrorCode};
use dodona_proto::hook::{ToolAddition, ToolTable};
use dodona_proto::{Message, MethodDescriptor, PluginEffect, ToolCall};
use serde_json::{Map, Value, json};

use super::role::Role;
use super::schema;

/// What finds tools that are not offered.
pub(super) const SEARCH: &str = "tools.search";

/// The same on the model's side.
pub(super) const SEARCH_TOOL: &str = "tools_search";

/// What calls a tool that is not offered, on the model's side.
pub(super) const CALL_TOOL: &str = "tools_call";

/// Methods that every agent may use, with their names as tools: finding and calling its tools, and
/// reading the rest of a result that was cut.
const FOR_EVERY_AGENT: [(&str, &str); 3] = [
    (SEARCH, SEARCH_TOOL),
    ("tools.call", CALL_TOOL),
    ("agent.result", "agent_result"),
];

/// The plugin for trying things out. Its methods are of no use to a model.
const NOT_OFFERED: &str = "echo";

/// How many names are told to a model that asked for a tool there is not.
const NEAREST: usize = 3;

/// What a model may ask for, and which method each is.
pub(crate) struct Toolbox {
    pub(super) tools: Vec<Tool>,
    /// Who it is for.
    agent: String,
    /// Tools that there are, and that are not for this agent.
    withheld: BTreeSet<String>,
    /// What plugins want done that were asked for tools.
    effects: Vec<PluginEffect>,
}

/// One of them.
pub(crate) struct Tool {
    /// On the model's side.
    pub(crate) name: String,
    pub(crate) method: Arc<MethodDescriptor>,
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
            let tool = tool.filter(|_| method.name.plugin() != NOT_OFFERED);
            tool.is_some_and(|tool| role.may_use(&tool_name(method), &tool.agents))
        };
        let mut tools: Vec<Tool> = known
            .iter()
            .filter(|method| is_offered(method))
            .map(|method| Tool::new(method, None))
            .collect();
        let (additions, effects) = added(ctx, role.name(), &tools, hooks).await;
        toolbox.effects = effects;
        for addition in additions {
            if role.may_be_offered(&addition.method.as_str().replace('.', "_")) {
                add(&mut tools, &known, addition);
            }
        }
        // They give an agent nothing that it may not use or has not asked for, so that every agent
        // may use them.
        for (method, name) in FOR_EVERY_AGENT {
            let known = known.iter().find(|known| known.name.as_str() == method);
            if let Some(known) = known.filter(|_| tools.iter().all(|tool| tool.name != name)) {
                tools.push(Tool::new(known, None));
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

    /// Every tool that the user may call, whichever agent it is for.
    pub(crate) fn of_user(ctx: &CallCtx) -> Self {
        let known = ctx.methods();
        let marked = known.iter().filter(|method| method.tool.is_some());
        Self {
            tools: marked.map(|method| Tool::new(method, None)).collect(),
            agent: String::new(),
            withheld: BTreeSet::new(),
            effects: Vec::new(),
        }
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        let serves_others =
            |tool: &Tool| FOR_EVERY_AGENT.iter().any(|(_, name)| tool.name == *name);
        self.tools.iter().all(serves_others)
    }

    /// All of them.
    pub(crate) fn tools(&self) -> &[Tool] {
        &self.tools
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

    /// The tool call that a call of `tools_call` stands for. The rest of the loop, the record, the
    /// gates and the readers see the tool itself.
    pub(super) fn unwrap_call(&self, call: ToolCall) -> ToolCall {
        let (true, Some(name)) = (call.name == CALL_TOOL, call.arguments["name"].as_str()) else {
            return call;
        };
        let arguments = match &call.arguments["arguments"] {
            Value::Null => Value::Object(Map::new()),
            // Models are known to write JSON into a string.
            Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
            other => other.clone(),
        };
        ToolCall {
            name: name.replace('.', "_"),
            arguments,
            id: call.id,
        }
    }

    /// Messages as the model wrote them: calls of tools that are not offered become calls of
    /// `tools_call`.
    pub(super) fn wrap_calls(&self, messages: &mut [Message], offered: &[ToolOffer]) {
        let is_offered = |name: &str| offered.iter().any(|tool| tool.name == name);
        if !is_offered(CALL_TOOL) {
            return;
        }
        for message in messages {
            let Message::Assistant { tool_calls, .. } = message else {
                continue;
            };
            for call in tool_calls {
                if !is_offered(&call.name) && self.method(&call.name).is_some() {
                    call.arguments = json!({ "name": call.name, "arguments": call.arguments });
                    CALL_TOOL.clone_into(&mut call.name);
                }
            }
        }
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
    /// What a model is told about it.
    pub(crate) fn description(&self) -> &str {
        (self.description.as_deref()).unwrap_or(&self.method.description)
    }

    /// As a model is offered it.
    pub(super) fn offer(&self) -> ToolOffer {
        ToolOffer {
            name: self.name.clone(),
            description: self.description().to_owned(),
            parameters: schema::for_model(&self.method.params),
        }
    }

    /// Whether a plugin has something of its own to say about it.
    pub(super) fn is_described(&self) -> bool {
        self.description.is_some()
    }

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
    ctx: &CallCtx,
    agent: &str,
    tools: &[Tool],
    hooks: &Hooks,
) -> (Vec<ToolAddition>, Vec<PluginEffect>) {
    let table = || ToolTable {
        agent: agent.to_owned(),
        user: ctx.principal.user.clone(),
        project: ctx.project.as_ref().map(|project| project.id.clone()),
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
