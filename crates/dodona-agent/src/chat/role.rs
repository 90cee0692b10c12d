//! The agent that answers a query, and its tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use dodona_llm::Model;
use dodona_plugin::{CallCtx, CallError, TrustedFolder};

use super::inherited::InheritedByCall;
use crate::agent::Agent;
use crate::conversation::{DEFAULT_AGENT, TOKEN_BUDGETS};
use crate::definition::{Definition, in_scope};
use crate::prompt::{ORACLE, Variables};

/// The agent that answers a query.
#[derive(Debug, Clone)]
pub(crate) struct Role {
    /// Absent for the main agent.
    definition: Option<Arc<Definition>>,
    /// The tools of the agent that delegated to this one, which is an upper bound.
    limit: Option<Arc<BTreeSet<String>>>,
}

impl Role {
    /// The main agent.
    pub(crate) fn main() -> Self {
        Self {
            definition: None,
            limit: None,
        }
    }

    /// An agent with a definition.
    pub(crate) fn of(definition: Definition) -> Self {
        Self {
            definition: Some(Arc::new(definition)),
            limit: None,
        }
    }

    /// The agent of that name.
    pub(crate) async fn find(agent: &Agent, ctx: &CallCtx, name: &str) -> Result<Self, CallError> {
        if name == DEFAULT_AGENT {
            return Ok(Self::main());
        }
        let project = agent.brought(ctx, TrustedFolder::Agents).await;
        Ok(Self::of(agent.definitions.get(name, &project)?))
    }

    /// The same agent with no tools beyond these.
    #[must_use]
    pub(crate) fn within(mut self, limit: Option<Arc<BTreeSet<String>>>) -> Self {
        self.limit = limit;
        self
    }

    pub(crate) fn name(&self) -> &str {
        match &self.definition {
            Some(definition) => &definition.name,
            None => DEFAULT_AGENT,
        }
    }

    /// The name on the paths of its calls. A part of a path starts with a letter.
    pub(crate) fn path_name(&self) -> String {
        let name = self.name();
        match name.starts_with(|first: char| first.is_ascii_lowercase()) {
            true => name.to_owned(),
            false => format!("agent-{name}"),
        }
    }

    pub(crate) fn is_main(&self) -> bool {
        self.definition.is_none()
    }

    /// The model that its definition or the settings name.
    pub(crate) fn model(&self) -> Option<&str> {
        self.definition.as_ref()?.model.as_deref()
    }

    /// The token budget of a new conversation: that of the definition or the settings, else half of
    /// the model's window. The other half is for the system prompt, the tools and the answer.
    pub(crate) fn token_budget(&self, agent: &Agent, model: &Arc<dyn Model>) -> Option<u64> {
        let own = self.definition.as_ref().and_then(|own| own.token_budget);
        let window = model.context_window().map(u64::from);
        let half =
            window.map(|tokens| (tokens / 2).clamp(*TOKEN_BUDGETS.start(), *TOKEN_BUDGETS.end()));
        own.or(agent.options.token_budget).or(half)
    }

    /// Whether it may use a tool with this scope.
    pub(super) fn may_use(&self, tool: &str, scope: &[String]) -> bool {
        self.is_within_limit(tool)
            && match &self.definition {
                Some(definition) => definition.may_use(tool, scope),
                None => in_scope(scope, DEFAULT_AGENT),
            }
    }

    /// Whether a plugin may offer it a tool whose scope does not include it.
    pub(super) fn may_be_offered(&self, tool: &str) -> bool {
        self.is_within_limit(tool)
            && (self.definition.as_ref()).is_none_or(|definition| definition.names(tool))
    }

    fn is_within_limit(&self, tool: &str) -> bool {
        self.limit.as_ref().is_none_or(|limit| limit.contains(tool))
    }

    pub(super) fn max_turns(&self, agent: &Agent) -> u32 {
        match &self.definition {
            Some(definition) => definition.max_turns,
            None => agent.options.max_turns,
        }
    }

    /// The key that raises the number of turns, for a hint.
    pub(super) fn max_turns_setting(&self) -> String {
        match &self.definition {
            Some(definition) => format!("`max_turns` in {}", definition.path),
            None => "`agent.max_turns`".to_owned(),
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

/// The tools of the agents that are at work, by the call each works in. An agent that delegates
/// passes on no more than it has.
pub(crate) type Delegations = InheritedByCall<BTreeSet<String>>;
