//! The context of a rule: a read-only snapshot shared by conditions, scripts and templates.
//!
//! [`RuleContext`] is created once per event and plugin and is cheap to clone: the [`Facts`] are shared by all
//! rules, state and settings belong to the rule's plugin. Conditions read it by slots, scripts and templates by
//! name, without copies.

mod expression;
mod facts;
mod functions;
mod json;
mod occurrence;
mod record;
mod script;
mod state;
mod template;

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

pub use facts::{CallFacts, Data, EventFacts, Facts, History, Party, ResultFacts, Turn};
pub use occurrence::Occurrence;
pub(crate) use script::host;
pub(crate) use template::Page;

use state::StateView;

use crate::format::Trigger;

/// What a rule can read.
#[derive(Debug, Clone)]
pub struct RuleContext {
    facts: Arc<Facts>,
    state: StateView,
    settings: Arc<Value>,
    project_states: ProjectStates,
}

/// State set by the rules of projects, by project. A rule must name a project to read its state, so that a
/// project cannot influence other rules.
#[derive(Debug, Clone)]
enum ProjectStates {
    /// No project's state is read.
    None,
    /// The state of the event's project.
    OfEvent(Arc<Value>),
    /// States as the test of a rule has them, an object by project.
    Given(Arc<Value>),
}

static EMPTY: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(Value::Object(Map::new())));

/// An object without members, shared.
pub(crate) fn empty() -> Arc<Value> {
    Arc::clone(&EMPTY)
}

impl RuleContext {
    /// A context for a plugin without state and settings.
    pub fn new(facts: Arc<Facts>) -> Self {
        Self {
            facts,
            state: StateView::new(empty()),
            settings: empty(),
            project_states: ProjectStates::None,
        }
    }

    /// Adds the state set by the rules of the event's project, an object.
    #[must_use]
    pub fn with_project_state(mut self, state: Arc<Value>) -> Self {
        self.project_states = ProjectStates::OfEvent(state);
        self
    }

    /// The context of a plugin, with its state and settings, both objects.
    #[must_use]
    pub fn of_plugin(&self, state: Arc<Value>, settings: Arc<Value>) -> Self {
        Self {
            facts: Arc::clone(&self.facts),
            state: StateView::new(state),
            settings,
            project_states: self.project_states.clone(),
        }
    }

    /// The state set by the rules of a project; empty for other projects than that of the event.
    fn project_state(&self, project: &str) -> &Value {
        let state = match &self.project_states {
            ProjectStates::OfEvent(state) if self.facts.project.id == project => Some(&**state),
            ProjectStates::OfEvent(_) | ProjectStates::None => None,
            ProjectStates::Given(states) => states.get(project),
        };
        state.unwrap_or(&EMPTY)
    }

    /// The data shared by all rules.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The state of the rule's plugin.
    pub fn state(&self) -> &Value {
        self.state.json()
    }

    /// The settings of the rule's plugin.
    pub fn settings(&self) -> &Value {
        &self.settings
    }
}

/// The schema of the context at a trigger. Slots and functions have the same numbers at all triggers.
pub fn schema(trigger: Trigger) -> &'static dodona_expr::Schema {
    static SCHEMAS: LazyLock<[dodona_expr::Schema; 7]> = LazyLock::new(|| {
        let whole = dodona_expr::Schema::parse(dodona_proto::RULE_CONTEXT)
            .expect("the shape of a rule's context is tested");
        Trigger::ALL.map(|trigger| whole.at(trigger.as_str()))
    });
    &SCHEMAS[trigger.index()]
}
