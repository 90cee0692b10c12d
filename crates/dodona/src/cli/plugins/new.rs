//! `dodona plugins new`.

use std::fs;
use std::path::Path;

use dodona_proto::{ExitKind, PluginName};
use serde_json::json;

use super::Form;
use crate::failure::Failure;
use crate::home::Home;

/// What a new plugin starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Template {
    /// A rule and its tests.
    Rules,
    /// A script in Luau.
    Luau,
    /// A program in Python.
    Process,
}

impl Template {
    fn files(self) -> Files {
        match self {
            Self::Rules => RULES,
            Self::Luau => SCRIPT,
            Self::Process => PROCESS,
        }
    }

    fn next(self) -> Next {
        match self {
            Self::Rules => RULES_NEXT,
            Self::Luau => SCRIPT_NEXT,
            Self::Process => PROCESS_NEXT,
        }
    }
}

/// Creates a plugin's directory among the user's.
pub(super) fn make(name: &str, template: Template, form: Form) -> Result<String, Failure> {
    let name = PluginName::new(name).map_err(|error| Failure::usage(error.to_string()))?;
    let home = Home::find()?;
    home.create()?;
    let dir = home.config.join("plugins").join(name.as_str());
    if dir.exists() {
        let message = format!("`{}` already exists", dir.display());
        return Err(Failure::usage(message).hint("choose another name, or remove it"));
    }
    write(&dir, name.as_str(), template.files()).map_err(|error| {
        let message = format!("could not create `{}`: {error}", dir.display());
        Failure::new(ExitKind::Storage, message)
    })?;
    let shown = dir.display().to_string();
    let told = json!({ "name": name, "directory": shown });
    Ok(form.text(&told, |_, paint| {
        let next = template.next();
        let next = next.map(|(command, why)| (command.replace("NAME", name.as_str()), why));
        let width = next.iter().map(|(command, _)| command.len()).max();
        let width = width.unwrap_or_default();
        let lines = next.iter().map(|(command, why)| {
            let command = paint.code(format!("{command:width$}"));
            format!("  {command}   {why}\n")
        });
        format!("made {shown}\n{}", lines.collect::<String>())
    }))
}

/// What to do next, and what for.
type Next = [(&'static str, &'static str); 2];

const RULES_NEXT: Next = [
    ("dodona plugins check NAME", "does it work?"),
    ("dodona plugins reload", "activate it"),
];

const SCRIPT_NEXT: Next = [
    ("dodona plugins test NAME", "does it work?"),
    (
        "dodona plugins grant NAME tool_exec",
        "grant its hook and activate it",
    ),
];

const PROCESS_NEXT: Next = [
    ("dodona plugins check NAME", "is what it declares right?"),
    (
        "dodona plugins grant NAME tool_exec",
        "grant its hook and activate it",
    ),
];

/// The files of a new plugin, by their place.
type Files = &'static [(&'static str, &'static str)];

/// Rules and a setting.
const RULES: Files = &[
    ("manifest.toml", MANIFEST),
    ("rules/long-query.toml", RULE),
    ("README.md", README),
];

/// A script with a method, a hook, a setting and tests.
const SCRIPT: Files = &[
    ("manifest.toml", include_str!("new/manifest.toml")),
    ("main.luau", include_str!("new/main.luau")),
    ("tests/main.toml", include_str!("new/tests.toml")),
    ("README.md", include_str!("new/README.md")),
];

/// A program in Python with a method, a hook, a setting and a database.
const PROCESS: Files = &[
    ("manifest.toml", include_str!("new/process/manifest.toml")),
    ("main.py", include_str!("new/process/main.py")),
    (
        "migrations/0001_words.sql",
        include_str!("new/process/words.sql"),
    ),
    ("README.md", include_str!("new/process/README.md")),
];

fn write(dir: &Path, name: &str, files: Files) -> std::io::Result<()> {
    let title: String = {
        let words = name.replace(['-', '_'], " ");
        let mut letters = words.chars();
        let first = letters.next().map(|c| c.to_uppercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    };
    for (file, text) in files {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(path, text.replace("NAME", name).replace("TITLE", &title))?;
    }
    Ok(())
}

const MANIFEST: &str = r#"[plugin]
id = "NAME"
name = "TITLE"
version = "0.1.0"
description = "Reminds the agent to wrap up when a query takes many turns"

[capabilities]
requires = []          # tools that others must provide, such as "vault_search"
uses = []              # what it may touch; each is granted with `dodona plugins grant`

[rules]
include = ["rules/*.toml"]

# Users change it in plugins/NAME.toml, or for themselves with
# `dodona call plugins.set plugin=NAME setting=many_turns value=10`.
[settings.many_turns]
type = "integer"
default = 5
min = 1
max = 100
description = "After how many turns of a query to remind"
"#;

const RULE: &str = r#"[rule]
id = "long-query"
name = "Long query"
description = "Says so when a query takes many turns"
trigger = "on_turn_start"

[condition]
expression = "context.turn.iteration_count > settings.many_turns"

[action]
type = "notify_self"
message = "Turn {{ context.turn.iteration_count }} of this query. Answer with what you have, or say what is missing."
category = "warning"
deliver_at = "turn_start"

[[tests]]
name = "quiet at first"
context = { turn = { iteration_count = 1 } }
expect = { fired = false }

[[tests]]
name = "reminds after the fifth turn"
context = { turn = { iteration_count = 6 } }
expect = { fired = true, message = "Turn 6 of this query" }

[[tests]]
name = "keeps to what is set"
context = { turn = { iteration_count = 6 } }
settings = { many_turns = 10 }
expect = { fired = false }
"#;

const README: &str = r#"# TITLE

A plugin for Dodona. `manifest.toml` says what it is, `rules/` what it does.

- `dodona plugins check NAME` checks it and runs the tests of its rules.
- `dodona plugins reload` makes a running server load it anew.
- `dodona plugins info NAME` tells how it is.
"#;
