//! Tool results as text for models.
//!
//! A method returns a structured value. RPC clients, the page and MCP clients get that value; a
//! model gets the text that the method's renderer makes of it, or [`ToolText::generic`] where the
//! method has none.

use std::fmt::Write;

use serde_json::{Map, Value};

/// Makes the text of a result. The value may have a field `cite` next to each `source`: the number
/// by which the model cites it. `None` if the value does not have the expected form.
pub type ToolRenderer = fn(&Value) -> Option<ToolText>;

/// A tool result as a model reads it: a head and items, one after the other.
///
/// A result that is too large is cut between items where possible, so an item should make sense
/// alone: a search hit, a match, a row of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolText {
    /// Shown first and never cut.
    pub head: String,
    /// In the order of the result.
    pub items: Vec<String>,
}

/// Fields that no model can use.
const UNUSABLE: [&str; 5] = ["hash", "score", "call", "call_path", "usage"];

/// Nesting below which values are written as JSON.
const MAX_DEPTH: usize = 4;

impl ToolText {
    /// A text without items.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            head: text.into(),
            items: Vec::new(),
        }
    }

    /// A head and items.
    pub fn list(head: impl Into<String>, items: impl IntoIterator<Item = String>) -> Self {
        Self {
            head: head.into(),
            items: items.into_iter().collect(),
        }
    }

    /// Head and items, joined by line ends.
    pub fn whole(&self) -> String {
        let head = (!self.head.is_empty()).then_some(self.head.as_str());
        let parts: Vec<&str> = head
            .into_iter()
            .chain(self.items.iter().map(String::as_str))
            .collect();
        parts.join("\n")
    }

    /// Lines `key: value` for any value. A text alone stands without its key, a list of one field
    /// becomes items, and fields that no model can use are left out.
    pub fn generic(value: &Value) -> Self {
        let Value::Object(fields) = value else {
            return match value {
                Value::Array(list) => Self::list("", list.iter().map(|entry| entry_line(entry, 0))),
                other => Self::plain(scalar(other).unwrap_or_else(|| other.to_string())),
            };
        };
        let shown: Vec<(&String, &Value)> = usable(fields).collect();
        if let [(_, Value::String(text))] = shown[..] {
            return Self::plain(text);
        }
        let list = shown.iter().find_map(|(name, value)| match value {
            Value::Array(list) if !list.is_empty() => Some((*name, list)),
            _ => None,
        });
        let mut head = String::new();
        for (name, value) in &shown {
            if list.is_none_or(|(listed, _)| listed != *name) {
                write_field(&mut head, name, value, 0);
            }
        }
        let items = match list {
            None => Vec::new(),
            Some((name, list)) => {
                let _ = writeln!(head, "{name}:");
                list.iter().map(|entry| entry_line(entry, 0)).collect()
            }
        };
        Self::list(head.trim_end(), items)
    }
}

fn usable(fields: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    // The number of a source stands before it.
    let is_hidden = |name: &str, value: &Value| {
        value.is_null() || UNUSABLE.contains(&name) || (name == "cite" && has_source(fields))
    };
    fields
        .iter()
        .filter(move |(name, value)| !is_hidden(name, value))
}

fn has_source(fields: &Map<String, Value>) -> bool {
    fields
        .get("source")
        .is_some_and(|source| place(source).is_some())
}

fn write_field(text: &mut String, name: &str, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    if let (Some(place), "source") = (place(value), name) {
        let _ = writeln!(text, "{indent}{place}");
        return;
    }
    match value {
        Value::Object(fields) if depth < MAX_DEPTH && !fields.is_empty() => {
            let _ = writeln!(text, "{indent}{name}:");
            for (name, value) in usable(fields) {
                write_field(text, name, value, depth + 1);
            }
        }
        Value::Array(list)
            if depth < MAX_DEPTH && list.iter().any(|entry| scalar(entry).is_none()) =>
        {
            let _ = writeln!(text, "{indent}{name}:");
            for entry in list {
                let _ = writeln!(text, "{}", entry_line(entry, depth + 1));
            }
        }
        Value::Array(list) => {
            let entries: Vec<String> = list.iter().filter_map(scalar).collect();
            let _ = writeln!(text, "{indent}{name}: {}", entries.join(", "));
        }
        Value::String(long) if long.contains('\n') => {
            let _ = writeln!(text, "{indent}{name}:\n{long}");
        }
        other => {
            let shown = scalar(other).unwrap_or_else(|| other.to_string());
            let _ = writeln!(text, "{indent}{name}: {shown}");
        }
    }
}

/// An entry of a list: one line if all of it is short, a block otherwise.
fn entry_line(entry: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let Value::Object(fields) = entry else {
        let shown = scalar(entry).unwrap_or_else(|| entry.to_string());
        return format!("{indent}- {shown}");
    };
    let cite = match (has_source(fields), fields.get("cite")) {
        (true, Some(cite)) => format!("[{cite}] "),
        _ => String::new(),
    };
    let is_short = |(name, value): (&String, &Value)| match value {
        Value::String(text) => !text.contains('\n'),
        Value::Array(_) => false,
        Value::Object(_) => name == "source",
        _ => true,
    };
    if usable(fields).all(is_short) {
        let parts = usable(fields).map(|(name, value)| match (name.as_str(), place(value)) {
            ("source", Some(place)) => place,
            _ => format!("{name}: {}", scalar(value).unwrap_or_default()),
        });
        return format!("{indent}- {cite}{}", parts.collect::<Vec<_>>().join(", "));
    }
    let mut block = String::new();
    for (name, value) in usable(fields) {
        write_field(&mut block, name, value, depth + 1);
    }
    let block = block.trim_end();
    format!("{indent}- {cite}{}", block.trim_start())
}

/// A value that takes one line.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null => Some(String::new()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Where a source stands, as `path:first-last`. A part of a conversation is named by its title.
pub fn place(source: &Value) -> Option<String> {
    let kind = source["kind"].as_str()?;
    let path = source["path"].as_str()?;
    let title = source["title"].as_str().filter(|title| !title.is_empty());
    let lines = match (source["line_start"].as_u64(), source["line_end"].as_u64()) {
        (Some(first), Some(last)) if first == last => format!(":{first}"),
        (Some(first), Some(last)) => format!(":{first}-{last}"),
        _ => return None,
    };
    Some(match (kind, title) {
        ("context", Some(title)) => format!("conversation {title}"),
        ("note" | "code" | "text", _) => format!("{path}{lines}"),
        _ => path.to_owned(),
    })
}

/// The mark by which a model cites something, such as `[3] `. Empty where it has no number.
pub fn cite_mark(value: &Value) -> String {
    match value["cite"].as_u64() {
        Some(number) => format!("[{number}] "),
        None => String::new(),
    }
}

/// A text with the number of each line before it.
pub fn numbered_lines(text: &str, first: u64) -> String {
    let mut numbered = String::with_capacity(text.len() + text.len() / 8);
    for (number, line) in (first..).zip(text.lines()) {
        let _ = writeln!(numbered, "{number}\t{line}");
    }
    numbered.truncate(numbered.trim_end_matches('\n').len());
    numbered
}

/// A passage with its `source`, `text` and optional `heading`: `[1] path:10-20 (heading)`, then the
/// text. Lines of files have their numbers, so that a model can read on from there.
pub fn passage(value: &Value) -> Option<String> {
    let source = &value["source"];
    let text = value["text"].as_str()?.trim_end_matches('\n');
    let mut shown = format!("{}{}", cite_mark(value), place(source)?);
    if let Some(heading) = value["heading"].as_str().filter(|text| !text.is_empty()) {
        let _ = write!(shown, " ({heading})");
    }
    shown.push('\n');
    match source["kind"].as_str()? {
        "note" | "code" | "text" => {
            shown.push_str(&numbered_lines(text, source["line_start"].as_u64()?));
        }
        _ => shown.push_str(text),
    }
    shown.push('\n');
    Some(shown)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn generic(value: Value) -> String {
        ToolText::generic(&value).whole()
    }

    #[test]
    fn single_text_field_stands_alone() {
        assert_eq!(generic(json!({ "text": "a \"b\"\nc" })), "a \"b\"\nc");
        assert_eq!(generic(json!({ "text": "x", "next": null })), "x");
        assert_eq!(generic(json!("x")), "x");
        assert_eq!(generic(json!(7)), "7");
    }

    #[test]
    fn fields_are_lines_and_lists_are_items() {
        let value = json!({
            "name": "a", "ok": true, "hash": "0123", "tags": ["x", "y"],
            "rows": [{ "path": "a.md", "n": 1 }, { "path": "b.md", "text": "two\nlines" }],
        });
        let text =
            ToolText::generic(&json!({ "name": "a", "hash": "0123", "rows": value["rows"] }));
        assert_eq!(text.head, "name: a\nrows:");
        assert_eq!(text.items[0], "- path: a.md, n: 1");
        assert_eq!(text.items[1], "- path: b.md\n  text:\ntwo\nlines");
        assert!(!generic(value).contains("0123"));
    }

    #[test]
    fn sources_are_places_with_their_number() {
        let source = json!({ "kind": "code", "path": "a.rs", "line_start": 3, "line_end": 9, "hash": "e3", "title": null });
        let value = json!({ "found": [{ "source": source, "cite": 4, "score": 0.5 }] });
        assert_eq!(generic(value), "found:\n- [4] a.rs:3-9");
    }

    #[test]
    fn lines_are_numbered_from_the_first() {
        assert_eq!(numbered_lines("a\n\nb\n", 9), "9\ta\n10\t\n11\tb");
        assert_eq!(numbered_lines("", 1), "");
    }
}
