//! Evaluating a rule set for one event after the other.

use std::collections::HashMap;
use std::ops::BitOr;
use std::sync::Arc;

use dodona_plugin::store::journal::RecordedEvent;
use dodona_proto::{Effect, PluginName};
use dodona_script::Engine;
use serde_json::{Map, Value};

use super::Gap;
use super::decode::{self, Body, Unreadable};
use super::messages::Messages;
use super::past::Past;
use crate::compile::{CompiledRule, project_rules};
use crate::context::{Facts, RuleContext, empty};
use crate::evaluate::{Decision, Limiter, RuleResult, TriggerEvaluation};
use crate::format::Trigger;
use crate::load::RuleSet;
use crate::reads::Reads;

/// The input of a replay.
#[derive(Clone)]
pub struct Setup<'r> {
    pub rules: &'r RuleSet,
    pub scripts: &'r Engine,
    /// The settings of the plugins that own the rules.
    pub settings: HashMap<PluginName, Arc<Value>>,
    /// The current settings of the user.
    pub user_settings: Arc<Value>,
    /// The current settings of the project.
    pub project_settings: Arc<Value>,
    /// Whether a rule is not evaluated.
    pub is_disabled: &'r (dyn Fn(&CompiledRule) -> bool + Send + Sync),
}

/// A replay of the journal with a rule set.
pub struct Replay<'r> {
    setup: Setup<'r>,
    limiter: Limiter,
    /// By project and plugin.
    states: HashMap<(String, PluginName), Arc<Value>>,
    past: Past,
    messages: Arc<Messages>,
    /// What the rules of each trigger read, and whether a rule reads earlier tool calls.
    reads: [Reads; 7],
    needs_past: bool,
    /// The namespace of a project's own rules.
    project_rules: PluginName,
}

/// The result of one event.
#[derive(Debug, Default)]
pub struct Step {
    /// The trigger of the event.
    pub trigger: Option<Trigger>,
    /// The facts; `None` if no rule was evaluated.
    pub facts: Option<Arc<Facts>>,
    /// The results of rules that fired, were suppressed or failed.
    pub answers: Vec<RuleResult>,
    /// The rules that were not evaluated, with the reason.
    pub gaps: Vec<(Arc<CompiledRule>, Gap)>,
}

impl<'r> Replay<'r> {
    /// Starts with empty state and without cooldowns.
    pub fn new(setup: Setup<'r>) -> Self {
        let reads = Trigger::ALL.map(|trigger| {
            let asked = setup.rules.at(trigger).rules().map(|rule| rule.reads);
            asked.fold(Reads::none(), Reads::bitor)
        });
        Self {
            needs_past: reads.iter().any(|reads| reads.any(Reads::TOOLS)),
            setup,
            limiter: Limiter::new(),
            states: HashMap::new(),
            past: Past::default(),
            messages: Arc::default(),
            reads,
            project_rules: project_rules(),
        }
    }

    /// Sets the messages for the next events. Replaces earlier ones.
    pub fn bring(&mut self, messages: Arc<Messages>) {
        self.messages = messages;
    }

    /// Evaluates the rules for the next event.
    ///
    /// # Errors
    ///
    /// If the event has an unknown format. Later events can still be evaluated.
    pub fn event(&mut self, event: &RecordedEvent) -> Result<Step, Unreadable> {
        let Some(trigger) = Trigger::of_event(&event.kind) else {
            return Ok(Step::default());
        };
        let nobody = self.setup.rules.at(trigger).is_empty();
        if nobody && trigger != Trigger::OnSessionEnd && !self.needs_past {
            return Ok(Step {
                trigger: Some(trigger),
                ..Step::default()
            });
        }
        let body = Body::of(event)?;
        let step = self.ask(event, &body, trigger);
        let step = step.map_err(|source| decode::unreadable(event, source))?;
        if self.needs_past {
            let noted = self.past.note(event, &body, trigger);
            noted.map_err(|source| decode::unreadable(event, source))?;
        }
        Ok(step)
    }

    fn ask(
        &mut self,
        event: &RecordedEvent,
        body: &Body<'_>,
        trigger: Trigger,
    ) -> Result<Step, serde_json::Error> {
        let (facts, missing) = self.facts(event, body, trigger)?;
        let rules = self.setup.rules.at(trigger);
        let contexts: Vec<RuleContext> = self.contexts(&facts, trigger);
        let gap = |rule: &CompiledRule| Gap::concerning(missing, rule.reads);
        let is_disabled =
            |rule: &CompiledRule| (self.setup.is_disabled)(rule) || gap(rule).is_some();
        let round = TriggerEvaluation {
            rules,
            contexts: &contexts,
            limiter: &self.limiter,
            scripts: self.setup.scripts,
            is_disabled: &is_disabled,
        };
        let answers = round.evaluate();
        let gaps = if missing == Reads::none() {
            Vec::new()
        } else {
            (rules.rules())
                .filter(|rule| !(self.setup.is_disabled)(rule))
                .filter_map(|rule| Some((Arc::clone(rule), gap(rule)?)))
                .collect()
        };
        self.remember(&facts, &answers);
        if trigger == Trigger::OnSessionEnd {
            self.limiter.end_session(&facts);
        }
        Ok(Step {
            trigger: Some(trigger),
            facts: Some(facts),
            answers,
            gaps,
        })
    }

    /// The facts of an event, and what the journal lacks.
    fn facts(
        &self,
        event: &RecordedEvent,
        body: &Body<'_>,
        trigger: Trigger,
    ) -> Result<(Arc<Facts>, Reads), serde_json::Error> {
        let reads = self.reads[trigger as usize];
        let mut facts = decode::facts(event, body, trigger, reads)?;
        facts.user.settings = Arc::clone(&self.setup.user_settings);
        facts.project.settings = Arc::clone(&self.setup.project_settings);
        let mut missing = Reads::none();
        if body.result_bytes.is_some() && body.result.is_none() {
            missing = missing | Reads::RESULT;
        }
        if let Some(snapshot) = &body.snapshot {
            if snapshot.history.message_count > 0 && reads.any(Reads::MESSAGES) {
                match self.messages.then(snapshot) {
                    Some(messages) => facts.history.messages = messages,
                    None => missing = missing | Reads::MESSAGES,
                }
            }
            if reads.any(Reads::TOOLS) {
                match self.past.tools(snapshot) {
                    Some(tools) => facts.history.tools = tools,
                    None => missing = missing | Reads::TOOLS,
                }
            }
        }
        Ok((Arc::new(facts), missing))
    }

    /// One context for the rules of each plugin.
    fn contexts(&self, facts: &Arc<Facts>, trigger: Trigger) -> Vec<RuleContext> {
        let bare = self.bare(facts);
        let plugins = self.setup.rules.at(trigger).plugin_names();
        plugins
            .map(|plugin| bare.of_plugin(self.state(facts, plugin), self.settings_of(plugin)))
            .collect()
    }

    /// The context of a rule for an event, before the event is replayed.
    ///
    /// # Errors
    ///
    /// If the event has an unknown format.
    pub fn context_of(
        &self,
        event: &RecordedEvent,
        rule: &CompiledRule,
    ) -> Result<(RuleContext, Option<Gap>), Unreadable> {
        let body = Body::of(event)?;
        let facts = self.facts(event, &body, rule.rule.trigger);
        let (facts, missing) = facts.map_err(|source| decode::unreadable(event, source))?;
        let plugin = &rule.namespace;
        let (state, settings) = (self.state(&facts, plugin), self.settings_of(plugin));
        let context = self.bare(&facts).of_plugin(state, settings);
        Ok((context, Gap::concerning(missing, rule.reads)))
    }

    /// The context of an event, without a plugin.
    fn bare(&self, facts: &Arc<Facts>) -> RuleContext {
        let state = self.state(facts, &self.project_rules);
        RuleContext::new(Arc::clone(facts)).with_project_state(state)
    }

    fn state(&self, facts: &Facts, plugin: &PluginName) -> Arc<Value> {
        // Of the few plugins and projects there are; a lookup by reference needs no key of its own.
        let found = self
            .states
            .iter()
            .find(|((project, name), _)| *project == facts.project.id && name == plugin);
        found.map_or_else(empty, |(_, state)| Arc::clone(state))
    }

    fn settings_of(&self, plugin: &PluginName) -> Arc<Value> {
        self.setup
            .settings
            .get(plugin)
            .map_or_else(empty, Arc::clone)
    }

    /// Stores the state that rules set, for the next events.
    fn remember(&mut self, facts: &Facts, answers: &[RuleResult]) {
        for answer in answers {
            for decision in &answer.outcome.decisions {
                if let Decision::Effect(Effect::SetState { key, value }) = decision {
                    let owner = (facts.project.id.clone(), answer.rule.namespace.clone());
                    let state = self.states.entry(owner).or_insert_with(empty);
                    if let Value::Object(values) = Arc::make_mut(state) {
                        set(values, key, value);
                    }
                }
            }
        }
    }
}

/// Maximum number of values of a plugin, the same as in the hub.
const MOST_VALUES: usize = 10_000;

fn set(values: &mut Map<String, Value>, key: &str, value: &Value) {
    if values.len() < MOST_VALUES || values.contains_key(key) {
        values.insert(key.to_owned(), value.clone());
    }
}
