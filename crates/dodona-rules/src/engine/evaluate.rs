//! One rule, one context.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use dodona_script::{Engine, Limits};
use serde_json::Value;

use super::outcome::{Decision, EvalError, Matched, Outcome, Stage};
use crate::compile::{CompiledCondition, CompiledRule};
use crate::context::{Page, RuleContext, host};
use crate::format::Action;

/// How long a script may take. Its steps end it much earlier on a machine that has time for it; on
/// one that has not, that is no fault of the script's.
const SCRIPT_TIME: Duration = Duration::from_secs(1);

/// Asks a rule, whatever may keep it from acting. It does no I/O and changes nothing; a script
/// blocks the thread for as long as its limits allow.
pub fn evaluate(rule: &CompiledRule, context: &RuleContext, scripts: &Engine) -> Outcome {
    match matches(rule, context, scripts) {
        Ok(Matched::No) => Outcome::default(),
        Ok(matched) => act(rule, context, matched),
        Err(error) => Outcome {
            error: Some(error),
            ..Outcome::default()
        },
    }
}

/// Whether a rule's condition holds.
///
/// # Errors
///
/// If it fails, or reaches a limit.
pub fn matches(
    rule: &CompiledRule,
    context: &RuleContext,
    scripts: &Engine,
) -> Result<Matched, EvalError> {
    let failed = |message: String| EvalError {
        stage: Stage::Condition,
        message,
    };
    match &rule.condition {
        CompiledCondition::Expression(expr) => match guarded(|| expr.test(context)) {
            Some(Ok(true)) => Ok(Matched::Yes),
            Some(Ok(false)) => Ok(Matched::No),
            Some(Err(error)) => Err(failed(error.to_string())),
            None => Err(failed(PANICKED.to_owned())),
        },
        CompiledCondition::Script(script) => {
            let shown = Arc::new(context.clone());
            let functions = Arc::new(host(context));
            let limits = Limits {
                time: SCRIPT_TIME,
                ..Limits::default()
            };
            let outcome = guarded(|| scripts.run_with(script, shown, functions, &limits))
                .ok_or_else(|| failed(PANICKED.to_owned()))?
                .map_err(|error| failed(error.to_string()))?;
            Ok(match (outcome.matched, outcome.actions) {
                (false, _) => Matched::No,
                (true, actions) if actions.is_empty() => Matched::Yes,
                (true, actions) => Matched::Actions(actions),
            })
        }
    }
}

/// What a rule does whose condition holds.
pub fn act(rule: &CompiledRule, context: &RuleContext, matched: Matched) -> Outcome {
    let mut outcome = Outcome {
        fired: true,
        ..Outcome::default()
    };
    let made: Vec<Result<Decision, String>> = match matched {
        Matched::No => return Outcome::default(),
        Matched::Yes => {
            let page = Page(context);
            let rendered = rule.actions.iter().map(|action| {
                let rendered = guarded(|| action.render(&page));
                match rendered {
                    Some(rendered) => rendered.map_err(|error| error.to_string()),
                    None => Err(PANICKED.to_owned()),
                }
            });
            rendered.collect()
        }
        // What a script says is data: it is not rendered.
        Matched::Actions(tables) => (tables.into_iter())
            .map(|table| from_script(rule, table))
            .collect(),
    };
    for (index, made) in made.into_iter().enumerate() {
        match made {
            Ok(decision) => outcome.decisions.push(decision),
            Err(message) => {
                outcome.error.get_or_insert(EvalError {
                    stage: Stage::Action(index),
                    message,
                });
            }
        }
    }
    outcome
}

fn from_script(rule: &CompiledRule, table: Value) -> Result<Decision, String> {
    Action::from_script(table, rule.rule.trigger).map(Decision::from)
}

const PANICKED: &str = "it panicked";

/// Nothing in here panics as far as we know; if it does, it is this rule's failure alone.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
