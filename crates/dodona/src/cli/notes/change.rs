//! The verbs that change notes.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cli::form::show;
use crate::failure::Failure;
use crate::paint::harmless;
use crate::session::Session;

/// The largest text that is read; the vault itself takes less.
const LARGEST: u64 = 4 << 20;

/// Where a text comes from.
#[derive(Debug, Args)]
pub(in crate::cli) struct Body {
    /// The text itself
    #[arg(long, value_name = "TEXT", conflicts_with = "file")]
    body: Option<String>,
    /// A file with the text [default: standard input]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Body {
    pub(in crate::cli) fn read(self) -> Result<String, Failure> {
        match (self.body, self.file) {
            (Some(text), _) => Ok(text),
            (None, Some(file)) => {
                let shown = file.display().to_string();
                let file = File::open(&file).map_err(|error| {
                    Failure::usage(format!("could not open `{shown}`: {error}"))
                })?;
                read(file, &shown)
            }
            (None, None) if io::stdin().is_terminal() => Err(Failure::usage("no text given")
                .hint("give it with `--body` or `--file`, or on standard input")),
            (None, None) => read(io::stdin().lock(), "standard input"),
        }
    }
}

fn read(from: impl Read, origin: &str) -> Result<String, Failure> {
    let mut text = String::new();
    from.take(LARGEST + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("could not read {origin}: {error}")))?;
    match text.len() as u64 > LARGEST {
        true => Err(Failure::usage(format!(
            "{origin} has more than {LARGEST} bytes"
        ))),
        false => Ok(text),
    }
}

/// What was done to the notes.
#[derive(Serialize, Deserialize)]
struct Done {
    change: Option<i64>,
    notes: Vec<NoteEdit>,
}

/// What became of a note.
#[derive(Serialize, Deserialize)]
pub(super) struct NoteEdit {
    pub(super) path: String,
    pub(super) version: Option<String>,
    previous: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moved_from: Option<String>,
}

impl NoteEdit {
    /// In a word, with the version it is.
    pub(super) fn told(&self) -> String {
        let path = harmless(&self.path);
        let version = self.version.as_deref().map(short).unwrap_or_default();
        match (&self.moved_from, &self.previous, &self.version) {
            (Some(from), ..) => format!("moved    {} → {path}  {version}", harmless(from)),
            (None, None, _) => format!("made     {path}  {version}"),
            (None, Some(_), None) => format!("removed  {path}"),
            (None, Some(_), Some(_)) => format!("changed  {path}  {version}"),
        }
    }
}

/// The first digits of a version, enough to name it.
pub(super) fn short(version: &str) -> &str {
    version.get(..12).unwrap_or(version)
}

/// Asks for a change and tells what was done.
pub(super) async fn change(
    session: &Session,
    method: &str,
    params: Value,
    json: bool,
) -> Result<String, Failure> {
    let done: Done = session.ask(method, params).await?;
    Ok(show(json, &json!(done), || text(&done, method)))
}

fn text(done: &Done, method: &str) -> String {
    let Some(change) = done.change else {
        return "nothing to change\n".to_owned();
    };
    // Where a note that moved was, it is removed: that goes without saying.
    let is_origin = |edit: &NoteEdit| {
        let from = |other: &NoteEdit| other.moved_from.as_ref() == Some(&edit.path);
        edit.version.is_none() && done.notes.iter().any(from)
    };
    let mut text: String = done
        .notes
        .iter()
        .filter(|edit| !is_origin(edit))
        .map(|edit| edit.told() + "\n")
        .collect();
    match method {
        "vault.undo" => text.push_str(&format!("change {change}\n")),
        _ => text.push_str(&format!(
            "change {change}; `dodona notes undo --change {change}` takes it back\n"
        )),
    }
    text
}
