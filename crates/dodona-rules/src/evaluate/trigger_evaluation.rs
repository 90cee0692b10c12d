//! Evaluating all rules of a trigger for one event.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dodona_expr::Run;
use dodona_proto::Surface;
use dodona_script::{Engine, Script, Session};
use dodona_template::Memo;

use super::index_set::IndexSet;
use super::limiter::Limiter;
use super::outcome::{EvalError, Matched, Outcome, Suppressed};
use super::single_rule::{PANICKED, act_with, catch_panic, failed, run_script, session};
use crate::compile::CompiledRule;
use crate::context::RuleContext;
use crate::load::{Entry, TriggerRules};

/// How long the scripts of one namespace (the user's rules, a plugin's, the project's) may run per event.
/// After that the remaining scripts of the namespace fail. The budget is per namespace, so that a project
/// cannot use up the time of the user's rules.
const SCRIPT_BUDGET: Duration = Duration::from_secs(2);

/// Initial capacity for results. Many rules may be evaluated, but few fire.
const RESULT_CAPACITY: usize = 128;

/// The result of a rule that fired, was suppressed, or failed. Rules whose condition is false have none.
#[derive(Debug, Clone)]
pub struct RuleResult {
    pub rule: Arc<CompiledRule>,
    /// What the evaluation returned.
    pub outcome: Outcome,
    /// Evaluation time. Expressions are evaluated together, so their time is divided equally.
    pub elapsed: Duration,
}

/// The input for evaluating the rules of a trigger.
pub struct TriggerEvaluation<'r> {
    pub rules: &'r TriggerRules,
    /// The context as the rules of each plugin see it, in the order of
    /// [`TriggerRules::plugin_names`].
    pub contexts: &'r [RuleContext],
    /// Cooldowns and `once_per` limits.
    pub limiter: &'r Limiter,
    pub scripts: &'r Engine,
    /// Whether the user disabled a rule.
    pub is_disabled: &'r (dyn Fn(&CompiledRule) -> bool + Sync),
}

/// An evaluation in progress.
struct RunningEvaluation<'r> {
    evaluation: &'r TriggerEvaluation<'r>,
    runs: Vec<Run<'r>>,
    /// For each plugin, created when its first script runs.
    sessions: Vec<Option<Session<'r>>>,
    /// For each plugin, template values that its rules share.
    memos: Vec<Memo>,
    results: Vec<RuleResult>,
    started: Instant,
    script_total: Duration,
    /// For each plugin, the time its scripts have used.
    script_times: Vec<Duration>,
    /// The surface, if the event is a tool call outside a query.
    outside: Option<Surface>,
    /// Indices of results of scripts, with the time of each.
    script_results: Vec<(usize, Duration)>,
}

impl TriggerEvaluation<'_> {
    /// Evaluates the rules in order and returns the results of those that fired, were suppressed or
    /// failed. All rules see the same context: a change by one rule is visible at the next event. A rule
    /// that fails does not affect the others.
    pub fn evaluate(&self) -> Vec<RuleResult> {
        let sets = self.rules.plugins().iter().zip(self.contexts);
        let runs: Vec<Run<'_>> = sets
            .map(|(plugin, context)| plugin.expressions.run(context))
            .collect();
        let candidates = self.candidates(&runs);
        let mut running = RunningEvaluation {
            evaluation: self,
            sessions: runs.iter().map(|_| None).collect(),
            memos: runs.iter().map(|_| Memo::new()).collect(),
            script_times: vec![Duration::ZERO; runs.len()],
            outside: self.outside_surface(),
            runs,
            results: Vec::with_capacity(candidates.len().min(RESULT_CAPACITY)),
            started: Instant::now(),
            script_total: Duration::ZERO,
            script_results: Vec::new(),
        };
        candidates.for_each(|index| running.evaluate(&self.rules.entries()[index]));
        running.finish()
    }

    fn outside_surface(&self) -> Option<Surface> {
        let context = self.contexts.first()?;
        context.facts().outside_surface()
    }

    /// Whether a rule whose condition holds may act.
    #[inline]
    fn admit(&self, entry: &Entry, context: &RuleContext) -> Result<(), Suppressed> {
        if entry.is_limited {
            self.limiter.admit(&entry.rule, context.facts())
        } else {
            Ok(())
        }
    }

    /// Indices of the rules whose condition may be true or fail. The others are skipped: with many rules
    /// and few that fire, this is most of the speed.
    fn candidates(&self, runs: &[Run<'_>]) -> IndexSet {
        let mut candidates = IndexSet::new(self.rules.entries().len());
        for index in self.rules.always() {
            candidates.add(*index);
        }
        for (plugin, run) in self.rules.plugins().iter().zip(runs) {
            run.open(|index| candidates.add(plugin.places[index]));
        }
        candidates
    }
}

impl RunningEvaluation<'_> {
    fn evaluate(&mut self, entry: &Entry) {
        if let Some(surface) = self.outside
            && !entry.rule.covers_outside(surface)
        {
            return;
        }
        let script = entry.script.as_ref();
        if let Some(script) = script.filter(|_| !entry.is_told) {
            return self.evaluate_script(entry, script);
        }
        let Some(index) = entry.expression else {
            return;
        };
        let run = &mut self.runs[entry.plugin];
        let matched = match run.test_plain(index) {
            Some(false) => return,
            Some(true) => Ok(Matched::Yes),
            None => match script {
                // The guard failed. Run the script, so that the error is the script's own.
                Some(script) => return self.evaluate_script(entry, script),
                None => match catch_panic(|| run.test(index)) {
                    Some(Ok(false)) => return,
                    Some(Ok(true)) => Ok(Matched::Yes),
                    Some(Err(error)) => Err(failed(error.to_string())),
                    None => Err(failed(PANICKED.to_owned())),
                },
            },
        };
        if !(self.evaluation.is_disabled)(&entry.rule) {
            self.add_result(entry, matched);
        }
    }

    fn evaluate_script(&mut self, entry: &Entry, script: &Script) {
        if (self.evaluation.is_disabled)(&entry.rule) {
            return;
        }
        let started = Instant::now();
        let matched = self.run_script(entry.plugin, script);
        let before = self.results.len();
        if matched != Ok(Matched::No) {
            self.add_result(entry, matched);
        }
        let elapsed = started.elapsed();
        self.script_total += elapsed;
        self.script_times[entry.plugin] += elapsed;
        let new = before..self.results.len();
        self.script_results
            .extend(new.map(|index| (index, elapsed)));
    }

    fn run_script(&mut self, plugin: usize, script: &Script) -> Result<Matched, EvalError> {
        if self.script_times[plugin] > SCRIPT_BUDGET {
            return Err(failed(format!(
                "not run: earlier scripts used the time limit of {SCRIPT_BUDGET:?}"
            )));
        }
        let evaluation = self.evaluation;
        let session = self.sessions[plugin]
            .get_or_insert_with(|| session(&evaluation.contexts[plugin], evaluation.scripts));
        run_script(script, session)
    }

    /// Adds the result of a rule whose condition is true or failed.
    fn add_result(&mut self, entry: &Entry, matched: Result<Matched, EvalError>) {
        self.results.push(RuleResult {
            rule: Arc::clone(&entry.rule),
            outcome: Outcome::default(),
            elapsed: Duration::ZERO,
        });
        let Some(RuleResult { outcome, .. }) = self.results.last_mut() else {
            return;
        };
        let context = &self.evaluation.contexts[entry.plugin];
        match matched {
            Ok(matched) => match self.evaluation.admit(entry, context) {
                Ok(()) => {
                    let memo = &mut self.memos[entry.plugin];
                    act_with(&entry.rule, context, matched, memo, outcome);
                    if self.outside.is_some() && entry.rule.rule.surfaces.is_empty() {
                        outcome.keep_verdicts();
                    }
                }
                Err(suppressed) => outcome.suppressed = Some(suppressed),
            },
            Err(error) => outcome.error = Some(Box::new(error)),
        }
    }

    /// Returns the results with their times.
    fn finish(self) -> Vec<RuleResult> {
        let mut results = self.results;
        let expression_time = self.started.elapsed().saturating_sub(self.script_total);
        let expressions = results.len() - self.script_results.len();
        let part = expression_time / u32::try_from(expressions.max(1)).unwrap_or(u32::MAX);
        for result in &mut results {
            result.elapsed = part;
        }
        for (index, elapsed) in self.script_results {
            results[index].elapsed = elapsed;
        }
        results
    }
}
