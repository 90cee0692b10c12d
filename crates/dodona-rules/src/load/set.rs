//! Rules in the order in which they are asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use dodona_expr::{Expr, ExprSet};
use dodona_proto::PluginName;
use dodona_script::Script;
use jiff::Timestamp;

use crate::compile::CompiledRule;
use crate::format::{ActionKind, Trigger};
use crate::identity::RuleKey;

/// Rules, indexed by trigger. It never changes: another set takes its place.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Arc<CompiledRule>>,
    triggers: [TriggerRules; 7],
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
    rounds: Rounds,
}

/// How often the rules were asked, since somebody took note of it.
#[derive(Debug, Default)]
struct Rounds {
    count: AtomicU64,
    /// When they were last, in milliseconds of Unix time.
    last: AtomicI64,
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
    /// Its script.
    pub(crate) script: Option<Arc<Script>>,
    /// Whether the expression is all that the script asks: it runs only where that cannot be told.
    pub(crate) is_told: bool,
    /// Whether what it did before may keep it from acting.
    pub(crate) is_limited: bool,
    /// How often it was left out because the user had switched it off, since somebody took note.
    left_out: AtomicU64,
}

impl RuleSet {
    /// Puts rules in order. No two may have the same name.
    pub fn new(mut rules: Vec<Arc<CompiledRule>>) -> Self {
        rules.sort_by(|a, b| {
            let order = b.rule.priority.cmp(&a.rule.priority);
            let by_id = || (&a.rule.id, &a.key.plugin).cmp(&(&b.rule.id, &b.key.plugin));
            order.then_with(by_id)
        });
        let triggers = Trigger::ALL.map(|trigger| {
            let asked =
                |rule: &&Arc<CompiledRule>| rule.rule.trigger == trigger && rule.rule.enabled;
            TriggerRules::new(rules.iter().filter(asked).cloned().collect())
        });
        Self { rules, triggers }
    }

    /// Every rule, those too that are not enabled; higher priority first, ties by id.
    pub fn rules(&self) -> &[Arc<CompiledRule>] {
        &self.rules
    }

    /// A rule by its name.
    pub fn get(&self, key: &RuleKey) -> Option<&Arc<CompiledRule>> {
        self.rules.iter().find(|rule| rule.key == *key)
    }

    /// The rules that are asked at a trigger.
    pub fn at(&self, trigger: Trigger) -> &TriggerRules {
        &self.triggers[trigger.index()]
    }
}

impl TriggerRules {
    fn new(rules: Vec<Arc<CompiledRule>>) -> Self {
        let mut conditions: BTreeMap<PluginName, Vec<Expr>> = BTreeMap::new();
        for rule in &rules {
            let expressions = conditions.entry(rule.key.plugin.clone()).or_default();
            expressions.extend(rule.asked_first().cloned());
        }
        let names: Vec<PluginName> = conditions.keys().cloned().collect();
        let mut counts = vec![0; names.len()];
        let entries = rules.into_iter().map(|rule| {
            let plugin = names.iter().position(|name| *name == rule.key.plugin);
            let plugin = plugin.expect("every rule's plugin was just counted");
            let expression = rule.asked_first().map(|_| {
                counts[plugin] += 1;
                counts[plugin] - 1
            });
            Entry {
                script: rule.script().cloned(),
                is_told: rule.is_told_by_expression(),
                is_limited: rule.rule.limits.keep_from_acting(),
                rule,
                plugin,
                expression,
                left_out: AtomicU64::new(0),
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
            rounds: Rounds::default(),
            always: always.map(|(place, _)| place).collect(),
            has_scripts: entries.iter().any(is_script),
            plugins,
            entries,
        }
    }

    /// Whether nobody is asked.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The rules, in the order in which they are asked.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<CompiledRule>> {
        self.entries.iter().map(|entry| &entry.rule)
    }

    /// The plugins whose rules are asked: for each there is a context of its own.
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

    /// The places of those that are asked whatever the event is.
    pub(crate) fn always(&self) -> &[usize] {
        &self.always
    }

    /// Whether one of the rules may change its plugin's state.
    pub fn sets_state(&self) -> bool {
        self.sets_state
    }

    /// Counts that all of them were asked but those that are off.
    pub(crate) fn count_round(&self, off: &BTreeSet<String>) {
        // Rules that are left out are counted first: nobody who takes the counts meanwhile finds
        // one asked that was not.
        for label in off {
            let entry = self.labels.get(label).map(|place| &self.entries[*place]);
            if let Some(entry) = entry.filter(|entry| !entry.rule.is_core) {
                entry.left_out.fetch_add(1, Ordering::Relaxed);
            }
        }
        let now = Timestamp::now().as_millisecond();
        self.rounds.last.store(now, Ordering::Relaxed);
        self.rounds.count.fetch_add(1, Ordering::AcqRel);
    }

    /// How often each was asked since this was called last, and when they were last.
    pub(crate) fn take_rounds(&self) -> Vec<(&Arc<CompiledRule>, u64, Timestamp)> {
        let last = self.rounds.last.load(Ordering::Relaxed);
        let last = Timestamp::from_millisecond(last).unwrap_or_default();
        let rounds = self.rounds.count.swap(0, Ordering::AcqRel);
        if rounds == 0 {
            return Vec::new();
        }
        let asked = |entry: &Entry| {
            let left_out = entry.left_out.load(Ordering::Relaxed).min(rounds);
            entry.left_out.fetch_sub(left_out, Ordering::Relaxed);
            rounds - left_out
        };
        let counted = self.entries.iter().map(|entry| (entry, asked(entry)));
        let counted = counted.filter(|(_, asked)| *asked > 0);
        counted
            .map(|(entry, asked)| (&entry.rule, asked, last))
            .collect()
    }
}
