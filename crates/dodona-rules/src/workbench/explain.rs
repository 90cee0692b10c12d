//! `rules.explain`.

use std::sync::Arc;

use dodona_plugin::store::journal::{EventFilter, Place, RecordedEvent};
use dodona_plugin::{CallCtx, CallError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::feed::{AHEAD, Feed, Page, reads_messages, snapshot_of};
use super::{Around, Workbench, blocking};
use crate::compile::CompiledRule;
use crate::engine::{Decision, Suppressed};
use crate::explain::{self, ConditionExplained};
use crate::format::Trigger;
use crate::identity::Scope;
use crate::load::RuleSet;
use crate::log::{DroppedExecution, Liveness};
use crate::methods::{find, must_be_active};
use crate::reads::Reads;
use crate::replay::{Gap, Replay, Step};

/// How many events back it looks for one that fits.
const FAR: usize = 100_000;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ExplainParams {
    /// Which rule: `plugin/id`, or `id` alone of a rule that belongs to no plugin.
    #[schemars(length(min = 1, max = 256))]
    rule: String,
    /// About this event.
    event: Option<Uuid>,
    /// About the events of this query: its id, or the beginning or the end of it.
    #[schemars(length(min = 1, max = 256))]
    query: Option<String>,
    /// About so many events at most, the newest. Without more it is about the last one.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    limit: usize,
}

fn one() -> usize {
    1
}

/// Why a rule fired, or did not.
#[derive(Serialize, JsonSchema)]
pub(super) struct Explained {
    /// Which, as `plugin/id`.
    rule: String,
    /// Its file.
    path: String,
    /// The line on which its condition stands.
    line: usize,
    /// When it is asked.
    trigger: Trigger,
    /// What keeps it from being asked at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    off: Option<Suppressed>,
    /// Counts for you in this project: in queries, and for calls outside of them.
    liveness: Liveness,
    /// The events, the newest first.
    events: Vec<EventExplained>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// What became of an event.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct EventExplained {
    event_id: Uuid,
    /// What happened.
    #[serde(rename = "type")]
    kind: String,
    /// The tool, for events of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    at: Timestamp,
    query_id: Option<String>,
    context_id: Option<String>,
    /// Counted over the conversation; 0 outside of one.
    turn: i64,
    /// Counted over the query; 0 outside of one.
    iteration: i64,
    verdict: Verdict,
    /// What kept the rule from acting.
    #[serde(skip_serializing_if = "Option::is_none")]
    suppressed: Option<Suppressed>,
    /// All of it in words.
    why: String,
    /// The condition, term by term.
    #[serde(skip_serializing_if = "Option::is_none")]
    condition: Option<ConditionExplained>,
    /// What it decided.
    decisions: Vec<Decision>,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What the rule saw of state and settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Value>,
}

/// How a rule answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// It acts.
    Fired,
    /// It fired, and its notification was dropped.
    Dropped,
    /// Its condition does not hold.
    NotFired,
    /// Its condition holds, and its limits keep it from acting.
    Suppressed,
    /// It is not asked: switched off, or off in its file.
    Disabled,
    /// It failed.
    Failed,
    /// The event is another's.
    OtherTrigger,
    /// The call was made outside of a query, which the rule does not cover.
    OutsideQuery,
    /// The journal does not have what it reads.
    NotReplayable,
}

pub(super) async fn explain(
    bench: &Workbench,
    ctx: &CallCtx,
    p: ExplainParams,
) -> Result<Explained, CallError> {
    let project = bench.rules(ctx).await;
    let rule = find(&project, &p.rule)?;
    must_be_active(&project, &rule)?;
    let targets = targets(bench, ctx, &rule, &p).await?;
    let user = &ctx.principal.user;
    let switched_off = bench.live.host.disabled(user).contains(&rule.label) && !rule.is_core;
    let off = match (rule.rule.enabled, switched_off) {
        (false, _) => Some(Suppressed::Disabled),
        (true, true) => Some(Suppressed::SwitchedOff),
        (true, false) => None,
    };
    let live = &bench.live;
    let mut alive = live.log.liveness(ctx).await?;
    let dropped = live.log.dropped_of(user.as_str(), &rule.label);
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
        let around = bench.surroundings(user, &project, &project.library.rules);
        let all: Vec<_> = project.library.rules.active().cloned().collect();
        let work = Work {
            around,
            rules: concerned(&rule, &all),
            rule,
            off,
            targets: targets.iter().map(|event| event.position).collect(),
        };
        explained.events = replayed(bench, ctx, work, &targets).await?;
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
        (Some(event), _) => format!("there is no event `{event}` of yours in the journal"),
        (None, Some(query)) => {
            format!("query `{query}` has no event at which the rule is asked ({trigger})")
        }
        (None, None) => format!(
            "nothing at which the rule is asked ({trigger}) has happened yet, as far as the journal goes"
        ),
    }
}

/// The rules whose decisions the rule may depend on: those whose state it reads, and itself.
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

/// The events that are asked about, the newest first.
async fn targets(
    bench: &Workbench,
    ctx: &CallCtx,
    rule: &CompiledRule,
    p: &ExplainParams,
) -> Result<Vec<RecordedEvent>, CallError> {
    let mut filter = events_of(ctx);
    if p.event.is_none() {
        filter.kinds = vec![rule.rule.trigger.event_type().to_owned()];
    }
    let (mut place, mut looked, mut found) = (Place::End, 0, Vec::new());
    let limit = match p.event {
        Some(_) => 1,
        None => p.limit.clamp(1, 100),
    };
    while found.len() < limit && looked < FAR {
        let page = bench.history.page(filter.clone(), place).await?;
        let Some(last) = page.last() else { break };
        (place, looked) = (Place::Before(last.position), looked + page.len());
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

/// Goes through the journal up to the events, so that state and limits are what they were.
async fn replayed(
    bench: &Workbench,
    ctx: &CallCtx,
    work: Work,
    targets: &[RecordedEvent],
) -> Result<Vec<EventExplained>, CallError> {
    let until = targets.iter().map(|event| event.position).max();
    let scripts = Arc::clone(&bench.scripts);
    let feed = Feed {
        bench,
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
    around: Around,
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
                let why = format!("the rule is asked {trigger}, and this is `{}`", event.kind);
                (Verdict::OtherTrigger, why)
            }
            (_, Some(gap), ..) => (Verdict::NotReplayable, gap.to_string()),
            (_, _, Some(off), ..) => (Verdict::Disabled, off.to_string()),
            (_, _, _, Some(limit), _) => (Verdict::Suppressed, limit.to_string()),
            _ if fired => (Verdict::Fired, "its condition holds".to_owned()),
            (.., Some(error)) => (Verdict::Failed, error.to_string()),
            _ => (Verdict::NotFired, "its condition does not hold".to_owned()),
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
