//! Which of its tools a model is offered.
//!
//! A tool takes the same part of a prompt whether it is used or not. Above a limit a model is
//! therefore offered a few, `tools_search` to find the others and `tools_call` to call them. The
//! offered tools stay the same for the whole conversation, so that providers can cache them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dodona_llm::{Model, ToolOffer};
use dodona_proto::MethodDescriptor;

use super::role::Role;
use super::tools::{CALL_TOOL, SEARCH_TOOL, Tool, Toolbox};
use crate::conversation::ToolsTold;

/// What is offered in any case: the tools that most questions need.
const CORE: &[&str] = &[
    "agent_delegate",
    "agent_remember",
    "agent_result",
    "agent_seek",
    "code_find_definition",
    "code_grep",
    "code_read",
    "search_query",
    "vault_list",
    "vault_read",
    "vault_write",
];

/// The author of an agent has chosen its tools, so that up to this many are always offered.
const DEFINED_LIMIT: usize = 20;

/// How many counts are kept.
const MOST_COUNTED: usize = 4_096;

/// The tools that a model is offered, in order.
#[derive(Default)]
pub(super) struct Choice {
    /// Places in the toolbox.
    told: Vec<usize>,
    /// How many tokens the others would take.
    saved: u64,
    /// How many there are in all.
    known: usize,
}

impl Choice {
    /// All tools if there are no more than the limit, otherwise the core.
    pub(super) fn of(toolbox: &Toolbox, limit: usize, role: &Role) -> Self {
        let limit = match role.is_main() {
            true => limit,
            false => limit.max(DEFINED_LIMIT),
        };
        let tools = toolbox.tools();
        let can_search = toolbox.method(SEARCH_TOOL).is_some();
        let known = tools.iter().filter(|tool| !finds_others(tool)).count();
        let is_partial = can_search && known > limit;
        let is_told = |tool: &Tool| match is_partial {
            true => is_core(tool),
            false => !finds_others(tool),
        };
        Self {
            told: (0..tools.len())
                .filter(|place| is_told(&tools[*place]))
                .collect(),
            saved: 0,
            known,
        }
    }

    /// What the model is told.
    pub(super) fn offers(&self, toolbox: &Toolbox) -> Vec<ToolOffer> {
        let tools = toolbox.tools();
        self.told
            .iter()
            .map(|place| tools[*place].offer())
            .collect()
    }

    /// How many tokens that takes.
    pub(super) fn tokens(
        &self,
        toolbox: &Toolbox,
        model: &Arc<dyn Model>,
        counts: &ToolCounts,
    ) -> u64 {
        let told = self.told.iter().map(|place| &toolbox.tools()[*place]);
        told.map(|tool| counts.of(tool, model)).sum()
    }

    /// Counts what the model is not told.
    pub(super) fn count(&mut self, toolbox: &Toolbox, model: &Arc<dyn Model>, counts: &ToolCounts) {
        let untold = |place: &usize| !self.told.contains(place);
        let tools = toolbox.tools();
        let untold = (0..tools.len()).filter(untold).map(|place| &tools[place]);
        self.saved = untold
            .filter(|tool| !finds_others(tool))
            .map(|tool| counts.of(tool, model))
            .sum();
    }

    /// What is recorded of it.
    pub(super) fn told(&self) -> ToolsTold {
        ToolsTold {
            told: self.told.len(),
            known: self.known,
            saved: self.saved,
        }
    }
}

/// A plugin that describes a tool to this agent wants it to be offered.
fn is_core(tool: &Tool) -> bool {
    finds_others(tool) || tool.is_described() || CORE.contains(&tool.name.as_str())
}

/// Whether a tool is there for tools that are not offered.
fn finds_others(tool: &Tool) -> bool {
    [SEARCH_TOOL, CALL_TOOL].contains(&tool.name.as_str())
}

/// How many tokens tools take. To count takes longer than everything else that is done with a tool
/// before a request, and a tool stays the same for as long as its plugin does.
#[derive(Default)]
pub(crate) struct ToolCounts(Mutex<HashMap<(String, usize), Counted>>);

/// A descriptor is known again by its place, which is its own for as long as this holds it.
struct Counted {
    _method: Arc<MethodDescriptor>,
    tokens: u64,
}

impl ToolCounts {
    pub(super) fn of(&self, tool: &Tool, model: &Arc<dyn Model>) -> u64 {
        let count = || model.counter().count_tool(&tool.offer()) as u64;
        if tool.is_described() {
            return count();
        }
        let key = (model.name().to_owned(), Arc::as_ptr(&tool.method).addr());
        let known = |counts: &HashMap<_, Counted>| counts.get(&key).map(|known| known.tokens);
        if let Some(tokens) = known(&self.lock()) {
            return tokens;
        }
        let counted = Counted {
            _method: Arc::clone(&tool.method),
            tokens: count(),
        };
        let tokens = counted.tokens;
        let mut counts = self.lock();
        if counts.len() >= MOST_COUNTED {
            counts.clear();
        }
        counts.insert(key, counted);
        tokens
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, usize), Counted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
