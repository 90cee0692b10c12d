//! Notes as resources.

use dodona_proto::{CallError, ErrorCode};
use rmcp::ErrorData;
use rmcp::model::{CompletionInfo, Resource, ResourceTemplate};
use serde::Deserialize;
use serde_json::json;

use super::desk::Desk;
use super::resources;

/// What the address of a note begins with; its path follows.
const SCHEME: &str = "dodona://vault/";

pub(super) const MARKDOWN: &str = "text/markdown";

#[derive(Deserialize)]
struct Notes {
    notes: Vec<Note>,
}

#[derive(Deserialize)]
struct Note {
    path: String,
    title: String,
}

/// The project's notes.
pub(super) async fn list(desk: &Desk) -> Result<Vec<Resource>, ErrorData> {
    let answer = desk.call("vault.list", json!({})).await;
    let Notes { notes } =
        resources::understood(answer.map_err(|error| resources::refusal(&error))?)?;
    let notes = notes.into_iter().map(|note| {
        Resource::new(address(&note.path), note.path)
            .with_title(note.title)
            .with_mime_type(MARKDOWN)
    });
    Ok(notes.collect())
}

/// The one form of addresses of notes.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{SCHEME}{{+path}}"), "note")
        .with_title("A note")
        .with_description("A Markdown note of the project, by its path")
        .with_mime_type(MARKDOWN)
}

/// Paths of notes that somebody may mean: those that begin like that first, then those that have
/// it somewhere.
pub(super) async fn complete(desk: &Desk, begun: &str) -> Result<CompletionInfo, ErrorData> {
    let begun = begun.to_lowercase();
    let mut paths: Vec<String> = list(desk)
        .await?
        .into_iter()
        .map(|note| note.name)
        .collect();
    paths.retain(|path| path.to_lowercase().contains(&begun));
    paths.sort_by_key(|path| (!path.to_lowercase().starts_with(&begun), path.clone()));
    let total = u32::try_from(paths.len()).ok();
    let has_more = paths.len() > CompletionInfo::MAX_VALUES;
    paths.truncate(CompletionInfo::MAX_VALUES);
    let mut completion = CompletionInfo::default();
    (completion.values, completion.total, completion.has_more) = (paths, total, Some(has_more));
    Ok(completion)
}

/// Whether an error says that there is no such note, as a path that leads elsewhere does too.
pub(super) fn is_missing(error: &CallError) -> bool {
    matches!(error.code, ErrorCode::NotFound | ErrorCode::InvalidParams)
        || error.code.as_str().starts_with("vault.")
}

/// The address of a note: its path, with whatever an address cannot hold written as its bytes.
fn address(path: &str) -> String {
    let mut uri = SCHEME.to_owned();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// The path that an address names; `None` if it is not the address of a note.
pub(super) fn path(uri: &str) -> Option<String> {
    let encoded = uri.strip_prefix(SCHEME)?.as_bytes();
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut at = 0;
    while let Some(byte) = encoded.get(at) {
        if *byte == b'%' {
            let digits = std::str::from_utf8(encoded.get(at + 1..at + 3)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            at += 3;
        } else {
            bytes.push(*byte);
            at += 1;
        }
    }
    let path = String::from_utf8(bytes).ok()?;
    (!path.is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_path() {
        for known in ["a.md", "notes/Größe 1.md", "100%/x#y?.md", "日本.md"] {
            let uri = address(known);
            assert!(uri.is_ascii() && !uri.contains(['#', '?', ' ']), "{uri}");
            assert_eq!(path(&uri).as_deref(), Some(known));
        }
    }

    #[test]
    fn what_is_no_address_of_a_note_names_none() {
        for wrong in [
            "",
            "file:///a.md",
            SCHEME,
            "dodona://vault/%",
            "dodona://vault/%zz",
            "dodona://vault/%ff",
        ] {
            assert_eq!(path(wrong), None, "{wrong}");
        }
    }
}
