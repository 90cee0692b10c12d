//! `rules.backtest`.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Instant;

use dodona_plugin::store::journal::{EventFilter, RecordedEvent};
use dodona_plugin::{CallCtx, CallError, ErrorCode};
use dodona_script::Engine;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::changed_rule::{self, RuleText};
use super::journal_feed::{AHEAD, Feed, Page, reads_messages};
use super::report::{Backtest, Comparison, Tally};
use super::{CurrentSettings, RuleAnalysis, blocking};
use crate::compile::CompiledRule;
use crate::format::Trigger;
use crate::identity::RuleKey;
use crate::load::{LoadedRules, RuleSet};
use crate::replay::{Replay, Step};

#[derive(Deserialize, JsonSchema)]
pub(super) struct BacktestParams {
    /// Only events at or after this time.
    since: Option<Timestamp>,
    /// Only events at or before this time.
    until: Option<Timestamp>,
    /// Changed or new rules to test. They replace active rules with the same id. Default: the active rules
    /// alone.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    rules: Vec<RuleText>,
    /// Maximum number of firings listed for each rule.
    #[serde(default = "some")]
    #[schemars(range(max = 1000))]
    examples: usize,
}

fn some() -> usize {
    5
}

pub(super) async fn run(
    analysis: &RuleAnalysis,
    ctx: &CallCtx,
    p: BacktestParams,
) -> Result<Backtest, CallError> {
    let began = Instant::now();
    let project = analysis.rules(ctx).await;
    let user = &ctx.principal.user;
    let (given, problems) = changed_rule::load(p.rules);
    if problems.iter().any(crate::Problem::is_error) {
        return Err(refused(&problems));
    }
    let used = &project.loaded.rules;
    let changed = (!given.is_empty()).then(|| changed_rule::replaced(used, &given));
    let with_messages = reads_messages(used) || changed.as_ref().is_some_and(reads_messages);
    let work = Work {
        around: analysis.surroundings(user, &project, changed.as_ref().unwrap_or(used)),
        loaded: Arc::clone(&project.loaded),
        off: analysis.engine.host.disabled(user),
        given: given.iter().map(|rule| rule.key.clone()).collect(),
        changed,
        scripts: Arc::clone(&analysis.scripts),
        examples: p.examples,
    };
    let filter = EventFilter {
        project: ctx.project.as_ref().map(|project| project.id.clone()),
        kinds: Trigger::ALL.map(|one| one.event_type().to_owned()).to_vec(),
        since: p.since,
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
    Ok(Backtest {
        problems,
        elapsed_ms: began.elapsed().as_secs_f64() * 1e3,
        ..done?
    })
}

/// An error with the problems of the rules in `rules`.
fn refused(problems: &[crate::Problem]) -> CallError {
    let errors = problems.iter().filter(|problem| problem.is_error());
    let told: Vec<String> = errors.map(ToString::to_string).collect();
    CallError::new(ErrorCode::InvalidParams, told.join("\n"))
        .hint("`dodona rules check FILE` shows each in its place")
}

/// A backtest that runs on its own thread.
struct Work {
    around: CurrentSettings,
    loaded: Arc<LoadedRules>,
    off: Arc<BTreeSet<String>>,
    given: HashSet<RuleKey>,
    /// The rule set with the changed rules.
    changed: Option<RuleSet>,
    scripts: Arc<Engine>,
    examples: usize,
}

impl Work {
    fn through(self, mut pages: mpsc::Receiver<Page>) -> Backtest {
        let is_disabled = |rule: &CompiledRule| !rule.is_core && self.off.contains(&rule.label);
        let scripts: &Engine = &self.scripts;
        let rules = self.changed.as_ref().unwrap_or(&self.loaded.rules);
        let mut replay = Replay::new(self.around.setup(rules, scripts, &is_disabled));
        let mut before = self.changed.as_ref().map(|_| {
            let setup = self.around.setup(&self.loaded.rules, scripts, &is_disabled);
            (Replay::new(setup), Comparison::new(self.examples))
        });
        let mut tally = Tally::new(rules.rules(), &self.given, self.examples);
        let mut course = Course::default();
        while let Some(page) = pages.blocking_recv() {
            replay.bring(Arc::clone(&page.messages));
            if let Some((replay, _)) = &mut before {
                replay.bring(page.messages);
            }
            for event in &page.events {
                let step = replay.event(event);
                let Ok(step) = step else {
                    course.unreadable += 1;
                    continue;
                };
                course.add(event, &step);
                tally.add(event, &step);
                if let Some((replay, comparison)) = &mut before
                    && let Ok(was) = replay.event(event)
                {
                    comparison.add(event, &was, &step);
                }
            }
        }
        let diff = before.map(|(_, comparison)| comparison.finish(&self.given));
        course.report(tally, diff)
    }
}

#[derive(Default)]
struct Course {
    events: u64,
    queries: u64,
    unreadable: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Course {
    fn add(&mut self, event: &RecordedEvent, step: &Step) {
        self.events += 1;
        self.queries += u64::from(step.trigger == Some(Trigger::OnQueryStart));
        self.first.get_or_insert(event.timestamp);
        self.last = Some(event.timestamp);
    }

    fn report(self, tally: Tally, diff: Option<Vec<super::report::RuleDiff>>) -> Backtest {
        Backtest {
            events: self.events,
            queries: self.queries,
            unreadable: self.unreadable,
            first: self.first,
            last: self.last,
            rules: tally.finish(),
            diff,
            problems: Vec::new(),
            elapsed_ms: 0.0,
        }
    }
}
