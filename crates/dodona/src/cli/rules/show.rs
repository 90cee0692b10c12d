//! `dodona rules show`.

use std::fmt::Write as _;

use serde_json::Value;

use super::list::{alive, apart, origin};
use super::{short, text};
use crate::paint::{Paint, harmless, one_line};

/// Everything about a rule, in words.
pub(super) fn words(rule: &Value, paint: Paint) -> String {
    let definition = &rule["definition"];
    let mut out = format!("{}", paint.bold(short(text(rule, "rule"))));
    let name = text(rule, "name");
    if !name.is_empty() && name != text(definition, "id") {
        let _ = write!(out, "  {}", harmless(name));
    }
    out.push('\n');
    let mut line = |what: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(out, "  {} {value}", paint.dim(format!("{what:9}")));
        }
    };
    line("about", one_line(text(rule, "description")));
    line(
        "file",
        format!("{}:{}", origin(rule), rule["condition_line"]),
    );
    line("trigger", text(rule, "trigger").to_owned());
    line("priority", rule["priority"].to_string());
    line("state", state(rule).to_owned());
    line("condition", condition(&definition["condition"]));
    for action in definition["actions"].as_array().into_iter().flatten() {
        line("action", self::action(action));
    }
    line("limits", limits(&definition["limits"]));
    line("tests", tests(&definition["tests"]));
    line("alive", alive(&rule["liveness"]).trim_end().to_owned());
    line("", apart(&rule["liveness"]).unwrap_or_default());
    line("error", one_line(text(&rule["liveness"], "last_error")));
    out
}

fn state(rule: &Value) -> &'static str {
    match (rule["core"] == true, rule["enabled"] == true) {
        (true, _) => "on; a core rule, which cannot be disabled",
        (false, true) => "on",
        (false, false) if rule["switched_off"] == true => "off: you switched it off",
        (false, false) => "off: disabled in its file",
    }
}

fn condition(condition: &Value) -> String {
    match (
        condition["expression"].as_str(),
        condition["script"].as_str(),
    ) {
        (Some(expression), _) => one_line(expression.trim()),
        (None, Some(script)) => format!("script {}", one_line(script)),
        (None, None) => String::new(),
    }
}

fn action(action: &Value) -> String {
    let kind = text(action, "type");
    let rest = ["message", "key", "event_type"];
    let rest = rest.iter().filter_map(|key| action[*key].as_str()).next();
    match rest {
        Some(rest) => format!("{kind}  {}", one_line(rest)),
        None => kind.to_owned(),
    }
}

fn limits(limits: &Value) -> String {
    let said = ["cooldown", "once_per"].iter().filter_map(|key| {
        let value = limits[*key].as_str()?;
        Some(format!("{key} = {value}"))
    });
    said.collect::<Vec<_>>().join(", ")
}

fn tests(tests: &Value) -> String {
    let names = tests.as_array().into_iter().flatten();
    let names: Vec<String> = names.map(|test| one_line(text(test, "name"))).collect();
    names.join(" · ")
}
