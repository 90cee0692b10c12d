//! Who answers: the main agent, or one that it delegates to.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use dodona_plugin::CallError;
use dodona_proto::CallId;

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

    pub(super) fn prompt(
        &self,
        agent: &Agent,
        variables: &Variables<'_>,
    ) -> Result<String, CallError> {
        match &self.definition {
            Some(definition) => definition.prompt(variables),
            None => agent.prompts.render(ORACLE, variables),
        }
    }
}

/// The tools of the agents that are at work below calls: whoever delegates further passes on no
/// more than it has.
#[derive(Clone, Default)]
pub(crate) struct Delegations(Arc<Mutex<HashMap<CallId, Arc<BTreeSet<String>>>>>);

/// An agent at work; no longer when it is dropped.
pub(crate) struct Delegated {
    all: Delegations,
    call: CallId,
}

impl Delegations {
    pub(crate) fn enter(&self, call: &CallId, tools: Arc<BTreeSet<String>>) -> Delegated {
        self.with(|known| known.insert(*call, tools));
        Delegated {
            all: self.clone(),
            call: *call,
        }
    }

    /// The tools of the nearest agent above a call, and how many agents are above it.
    pub(crate) fn above(&self, call: &CallId) -> (Option<Arc<BTreeSet<String>>>, usize) {
        self.with(|known| {
            let within = known.iter().filter(|(above, _)| call.is_within(above));
            let depth = within.clone().count();
            let nearest = within.max_by_key(|(above, _)| above.depth());
            (nearest.map(|(_, tools)| Arc::clone(tools)), depth)
        })
    }

    fn with<R>(&self, work: impl FnOnce(&mut HashMap<CallId, Arc<BTreeSet<String>>>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        self.all.with(|known| known.remove(&self.call));
    }
}
