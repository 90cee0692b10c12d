//! `dodona models list`.

use std::fmt::Write as _;
use std::io;

use dodona_llm::{KeySource, ModelConfig, ModelError, Models, Provider, process_environment};
use serde::Serialize;
use serde_json::json;

use super::Known;
use crate::layout;
use crate::paint::{Paint, harmless, one_line};
use crate::table::{self, Cell, Look, Table};

/// A model, as it is listed.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    provider: Provider,
    model: Option<String>,
    base_url: Option<String>,
    key: Key,
    fallback: Option<String>,
    default: bool,
    /// What is wrong with its settings, and what to do.
    problem: Option<String>,
}

/// Where a key comes from, and whether it is there.
#[derive(Debug, Serialize)]
struct Key {
    state: KeyState,
    /// The variable or the file.
    source: Option<String>,
    /// Why it cannot be used.
    problem: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum KeyState {
    NotNeeded,
    Present,
    Missing,
}

pub(super) fn text(known: &Known, json: bool) -> String {
    let models = models(known);
    match json {
        true => json!(models).to_string() + "\n",
        false => table(&models, Paint::of(&io::stdout())),
    }
}

fn models(known: &Known) -> Vec<Listed> {
    let mut configs = known.settings.models.clone();
    let offline = || ModelConfig {
        model: None,
        ..ModelConfig::new(Provider::Offline, "")
    };
    configs.entry("offline".to_owned()).or_insert_with(offline);
    let environment = process_environment();
    let (_, problems) = Models::from_config(&configs, Some(&known.default), &environment);
    configs
        .into_iter()
        .map(|(name, config)| {
            let problem = problems.iter().find(|problem| problem.model == name);
            Listed {
                key: key(&config),
                provider: config.provider,
                base_url: config.address().map(str::to_owned),
                model: config.model,
                fallback: config.fallback,
                default: name == known.default,
                problem: problem.map(|problem| told(&problem.error)),
                name,
            }
        })
        .collect()
}

fn key(config: &ModelConfig) -> Key {
    let source = config.key_source().unwrap_or(KeySource::None);
    let loaded = source.load(&process_environment());
    Key {
        state: match &loaded {
            Ok(None) => KeyState::NotNeeded,
            Ok(Some(_)) => KeyState::Present,
            Err(_) => KeyState::Missing,
        },
        source: (source != KeySource::None).then(|| source.to_string()),
        problem: loaded.err().map(|error| told(&error)),
    }
}

/// An error and what to do about it, on one line.
fn told(error: &ModelError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

fn table(models: &[Listed], paint: Paint) -> String {
    let header = ["MODEL", "PROVIDER", "NAME AT PROVIDER", "KEY", "ADDRESS"];
    let mut table = Table::new(&header);
    for model in models {
        let name = match model.default {
            true => format!("{} (default)", model.name),
            false => model.name.clone(),
        };
        table.row([
            table::bold(name),
            model.provider.as_str().into(),
            model.model.as_deref().unwrap_or_default().into(),
            key_cell(model),
            table::dim(model.base_url.as_deref().unwrap_or_default()),
        ]);
    }
    let mut text = table.render(paint, layout::width(&io::stdout()));
    for model in models {
        // Below the table, because a problem and its hint are longer than a column.
        if let Some(problem) = model.problem.as_ref().or(model.key.problem.as_ref()) {
            let line = format!("{}: {}", model.name, one_line(problem));
            let _ = writeln!(text, "{} {}", paint.bad("problem:"), harmless(&line));
        }
    }
    text
}

fn key_cell(model: &Listed) -> Cell {
    if model.problem.is_some() || model.key.problem.is_some() {
        return Cell::new("problem, see below", Look::Bad);
    }
    match (&model.key.source, model.provider) {
        (Some(source), _) => table::dim(source),
        (None, Provider::Offline) => table::dim("not needed"),
        (None, _) => table::dim("none"),
    }
}
