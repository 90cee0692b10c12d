//! Rules in order of evaluation.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use dodona_expr::{Expr, ExprSet};
use dodona_proto::{PluginName, Surface};
use dodona_script::Script;
use jiff::Timestamp;

use crate::compile::CompiledRule;
use crate::engine::EventOwner;
use crate::format::{ActionKind, Trigger};
use crate::identity::{RuleKey, Scope};
use crate::load::Inactive;
use crate::load::evaluation_counts::EvaluationCounts;
use crate::reads::Reads;

/// Rules, indexed by trigger. It never changes: another set takes its place.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Arc<CompiledRule>>,
    triggers: [TriggerRules; 7],
    /// Rules that are not evaluated, by label.
    inactive: HashMap<String, Inactive>,
}

/// A rule with its place in the order of evaluation.
#[derive(Debug, Clone)]
pub struct PlacedRule {
    pub rule: Arc<CompiledRule>,
    /// Whether a project provides it: then it is evaluated after all that a project does not.
    pub is_of_project: bool,
    /// Why it is not evaluated.
    pub inactive: Option<Inactive>,
}

/// The rules of one trigger.
#[derive(Debug, Default)]
pub struct TriggerRules {
    /// Higher priority first, ties by id.
    entries: Vec<Entry>,
    /// For each plugin, because state and settings are a plugin's.
    plugins: Vec<PluginRules>,
    /// The place of each, by its name.
    labels: HashMap<String, usize>,
    /// The places of those whose scripts always run.
    always: Vec<usize>,
    has_scripts: bool,
    sets_state: bool,
    reads_project_state: bool,
    rounds: EvaluationCounts,
}

/// How often a rule was evaluated for one owner.
#[derive(Debug)]
pub(crate) struct EvaluationCount<'r> {
    pub(crate) owner: EventOwner,
    pub(crate) rule: &'r Arc<CompiledRule>,
    /// Whether these were tool calls outside of a query.
    pub(crate) is_outside: bool,
    pub(crate) times: u64,
    pub(crate) last: Timestamp,
}

/// The conditions of one plugin's rules, which share what they have in common.
#[derive(Debug)]
pub(crate) struct PluginRules {
    pub(crate) plugin: PluginName,
    pub(crate) expressions: ExprSet,
    /// The place of each expression's rule.
    pub(crate) places: Vec<usize>,
}

/// A rule in its place.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) rule: Arc<CompiledRule>,
    /// Which of the plugins.
    pub(crate) plugin: usize,
    /// Which of the plugin's expressions is its condition, or what its script asks first or asks at
    /// all; none for a script that always runs.
    pub(crate) expression: Option<usize>,
    pub(crate) script: Option<Arc<Script>>,
    /// Whether the expression is all that the script asks: it runs only where that cannot be told.
    pub(crate) is_told: bool,
    /// Whether what it did before may keep it from acting.
    pub(crate) is_limited: bool,
}

impl RuleSet {
    /// Puts rules in order. No two may have the same name.
    pub fn new(rules: Vec<Arc<CompiledRule>>) -> Self {
        let placed = rules.into_iter().map(|rule| PlacedRule {
            is_of_project: rule.origin.scope == Scope::Project,
            inactive: None,
            rule,
        });
        Self::placed(placed.collect())
    }

    /// Puts rules in order: those of the program, the user and the user's plugins first, then those
    /// of the project. Within each, by priority and then by id.
    pub fn placed(mut placed: Vec<PlacedRule>) -> Self {
        placed.sort_by(|a, b| {
            let (one, other) = (&a.rule, &b.rule);
            let order = a.is_of_project.cmp(&b.is_of_project);
            let order = order.then_with(|| other.rule.priority.cmp(&one.rule.priority));
            let by_id =
                || (&one.rule.id, &one.key.plugin).cmp(&(&other.rule.id, &other.key.plugin));
            order.then_with(by_id)
        });
        let inactive = placed.iter().filter_map(|placed| {
            let why = placed.inactive?;
            Some((placed.rule.label.clone(), why))
        });
        let inactive: HashMap<String, Inactive> = inactive.collect();
        let rules: Vec<_> = placed.into_iter().map(|placed| placed.rule).collect();
        let triggers = Trigger::ALL.map(|trigger| {
            let is_evaluated = |rule: &&Arc<CompiledRule>| {
                rule.rule.trigger == trigger
                    && rule.rule.enabled
                    && !inactive.contains_key(&rule.label)
            };
            TriggerRules::new(rules.iter().filter(is_evaluated).cloned().collect())
        });
        Self {
            rules,
            triggers,
            inactive,
        }
    }

    /// Why a rule is not evaluated although its file is valid and enables it.
    pub fn inactive(&self, rule: &CompiledRule) -> Option<Inactive> {
        self.inactive.get(&rule.label).copied()
    }

    /// The rules that may be evaluated: all but the inactive ones.
    pub fn active(&self) -> impl Iterator<Item = &Arc<CompiledRule>> {
        let is_active = |rule: &&Arc<CompiledRule>| self.inactive(rule).is_none();
        self.rules.iter().filter(is_active)
    }

    /// Every rule, those too that are not enabled; higher priority first, ties by id.
    pub fn rules(&self) -> &[Arc<CompiledRule>] {
        &self.rules
    }

    /// A rule by its name.
    pub fn get(&self, key: &RuleKey) -> Option<&Arc<CompiledRule>> {
        self.rules.iter().find(|rule| rule.key == *key)
    }

    /// The rules of a trigger.
    pub fn at(&self, trigger: Trigger) -> &TriggerRules {
        &self.triggers[trigger.index()]
    }
}

impl TriggerRules {
    fn new(rules: Vec<Arc<CompiledRule>>) -> Self {
        let mut conditions: BTreeMap<PluginName, Vec<Expr>> = BTreeMap::new();
        for rule in &rules {
            let expressions = conditions.entry(rule.namespace.clone()).or_default();
            expressions.extend(rule.asked_first().cloned());
        }
        let names: Vec<PluginName> = conditions.keys().cloned().collect();
        let mut counts = vec![0; names.len()];
        let entries = rules.into_iter().map(|rule| {
            let plugin = names.iter().position(|name| *name == rule.namespace);
            let plugin = plugin.expect("every rule's plugin was just counted");
            let expression = rule.asked_first().map(|_| {
                counts[plugin] += 1;
                counts[plugin] - 1
            });
            Entry {
                script: rule.script().cloned(),
                is_told: rule.is_told_by_expression(),
                is_limited: rule.rule.limits.can_suppress(),
                rule,
                plugin,
                expression,
            }
        });
        let entries: Vec<Entry> = entries.collect();
        let places = |number: usize| {
            let all = entries.iter().enumerate();
            let own = all.filter(|(_, entry)| entry.plugin == number && entry.expression.is_some());
            own.map(|(place, _)| place).collect()
        };
        let plugins = conditions.into_iter().enumerate();
        let plugins = plugins.map(|(number, (plugin, expressions))| PluginRules {
            plugin,
            expressions: ExprSet::new(expressions),
            places: places(number),
        });
        let plugins: Vec<PluginRules> = plugins.collect();
        let always = entries.iter().enumerate();
        let always = always.filter(|(_, entry)| entry.expression.is_none());
        let is_script = |entry: &Entry| entry.script.is_some();
        let sets_state = |entry: &Entry| {
            let mut actions = entry.rule.rule.actions.iter();
            is_script(entry) || actions.any(|action| action.kind() == ActionKind::SetState)
        };
        let labels = entries.iter().enumerate();
        let labels = labels.map(|(place, entry)| (entry.rule.label.clone(), place));
        Self {
            labels: labels.collect(),
            sets_state: entries.iter().any(sets_state),
            reads_project_state: (entries.iter())
                .any(|entry| entry.rule.reads.any(Reads::PROJECT_STATE)),
            rounds: EvaluationCounts::default(),
            always: always.map(|(place, _)| place).collect(),
            has_scripts: entries.iter().any(is_script),
            plugins,
            entries,
        }
    }

    /// Whether the trigger has no rules.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The rules in order of evaluation.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<CompiledRule>> {
        self.entries.iter().map(|entry| &entry.rule)
    }

    /// The [namespaces](CompiledRule::namespace) of the rules: each has a context of its own.
    pub fn plugin_names(&self) -> impl Iterator<Item = &PluginName> {
        self.plugins.iter().map(|plugin| &plugin.plugin)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn plugins(&self) -> &[PluginRules] {
        &self.plugins
    }

    /// Whether one of the conditions is a script that may have to run, and so blocks its thread.
    pub fn has_scripts(&self) -> bool {
        self.has_scripts
    }

    /// Indices of the rules that are evaluated at every event.
    pub(crate) fn always(&self) -> &[usize] {
        &self.always
    }

    /// Whether one of the rules may change its plugin's state.
    pub fn sets_state(&self) -> bool {
        self.sets_state
    }

    /// Whether one of the rules may read what the project's rules have set.
    pub(crate) fn reads_project_state(&self) -> bool {
        self.reads_project_state
    }

    /// Counts an event at which all enabled rules were evaluated. `outside` is the surface of a tool
    /// call outside of a query.
    pub(crate) fn count_evaluation(
        &self,
        owner: &EventOwner,
        off: &BTreeSet<String>,
        outside: Option<Surface>,
    ) {
        let places = off.iter().filter_map(|label| self.labels.get(label));
        let left_out = places.filter(|place| !self.entries[**place].rule.is_core);
        self.rounds.count(owner, outside, left_out.copied());
    }

    /// How often each was evaluated since this was called last, by owner.
    pub(crate) fn take_rounds(&self) -> Vec<EvaluationCount<'_>> {
        let mut evaluated = Vec::new();
        for (owner, rounds) in self.rounds.take() {
            for round in rounds {
                for (place, entry) in self.entries.iter().enumerate() {
                    let is_covered = round
                        .outside
                        .is_none_or(|surface| entry.rule.covers_outside(surface));
                    let times = round.evaluated(place);
                    if is_covered && times > 0 {
                        evaluated.push(EvaluationCount {
                            owner: owner.clone(),
                            rule: &entry.rule,
                            is_outside: round.outside.is_some(),
                            times,
                            last: round.last,
                        });
                    }
                }
            }
        }
        evaluated
    }
}
