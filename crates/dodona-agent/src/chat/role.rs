//! Who answers: the main agent, or one that it delegates to.

use std::collections::BTreeSet;
use std::sync::Arc;

use dodona_plugin::{CallCtx, CallError, TrustedFolder};

use super::below::Below;
use crate::agent::Agent;
use crate::conversation::DEFAULT_AGENT;
use crate::definition::Definition;
use crate::prompt::{ORACLE, Variables};

/// An agent, as a query is answered by it.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    definition: Option<Arc<Definition>>,
    /// The tools it may use, by their names on the model's side; those that name it without.
    tools: Option<Arc<BTreeSet<String>>>,
}

impl Role {
    /// The main agent.
    pub(crate) fn main() -> Self {
        Self {
            definition: None,
            tools: None,
        }
    }

    /// One that is delegated to, with no more tools than the one above it has.
    pub(crate) fn of(definition: Definition, above: Option<&BTreeSet<String>>) -> Self {
        let mut tools = definition.allowed_tools.clone();
        if let Some(above) = above {
            tools.retain(|tool| above.contains(tool));
        }
        Self {
            definition: Some(Arc::new(definition)),
            tools: Some(Arc::new(tools)),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match &self.definition {
            Some(definition) => &definition.name,
            None => DEFAULT_AGENT,
        }
    }

    pub(crate) fn is_main(&self) -> bool {
        self.definition.is_none()
    }

    /// Whether it may use a tool, which names the agents it is meant for.
    pub(super) fn may_use(&self, tool: &str, agents: &[String]) -> bool {
        match &self.tools {
            Some(tools) => tools.contains(tool),
            None => agents.iter().any(|agent| agent == DEFAULT_AGENT),
        }
    }

    /// Whether a plugin may offer it a tool that does not name it.
    pub(super) fn may_be_offered(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }

    pub(crate) fn tools(&self) -> Option<Arc<BTreeSet<String>>> {
        self.tools.clone()
    }

    pub(super) fn max_turns(&self, agent: &Agent) -> u32 {
        match &self.definition {
            Some(definition) => definition.max_turns,
            None => agent.options.max_turns,
        }
    }

    pub(super) async fn prompt(
        &self,
        agent: &Agent,
        ctx: &CallCtx,
        variables: &Variables<'_>,
    ) -> Result<String, CallError> {
        if let Some(definition) = &self.definition {
            return definition.prompt(variables);
        }
        let project = agent.brought(ctx, TrustedFolder::Prompts).await;
        agent.prompts.render(ORACLE, &project, variables)
    }
}

/// The tools of the agents that are at work below calls: whoever delegates further passes on no
/// more than it has.
pub(crate) type Delegations = Below<BTreeSet<String>>;
