//! Results of the plugin `vault` as text for models.

use std::fmt::Write;

use dodona_plugin::{Method, ToolText};
use serde_json::Value;

use crate::code::render::{empty, file, short};
use crate::passage;

/// Adds the renderer of a method's result.
pub(super) fn with_renderer(method: Method) -> Method {
    let renderer = match method.descriptor().name.as_str() {
        "vault.search" => passage::render,
        "vault.read" => note,
        "vault.list" => notes,
        "vault.backlinks" => backlinks,
        "vault.tags" => tags,
        "vault.write" | "vault.move" | "vault.delete" | "vault.create_index" | "vault.undo" => done,
        "vault.history" => history,
        "vault.changes" => changes,
        "vault.diff" => diff,
        "vault.trash" => trash,
        _ => return method,
    };
    method.rendered(renderer)
}

/// An earlier version has no source, because its lines are not in the project.
fn note(value: &Value) -> Option<ToolText> {
    if value["source"].is_object() {
        return file(value);
    }
    let head = format!("version {}", short(value["version"].as_str()?));
    let lines = value["text"].as_str()?.lines().map(str::to_owned);
    Some(ToolText::list(head, lines))
}

fn notes(value: &Value) -> Option<ToolText> {
    let found = value["notes"].as_array()?;
    let head = match found.len() {
        0 => "There are no notes here.".to_owned(),
        count => format!("{count} notes"),
    };
    let items = found.iter().map(|note| {
        let (path, title) = (text(note, "path"), text(note, "title"));
        // Most notes are named after their title.
        match is_named_after(path, title) {
            true => path.to_owned(),
            false => format!("{path}: {title}"),
        }
    });
    Some(ToolText::list(head, items))
}

fn is_named_after(path: &str, title: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let letters = |text: &str| -> Vec<char> {
        let kept = text.chars().filter(|c| c.is_alphanumeric());
        kept.flat_map(char::to_lowercase).collect()
    };
    title.is_empty() || letters(name) == letters(title)
}

fn backlinks(value: &Value) -> Option<ToolText> {
    let found = value["backlinks"].as_array()?;
    let items = found.iter().map(|link| {
        format!(
            "{}:{}: [[{}]]",
            text(link, "path"),
            link["line"],
            text(link, "target")
        )
    });
    Some(ToolText::list(empty(found, "No note links to it."), items))
}

fn tags(value: &Value) -> Option<ToolText> {
    let found = value["tags"].as_array()?;
    let items = found.iter().map(|tag| {
        let notes = tag["notes"].as_array().into_iter().flatten();
        let notes: Vec<&str> = notes.filter_map(Value::as_str).collect();
        format!("#{}: {}", text(tag, "tag"), notes.join(", "))
    });
    Some(ToolText::list(empty(found, "No note has a tag."), items))
}

/// What a change did, and its number, by which it is undone.
fn done(value: &Value) -> Option<ToolText> {
    let edits = value["notes"].as_array()?;
    let head = match value["change"].as_i64() {
        None => "Nothing had to be changed.".to_owned(),
        Some(change) => format!("Done, as change {change}."),
    };
    Some(ToolText::list(head, edits.iter().map(edit)))
}

fn edit(edit: &Value) -> String {
    let path = text(edit, "path");
    match (
        edit["version"].as_str(),
        edit["previous"].as_str(),
        edit["moved_from"].as_str(),
    ) {
        (Some(version), _, Some(from)) => {
            format!("{from} moved to {path} (version {})", short(version))
        }
        (Some(version), Some(_), None) => format!("{path} changed (version {})", short(version)),
        (Some(version), None, None) => format!("{path} created (version {})", short(version)),
        (None, ..) => format!("{path} deleted"),
    }
}

fn history(value: &Value) -> Option<ToolText> {
    let found = value["history"].as_array()?;
    let items = found
        .iter()
        .map(|past| format!("{}: {}", change(past), edit(past)));
    Some(ToolText::list(
        empty(found, "Nothing is known of this note."),
        items,
    ))
}

fn changes(value: &Value) -> Option<ToolText> {
    let found = value["changes"].as_array()?;
    let items = found.iter().map(|entry| {
        let mut item = change(entry);
        let notes = entry["notes"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for note in notes {
            let _ = write!(item, "\n  {}", edit(note));
        }
        let count = entry["count"].as_u64().unwrap_or_default();
        if count > notes.len() as u64 {
            let _ = write!(item, "\n  and {} more notes", count - notes.len() as u64);
        }
        item
    });
    Some(ToolText::list(empty(found, "No note was changed."), items))
}

/// Who changed something, when and why, in one line.
fn change(change: &Value) -> String {
    let mut line = format!(
        "change {} {} {}",
        change["change"],
        minutes(text(change, "at")),
        text(change, "method")
    );
    if let Some(author) = change["author"].as_str() {
        let _ = write!(line, " by {author}");
    }
    if let Some(query) = change["query"].as_str() {
        let _ = write!(line, " in query {query}");
    }
    if let Some(by) = change["undone_by"].as_i64() {
        let _ = write!(line, " (undone by change {by})");
    }
    line
}

/// A time without seconds.
fn minutes(time: &str) -> String {
    time[..time.floor_char_boundary(16)].replace('T', " ")
}

fn diff(value: &Value) -> Option<ToolText> {
    let text = value["diff"].as_str()?;
    if text.is_empty() {
        return Some(ToolText::plain("The versions are the same."));
    }
    Some(ToolText::list("", text.lines().map(str::to_owned)))
}

fn trash(value: &Value) -> Option<ToolText> {
    let found = value["notes"].as_array()?;
    let items = found.iter().map(|note| {
        format!(
            "{} (version {}), deleted in {}",
            text(note, "path"),
            short(text(note, "version")),
            change(note)
        )
    });
    Some(ToolText::list(empty(found, "The trash is empty."), items))
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn notes_are_lines_with_titles_that_say_more() {
        let value = json!({ "notes": [
            { "path": "notes/refresh-tokens.md", "title": "Refresh tokens" },
            { "path": "notes/a.md", "title": "How login works" },
        ]});
        assert_eq!(
            notes(&value).unwrap().whole(),
            "2 notes\nnotes/refresh-tokens.md\nnotes/a.md: How login works"
        );
    }

    #[test]
    fn a_change_names_its_number_and_versions() {
        let hash = "0123456789abcdef".repeat(4);
        let value = json!({ "change": 7, "notes": [
            { "path": "a.md", "version": hash, "previous": null },
            { "path": "b.md", "version": hash, "previous": hash, "moved_from": "c.md" },
            { "path": "d.md", "version": null, "previous": hash },
        ]});
        assert_eq!(
            done(&value).unwrap().whole(),
            "Done, as change 7.\na.md created (version 0123456789ab)\nc.md moved to b.md (version 0123456789ab)\nd.md deleted"
        );
    }
}
