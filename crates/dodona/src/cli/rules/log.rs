//! `dodona rules log`.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{short, text};
use crate::layout;
use crate::paint::{Paint, one_line};

#[derive(Serialize, Deserialize)]
pub(super) struct Log {
    executions: Vec<Value>,
}

/// A line for each, the latest last.
pub(super) fn table(log: &Log, paint: Paint) -> String {
    let names = log
        .executions
        .iter()
        .map(|one| short(text(one, "rule")).len());
    let names = names.max().unwrap_or(0);
    let mut out = String::new();
    for one in log.executions.iter().rev() {
        let (word, what) = match (one["error"].as_str(), one["dropped"].as_str()) {
            (Some(error), _) => (paint.bad("failed ").to_string(), one_line(error)),
            (None, Some(why)) => {
                let rest = said(&one["decisions"]);
                let rest = Some(rest).filter(|rest| !rest.is_empty());
                let rest = rest.map(|rest| format!(" · {rest}")).unwrap_or_default();
                let what = format!("notification dropped: {}{rest}", one_line(why));
                (paint.bad("dropped").to_string(), what)
            }
            (None, None) => (paint.good("fired  ").to_string(), said(&one["decisions"])),
        };
        let query = one["query_id"]
            .as_str()
            .map(|id| format!("  {}", layout::short_id(id)));
        let _ = writeln!(
            out,
            "{}  {word}  {:names$}  {what}{}",
            paint.dim(moment(text(one, "at"))),
            short(text(one, "rule")),
            paint.dim(query.unwrap_or_default()),
        );
    }
    if out.is_empty() {
        out = "no rule has fired or failed\n".to_owned();
    }
    out
}

/// A time to the second.
fn moment(at: &str) -> String {
    let second = at.split('.').next().unwrap_or(at);
    second.trim_end_matches('Z').replace('T', " ")
}

/// What was decided, in short.
fn said(decisions: &Value) -> String {
    let each = decisions.as_array().into_iter().flatten().map(|decision| {
        let kind = text(decision, "type");
        let said = ["message", "key", "event_type"];
        let said = said.iter().find_map(|key| decision[*key].as_str());
        match said {
            Some(said) => format!("{kind}: {}", one_line(said)),
            None => kind.to_owned(),
        }
    });
    each.collect::<Vec<_>>().join(" · ")
}
