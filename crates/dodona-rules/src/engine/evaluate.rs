//! One rule, one context.

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

/// What a script may cost. Its steps end it much earlier than its time on a machine that has time
/// for it; on one that has not, that is no fault of the script's.
const SCRIPT_LIMITS: Limits = Limits {
    time: Duration::from_secs(1),
    ..Limits::rules()
};

/// Asks a rule, whatever may keep it from acting. It does no I/O and changes nothing; a script
/// blocks the thread for as long as its limits allow.
pub fn evaluate(rule: &CompiledRule, context: &RuleContext, scripts: &Engine) -> Outcome {
    match matches(rule, context, scripts) {
        Ok(Matched::No) => Outcome::default(),
        Ok(matched) => act(rule, context, matched),
        Err(error) => Outcome::failed(error),
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
    match &rule.condition {
        CompiledCondition::Expression(expr) => match guarded(|| expr.test(context)) {
            Some(Ok(true)) => Ok(Matched::Yes),
            Some(Ok(false)) => Ok(Matched::No),
            Some(Err(error)) => Err(failed(error.to_string())),
            None => Err(failed(PANICKED.to_owned())),
        },
        CompiledCondition::Script(script) => run_script(script, &mut session(context, scripts)),
    }
}

/// The scripts of a plugin about one event: they share a context and a virtual machine.
pub(super) fn session<'e>(context: &RuleContext, scripts: &'e Engine) -> Session<'e> {
    scripts.session(Arc::new(context.clone()), Arc::new(host(context)))
}

/// Whether a condition holds that is a script.
pub(super) fn run_script(script: &Script, session: &mut Session<'_>) -> Result<Matched, EvalError> {
    let outcome = guarded(|| session.run(script, &SCRIPT_LIMITS))
        .ok_or_else(|| failed(PANICKED.to_owned()))?
        .map_err(|error| failed(error.to_string()))?;
    Ok(match (outcome.matched, outcome.actions) {
        (false, _) => Matched::No,
        (true, actions) if actions.is_empty() => Matched::Yes,
        (true, actions) => Matched::Actions(actions),
    })
}

/// A condition that could not be asked to its end.
pub(super) fn failed(message: String) -> EvalError {
    EvalError {
        stage: Stage::Condition,
        message,
    }
}

/// What a rule does whose condition holds.
pub fn act(rule: &CompiledRule, context: &RuleContext, matched: Matched) -> Outcome {
    let mut outcome = Outcome::default();
    act_with(rule, context, matched, &mut Memo::new(), &mut outcome);
    outcome
}

/// The same, with what other rules made of the same context; into an outcome that is empty.
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
                match guarded(|| action.render(&page, memo, &mut outcome.decisions)) {
                    Some(Ok(())) => {}
                    Some(Err(error)) => outcome.action_failed(index, error.to_string()),
                    None => outcome.action_failed(index, PANICKED.to_owned()),
                }
            }
        }
        // What a script says is data: it is not rendered.
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
    /// Notes what went wrong in an action. It keeps no other from being done.
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

/// What is said of a rule that panicked.
pub(super) const PANICKED: &str = "it panicked";

/// Nothing in here panics as far as we know; if it does, it is this rule's failure alone.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}
