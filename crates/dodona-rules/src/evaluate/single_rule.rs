//! Evaluating one rule.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use dodona_script::{Engine, Limits, Script, Session};
use dodona_template::Memo;
use serde_json::Value;

use super::outcome::{Decision, EvalError, Matched, Outcome, Stage};
use crate::compile::{CompiledCondition, CompiledRule};
use crate::context::{Page, RuleContext, host};
use crate::format::Action;

/// Limits of a script. The step limit ends a script much earlier than the time limit, which is generous so
/// that a script does not fail because the machine is busy.
const SCRIPT_LIMITS: Limits = Limits {
    time: Duration::from_secs(1),
    ..Limits::rules()
};

/// Evaluates a rule without regard to cooldowns and `once_per`. Does no I/O and changes no state. A script
/// blocks the thread up to its time limit.
pub fn evaluate(rule: &CompiledRule, context: &RuleContext, scripts: &Engine) -> Outcome {
    match matches(rule, context, scripts) {
        Ok(Matched::No) => Outcome::default(),
        Ok(matched) => act(rule, context, matched),
        Err(error) => Outcome::failed(error),
    }
}

/// Evaluates the condition of a rule.
///
/// # Errors
///
/// If the condition fails or exceeds a limit.
pub fn matches(
    rule: &CompiledRule,
    context: &RuleContext,
    scripts: &Engine,
) -> Result<Matched, EvalError> {
    match &rule.condition {
        CompiledCondition::Expression(expr) => match catch_panic(|| expr.test(context)) {
            Some(Ok(true)) => Ok(Matched::Yes),
            Some(Ok(false)) => Ok(Matched::No),
            Some(Err(error)) => Err(failed(error.to_string())),
            None => Err(failed(PANICKED.to_owned())),
        },
        CompiledCondition::Script(script) => run_script(script, &mut session(context, scripts)),
    }
}

/// A session for the scripts of one plugin at one event. They share a context and a virtual machine.
pub(super) fn session<'e>(context: &RuleContext, scripts: &'e Engine) -> Session<'e> {
    scripts.session(Arc::new(context.clone()), Arc::new(host(context)))
}

/// Evaluates a condition that is a script.
pub(super) fn run_script(script: &Script, session: &mut Session<'_>) -> Result<Matched, EvalError> {
    let outcome = catch_panic(|| session.run(script, &SCRIPT_LIMITS))
        .ok_or_else(|| failed(PANICKED.to_owned()))?
        .map_err(|error| failed(error.to_string()))?;
    Ok(match (outcome.matched, outcome.actions) {
        (false, _) => Matched::No,
        (true, actions) if actions.is_empty() => Matched::Yes,
        (true, actions) => Matched::Actions(actions),
    })
}

pub(super) fn failed(message: String) -> EvalError {
    EvalError {
        stage: Stage::Condition,
        message,
    }
}

/// Returns the decisions of a rule whose condition matched.
pub fn act(rule: &CompiledRule, context: &RuleContext, matched: Matched) -> Outcome {
    let mut outcome = Outcome::default();
    act_with(rule, context, matched, &mut Memo::new(), &mut outcome);
    outcome
}

/// Like [`act`], with template values shared by the rules of the event. `outcome` must be empty.
#[inline]
pub(super) fn act_with(
    rule: &CompiledRule,
    context: &RuleContext,
    matched: Matched,
    memo: &mut Memo,
    outcome: &mut Outcome,
) {
    match matched {
        Matched::No => {}
        Matched::Yes => {
            outcome.fired = true;
            let page = Page(context);
            for (index, action) in rule.actions.iter().enumerate() {
                match catch_panic(|| action.render(&page, memo, &mut outcome.decisions)) {
                    Some(Ok(())) => {}
                    Some(Err(error)) => outcome.action_failed(index, error.to_string()),
                    None => outcome.action_failed(index, PANICKED.to_owned()),
                }
            }
        }
        // The text of a script is data and not rendered as a template.
        Matched::Actions(tables) => {
            outcome.fired = true;
            for (index, table) in tables.into_iter().enumerate() {
                match from_script(rule, table) {
                    Ok(decision) => outcome.decisions.push(decision),
                    Err(message) => outcome.action_failed(index, message),
                }
            }
        }
    }
}

impl Outcome {
    /// Records the first failure. Other actions still run.
    #[cold]
    fn action_failed(&mut self, index: usize, message: String) {
        let stage = Stage::Action(index);
        self.error
            .get_or_insert_with(|| Box::new(EvalError { stage, message }));
    }
}

fn from_script(rule: &CompiledRule, table: Value) -> Result<Decision, String> {
    Action::from_script(table, rule.rule.trigger).map(Decision::from)
}

pub(super) const PANICKED: &str = "it panicked";

/// Catches a panic, so that it is the failure of one rule only. No panic is known.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
