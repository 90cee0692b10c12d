//! Which of its tools a model is told of.
//!
//! What a tool takes in a prompt is the same whether it is used or not. Above a limit a model is
//! therefore told of a few, and of `tools.search`; what that finds is added at the end, so that what
//! providers have cached of a prompt stays what it is. Tools that are not told of can be called all
//! the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use dodona_llm::{Model, ToolOffer};
use dodona_proto::{MethodDescriptor, ToolCall};
use serde_json::Value;

use super::QueryRun;
use super::ending::QueryError;
use super::tools::{SEARCH, SEARCH_TOOL, Tool, Toolbox};
use crate::conversation::ToolsTold;

/// What is told of in any case, where there is too much: whoever answers begins with these.
const CORE: &[&str] = &[
    "code_find_definition",
    "code_log",
    "code_read",
    "code_search",
    "search_query",
    "thread_seek",
    "vault_read",
    "vault_search",
];

/// Whose tools are about the conversation itself.
const OWN: &str = "agent";

/// How many counts are kept.
const MOST_COUNTED: usize = 4_096;

/// The tools that a model is told of, in the order in which it is.
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
    /// All of them, if there are no more than the limit; otherwise the core, and what was found
    /// before, of which the latest count where that is too much as well.
    pub(super) fn of(toolbox: &Toolbox, limit: usize, found: &[String]) -> Self {
        let tools = toolbox.tools();
        let can_search = toolbox.method(SEARCH_TOOL).is_some();
        let known = tools.len() - usize::from(can_search);
        let is_partial = can_search && known > limit;
        let is_told = |tool: &Tool| match is_partial {
            true => is_core(tool),
            false => tool.name != SEARCH_TOOL,
        };
        let mut choice = Self {
            told: (0..tools.len())
                .filter(|place| is_told(&tools[*place]))
                .collect(),
            saved: 0,
            known,
        };
        if is_partial {
            choice.add(toolbox, &found[found.len().saturating_sub(limit)..]);
        }
        choice
    }

    /// Tells of further tools, after all others. Answers which of them are new.
    pub(super) fn add(&mut self, toolbox: &Toolbox, names: &[String]) -> Vec<usize> {
        let place = |name: &String| {
            let mut tools = toolbox.tools().iter();
            tools.position(|tool| tool.name == *name)
        };
        let mut new: Vec<usize> = Vec::new();
        for place in names.iter().filter_map(place) {
            if !self.told.contains(&place) {
                self.told.push(place);
                new.push(place);
            }
        }
        new
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
            .filter(|tool| tool.name != SEARCH_TOOL)
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

/// A plugin that describes a tool to this agent wants it to be told of.
fn is_core(tool: &Tool) -> bool {
    tool.name == SEARCH_TOOL
        || tool.is_described()
        || tool.method.name.plugin() == OWN
        || CORE.contains(&tool.name.as_str())
}

impl QueryRun<'_> {
    /// The names of tools that a call has found; none if it was another call.
    pub(super) fn found_by(&self, call: &ToolCall, result: &Value) -> Vec<String> {
        let method = self.toolbox.method(&call.name);
        if method.is_none_or(|method| method.name.as_str() != SEARCH) {
            return Vec::new();
        }
        let tools = result["tools"].as_array().into_iter().flatten();
        let names = tools.filter_map(|tool| tool["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// From the next request on the model is told of these too.
    pub(super) async fn tell_of(&mut self, turn: u32, names: &[String]) -> Result<(), QueryError> {
        let toolbox = Arc::clone(&self.toolbox);
        let new = self.choice.add(&toolbox, names);
        if new.is_empty() {
            return Ok(());
        }
        let new = new.into_iter().map(|place| &toolbox.tools()[place]);
        let new: Vec<&Tool> = new.collect();
        for tool in &new {
            let tokens = self.agent.tool_counts.of(tool, &self.model);
            self.choice.saved = self.choice.saved.saturating_sub(tokens);
            self.basis.add(tool.offer(), tokens);
        }
        let names = new.iter().map(|tool| tool.name.clone()).collect();
        Ok(self.query.found_tools(turn, names).await?)
    }
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
