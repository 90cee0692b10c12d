//! Results of the plugin `code` as text for models.

use std::fmt::Write;

use dodona_plugin::tool_text::{cite_mark, numbered_lines, place};
use dodona_plugin::{Method, ToolText};
use serde_json::Value;

use crate::passage;

/// Adds the renderer of a method's result.
pub(super) fn with_renderer(method: Method) -> Method {
    let renderer = match method.descriptor().name.as_str() {
        "code.search" => passage::render,
        "code.find_definition" => definitions,
        "code.find_references" => references,
        "code.repo_map" => repo_map,
        "code.read" => file,
        "code.grep" => matches,
        "code.log" => commits,
        "code.blame" => blame,
        _ => return method,
    };
    method.rendered(renderer)
}

/// `[1] path:1-20` and the numbered lines; how to continue where there are more.
pub(crate) fn file(value: &Value) -> Option<ToolText> {
    let source = &value["source"];
    let text = value["text"].as_str()?;
    let mut head = format!("{}{}", cite_mark(value), place(source)?);
    if let Some(version) = value["version"].as_str() {
        let _ = write!(head, " (version {})", short(version));
    }
    if text.is_empty() {
        head.push_str("\nThere are no lines here: the file is empty or ends before them.");
    }
    match (value["cut"].as_str(), value["next_line"].as_u64()) {
        (Some(cut), _) => {
            let _ = write!(head, "\n[{cut}]");
        }
        (None, Some(next)) => {
            let _ = write!(
                head,
                "\n[the file continues at line {next}: read it with `from` = {next}]"
            );
        }
        (None, None) => {}
    }
    let first = source["line_start"].as_u64()?;
    Some(ToolText::list(head, [numbered_lines(text, first)]))
}

/// The first digits of a version or a commit, which are enough to name it.
pub(crate) fn short(id: &str) -> &str {
    &id[..id.floor_char_boundary(12)]
}

fn matches(value: &Value) -> Option<ToolText> {
    let found = value["matches"].as_array()?;
    let head = match (found.len(), value["more"].as_bool()?) {
        (0, _) => "No line matches.".to_owned(),
        (count, false) => format!("{count} matching lines"),
        (count, true) => format!(
            "The first {count} matching lines; there are more. Narrow `pattern` or `glob`, or raise `limit`."
        ),
    };
    let mut path_before = "";
    let mut items = Vec::with_capacity(found.len());
    for entry in found {
        let path = entry["source"]["path"].as_str()?;
        let mut item = String::new();
        if path != path_before {
            let _ = writeln!(item, "{path}");
            path_before = path;
        }
        let (line, text) = (
            entry["source"]["line_start"].as_u64()?,
            entry["text"].as_str()?,
        );
        let _ = write!(item, "{}{line}: {text}", cite_mark(entry));
        items.push(item);
    }
    Some(ToolText::list(head, items))
}

fn definitions(value: &Value) -> Option<ToolText> {
    let found = value["definitions"].as_array()?;
    let items = found.iter().map(|entry| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default();
        let inside = match text("container") {
            "" => String::new(),
            container => format!(" in {container}"),
        };
        format!(
            "{}:{}-{} {}{inside}: {}",
            text("path"),
            entry["line_start"],
            entry["line_end"],
            text("kind"),
            text("signature").trim()
        )
    });
    Some(ToolText::list(
        empty(found, "No definition has this name."),
        items,
    ))
}

fn references(value: &Value) -> Option<ToolText> {
    let found = value["references"].as_array()?;
    let items = found.iter().map(|entry| {
        format!(
            "{}:{}",
            entry["path"].as_str().unwrap_or_default(),
            entry["line"]
        )
    });
    Some(ToolText::list(
        empty(found, "Nothing uses this name."),
        items,
    ))
}

fn repo_map(value: &Value) -> Option<ToolText> {
    let head = match value["left_out"].as_u64()? {
        0 => String::new(),
        left_out => format!(
            "{left_out} symbols did not fit; pass `scope` or a larger `max_tokens` to see them."
        ),
    };
    let lines = value["text"].as_str()?.lines().map(str::to_owned);
    Some(ToolText::list(head, lines))
}

fn commits(value: &Value) -> Option<ToolText> {
    let found = value["commits"].as_array()?;
    let items = found.iter().map(|entry| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default();
        let id = entry["source"]["path"].as_str().unwrap_or_default();
        let id = id.strip_prefix("commit:").map_or(id, short);
        format!(
            "{}{id} {} {}\n{}\n",
            cite_mark(entry),
            text("date"),
            text("author"),
            text("text").trim_end()
        )
    });
    Some(ToolText::list(empty(found, "No commit matches."), items))
}

fn blame(value: &Value) -> Option<ToolText> {
    let items = value["ranges"].as_array()?.iter().map(|range| {
        let text = |field: &str| range[field].as_str().unwrap_or_default();
        let lines = format!("{}-{}", range["line_start"], range["line_end"]);
        match range["commit"].as_str() {
            None => format!("{lines} not committed"),
            Some(commit) => format!(
                "{lines} {} {} {}: {}",
                short(commit),
                &text("date")[..text("date").floor_char_boundary(10)],
                text("author"),
                text("subject")
            ),
        }
    });
    Some(ToolText::list(value["path"].as_str()?, items))
}

/// The head of a list that has nothing else to say.
pub(crate) fn empty(list: &[Value], message: &str) -> String {
    match list.is_empty() {
        true => message.to_owned(),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn source(path: &str, first: u32, last: u32) -> Value {
        json!({ "kind": "code", "path": path, "line_start": first, "line_end": last,
                "hash": "e3b0c442", "title": null })
    }

    #[test]
    fn matches_stand_below_their_file() {
        let entry = |path, line, cite| json!({ "source": source(path, line, line), "text": "let a;", "cite": cite });
        let value = json!({ "matches": [entry("a.rs", 3, 1), entry("a.rs", 9, 2), entry("b.rs", 1, 3)], "more": false });
        assert_eq!(
            matches(&value).unwrap().whole(),
            "3 matching lines\na.rs\n[1] 3: let a;\n[2] 9: let a;\nb.rs\n[3] 1: let a;"
        );
    }

    #[test]
    fn files_have_line_numbers_and_the_way_on() {
        let value = json!({ "source": source("a.rs", 7, 8), "text": "fn a() {\n}", "cite": 2, "next_line": 9 });
        assert_eq!(
            file(&value).unwrap().whole(),
            "[2] a.rs:7-8\n[the file continues at line 9: read it with `from` = 9]\n7\tfn a() {\n8\t}"
        );
        assert_eq!(file(&json!({ "answer": 1 })), None);
    }

    #[test]
    fn definitions_and_references_are_places() {
        let value = json!({ "definitions": [{ "path": "a.rs", "line_start": 1, "line_end": 5, "name": "new", "kind": "function", "container": "Hub", "signature": "pub fn new()" }] });
        assert_eq!(
            definitions(&value).unwrap().whole(),
            "a.rs:1-5 function in Hub: pub fn new()"
        );
        let value = json!({ "references": [{ "path": "a.rs", "line": 4 }] });
        assert_eq!(references(&value).unwrap().whole(), "a.rs:4");
    }
}
