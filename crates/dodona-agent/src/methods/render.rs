//! Results of the plugin `agent` as text for models.

use std::collections::HashMap;

use dodona_plugin::tool_text::{self, cite_mark, place};
use dodona_plugin::{Method, ToolText};
use serde_json::Value;

use super::result;

/// Adds the renderer of a method's result.
pub(crate) fn with_renderer(method: Method) -> Method {
    let renderer = match method.descriptor().name.as_str() {
        "agent.result" => result::render,
        "agent.seek" => memories,
        "agent.recall" => recalled,
        "agent.remember" => remembered,
        "agent.delegate" => report,
        _ => return method,
    };
    method.rendered(renderer)
}

fn memories(value: &Value) -> Option<ToolText> {
    let found = value["passages"].as_array()?;
    let head = match found.is_empty() {
        true => "Nothing was found.",
        false => "",
    };
    let items: Option<Vec<String>> = found.iter().map(tool_text::passage).collect();
    Some(ToolText::list(head, items?))
}

fn recalled(value: &Value) -> Option<ToolText> {
    let (role, time) = (value["role"].as_str()?, value["timestamp"].as_str()?);
    let mut head = format!("{role}, {}", &time[..time.floor_char_boundary(16)]);
    if let Some(next) = value["next"].as_u64() {
        head.push_str(&format!("\n[there is more: read on with `from` = {next}]"));
    }
    Some(ToolText::list(head, [value["text"].as_str()?.to_owned()]))
}

fn remembered(value: &Value) -> Option<ToolText> {
    Some(ToolText::plain(match value["added"].as_bool()? {
        true => "Remembered.",
        false => "This was remembered before.",
    }))
}

/// A report and its sources. The numbers in the report become those of this conversation.
fn report(value: &Value) -> Option<ToolText> {
    let sources = value["sources"].as_array()?;
    let numbers: HashMap<u64, u64> = sources
        .iter()
        .filter_map(|entry| Some((entry["number"].as_u64()?, entry["cite"].as_u64()?)))
        .collect();
    let head = format!("Report (query {}):", value["query_id"].as_str()?);
    let mut items = vec![renumber(value["text"].as_str()?, &numbers)];
    let places = sources
        .iter()
        .filter_map(|entry| Some(format!("{}{}", cite_mark(entry), place(&entry["source"])?)));
    items.extend(places);
    Some(ToolText::list(head, items))
}

/// A text in which each `[n]` has the new number of `n`.
fn renumber(text: &str, numbers: &HashMap<u64, u64>) -> String {
    let mut renumbered = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, from_open) = rest.split_at(open);
        renumbered.push_str(before);
        let digits = from_open[1..]
            .bytes()
            .take_while(u8::is_ascii_digit)
            .count();
        let number = from_open[1..=digits].parse().ok();
        match number.and_then(|number: u64| numbers.get(&number)) {
            Some(new) if from_open[1 + digits..].starts_with(']') => {
                renumbered.push_str(&format!("[{new}]"));
                rest = &from_open[digits + 2..];
            }
            _ => {
                renumbered.push('[');
                rest = &from_open[1..];
            }
        }
    }
    renumbered.push_str(rest);
    renumbered
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_cites_by_the_numbers_of_this_conversation() {
        let source = json!({ "kind": "note", "path": "a.md", "line_start": 2, "line_end": 3, "hash": "0", "title": null });
        let value = json!({
            "text": "Moved [1], kept [7] and a[0].", "query_id": "q1",
            "sources": [{ "number": 1, "source": source, "cite": 12 }],
        });
        assert_eq!(
            report(&value).unwrap().whole(),
            "Report (query q1):\nMoved [12], kept [7] and a[0].\n[12] a.md:2-3"
        );
    }

    #[test]
    fn memories_are_passages_of_conversations() {
        let source = json!({ "kind": "context", "path": "context:1#2", "line_start": 1, "line_end": 1, "hash": "0", "title": "default" });
        let value = json!({ "passages": [{ "source": source, "heading": "decision", "text": "Use JWT.", "cite": 3 }] });
        assert_eq!(
            memories(&value).unwrap().whole(),
            "[3] conversation default (decision)\nUse JWT.\n"
        );
    }
}
