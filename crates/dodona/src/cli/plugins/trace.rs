//! `dodona plugins trace`.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::paint::{Paint, one_line};

#[derive(Serialize, Deserialize)]
pub(super) struct Traced {
    hooks: Vec<Hook>,
    runs: Vec<Run>,
}

#[derive(Serialize, Deserialize)]
struct Hook {
    hook: String,
    plugin: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    priority: i32,
    runs: u64,
}

#[derive(Serialize, Deserialize)]
struct Run {
    at: String,
    plugin: String,
    hook: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    micros: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edit: Option<Value>,
    effects: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The hooks in the order in which they run, then what they did.
pub(super) fn words(traced: &Traced, paint: Paint) -> String {
    if traced.hooks.is_empty() {
        return "no plugin has a hook\n".to_owned();
    }
    let mut text = String::new();
    for hook in &traced.hooks {
        let name = hook.name.as_deref().map(one_line).unwrap_or_default();
        let line = format!(
            "{:22}  {:16}  priority {:<4}  {} runs  {name}",
            hook.hook, hook.plugin, hook.priority, hook.runs
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for run in &traced.runs {
        let what = match (&run.error, &run.edit) {
            (Some(error), _) => paint.bad(one_line(error)).to_string(),
            (None, Some(edit)) => one_line(&edit.to_string()),
            (None, None) if run.effects > 0 => format!("{} effects", run.effects),
            (None, None) => String::new(),
        };
        let line = format!(
            "{}  {:22}  {:16}  {:>9.1} µs  {what}",
            paint.dim(&run.at),
            run.hook,
            run.plugin,
            run.micros
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
