//! The verbs that tell what notes were.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::change::{NoteEdit, short};
use crate::cli::form::{part, show};
use crate::failure::Failure;
use crate::paint::{Paint, harmless};
use crate::session::Session;

/// Who changed notes, when and why.
#[derive(Serialize, Deserialize)]
struct ChangeInfo {
    change: i64,
    at: Timestamp,
    method: String,
    author: Option<String>,
    user: Option<String>,
    query: Option<String>,
    call: Option<String>,
    call_path: Option<String>,
    undone_by: Option<i64>,
}

impl ChangeInfo {
    fn told(&self, paint: Paint) -> String {
        let at = self.at.strftime("%Y-%m-%d %H:%M");
        let what = match (self.method.as_str(), &self.author) {
            ("found", _) => "seen first".to_owned(),
            ("outside", _) => "changed by another program".to_owned(),
            (method, Some(author)) => format!("{} by {}", harmless(method), harmless(author)),
            (method, None) => harmless(method).into_owned(),
        };
        let query = match &self.query {
            Some(query) => format!(" in query {}", harmless(query)),
            None => String::new(),
        };
        let undone = match self.undone_by {
            Some(by) => format!(" (undone by {by})"),
            None => String::new(),
        };
        format!(
            "{}  {}  {what}{query}{undone}",
            paint.bold(format!("{:>5}", self.change)),
            paint.dim(at),
        )
    }
}

#[derive(Serialize, Deserialize)]
struct Past {
    #[serde(flatten)]
    by: ChangeInfo,
    #[serde(flatten)]
    note: NoteEdit,
}

#[derive(Serialize, Deserialize)]
struct WholeChange {
    #[serde(flatten)]
    by: ChangeInfo,
    count: usize,
    notes: Vec<NoteEdit>,
}

#[derive(Serialize, Deserialize)]
struct GoneNote {
    path: String,
    version: String,
    #[serde(flatten)]
    by: ChangeInfo,
}

/// How many notes of a change are shown.
const SHOWN: usize = 5;

/// What happened to a note.
pub(super) async fn of_note(
    session: &Session,
    path: &str,
    limit: u32,
    as_json: bool,
    paint: Paint,
) -> Result<String, Failure> {
    let params = json!({ "path": path, "limit": limit });
    let past: Vec<Past> = part(session, "vault.history", params, "history").await?;
    Ok(show(as_json, &past, || {
        let mut text = String::new();
        for past in &past {
            let _ = writeln!(text, "{}", past.by.told(paint));
            let _ = writeln!(text, "       {}", past.note.told());
        }
        or(text, "nothing is known of that note\n")
    }))
}

/// What happened to all notes, or in one query.
pub(super) async fn of_all(
    session: &Session,
    query: Option<String>,
    limit: u32,
    as_json: bool,
    paint: Paint,
) -> Result<String, Failure> {
    let params = json!({ "query": query, "limit": limit });
    let changes: Vec<WholeChange> = part(session, "vault.changes", params, "changes").await?;
    Ok(show(as_json, &changes, || {
        let mut text = String::new();
        for change in &changes {
            let _ = writeln!(text, "{}", change.by.told(paint));
            for note in change.notes.iter().take(SHOWN) {
                let _ = writeln!(text, "       {}", note.told());
            }
            if change.count > SHOWN {
                let _ = writeln!(text, "       and {} more", change.count - SHOWN);
            }
        }
        or(text, "no changes\n")
    }))
}

/// What is other between two versions.
pub(super) async fn diff(
    session: &Session,
    params: Value,
    paint: Paint,
) -> Result<String, Failure> {
    let answer: Value = session.ask("vault.diff", params).await?;
    let diff = answer["diff"].as_str().unwrap_or_default();
    let mut text = String::new();
    for line in diff.lines() {
        let shown = harmless(line);
        let _ = match line.as_bytes().first() {
            Some(b'+') => writeln!(text, "{}", paint.good(shown)),
            Some(b'-') => writeln!(text, "{}", paint.bad(shown)),
            Some(b'@') => writeln!(text, "{}", paint.dim(shown)),
            _ => writeln!(text, "{shown}"),
        };
    }
    Ok(or(text, "no difference\n"))
}

/// Notes that are gone.
pub(super) async fn trash(
    session: &Session,
    limit: u32,
    as_json: bool,
    paint: Paint,
) -> Result<String, Failure> {
    let params = json!({ "limit": limit });
    let notes: Vec<GoneNote> = part(session, "vault.trash", params, "notes").await?;
    Ok(show(as_json, &notes, || {
        let mut text = String::new();
        for note in &notes {
            let _ = writeln!(
                text,
                "{}  {}",
                paint.bold(harmless(&note.path)),
                short(&note.version)
            );
            let _ = writeln!(text, "{}", note.by.told(paint));
        }
        or(text, "the trash is empty\n")
    }))
}

fn or(text: String, nothing: &str) -> String {
    match text.is_empty() {
        true => nothing.to_owned(),
        false => text,
    }
}
