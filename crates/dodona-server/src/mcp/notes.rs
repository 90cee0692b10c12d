//! Notes as resources.

use dodona_proto::{CallError, ErrorCode};
use rmcp::ErrorData;
use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::Desk;
use super::page;

/// What the address of a note begins with; its path follows.
const SCHEME: &str = "dodona://vault/";

const MARKDOWN: &str = "text/markdown";

/// JSON-RPC's number for what has none of its own.
const SERVER_ERROR: i32 = -32000;

/// How many notes one page lists.
const PAGE: usize = 100;

#[derive(Deserialize)]
struct Notes {
    notes: Vec<Note>,
}

#[derive(Deserialize)]
struct Note {
    path: String,
    title: String,
}

/// A page of the project's notes.
pub(super) async fn list(
    desk: &Desk,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let answer = desk.call("vault.list", json!({})).await;
    let answer = answer.map_err(|error| refusal(&error))?;
    let Notes { mut notes } = understood(answer)?;
    notes.sort_by(|a, b| a.path.cmp(&b.path));
    let (page, next) = page::of(&notes, |note| &note.path, cursor, PAGE)?;
    let resources = page.iter().map(|note| {
        Resource::new(address(&note.path), note.path.clone())
            .with_title(note.title.clone())
            .with_mime_type(MARKDOWN)
    });
    let mut result = ListResourcesResult::with_all_items(resources.collect());
    result.next_cursor = next;
    Ok(result)
}

/// The one form of addresses.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let note = ResourceTemplate::new(format!("{SCHEME}{{+path}}"), "note")
        .with_title("A note")
        .with_description("A Markdown note of the project, by its path")
        .with_mime_type(MARKDOWN);
    ListResourceTemplatesResult::with_all_items(vec![note])
}

/// The text of a note.
pub(super) async fn read(desk: &Desk, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    #[derive(Deserialize)]
    struct Text {
        text: String,
    }
    let path = path(uri).ok_or_else(|| missing(uri))?;
    let answer = desk.call("vault.read", json!({ "path": path })).await;
    let answer = answer.map_err(|error| match is_missing(&error) {
        true => missing(uri),
        false => refusal(&error),
    })?;
    let Text { text } = understood(answer)?;
    let contents = ResourceContents::text(text, uri).with_mime_type(MARKDOWN);
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Whether an error says that there is no such note, as a path that leads elsewhere does too.
fn is_missing(error: &CallError) -> bool {
    matches!(error.code, ErrorCode::NotFound | ErrorCode::InvalidParams)
        || error.code.as_str().starts_with("vault.")
}

fn missing(uri: &str) -> ErrorData {
    let uri: String = uri.chars().take(500).collect();
    ErrorData::resource_not_found("there is no such note", Some(json!({ "uri": uri })))
}

fn refusal(error: &CallError) -> ErrorData {
    // Not our number: some of those mean something else in MCP.
    let data = json!({ "code": error.code, "hint": error.hint_text() });
    ErrorData::new(
        rmcp::model::ErrorCode(SERVER_ERROR),
        error.message.clone(),
        Some(data),
    )
}

fn understood<T: for<'de> Deserialize<'de>>(answer: Value) -> Result<T, ErrorData> {
    serde_json::from_value(answer).map_err(|error| {
        tracing::warn!(%error, "the vault answers in a form of its own");
        ErrorData::internal_error("the vault answers in a form of its own", None)
    })
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
fn path(uri: &str) -> Option<String> {
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
