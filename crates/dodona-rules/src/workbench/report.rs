//! What a backtest found.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use dodona_plugin::store::journal::RecordedEvent;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Problem;
use crate::compile::CompiledRule;
use crate::engine::{Answer, Decision};
use crate::format::Trigger;
use crate::identity::RuleKey;
use crate::replay::{Gap, Step};

/// How many different messages of one rule are counted; the rest is counted together.
const MOST_MESSAGES: usize = 1_000;

/// How many of them are told, the most frequent first.
const TOLD_MESSAGES: usize = 10;

/// What rules would have done.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Backtest {
    /// How many events were read.
    pub(super) events: u64,
    /// How many queries they belong to.
    pub(super) queries: u64,
    /// How many of them could not be read, as another version wrote them.
    pub(super) unreadable: u64,
    /// When the first was.
    pub(super) first: Option<Timestamp>,
    /// When the last was.
    pub(super) last: Option<Timestamp>,
    /// Each rule, those that fired most first.
    pub(super) rules: Vec<RuleReport>,
    /// What is different with the rules that were given, where some were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<Vec<RuleDiff>>,
    /// What is wrong with rules that were given.
    pub(super) problems: Vec<Problem>,
    /// How long it took.
    pub(super) elapsed_ms: f64,
}

/// What one rule would have done.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct RuleReport {
    /// Which, as `plugin/id`.
    pub(super) rule: String,
    /// Its file.
    pub(super) path: String,
    /// When it is asked.
    pub(super) trigger: Trigger,
    /// Whether it is one of those that were given.
    pub(super) given: bool,
    /// What it does.
    pub(super) actions: Vec<&'static str>,
    /// How often it would have fired.
    pub(super) fired: u64,
    /// How often its limits would have kept it from that.
    pub(super) suppressed: u64,
    /// How often it would have failed.
    pub(super) failed: u64,
    /// How, for the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// About how many events it could not be asked again.
    pub(super) not_replayable: u64,
    /// Why.
    pub(super) reasons: Vec<Reason>,
    /// What it would have said, the most frequent first.
    pub(super) messages: Vec<MessageCount>,
    /// Some of the times that it would have fired, the latest last.
    pub(super) examples: Vec<Firing>,
}

/// Why a rule could not be asked again.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Reason {
    /// What kind of thing is missing.
    gap: Gap,
    /// The same in words.
    reason: String,
    /// For how many events.
    count: u64,
}

/// A message, and how often it would have been said.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct MessageCount {
    pub(super) message: String,
    pub(super) count: u64,
}

/// One time that a rule would have fired.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Firing {
    /// The event.
    pub(super) event_id: uuid::Uuid,
    /// When.
    pub(super) at: Timestamp,
    /// In which query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) query_id: Option<String>,
    /// In which turn of the conversation; 0 for none.
    pub(super) turn: i64,
    /// What it would have said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

/// A rule in two sets.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct RuleDiff {
    /// Which, as `plugin/id`.
    pub(super) rule: String,
    /// How often it fires in the set in use.
    pub(super) before: u64,
    /// How often with the rules that were given.
    pub(super) after: u64,
    /// About how many events it no longer fires.
    pub(super) gone: u64,
    /// About how many events it fires that it did not fire about before.
    pub(super) new: u64,
    /// How often it says something else.
    pub(super) reworded: u64,
    /// Some of these events.
    pub(super) examples: Vec<Difference>,
}

/// An event about which two sets differ.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Difference {
    /// The event.
    event_id: uuid::Uuid,
    /// When.
    at: Timestamp,
    /// What was said before; nothing where the rule did not fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// What is said now; nothing where the rule does not fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// Counts what one set of rules does.
pub(super) struct Tally {
    examples: usize,
    rules: HashMap<RuleKey, Counting>,
}

struct Counting {
    report: RuleReport,
    messages: HashMap<String, u64>,
    gaps: BTreeMap<Gap, u64>,
}

impl Tally {
    pub(super) fn new<'r>(
        rules: impl IntoIterator<Item = &'r Arc<CompiledRule>>,
        given: &HashSet<RuleKey>,
        examples: usize,
    ) -> Self {
        let counting = |rule: &Arc<CompiledRule>| {
            let counting = Counting {
                report: RuleReport::new(rule, given.contains(&rule.key)),
                messages: HashMap::new(),
                gaps: BTreeMap::new(),
            };
            (rule.key.clone(), counting)
        };
        Self {
            examples,
            rules: rules.into_iter().map(counting).collect(),
        }
    }

    /// Takes in what came of an event.
    pub(super) fn add(&mut self, event: &RecordedEvent, step: &Step) {
        for answer in &step.answers {
            if let Some(counting) = self.rules.get_mut(&answer.rule.key) {
                counting.add(event, step, answer, self.examples);
            }
        }
        for (rule, gap) in &step.gaps {
            if let Some(counting) = self.rules.get_mut(&rule.key) {
                counting.report.not_replayable += 1;
                *counting.gaps.entry(*gap).or_default() += 1;
            }
        }
    }

    pub(super) fn finish(self) -> Vec<RuleReport> {
        let mut reports: Vec<RuleReport> = self.rules.into_values().map(Counting::finish).collect();
        reports.sort_by(|a, b| b.fired.cmp(&a.fired).then_with(|| a.rule.cmp(&b.rule)));
        reports
    }
}

impl Counting {
    fn add(&mut self, event: &RecordedEvent, step: &Step, answer: &Answer, examples: usize) {
        let outcome = &answer.outcome;
        let report = &mut self.report;
        report.suppressed += u64::from(outcome.suppressed.is_some());
        if let Some(error) = &outcome.error {
            report.failed += 1;
            report.error.get_or_insert_with(|| error.to_string());
        }
        if !outcome.fired {
            return;
        }
        report.fired += 1;
        let message = said(answer);
        if let Some(message) = &message {
            let room = self.messages.len() < MOST_MESSAGES;
            match self.messages.get_mut(message) {
                Some(count) => *count += 1,
                None if room => {
                    self.messages.insert(message.clone(), 1);
                }
                None => {}
            }
        }
        if examples == 0 {
            return;
        }
        if report.examples.len() == examples {
            report.examples.remove(0);
        }
        let facts = step.facts.as_deref();
        report.examples.push(Firing {
            event_id: event.id,
            at: event.timestamp,
            query_id: facts.and_then(|facts| facts.query_id.clone()),
            turn: facts.map_or(0, |facts| facts.turn.number),
            message,
        });
    }

    fn finish(self) -> RuleReport {
        let mut report = self.report;
        let mut messages: Vec<MessageCount> = (self.messages.into_iter())
            .map(|(message, count)| MessageCount { message, count })
            .collect();
        messages.sort_by(|a, b| {
            b.count
                .cmp(&a.count)
                .then_with(|| a.message.cmp(&b.message))
        });
        messages.truncate(TOLD_MESSAGES);
        report.messages = messages;
        let reasons = self.gaps.into_iter().map(|(gap, count)| Reason {
            gap,
            reason: gap.to_string(),
            count,
        });
        report.reasons = reasons.collect();
        report
    }
}

impl RuleReport {
    fn new(rule: &CompiledRule, given: bool) -> Self {
        let actions = rule
            .rule
            .actions
            .iter()
            .map(|action| action.kind().as_str());
        Self {
            rule: rule.label.clone(),
            path: rule.origin.path.clone(),
            trigger: rule.rule.trigger,
            given,
            actions: actions.collect(),
            fired: 0,
            suppressed: 0,
            failed: 0,
            error: None,
            not_replayable: 0,
            reasons: Vec::new(),
            messages: Vec::new(),
            examples: Vec::new(),
        }
    }
}

/// What an answer says, all its messages together.
fn said(answer: &Answer) -> Option<String> {
    let decisions = answer.outcome.decisions.iter();
    let messages: Vec<&str> = decisions.filter_map(Decision::message).collect();
    (!messages.is_empty()).then(|| messages.join(" / "))
}

/// Compares what two sets do, event by event.
#[derive(Default)]
pub(super) struct Comparison {
    rules: BTreeMap<String, RuleDiff>,
    examples: usize,
}

impl Comparison {
    pub(super) fn new(examples: usize) -> Self {
        Self {
            examples,
            ..Self::default()
        }
    }

    /// Takes in what came of an event in both.
    pub(super) fn add(&mut self, event: &RecordedEvent, before: &Step, after: &Step) {
        let (before, after) = (fired(before), fired(after));
        for rule in before.keys().chain(after.keys()).collect::<HashSet<_>>() {
            let diff = self.rules.entry(rule.to_string()).or_default();
            let (old, new) = (before.get(rule), after.get(rule));
            diff.before += u64::from(old.is_some());
            diff.after += u64::from(new.is_some());
            diff.gone += u64::from(old.is_some() && new.is_none());
            diff.new += u64::from(old.is_none() && new.is_some());
            diff.reworded += u64::from(old.is_some() && new.is_some() && old != new);
            if old != new && diff.examples.len() < self.examples {
                diff.examples.push(Difference {
                    event_id: event.id,
                    at: event.timestamp,
                    before: old.cloned(),
                    after: new.cloned(),
                });
            }
        }
    }

    /// Those in which something differs, and those that were given.
    pub(super) fn finish(self, given: &HashSet<RuleKey>) -> Vec<RuleDiff> {
        let given: HashSet<String> = given.iter().map(ToString::to_string).collect();
        let named = self
            .rules
            .into_iter()
            .map(|(rule, diff)| RuleDiff { rule, ..diff });
        named
            .filter(|diff| diff.gone + diff.new + diff.reworded > 0 || given.contains(&diff.rule))
            .collect()
    }
}

/// What fired, and what it said.
fn fired(step: &Step) -> HashMap<&RuleKey, String> {
    let fired = step.answers.iter().filter(|answer| answer.outcome.fired);
    fired
        .map(|answer| (&answer.rule.key, said(answer).unwrap_or_default()))
        .collect()
}
