//! The report of a backtest.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use dodona_plugin::store::journal::RecordedEvent;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Problem;
use crate::compile::CompiledRule;
use crate::evaluate::{Decision, RuleResult};
use crate::format::Trigger;
use crate::identity::RuleKey;
use crate::replay::{Gap, Step};

/// Maximum number of distinct messages counted per rule. The others are counted together.
const MOST_MESSAGES: usize = 1_000;

/// Maximum number of messages in the report, most frequent first.
const TOLD_MESSAGES: usize = 10;

/// The report of a backtest.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Backtest {
    /// Number of events read.
    pub(super) events: u64,
    /// Number of queries they belong to.
    pub(super) queries: u64,
    /// Number of events that could not be parsed because another version of Dodona wrote them.
    pub(super) unreadable: u64,
    /// Time of the first event.
    pub(super) first: Option<Timestamp>,
    /// Time of the last event.
    pub(super) last: Option<Timestamp>,
    /// One entry per rule, most firings first.
    pub(super) rules: Vec<RuleReport>,
    /// Differences between the active rules and the rules passed in `rules`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) diff: Option<Vec<RuleDiff>>,
    /// Problems of the rules passed in `rules`.
    pub(super) problems: Vec<Problem>,
    /// Duration of the backtest in milliseconds.
    pub(super) elapsed_ms: f64,
}

/// The backtest of one rule.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct RuleReport {
    /// The rule, as `plugin/id`.
    pub(super) rule: String,
    /// The file of the rule.
    pub(super) path: String,
    /// The trigger of the rule.
    pub(super) trigger: Trigger,
    /// The rule was passed in `rules`.
    pub(super) given: bool,
    /// The types of its actions.
    pub(super) actions: Vec<&'static str>,
    /// How often the rule fired.
    pub(super) fired: u64,
    /// Number of events at which a limit suppressed the rule.
    pub(super) suppressed: u64,
    /// Number of failed evaluations.
    pub(super) failed: u64,
    /// Message of the first error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// Number of events at which the rule could not be evaluated.
    pub(super) not_replayable: u64,
    /// The reasons, with the number of events of each.
    pub(super) reasons: Vec<Reason>,
    /// Rendered messages with their counts, most frequent first.
    pub(super) messages: Vec<MessageCount>,
    /// Examples of firings, newest last.
    pub(super) examples: Vec<Firing>,
}

/// Why a rule could not be evaluated.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Reason {
    /// The kind of missing data.
    gap: Gap,
    /// The reason as a sentence.
    reason: String,
    /// Number of affected events.
    count: u64,
}

/// A rendered message and how often it occurred.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct MessageCount {
    pub(super) message: String,
    pub(super) count: u64,
}

/// One firing of a rule.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Firing {
    /// Id of the event.
    pub(super) event_id: uuid::Uuid,
    /// Time of the event.
    pub(super) at: Timestamp,
    /// Id of the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) query_id: Option<String>,
    /// Turn number in the conversation; 0 outside a conversation.
    pub(super) turn: i64,
    /// The message after rendering.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
}

/// The difference between the two versions of a rule.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct RuleDiff {
    /// The rule, as `plugin/id`.
    pub(super) rule: String,
    /// Number of firings with the active rules.
    pub(super) before: u64,
    /// Number of firings with the rules passed in `rules`.
    pub(super) after: u64,
    /// Number of events at which it no longer fires.
    pub(super) gone: u64,
    /// Number of events at which it fires and did not before.
    pub(super) new: u64,
    /// Number of events at which its message differs.
    pub(super) reworded: u64,
    /// Examples of these events.
    pub(super) examples: Vec<Difference>,
}

/// An event at which the two versions differ.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Difference {
    /// Id of the event.
    event_id: uuid::Uuid,
    /// Time of the event.
    at: Timestamp,
    /// The message with the active rules; absent if the rule did not fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// The message with the changed rules; absent if the rule does not fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// Counts the results of one rule set.
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

    /// Adds the results of an event.
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
    fn add(&mut self, event: &RecordedEvent, step: &Step, answer: &RuleResult, examples: usize) {
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

/// All messages of a result, joined.
fn said(answer: &RuleResult) -> Option<String> {
    let decisions = answer.outcome.decisions.iter();
    let messages: Vec<&str> = decisions.filter_map(Decision::message).collect();
    (!messages.is_empty()).then(|| messages.join(" / "))
}

/// Compares two rule sets, event by event.
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

    /// Adds the results of an event in both sets.
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

    /// The rules that differ or were passed in `rules`.
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

/// The rules that fired, with their messages.
fn fired(step: &Step) -> HashMap<&RuleKey, String> {
    let fired = step.answers.iter().filter(|answer| answer.outcome.fired);
    fired
        .map(|answer| (&answer.rule.key, said(answer).unwrap_or_default()))
        .collect()
}
