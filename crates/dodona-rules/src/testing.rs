//! Running the tests of rules.

use dodona_proto::Effect;
use dodona_script::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::compile::CompiledRule;
use crate::context::RuleContext;
use crate::evaluate::{Decision, Outcome, evaluate};
use crate::explain;
use crate::format::{Expect, RuleTest, Trigger};

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tested {
    /// The rule, as `plugin/id`.
    pub rule: String,
    /// Name of the test.
    pub name: String,
    /// Path of the rule file.
    pub path: String,
    /// Line number, from 1.
    pub line: usize,
    /// Why the test failed; absent if it passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The condition with the value of every term, if its result was not the expected one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<String>,
}

/// Runs the tests of a rule. `settings` are those of its plugin; a test may override them.
pub fn run_tests(
    rule: &CompiledRule,
    settings: &Map<String, Value>,
    scripts: &Engine,
) -> Vec<Tested> {
    let run = |test: &RuleTest| {
        let (failure, explained) = match context_of(rule, test, settings) {
            Ok(context) => run(rule, test, &context, scripts),
            Err(why) => (Some(format!("invalid context: {why}")), None),
        };
        Tested {
            rule: rule.key.to_string(),
            name: test.name.clone(),
            path: rule.origin.path.clone(),
            line: test.at.line,
            failure,
            explained,
        }
    };
    rule.rule.tests.iter().map(run).collect()
}

/// The context of a test, with all values that the trigger always provides.
fn context_of(
    rule: &CompiledRule,
    test: &RuleTest,
    settings: &Map<String, Value>,
) -> Result<RuleContext, String> {
    let trigger = rule.rule.trigger;
    let mut context = test.context.clone();
    let event = context.entry("event").or_insert_with(|| json!({}));
    if let Some(event) = event.as_object_mut() {
        let kind = || Value::from(trigger.event_type());
        event.entry("type").or_insert_with(kind);
    }
    match trigger {
        Trigger::OnToolCall => {
            context.entry("call").or_insert_with(|| json!({}));
        }
        Trigger::OnToolComplete | Trigger::OnToolFailure => {
            let result = context.entry("result").or_insert_with(|| json!({}));
            if let Some(result) = result.as_object_mut() {
                let success = trigger == Trigger::OnToolComplete;
                result.entry("success").or_insert(Value::from(success));
            }
        }
        _ => {}
    }
    let mut settings = settings.clone();
    settings.extend(test.settings.clone());
    RuleContext::from_json(&Value::Object(context), &Value::Object(settings))
}

fn run(
    rule: &CompiledRule,
    test: &RuleTest,
    context: &RuleContext,
    scripts: &Engine,
) -> (Option<String>, Option<String>) {
    let outcome = evaluate(rule, context, scripts);
    if let Some(error) = &outcome.error {
        return (Some(error.to_string()), None);
    }
    if outcome.fired == test.expect.fired {
        return (unmet(&test.expect, &outcome), None);
    }
    let why = if outcome.fired {
        "the rule fired, but was expected not to"
    } else {
        "the rule did not fire, but was expected to"
    };
    let explained = explain::condition(rule, context, scripts).line;
    (Some(why.to_owned()), Some(explained))
}

/// Checks the expectations other than `fired`.
fn unmet(expect: &Expect, outcome: &Outcome) -> Option<String> {
    let messages: Vec<&str> = outcome
        .decisions
        .iter()
        .filter_map(Decision::message)
        .collect();
    if let Some(wanted) = &expect.message
        && !messages.iter().any(|message| message.contains(wanted))
    {
        return Some(match messages[..] {
            [] => format!("there is no message; expected one that contains {wanted:?}"),
            [one] => format!("the message {one:?} does not contain {wanted:?}"),
            _ => format!("no message contains {wanted:?}: {messages:?}"),
        });
    }
    if let Some(wanted) = &expect.event
        && !outcome
            .decisions
            .iter()
            .any(|decision| emits(decision, wanted))
    {
        return Some(format!("event `{wanted}` was not emitted"));
    }
    let unset = |(key, wanted): (&String, &Value)| match set_to(outcome, key) {
        Some(value) if value == wanted => None,
        Some(value) => Some(format!("`{key}` was set to {value}; expected {wanted}")),
        None => Some(format!("`{key}` was not set")),
    };
    expect.state.iter().find_map(unset)
}

fn emits(decision: &Decision, wanted: &str) -> bool {
    match decision {
        Decision::Effect(Effect::EmitEvent { event_type, .. }) => event_type == wanted,
        _ => false,
    }
}

/// The value set for a key by the last action that sets it.
fn set_to<'o>(outcome: &'o Outcome, wanted: &str) -> Option<&'o Value> {
    let mut decisions = outcome.decisions.iter().rev();
    decisions.find_map(|decision| match decision {
        Decision::Effect(Effect::SetState { key, value }) if key == wanted => Some(value),
        _ => None,
    })
}
