//! `rules.again`.

use std::collections::BTreeSet;
use std::sync::Arc;

use dodona_plugin::store::journal::{EventFilter, RecordedEvent};
use dodona_plugin::{CallCtx, CallError};
use dodona_script::Engine;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use super::journal_feed::{AHEAD, Feed, Page, reads_messages};
use super::{CurrentSettings, RuleAnalysis, blocking};
use crate::compile::CompiledRule;
use crate::engine::DECISIONS_EVENT;
use crate::format::Trigger;
use crate::load::LoadedRules;
use crate::replay::{Replay, Step};

#[derive(Deserialize, JsonSchema)]
pub(super) struct AgainParams {
    /// The id of the query.
    #[schemars(length(min = 1))]
    query_id: String,
    /// The time the query ended. Later events are ignored.
    until: Option<Timestamp>,
}

/// Whether the current rules decide the same as the recorded ones.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Again {
    /// Number of events of the query that were evaluated.
    events: u64,
    /// The first decision that differs.
    difference: Option<RuleDifference>,
    /// Rules that could not be evaluated at every event, because the journal does not contain what they
    /// read.
    not_asked: BTreeSet<String>,
}

/// A decision that differs from the recorded one.
#[derive(Debug, Serialize, JsonSchema)]
struct RuleDifference {
    /// The turn of the query; 0 before the first turn.
    turn: u64,
    /// The trigger of the event.
    trigger: Trigger,
    /// The rule, as `plugin/id`.
    rule: String,
    /// How the decision differs.
    what: String,
}

/// Evaluates the current rules for all events up to the end of a query, so that state and cooldowns are what
/// they would have been, and compares their decisions about the query with the recorded ones.
pub(super) async fn run(
    analysis: &RuleAnalysis,
    ctx: &CallCtx,
    p: AgainParams,
) -> Result<Again, CallError> {
    let project = analysis.rules(ctx).await;
    let user = &ctx.principal.user;
    let with_messages = reads_messages(&project.loaded.rules);
    let work = Work {
        around: analysis.surroundings(user, &project, &project.loaded.rules),
        loaded: Arc::clone(&project.loaded),
        off: analysis.engine.host.disabled(user),
        scripts: Arc::clone(&analysis.scripts),
        query: p.query_id,
    };
    let mut kinds = Trigger::ALL.map(|one| one.event_type().to_owned()).to_vec();
    kinds.push(DECISIONS_EVENT.to_owned());
    let filter = EventFilter {
        project: ctx.project.as_ref().map(|project| project.id.clone()),
        kinds,
        until: p.until,
        ..EventFilter::of(user.clone())
    };
    let (pages, waiting) = mpsc::channel(AHEAD);
    let working = blocking(move || work.through(waiting));
    let feed = Feed {
        analysis,
        ctx,
        filter,
        until: None,
        with_messages,
    };
    let (read, done) = tokio::join!(feed.run(pages), working);
    read?;
    done
}

struct Work {
    around: CurrentSettings,
    loaded: Arc<LoadedRules>,
    off: Arc<BTreeSet<String>>,
    scripts: Arc<Engine>,
    query: String,
}

/// The decisions at one trigger of a turn. Tools that run in parallel share one.
#[derive(Debug)]
struct Moment {
    number: u64,
    turn: u64,
    trigger: Trigger,
    was: Vec<Said>,
    now: Vec<Said>,
}

/// The decision of one rule.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    rule: String,
    /// `None` if it was too large for the journal.
    outcome: Option<Value>,
}

impl Work {
    fn through(self, mut pages: mpsc::Receiver<Page>) -> Again {
        let is_disabled = |rule: &CompiledRule| !rule.is_core && self.off.contains(&rule.label);
        let scripts: &Engine = &self.scripts;
        let mut replay = Replay::new(self.around.setup(&self.loaded.rules, scripts, &is_disabled));
        let mut again = Again::default();
        let mut moments: Vec<Moment> = Vec::new();
        while let Some(page) = pages.blocking_recv() {
            replay.bring(page.messages);
            for event in &page.events {
                if event.kind == DECISIONS_EVENT {
                    self.decided(event, &mut moments);
                } else if let Ok(step) = replay.event(event) {
                    self.asked(event, step, &mut moments, &mut again);
                }
            }
        }
        let ours = |said: &Said| !again.not_asked.contains(&said.rule);
        for moment in &mut moments {
            moment.was.retain(&ours);
            moment.now.retain(&ours);
        }
        again.difference = moments.iter().find_map(Moment::difference);
        again
    }

    /// Records the decisions of the current rules about an event of the query.
    fn asked(
        &self,
        event: &RecordedEvent,
        step: Step,
        moments: &mut Vec<Moment>,
        again: &mut Again,
    ) {
        let Some((number, turn)) = self.turn_of(event) else {
            return;
        };
        let Some(trigger) = step.trigger else {
            return;
        };
        again.events += 1;
        let gaps = step.gaps.iter().map(|(rule, _)| rule.label.clone());
        again.not_asked.extend(gaps);
        let moment = moment(moments, number, trigger);
        moment.turn = turn;
        let answers = step.answers.iter();
        let told = answers.filter(|answer| answer.outcome.suppressed.is_none());
        moment.now.extend(told.map(|answer| Said {
            rule: answer.rule.label.clone(),
            outcome: serde_json::to_value(&answer.outcome).ok(),
        }));
    }

    /// The turn of the conversation and of the query, if the event belongs to this query.
    fn turn_of(&self, event: &RecordedEvent) -> Option<(u64, u64)> {
        let payload: Value = serde_json::from_str(&event.payload).ok()?;
        let snapshot = &payload["snapshot"];
        let turn = &snapshot["turn"];
        (snapshot["query_id"] == self.query.as_str())
            .then(|| Some((turn["number"].as_u64()?, turn["iteration_count"].as_u64()?)))?
    }

    /// Records the decisions in the journal.
    fn decided(&self, event: &RecordedEvent, moments: &mut Vec<Moment>) {
        #[derive(Deserialize)]
        struct Decided {
            trigger: Trigger,
            query_id: String,
            turn: u64,
            rules: Vec<OneDecided>,
        }
        #[derive(Deserialize)]
        struct OneDecided {
            rule: String,
            outcome: Option<Value>,
        }
        let Ok(decided) = serde_json::from_str::<Decided>(&event.payload) else {
            return;
        };
        if decided.query_id != self.query {
            return;
        }
        let moment = moment(moments, decided.turn, decided.trigger);
        moment.was.extend(decided.rules.into_iter().map(|one| Said {
            rule: one.rule,
            outcome: one.outcome,
        }));
    }
}

/// Finds or adds the entry for a turn and a trigger.
fn moment(moments: &mut Vec<Moment>, number: u64, trigger: Trigger) -> &mut Moment {
    let known =
        (moments.iter()).position(|moment| moment.number == number && moment.trigger == trigger);
    let place = known.unwrap_or_else(|| {
        moments.push(Moment {
            number,
            turn: 0,
            trigger,
            was: Vec::new(),
            now: Vec::new(),
        });
        moments.len() - 1
    });
    &mut moments[place]
}

impl Moment {
    /// The first rule that decides differently now.
    fn difference(&self) -> Option<RuleDifference> {
        let mut now = self.now.clone();
        let tell = |rule: &str, what: &str| RuleDifference {
            turn: self.turn,
            trigger: self.trigger,
            rule: rule.to_owned(),
            what: what.to_owned(),
        };
        for was in &self.was {
            let same = |said: &Said| said.rule == was.rule;
            let equal =
                |said: &Said| same(said) && (was.outcome.is_none() || said.outcome == was.outcome);
            if let Some(place) = now.iter().position(equal) {
                now.remove(place);
                continue;
            }
            return Some(if now.iter().any(same) {
                tell(&was.rule, "decides differently now")
            } else {
                tell(&was.rule, "had a decision then and has none now")
            });
        }
        let more = now.first();
        more.map(|said| tell(&said.rule, "has a decision now and had none then"))
    }
}
