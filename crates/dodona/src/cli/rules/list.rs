//! `dodona rules list`.

use std::fmt::Write as _;
use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{near, short};
use crate::layout;
use crate::paint::Paint;
use crate::table::{self, Cell, Look, Table};

#[derive(Serialize, Deserialize)]
pub(super) struct Listed {
    rules: Vec<Value>,
    broken: usize,
}

/// The rules in the order in which they are evaluated, and how many files are broken.
pub(super) fn table(listed: &Listed, paint: Paint) -> String {
    let field = |rule: &Value, key: &str| rule[key].as_str().unwrap_or_default().to_owned();
    let header = [
        "RULE",
        "TRIGGER",
        "PRIORITY",
        "STATE",
        "FIRED",
        "DESCRIPTION",
    ];
    let mut table = Table::new(&header).align_right(&[2]);
    for rule in &listed.rules {
        let look = match rule["enabled"] == true {
            true => Look::Good,
            false => Look::Dim,
        };
        let (state, about) = match (rule["inactive"].as_str(), rule["outdated"] == true) {
            (Some(why), _) => {
                let why = format!("inactive: {}", why.replace('_', " "));
                (Cell::new("inactive", Look::Bad), Cell::new(why, Look::Bad))
            }
            (None, true) => (
                Cell::new(state(rule), look),
                Cell::new(
                    "its file has an error; the last valid version is in force",
                    Look::Bad,
                ),
            ),
            (None, false) => (
                Cell::new(state(rule), look),
                table::dim(field(rule, "description")),
            ),
        };
        table.row([
            table::bold(short(&field(rule, "rule"))),
            field(rule, "trigger").into(),
            rule["priority"].to_string().into(),
            state,
            alive(&rule["liveness"]).into(),
            about,
        ]);
    }
    let mut text = match listed.rules.is_empty() {
        true => "no rules\n".to_owned(),
        false => table.render(paint, layout::width(&io::stdout())),
    };
    if listed.broken > 0 {
        let check = paint.code("dodona rules check");
        let files = match listed.broken {
            1 => "1 file has errors".to_owned(),
            many => format!("{many} files have errors"),
        };
        let _ = writeln!(text, "{}; run {check} to see them", paint.bad(files));
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

/// How often a rule fired of how many evaluations.
pub(super) fn alive(liveness: &Value) -> String {
    let count = |key: &str| liveness[key].as_u64().unwrap_or(0);
    let mut words = match count("evaluated") {
        0 => "not evaluated yet".to_owned(),
        evaluated => format!("{} of {evaluated}", count("fired")),
    };
    for what in ["failed", "dropped"] {
        if count(what) > 0 {
            let _ = write!(words, ", {what} {}", count(what));
        }
    }
    words
}

/// Counts in queries and outside of them; nothing where there are none outside.
pub(super) fn apart(liveness: &Value) -> Option<String> {
    let outside = &liveness["outside_query"];
    let is_any = outside["evaluated"].as_u64().unwrap_or(0) > 0;
    is_any.then(|| {
        format!(
            "in queries: {} · outside of queries: {}",
            alive(&liveness["in_query"]),
            alive(outside)
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
