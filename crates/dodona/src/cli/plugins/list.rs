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

#[derive(Serialize, Deserialize)]
pub(super) struct Listed {
    pub(super) plugins: Vec<PluginStatus>,
    pub(super) problems: Vec<Problem>,
    pub(super) roster: Option<String>,
}

/// The plugins, and below them what is wrong with the roster.
pub(super) fn table(listed: &Listed, paint: Paint) -> String {
    let mut text = lines(&listed.plugins, paint);
    // What has a line above says it there.
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

/// A line for each plugin, the columns aligned.
pub(super) fn lines(plugins: &[PluginStatus], paint: Paint) -> String {
    let version = |status: &PluginStatus| status.version.clone().unwrap_or_else(|| "-".to_owned());
    let wide = |text: &dyn Fn(&PluginStatus) -> usize| plugins.iter().map(text).max().unwrap_or(0);
    let names = wide(&|status| status.name.as_str().len());
    let versions = wide(&|status| version(status).chars().count());
    let states = wide(&|status| word(status.state).len());
    let mut text = String::new();
    for status in plugins {
        let state = format!("{:states$}", word(status.state));
        let state = match status.state {
            PluginState::Active => paint.good(state).to_string(),
            PluginState::Failed => paint.bad(state).to_string(),
            PluginState::SkippedDependency => paint.note(state).to_string(),
            _ => paint.dim(state).to_string(),
        };
        let reason = status.reason.as_deref().map(one_line).unwrap_or_default();
        let line = format!(
            "{:names$}  {:versions$}  {state}  {reason}",
            status.name.as_str(),
            version(status)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
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
        ("let go", &reloaded.deactivated),
    ] {
        for name in names {
            let _ = writeln!(text, "{what} {name}");
        }
    }
    if reloaded.data_deleted == Some(true) {
        text.push_str("deleted its data\n");
    }
    if text.is_empty() {
        text.push_str("nothing has changed\n");
    }
    let _ = writeln!(
        text,
        "{}",
        paint.dim(format!("{} kept as they are", reloaded.kept.len()))
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
