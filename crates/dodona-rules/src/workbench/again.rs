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

use super::feed::{AHEAD, Feed, Page, reads_messages};
use super::{Around, Workbench, blocking};
use crate::compile::CompiledRule;
use crate::format::Trigger;
use crate::live::DECIDED;
use crate::load::Library;
use crate::replay::{Replay, Step};

#[derive(Deserialize, JsonSchema)]
pub(super) struct AgainParams {
    /// Which query.
    #[schemars(length(min = 1))]
    query_id: String,
    /// When it had ended: nothing after that is looked at.
    until: Option<Timestamp>,
}

/// Whether rules would decide in a query as they did.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Again {
    /// About how many events of the query they were asked.
    events: u64,
    /// The first thing that they would not do as they did.
    difference: Option<RuleDifference>,
    /// Rules that could not be asked about all of it, because the journal does not have what they
    /// read.
    not_asked: BTreeSet<String>,
}

/// Something that rules would not do as they did.
#[derive(Debug, Serialize, JsonSchema)]
struct RuleDifference {
    /// In which turn of the query; 0 before the first.
    turn: u64,
    /// At which moment.
    trigger: Trigger,
    /// Which rule.
    rule: String,
    /// How it differs.
    what: String,
}

/// Asks the rules of now about everything up to the end of a query, so that they have the state and
/// the cooldowns that they would have had, and compares what they say about the query with what the
/// journal has.
pub(super) async fn run(
    bench: &Workbench,
    ctx: &CallCtx,
    p: AgainParams,
) -> Result<Again, CallError> {
    let project = bench.rules(ctx).await;
    let user = &ctx.principal.user;
    let with_messages = reads_messages(&project.library.rules);
    let work = Work {
        around: bench.surroundings(user, &project, &project.library.rules),
        library: Arc::clone(&project.library),
        off: bench.live.host.disabled(user),
        scripts: Arc::clone(&bench.scripts),
        query: p.query_id,
    };
    let mut kinds = Trigger::ALL.map(|one| one.event_type().to_owned()).to_vec();
    kinds.push(DECIDED.to_owned());
    let filter = EventFilter {
        project: ctx.project.as_ref().map(|project| project.id.clone()),
        kinds,
        until: p.until,
        ..EventFilter::of(user.clone())
    };
    let (pages, waiting) = mpsc::channel(AHEAD);
    let working = blocking(move || work.through(waiting));
    let feed = Feed {
        bench,
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
    around: Around,
    library: Arc<Library>,
    off: Arc<BTreeSet<String>>,
    scripts: Arc<Engine>,
    query: String,
}

/// What was decided at one moment of a turn. Tools that run side by side share one.
#[derive(Debug)]
struct Moment {
    number: u64,
    turn: u64,
    trigger: Trigger,
    was: Vec<Said>,
    now: Vec<Said>,
}

/// A rule and what it decided.
#[derive(Debug, Clone, PartialEq)]
struct Said {
    rule: String,
    /// Nothing where it was too large for the journal.
    outcome: Option<Value>,
}

impl Work {
    fn through(self, mut pages: mpsc::Receiver<Page>) -> Again {
        let is_off = |rule: &CompiledRule| !rule.is_core && self.off.contains(&rule.label);
        let scripts: &Engine = &self.scripts;
        let mut replay = Replay::new(self.around.setup(&self.library.rules, scripts, &is_off));
        let mut again = Again::default();
        let mut moments: Vec<Moment> = Vec::new();
        while let Some(page) = pages.blocking_recv() {
            replay.bring(page.messages);
            for event in &page.events {
                if event.kind == DECIDED {
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

    /// Notes what the rules of now say about an event of the query.
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

    /// The turn of the conversation and of the query that an event is about, if it is about this one.
    fn turn_of(&self, event: &RecordedEvent) -> Option<(u64, u64)> {
        let payload: Value = serde_json::from_str(&event.payload).ok()?;
        let snapshot = &payload["snapshot"];
        let turn = &snapshot["turn"];
        (snapshot["query_id"] == self.query.as_str())
            .then(|| Some((turn["number"].as_u64()?, turn["iteration_count"].as_u64()?)))?
    }

    /// Notes what rules decided then.
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

/// The moment of a turn at which something was decided.
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
    /// The first rule that says something else now.
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
            return Some(match now.iter().any(same) {
                true => tell(&was.rule, "decides otherwise"),
                false => tell(&was.rule, "decided something then and does not now"),
            });
        }
        let more = now.first();
        more.map(|said| tell(&said.rule, "decides something now and did not then"))
    }
}
