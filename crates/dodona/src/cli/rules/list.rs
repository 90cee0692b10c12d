//! `dodona rules list`.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{near, short};
use crate::paint::{Paint, one_line};

#[derive(Serialize, Deserialize)]
pub(super) struct Listed {
    rules: Vec<Value>,
    broken: usize,
}

/// A line for each rule, the columns aligned.
pub(super) fn table(listed: &Listed, paint: Paint) -> String {
    let field = |rule: &Value, key: &str| rule[key].as_str().unwrap_or_default().to_owned();
    let wide = |key: &str| {
        let lengths = listed
            .rules
            .iter()
            .map(|rule| short(&field(rule, key)).len());
        lengths.max().unwrap_or(0)
    };
    let (names, triggers) = (wide("rule"), wide("trigger"));
    let mut text = String::new();
    for rule in &listed.rules {
        let name = field(rule, "rule");
        let state = format!("{:4}", state(rule));
        let state = match rule["enabled"] == true {
            true => paint.good(state).to_string(),
            false => paint.dim(state).to_string(),
        };
        let note = match (rule["inactive"].as_str(), rule["outdated"] == true) {
            (Some(why), _) => format!("inactive: {}  ", why.replace('_', " ")),
            (None, true) => {
                "its file has an error; the last valid version is in force  ".to_owned()
            }
            (None, false) => String::new(),
        };
        let line = format!(
            "{:names$}  {:triggers$}  {:4}  {state}  {}  {}{}",
            short(&name),
            field(rule, "trigger"),
            rule["priority"].to_string(),
            alive(&rule["liveness"]),
            paint.bad(note),
            paint.dim(one_line(&field(rule, "description"))),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if listed.broken > 0 {
        let check = paint.code("dodona rules check");
        let files = match listed.broken {
            1 => "1 file is broken".to_owned(),
            many => format!("{many} files are broken"),
        };
        let _ = writeln!(text, "{}: {check} says how", paint.bad(files));
    }
    if text.is_empty() {
        text = "there are no rules\n".to_owned();
    }
    text
}

fn state(rule: &Value) -> &'static str {
    match (rule["core"] == true, rule["enabled"] == true) {
        (true, _) => "core",
        (false, true) => "on",
        (false, false) => "off",
    }
}

/// How often it was asked and fired, in a few words.
pub(super) fn alive(liveness: &Value) -> String {
    let count = |key: &str| liveness[key].as_u64().unwrap_or(0);
    let asked = count("evaluated");
    let mut words = match asked {
        0 => "never asked".to_owned(),
        _ => format!("fired {} of {asked}", count("fired")),
    };
    for what in ["failed", "dropped"] {
        if count(what) > 0 {
            let _ = write!(words, ", {what} {}", count(what));
        }
    }
    format!("{words:18}")
}

/// Counts in queries and outside of them; nothing where there are none outside.
pub(super) fn apart(liveness: &Value) -> Option<String> {
    let outside = &liveness["outside_query"];
    let is_any = outside["evaluated"].as_u64().unwrap_or(0) > 0;
    is_any.then(|| {
        format!(
            "in queries: {} · outside of queries: {}",
            alive(&liveness["in_query"]).trim_end(),
            alive(outside).trim_end()
        )
    })
}

/// Where a rule comes from, in words.
pub(super) fn origin(rule: &Value) -> String {
    let path = rule["path"].as_str().unwrap_or_default();
    match path.strip_prefix("bundled:") {
        Some(file) => format!("bundled ({file})"),
        None => near(path),
    }
}
