//! What a rule sees: the read-only snapshot that conditions, scripts and templates share.
//!
//! [`RuleContext`] is made once for an event and is cheap to clone: the [`Facts`] of the event are
//! the same for all rules, the state and the settings those of a rule's plugin. Conditions read it
//! by slots, scripts and templates by names; none of them makes a copy.

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

/// What a rule sees.
#[derive(Debug, Clone)]
pub struct RuleContext {
    facts: Arc<Facts>,
    state: StateView,
    settings: Arc<Value>,
    project_states: ProjectStates,
}

/// What the rules of projects have set, by project. Rules must name a project to read it, so that a
/// project cannot change what rules decide that do not trust it with that.
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
    /// An event's facts, for a plugin that has neither state nor settings.
    pub fn new(facts: Arc<Facts>) -> Self {
        Self {
            facts,
            state: StateView::new(empty()),
            settings: empty(),
            project_states: ProjectStates::None,
        }
    }

    /// The same with what the rules of the event's project have set, an object.
    #[must_use]
    pub fn with_project_state(mut self, state: Arc<Value>) -> Self {
        self.project_states = ProjectStates::OfEvent(state);
        self
    }

    /// The same for a plugin: its state and its settings, both objects.
    #[must_use]
    pub fn of_plugin(&self, state: Arc<Value>, settings: Arc<Value>) -> Self {
        Self {
            facts: Arc::clone(&self.facts),
            state: StateView::new(state),
            settings,
            project_states: self.project_states.clone(),
        }
    }

    /// What the rules of a project have set; empty for a project that the event is not about.
    fn project_state(&self, project: &str) -> &Value {
        let state = match &self.project_states {
            ProjectStates::OfEvent(state) if self.facts.project.id == project => Some(&**state),
            ProjectStates::OfEvent(_) | ProjectStates::None => None,
            ProjectStates::Given(states) => states.get(project),
        };
        state.unwrap_or(&EMPTY)
    }

    /// What is the same for all rules.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What the rule's plugin remembers.
    pub fn state(&self) -> &Value {
        self.state.json()
    }

    /// The settings of the rule's plugin.
    pub fn settings(&self) -> &Value {
        &self.settings
    }
}

/// The vocabulary of rules at a trigger, for which conditions are compiled. Slots and functions
/// have the same numbers at all triggers.
pub fn schema(trigger: Trigger) -> &'static dodona_expr::Schema {
    static SCHEMAS: LazyLock<[dodona_expr::Schema; 7]> = LazyLock::new(|| {
        let whole = dodona_expr::Schema::parse(dodona_proto::RULE_CONTEXT)
            .expect("the shape of a rule's context is tested");
        Trigger::ALL.map(|trigger| whole.at(trigger.as_str()))
    });
    &SCHEMAS[trigger.index()]
}
