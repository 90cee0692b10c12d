//! One event, and all rules of its trigger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dodona_expr::Run;
use dodona_script::Engine;

use super::evaluate::{act, guarded, matches};
use super::limiter::Limiter;
use super::outcome::{EvalError, Matched, Outcome, Stage};
use crate::compile::CompiledRule;
use crate::context::RuleContext;
use crate::load::{Entry, TriggerRules};

/// How long the scripts of one event may take together. Beyond it the rest is not asked, which is
/// a failure of theirs: whoever waits for the event has waited long enough.
const SCRIPTS_TIME: Duration = Duration::from_secs(2);

/// A rule that has something to say: it fired, was kept from it, or failed.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Which.
    pub rule: Arc<CompiledRule>,
    /// What it said.
    pub outcome: Outcome,
    /// How long that took, but for the condition if it is an expression: those of a set are
    /// evaluated together.
    pub elapsed: Duration,
}

/// What is needed to ask the rules of a trigger.
pub struct Round<'r> {
    /// The rules.
    pub rules: &'r TriggerRules,
    /// The context as the rules of each plugin see it, in the order of
    /// [`TriggerRules::plugin_names`].
    pub contexts: &'r [RuleContext],
    /// What rules did before.
    pub limiter: &'r Limiter,
    /// Runs scripts.
    pub scripts: &'r Engine,
    /// Which rules are not asked, because the user switched them off.
    pub is_off: &'r (dyn Fn(&CompiledRule) -> bool + Sync),
}

impl Round<'_> {
    /// Asks every rule, in order; answers with those that have something to say. All see the same
    /// context: what one decides, another sees at the next event. A rule that fails fails alone.
    pub fn ask(&self) -> Vec<Answer> {
        let sets = self.rules.plugins().iter().zip(self.contexts);
        let mut runs: Vec<Run<'_>> = sets
            .map(|(plugin, context)| plugin.expressions.run(context))
            .collect();
        let began = Instant::now();
        let mut answers = Vec::new();
        for entry in self.rules.entries() {
            if (self.is_off)(&entry.rule) {
                continue;
            }
            let (matched, asked) = match entry.expression {
                Some(index) => (test(&mut runs[entry.plugin], index), None),
                None => {
                    let asked = Instant::now();
                    (self.script(entry, began), Some(asked))
                }
            };
            answers.extend(self.answer(entry, matched, asked));
        }
        answers
    }

    fn script(&self, entry: &Entry, began: Instant) -> Result<Matched, EvalError> {
        if began.elapsed() > SCRIPTS_TIME {
            return Err(condition(format!(
                "it was not run: the scripts before it took longer than {SCRIPTS_TIME:?}"
            )));
        }
        matches(&entry.rule, &self.contexts[entry.plugin], self.scripts)
    }

    fn answer(
        &self,
        entry: &Entry,
        matched: Result<Matched, EvalError>,
        asked: Option<Instant>,
    ) -> Option<Answer> {
        if matched == Ok(Matched::No) {
            return None;
        }
        let began = asked.unwrap_or_else(Instant::now);
        let context = &self.contexts[entry.plugin];
        let outcome = match matched {
            Ok(matched) => match self.limiter.admit(&entry.rule, context.facts()) {
                Ok(()) => act(&entry.rule, context, matched),
                Err(suppressed) => Outcome {
                    suppressed: Some(suppressed),
                    ..Outcome::default()
                },
            },
            Err(error) => Outcome {
                error: Some(error),
                ..Outcome::default()
            },
        };
        Some(Answer {
            rule: Arc::clone(&entry.rule),
            outcome,
            elapsed: began.elapsed(),
        })
    }
}

fn test(run: &mut Run<'_>, index: usize) -> Result<Matched, EvalError> {
    match guarded(|| run.test(index)) {
        Some(Ok(true)) => Ok(Matched::Yes),
        Some(Ok(false)) => Ok(Matched::No),
        Some(Err(error)) => Err(condition(error.to_string())),
        None => Err(condition("it panicked".to_owned())),
    }
}

fn condition(message: String) -> EvalError {
    EvalError {
        stage: Stage::Condition,
        message,
    }
}
