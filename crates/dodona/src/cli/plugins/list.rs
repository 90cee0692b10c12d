//! `dodona plugins list`, `order` and `reload`.

use std::fmt::Write as _;

use dodona_plugin::reading::Problem;
use dodona_proto::{ExitKind, PluginName, PluginState, PluginStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Done, Form, answer};
use crate::failure::Failure;
use crate::paint::{Paint, one_line};
use crate::session::Session;
use crate::table::{self, Cell, Look, Table};

#[derive(Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) plugins: Vec<PluginStatus>,
    pub(super) problems: Vec<Problem>,
    pub(super) roster: Option<String>,
}

/// The plugins, and below them the problems of the roster.
pub(super) fn table(listed: &Listed, paint: Paint) -> String {
    let mut text = lines(&listed.plugins, paint);
    // A problem that is the reason of a plugin's status is shown there.
    let told = |problem: &Problem| {
        let brief = problem.brief();
        let reasons = listed.plugins.iter().filter_map(|s| s.reason.as_deref());
        reasons.into_iter().any(|reason| reason.contains(&brief))
    };
    for problem in listed.problems.iter().filter(|problem| !told(problem)) {
        let _ = writeln!(
            text,
            "{} {}",
            paint.bad("problem:"),
            one_line(&problem.to_string())
        );
    }
    text
}

pub(super) fn lines(plugins: &[PluginStatus], paint: Paint) -> String {
    let mut table = Table::new(&["PLUGIN", "VERSION", "STATUS", "REASON"]);
    for status in plugins {
        let look = match status.state {
            PluginState::Active => Look::Good,
            PluginState::Failed => Look::Bad,
            PluginState::SkippedDependency => Look::Warning,
            _ => Look::Dim,
        };
        table.row([
            table::bold(status.name.as_str()),
            status.version.as_deref().unwrap_or("-").into(),
            Cell::new(word(status.state), look),
            status.reason.as_deref().unwrap_or_default().into(),
        ]);
    }
    // The reason says what to do, so it is not cut.
    table.render(paint, None)
}

/// A state as it is written.
pub(super) fn word(state: PluginState) -> &'static str {
    match state {
        PluginState::Discovered => "discovered",
        PluginState::Loaded => "loaded",
        PluginState::Starting => "starting",
        PluginState::Active => "active",
        PluginState::Failed => "failed",
        PluginState::Disabled => "disabled",
        PluginState::SkippedDependency => "skipped_dependency",
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Order {
    plugins: Vec<Ordered>,
}

#[derive(Serialize, Deserialize)]
struct Ordered {
    name: PluginName,
    state: PluginState,
    needs: Vec<String>,
}

pub(super) fn order(order: &Order, paint: Paint) -> String {
    let lengths = order
        .plugins
        .iter()
        .map(|plugin| plugin.name.as_str().len());
    let names = lengths.max().unwrap_or(0);
    let mut text = String::new();
    for (plugin, number) in order.plugins.iter().zip(1..) {
        let state = match plugin.state {
            PluginState::Active => String::new(),
            state => format!("{}  ", word(state)),
        };
        let needs = match plugin.needs.as_slice() {
            [] => String::new(),
            needs => format!("after {}", needs.join(", ")),
        };
        let rest = format!("{}{}", paint.note(state), paint.dim(needs));
        let line = format!("{number:3}  {:names$}  {rest}", plugin.name.as_str());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[derive(Serialize, Deserialize)]
struct Reloaded {
    activated: Vec<PluginName>,
    deactivated: Vec<PluginName>,
    kept: Vec<PluginName>,
    refused: Option<String>,
    problems: Vec<Problem>,
    /// Present in the answer of `plugins.remove`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data_deleted: Option<bool>,
}

pub(super) async fn reload(session: &Session, form: Form) -> Result<Done, Failure> {
    reloaded(session, "plugins.reload", json!({}), form).await
}

/// Asks a method that answers with what came and went.
pub(super) async fn reloaded(
    session: &Session,
    method: &str,
    params: Value,
    form: Form,
) -> Result<Done, Failure> {
    let reloaded: Reloaded = answer(session, method, params).await?;
    let failure = reloaded.refused.as_ref().map(|refused| {
        let message = format!("nothing was changed: {refused}");
        Failure::new(ExitKind::Usage, message)
            .hint("correct the roster; `dodona plugins check` shows the place")
    });
    let text = match failure.is_some() && !form.json {
        true => String::new(),
        false => form.text(&reloaded, words),
    };
    Ok(Done { text, failure })
}

fn words(reloaded: &Reloaded, paint: Paint) -> String {
    let mut text = String::new();
    for (what, names) in [
        ("activated", &reloaded.activated),
        ("deactivated", &reloaded.deactivated),
    ] {
        for name in names {
            let _ = writeln!(text, "{what} {name}");
        }
    }
    if reloaded.data_deleted == Some(true) {
        text.push_str("deleted its data\n");
    }
    if text.is_empty() {
        text.push_str("nothing changed\n");
    }
    let _ = writeln!(
        text,
        "{}",
        paint.dim(format!("{} unchanged", reloaded.kept.len()))
    );
    for problem in &reloaded.problems {
        let _ = writeln!(
            text,
            "{} {}",
            paint.bad("problem:"),
            one_line(&problem.to_string())
        );
    }
    text
}
