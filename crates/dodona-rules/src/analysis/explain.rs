//! `rules.explain`.

use std::sync::Arc;

use dodona_plugin::store::journal::{EventFilter, ReadPosition, RecordedEvent};
use dodona_plugin::{CallCtx, CallError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::journal_feed::{AHEAD, Feed, Page, reads_messages, snapshot_of};
use super::{CurrentSettings, RuleAnalysis, blocking};
use crate::compile::CompiledRule;
use crate::evaluate::{Decision, Suppressed};
use crate::explain::{self, ConditionExplained};
use crate::format::Trigger;
use crate::identity::Scope;
use crate::load::RuleSet;
use crate::log::{DroppedExecution, Liveness};
use crate::methods::{find, must_be_active};
use crate::reads::Reads;
use crate::replay::{Gap, Replay, Step};

/// How many recent events are searched for one with the rule's trigger.
const FAR: usize = 100_000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ExplainParams {
    /// The rule: `plugin/id`, or `id` for a rule that belongs to no plugin.
    #[schemars(length(min = 1, max = 256))]
    rule: String,
    /// Explain this event, by id.
    event: Option<Uuid>,
    /// Explain the events of this query: its id, or a prefix or suffix of it.
    #[schemars(length(min = 1, max = 256))]
    query: Option<String>,
    /// Maximum number of events, newest first. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
}

fn one() -> usize {
    1
}

/// Why a rule fired or did not fire.
#[derive(Serialize, JsonSchema)]
pub(super) struct Explained {
    /// The rule, as `plugin/id`.
    rule: String,
    /// The file of the rule.
    path: String,
    /// Line number of the condition.
    line: usize,
    /// The trigger of the rule.
    trigger: Trigger,
    /// Why the rule is never evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    off: Option<Suppressed>,
    /// Your counts in this project: in queries, and for calls outside queries.
    liveness: Liveness,
    /// The explained events, newest first.
    events: Vec<EventExplained>,
    /// Why there is no event.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The explanation of one event.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct EventExplained {
    event_id: Uuid,
    /// The type of the event.
    #[serde(rename = "type")]
    kind: String,
    /// The tool, for events of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    at: Timestamp,
    query_id: Option<String>,
    context_id: Option<String>,
    /// Turn number in the conversation; 0 outside a conversation.
    turn: i64,
    /// Turn number in the query; 0 outside a query.
    iteration: i64,
    verdict: Verdict,
    /// The limit that suppressed the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed: Option<Suppressed>,
    /// The verdict as a sentence.
    why: String,
    /// The condition with the value of each term.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<ConditionExplained>,
    /// The decisions of the rule.
    decisions: Vec<Decision>,
    /// The error of a failed evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The state and settings that the rule read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Value>,
}

/// The result of a rule at an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// The rule fired at the event.
    Fired,
    /// The rule fired, but its notification was dropped.
    Dropped,
    /// The condition is false.
    NotFired,
    /// The condition is true, but a limit suppressed the rule.
    Suppressed,
    /// The rule is disabled, by the user or in its file.
    Disabled,
    /// The evaluation ended with an error.
    Failed,
    /// The event has a different trigger.
    OtherTrigger,
    /// The call was made outside of a query, which the rule does not cover.
    OutsideQuery,
    /// The journal does not contain what the rule reads.
    NotReplayable,
}

pub(super) async fn explain(
    analysis: &RuleAnalysis,
    ctx: &CallCtx,
    p: ExplainParams,
) -> Result<Explained, CallError> {
    let project = analysis.rules(ctx).await;
    let rule = find(&project, &p.rule)?;
    must_be_active(&project, &rule)?;
    let targets = targets(analysis, ctx, &rule, &p).await?;
    let user = &ctx.principal.user;
    let switched_off = analysis.engine.host.disabled(user).contains(&rule.label) && !rule.is_core;
    let off = match (rule.rule.enabled, switched_off) {
        (false, _) => Some(Suppressed::Disabled),
        (true, true) => Some(Suppressed::SwitchedOff),
        (true, false) => None,
    };
    let engine = &analysis.engine;
    let mut alive = engine.log.liveness(ctx).await?;
    let dropped = engine.log.dropped_of(user.as_str(), &rule.label);
    let dropped = dropped.await?;
    let mut explained = Explained {
        liveness: alive.remove(&rule.label).unwrap_or_default(),
        rule: rule.label.clone(),
        path: rule.origin.path.clone(),
        line: rule.rule.spots.condition.line,
        trigger: rule.rule.trigger,
        off,
        note: targets.is_empty().then(|| nothing(&rule, &p)),
        events: Vec::new(),
    };
    if !targets.is_empty() {
        let around = analysis.surroundings(user, &project, &project.loaded.rules);
        let all: Vec<_> = project.loaded.rules.active().cloned().collect();
        let work = Work {
            around,
            rules: concerned(&rule, &all),
            rule,
            off,
            targets: targets.iter().map(|event| event.position).collect(),
        };
        explained.events = replayed(analysis, ctx, work, &targets).await?;
        mark_dropped(&mut explained.events, dropped);
    }
    Ok(explained)
}

/// Marks the events at which the rule fired and its notification was dropped. The inbox drops the
/// newest, so within a turn these are the last events at which the rule fired.
fn mark_dropped(events: &mut [EventExplained], dropped: Vec<DroppedExecution>) {
    for one in dropped {
        let event = events.iter_mut().find(|event| {
            event.verdict == Verdict::Fired && event.query_id == one.query && event.turn == one.turn
        });
        if let Some(event) = event {
            event.verdict = Verdict::Dropped;
            event.why = format!("notification dropped: {}", one.reason);
        }
    }
}

fn nothing(rule: &CompiledRule, p: &ExplainParams) -> String {
    let trigger = rule.rule.trigger;
    match (&p.event, &p.query) {
        (Some(event), _) => format!("event `{event}` not found among your events in the journal"),
        (None, Some(query)) => {
            format!("query `{query}` has no event with the trigger of the rule ({trigger})")
        }
        (None, None) => {
            format!("the journal contains no event with the trigger of the rule ({trigger})")
        }
    }
}

/// The rules that the rule may depend on: those whose state it reads, and itself.
fn concerned(rule: &Arc<CompiledRule>, all: &[Arc<CompiledRule>]) -> RuleSet {
    let reads_project = rule.reads.any(Reads::PROJECT_STATE);
    let same = all.iter().filter(|other| {
        other.namespace == rule.namespace || (reads_project && other.origin.scope == Scope::Project)
    });
    let mut rules: Vec<_> = same
        .filter(|other| other.key != rule.key)
        .cloned()
        .collect();
    rules.push(Arc::clone(rule));
    RuleSet::new(rules)
}

/// The selected events, newest first.
async fn targets(
    analysis: &RuleAnalysis,
    ctx: &CallCtx,
    rule: &CompiledRule,
    p: &ExplainParams,
) -> Result<Vec<RecordedEvent>, CallError> {
    let mut filter = events_of(ctx);
    if p.event.is_none() {
        filter.kinds = vec![rule.rule.trigger.event_type().to_owned()];
    }
    let (mut place, mut looked, mut found) = (ReadPosition::End, 0, Vec::new());
    let limit = match p.event {
        Some(_) => 1,
        None => p.limit.clamp(1, 100),
    };
    while found.len() < limit && looked < FAR {
        let page = analysis.history.page(filter.clone(), place).await?;
        let Some(last) = page.last() else { break };
        (place, looked) = (ReadPosition::Before(last.position), looked + page.len());
        let fitting = page.into_iter().filter(|event| fits(event, p));
        found.extend(fitting.take(limit - found.len()));
    }
    Ok(found)
}

fn events_of(ctx: &CallCtx) -> EventFilter {
    EventFilter {
        project: ctx.project.as_ref().map(|project| project.id.clone()),
        kinds: Trigger::ALL.map(|one| one.event_type().to_owned()).to_vec(),
        ..EventFilter::of(ctx.principal.user.clone())
    }
}

fn fits(event: &RecordedEvent, p: &ExplainParams) -> bool {
    if p.event.is_some_and(|id| id != event.id) {
        return false;
    }
    let Some(query) = &p.query else { return true };
    snapshot_of(event).is_some_and(|snapshot| {
        let id = &snapshot.query_id;
        id.starts_with(query.as_str()) || id.ends_with(query.as_str())
    })
}

/// Replays the journal up to the events, so that state and limits are what they were.
async fn replayed(
    analysis: &RuleAnalysis,
    ctx: &CallCtx,
    work: Work,
    targets: &[RecordedEvent],
) -> Result<Vec<EventExplained>, CallError> {
    let until = targets.iter().map(|event| event.position).max();
    let scripts = Arc::clone(&analysis.scripts);
    let feed = Feed {
        analysis,
        ctx,
        filter: events_of(ctx),
        until,
        with_messages: reads_messages(&work.rules),
    };
    let (pages, waiting) = mpsc::channel(AHEAD);
    let working = blocking(move || work.through(waiting, &scripts));
    let (read, done) = tokio::join!(feed.run(pages), working);
    read?;
    let mut events = done?;
    events.reverse();
    Ok(events)
}

struct Work {
    around: CurrentSettings,
    rules: RuleSet,
    rule: Arc<CompiledRule>,
    off: Option<Suppressed>,
    targets: Vec<u64>,
}

impl Work {
    fn through(
        self,
        mut pages: mpsc::Receiver<Page>,
        scripts: &dodona_script::Engine,
    ) -> Vec<EventExplained> {
        let nobody = |_: &CompiledRule| false;
        let mut replay = Replay::new(self.around.setup(&self.rules, scripts, &nobody));
        let mut explained = Vec::new();
        while let Some(page) = pages.blocking_recv() {
            replay.bring(page.messages);
            for event in &page.events {
                let asked = self.targets.contains(&event.position);
                // The context before the event: what the rule saw.
                let context = asked.then(|| replay.context_of(event, &self.rule));
                let step = replay.event(event).unwrap_or_default();
                if let Some(Ok((context, gap))) = context {
                    explained.push(self.one(event, &context, gap, &step, scripts));
                }
            }
        }
        explained
    }

    fn one(
        &self,
        event: &RecordedEvent,
        context: &crate::RuleContext,
        gap: Option<Gap>,
        step: &Step,
        scripts: &dodona_script::Engine,
    ) -> EventExplained {
        let facts = context.facts();
        let answer = step
            .answers
            .iter()
            .find(|answer| answer.rule.key == self.rule.key);
        let outcome = answer.map(|answer| &answer.outcome);
        let is_other = step.trigger != Some(self.rule.rule.trigger);
        let condition =
            (!is_other && gap.is_none()).then(|| explain::condition(&self.rule, context, scripts));
        let suppressed = outcome.and_then(|outcome| outcome.suppressed);
        let error = outcome.and_then(|outcome| outcome.error.as_ref());
        let fired = outcome.is_some_and(|outcome| outcome.fired);
        let outside = facts.outside_surface();
        let outside = outside.filter(|surface| !self.rule.covers_outside(*surface));
        let (verdict, why) = match (is_other, gap, self.off, suppressed, error) {
            _ if !is_other && outside.is_some() => {
                let surface = json!(outside);
                let why = format!(
                    "the call was made outside of a query; `surfaces = [{surface}]` would include it"
                );
                (Verdict::OutsideQuery, why)
            }
            (true, ..) => {
                let trigger = self.rule.rule.trigger;
                let why = format!(
                    "the trigger of the rule is {trigger}, but the event is `{}`",
                    event.kind
                );
                (Verdict::OtherTrigger, why)
            }
            (_, Some(gap), ..) => (Verdict::NotReplayable, gap.to_string()),
            (_, _, Some(off), ..) => (Verdict::Disabled, off.to_string()),
            (_, _, _, Some(limit), _) => (Verdict::Suppressed, limit.to_string()),
            _ if fired => (Verdict::Fired, "its condition is true".to_owned()),
            (.., Some(error)) => (Verdict::Failed, error.to_string()),
            _ => (Verdict::NotFired, "its condition is false".to_owned()),
        };
        EventExplained {
            event_id: event.id,
            kind: event.kind.clone(),
            tool: (facts.call.as_ref().map(|call| &call.tool_name))
                .or(facts.result.as_ref().map(|result| &result.tool_name))
                .cloned(),
            at: event.timestamp,
            query_id: facts.query_id.clone(),
            context_id: facts.context_id.clone(),
            turn: facts.turn.number,
            iteration: facts.turn.iteration_count,
            verdict,
            suppressed: suppressed.or(self.off),
            why,
            condition,
            decisions: outcome
                .map(|outcome| outcome.decisions.to_vec())
                .unwrap_or_default(),
            error: error.map(ToString::to_string),
            state: Some(context.state().clone()).filter(|state| *state != json!({})),
        }
    }
}
