//! The rules of a plugin: whether they can be read, and whether their tests pass.
//!
//! The engine that runs rules will check more; this is what a plugin's author needs to know about
//! conditions and messages before that.

use std::path::Path;

use dodona_expr::{Expr, Schema};
use dodona_plugin::reading::{Problem, Reading, nearest, to_json};
use dodona_proto::{RULE_CONTEXT, RULE_TRIGGERS};
use serde::Serialize;
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::cli::eval::{Job, Language};

/// How a test went.
#[derive(Serialize)]
pub(super) struct Tested {
    pub(super) rule: String,
    pub(super) name: String,
    /// Why it did not pass.
    pub(super) failure: Option<String>,
}

/// What a test needs of a rule.
struct Rule {
    id: String,
    trigger: String,
    expression: String,
    message: Option<String>,
}

/// Checks a file with a rule and runs its tests.
pub(super) fn check(file: &Path, settings: &Map<String, Value>) -> (Vec<Tested>, Vec<Problem>) {
    let shown = file.display().to_string();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => {
            let problem = Problem::of_file(shown, format!("it cannot be read: {error}"));
            return (Vec::new(), vec![problem]);
        }
    };
    let mut reading = Reading::new(shown, &text);
    let mut tests = Vec::new();
    if let Some(whole) = reading.parse() {
        let rule = read(&mut reading, &whole, &text);
        if let Some(rule) = rule.filter(|_| reading.count() == 0) {
            tests = run_all(&mut reading, &rule, &whole, settings);
        }
    }
    (tests, reading.into_problems())
}

fn part<'a, 't>(table: &'a DeTable<'t>, key: &str) -> Option<&'a Spanned<DeValue<'t>>> {
    let mut entries = table.iter();
    entries
        .find(|(known, _)| known.get_ref() == key)
        .map(|(_, value)| value)
}

fn read<'t>(reading: &mut Reading<'t>, whole: &DeTable<'t>, text: &str) -> Option<Rule> {
    let Some(head) = part(whole, "rule") else {
        reading.fault(0..0, "there is no table `[rule]`");
        return None;
    };
    let span = head.span();
    let head = reading.table("rule", head)?;
    let mut needed = |key: &str| match part(head, key) {
        Some(value) => reading
            .text(key, value)
            .map(|text| Spanned::new(value.span(), text)),
        None => {
            reading.fault(span.clone(), format!("`[rule]` has no `{key}`"));
            None
        }
    };
    let (id, trigger) = (needed("id"), needed("trigger"));
    let trigger = known_trigger(reading, trigger?)?;
    let expression = condition(reading, whole, &trigger, text)?;
    let action = part(whole, "action").and_then(|action| action.get_ref().as_table());
    let message = action.and_then(|action| part(action, "message")?.get_ref().as_str());
    Some(Rule {
        id: id?.into_inner(),
        trigger,
        expression,
        message: message.map(str::to_owned),
    })
}

fn known_trigger(reading: &mut Reading<'_>, trigger: Spanned<String>) -> Option<String> {
    if RULE_TRIGGERS.contains(&trigger.get_ref().as_str()) {
        return Some(trigger.into_inner());
    }
    let message = format!("there is no trigger `{}`", trigger.get_ref());
    let hint = match nearest(trigger.get_ref(), RULE_TRIGGERS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is {}", RULE_TRIGGERS.join(", ")),
    };
    reading.fault_with(trigger.span(), message, hint);
    None
}

/// The condition, if it is an expression that fits the trigger. A script has no tests here.
fn condition<'t>(
    reading: &mut Reading<'t>,
    whole: &DeTable<'t>,
    trigger: &str,
    text: &str,
) -> Option<String> {
    let Some(condition) = part(whole, "condition") else {
        reading.fault(0..0, "there is no table `[condition]`");
        return None;
    };
    let span = condition.span();
    let condition = reading.table("condition", condition)?;
    let value = match (part(condition, "expression"), part(condition, "script")) {
        (Some(value), None) => value,
        (None, Some(_)) => return None,
        _ => {
            let message = "`[condition]` has an `expression` or a `script`, one of them";
            reading.fault(span, message);
            return None;
        }
    };
    let expression = reading.text("expression", value)?;
    let schema = Schema::parse(RULE_CONTEXT).expect("the shape of a rule's context is tested");
    if let Err(error) = Expr::compile(&expression, &schema.at(trigger)) {
        let place = within(
            text,
            value,
            &expression,
            error.span().start,
            error.span().end,
        );
        match error.hint() {
            Some(hint) => reading.fault_with(place, error.message(), hint),
            None => reading.fault(place, error.message()),
        }
        return None;
    }
    Some(expression)
}

/// The place in the file of a place in an expression, where the expression stands there as it is.
fn within(
    text: &str,
    value: &Spanned<DeValue<'_>>,
    expression: &str,
    start: usize,
    end: usize,
) -> std::ops::Range<usize> {
    let span = value.span();
    match text.get(span.clone()).and_then(|raw| raw.find(expression)) {
        Some(at) => span.start + at + start..span.start + at + end,
        None => span,
    }
}

fn run_all<'t>(
    reading: &mut Reading<'t>,
    rule: &Rule,
    whole: &DeTable<'t>,
    settings: &Map<String, Value>,
) -> Vec<Tested> {
    let Some(tests) = part(whole, "tests") else {
        return Vec::new();
    };
    let Some(list) = tests.get_ref().as_array() else {
        reading.expected("tests", "written as `[[tests]]`", tests);
        return Vec::new();
    };
    let mut tested = Vec::new();
    for (test, number) in list.iter().zip(1..) {
        match to_json(test.get_ref()) {
            Ok(json) if json["expect"]["fired"].is_boolean() => {
                let name = json["name"].as_str().map(str::to_owned);
                tested.push(Tested {
                    rule: rule.id.clone(),
                    name: name.unwrap_or_else(|| format!("test {number}")),
                    failure: run(rule, &json, settings).err(),
                });
            }
            Ok(_) => {
                let message = "a test says `expect = { fired = true }`, or `false`";
                reading.fault(test.span(), message);
            }
            Err(why) => reading.fault(test.span(), why),
        }
    }
    tested
}

/// Runs one test: does the condition hold, and does the message say what it should?
fn run(rule: &Rule, test: &Value, settings: &Map<String, Value>) -> Result<(), String> {
    let mut settings = settings.clone();
    if let Some(own) = test["settings"].as_object() {
        settings.extend(own.clone());
    }
    let input = |language: Language, source: &str| {
        json!({
            language.key(): source, "trigger": rule.trigger,
            "context": test["context"], "settings": settings,
        })
    };
    let answer = |language: Language, source: &str| {
        let answer = Job::new(language, false).answer(&input(language, source));
        match answer["ok"] == true {
            true => Ok(answer),
            false => Err(answer["error"]["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned()),
        }
    };
    let fired = answer(Language::Expr, &rule.expression)?["truthy"] == true;
    let expected = test["expect"]["fired"] == true;
    if fired != expected {
        let why = match fired {
            true => "it fires, and should not",
            false => "it does not fire, and should",
        };
        return Err(why.to_owned());
    }
    let Some(wanted) = test["expect"]["message"].as_str().filter(|_| fired) else {
        return Ok(());
    };
    let message = rule.message.as_deref().unwrap_or_default();
    let rendered = answer(Language::Template, message)?;
    let text = rendered["text"].as_str().unwrap_or_default();
    match text.contains(wanted) {
        true => Ok(()),
        false => Err(format!("its message is {text:?}, without {wanted:?}")),
    }
}
