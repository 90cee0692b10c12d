//! Results that are too large, cut to fit.
//!
//! A result is cut as the text that the model reads: between items where possible, else between
//! lines, else between characters. What is shown is a beginning of the whole text, and the note
//! after it says how much that is and how to read the rest.

use dodona_llm::TokenCounter;
use dodona_plugin::ToolText;
use dodona_proto::Source;
use serde_json::{Map, Value, json};

use crate::conversation::hash_of;

/// This part of the room is left for what the model says next.
const RESERVE: u64 = 4;

/// No result is cut to less than this: a model that cannot see what it asked for asks again.
const LEAST: u64 = 200;

/// Bytes per token above which a text is not probed further. Prose and code have three to five.
const PROBED_PER_TOKEN: usize = 12;

/// The shortest that a text is cut to.
const SHORTEST_TEXT: usize = 80;

/// How many tokens a result may take when `waiting` results, itself included, share what is left
/// of `room` tokens. One share stays free for the results of later turns.
pub(super) fn share(used: u64, room: u64, waiting: usize) -> u64 {
    let left = room.saturating_sub(used).saturating_sub(room / RESERVE);
    (left / (waiting as u64 + 1)).max(LEAST)
}

/// How many bytes of a text fit into so many tokens. `None` if all of it does.
pub(super) fn fitting(counter: &TokenCounter, text: &str, tokens: u64) -> Option<usize> {
    let most = usize::try_from(tokens).unwrap_or(usize::MAX);
    // Counting a text of megabytes takes seconds, and no model is shown that much.
    let probe = &text[..text.floor_char_boundary(most.saturating_mul(PROBED_PER_TOKEN))];
    let counted = counter.count(probe);
    if counted <= most {
        return (probe.len() < text.len()).then_some(probe.len());
    }
    let (probed, counted) = (probe.len() as u64, counted as u64);
    let mut bytes = usize::try_from(probed * tokens / counted).unwrap_or(probe.len());
    // The beginning may be denser than the rest.
    while bytes > 0 && counter.count(&text[..text.floor_char_boundary(bytes)]) > most {
        bytes -= (bytes / 8).max(1);
    }
    Some(bytes)
}

/// The beginning of a result that is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Beginning {
    /// Where it ends in the whole text, in bytes. Behind a line end unless a line is longer than
    /// what fits.
    pub(super) end: usize,
    /// How many items it has whole.
    pub(super) items: usize,
}

/// Cuts a text to at most this many bytes.
///
/// The end is that of the last item which fits, unless that would waste more than half of the
/// room; then that of the last line; then any character.
pub(super) fn cut(text: &ToolText, whole: &str, bytes: usize) -> Beginning {
    let ends = item_ends(text, whole.len());
    let limit = whole.floor_char_boundary(bytes);
    let fits = |end: &&usize| **end <= limit;
    let item = ends.iter().take_while(fits).last().copied();
    let end = item
        .filter(|end| *end * 2 >= bytes)
        .unwrap_or_else(|| line_end(whole, bytes));
    Beginning {
        end,
        items: ends.iter().take_while(|item| **item <= end.max(1)).count(),
    }
}

/// The end of the last line that fits into this many bytes, or of the last character if the line
/// begins in the first half.
pub(crate) fn line_end(text: &str, bytes: usize) -> usize {
    let limit = text.floor_char_boundary(bytes);
    let line = text[..limit].rfind('\n').map(|at| at + 1);
    line.filter(|end| *end * 2 >= bytes).unwrap_or(limit)
}

/// Where each item ends in the whole text, behind its line end. The last has none.
fn item_ends(text: &ToolText, whole: usize) -> Vec<usize> {
    let mut end = match text.head.is_empty() {
        true => 0,
        false => text.head.len() + 1,
    };
    let ends = text.items.iter().map(|item| {
        end += item.len() + 1;
        end.min(whole)
    });
    ends.collect()
}

/// The note after the beginning of a result: what is shown, and the call that reads the rest.
pub(super) fn note(text: &ToolText, whole: &str, shown: &Beginning, handle: &str) -> String {
    let characters = whole[..shown.end].chars().count();
    let all = whole.chars().count();
    let items = match (shown.items, text.items.len()) {
        (_, 0 | 1) => String::new(),
        (shown, count) => format!("{shown} of {count} items, "),
    };
    format!(
        "[cut: {items}characters 1-{characters} of {all} are shown. Read on with agent_result {{\"handle\": \"{handle}\", \"from\": {characters}}}]"
    )
}

/// Shortens the text of a file to the whole lines that take at most this many bytes with their
/// numbers. The source becomes that of the lines that are shown, so that a citation covers what the
/// model has read. Returns whether there was anything to shorten.
///
/// Only a tool that can read on from a line is cut like this: the model reads the rest with it.
pub(super) fn to_lines(result: &mut Value, tool: &str, bytes: usize) -> bool {
    let Some((mut source, text)) = file_text(result) else {
        return false;
    };
    let shown = whole_lines(text, source.line_start, bytes);
    let text = text[..shown.end].to_owned();
    let Ok(count) = u32::try_from(shown.lines) else {
        return false;
    };
    if count == 0 || source.line_start + count > source.line_end {
        return false;
    }
    let last = source.line_end;
    let next = source.line_start + count;
    source.line_end = next - 1;
    source.hash = hash_of(&text);
    let of = match result["next_line"].is_null() {
        true => format!("of {last}"),
        false => format!("of more than {last}"),
    };
    let (from, to, path) = (source.line_start, source.line_end, &source.path);
    let call = json!({ "path": path, "from": next });
    let note = format!("cut: lines {from}-{to} {of} are shown. Read on with {tool} {call}");
    result["source"] = json!(source);
    result["text"] = Value::String(text);
    result["next_line"] = json!(next);
    result["cut"] = Value::String(note);
    true
}

/// The source and the text of a result that is a part of a file.
fn file_text(result: &Value) -> Option<(Source, &str)> {
    let source = serde_json::from_value(result.get("source")?.clone()).ok()?;
    Some((source, result.get("text")?.as_str()?))
}

/// A beginning of a text that ends with a line.
struct WholeLines {
    /// Where it ends, without the line end.
    end: usize,
    lines: usize,
}

/// As many whole lines as take at most this many bytes, each with its number and a tab.
fn whole_lines(text: &str, first: u32, bytes: usize) -> WholeLines {
    let mut shown = WholeLines { end: 0, lines: 0 };
    let (mut taken, mut end) = (0, 0);
    for (number, line) in (first..).zip(text.split_inclusive('\n')) {
        taken += line.len() + digits(number) + 1;
        if taken > bytes {
            break;
        }
        end += line.len();
        shown.end = end - usize::from(line.ends_with('\n'));
        shown.lines += 1;
    }
    shown
}

fn digits(number: u32) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Shortens a part of a stored result, which `agent.result` returned, to at most this many bytes.
/// Returns whether it was one.
pub(super) fn to_part(result: &mut Value, bytes: usize) -> bool {
    let (Some(text), Some(from)) = (result["text"].as_str(), result["from"].as_u64()) else {
        return false;
    };
    if result["handle"].as_str().is_none() || text.len() <= bytes {
        return false;
    }
    let shown = text[..line_end(text, bytes)].to_owned();
    let next = from + shown.chars().count() as u64;
    result["text"] = Value::String(shown);
    result["next"] = json!(next);
    true
}

/// How many bytes a text takes in JSON.
fn escaped(text: &str) -> usize {
    text.chars().map(escaped_char).sum()
}

fn escaped_char(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

/// The longest beginning of a text that takes at most this many bytes in JSON. It ends with a line
/// if one ends in its second half.
fn beginning(text: &str, bytes: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find_map(|(place, c)| {
        taken += escaped_char(c);
        (taken > bytes).then_some(place)
    });
    let kept = &text[..end.unwrap_or(text.len())];
    match kept.rfind('\n') {
        Some(line) if line > kept.len() / 2 => &kept[..line],
        _ => kept,
    }
}

/// A value as JSON of about this many bytes, which says that it was cut and how to read the rest.
///
/// It stays JSON: lists lose their ends and texts theirs, the longest first, so that the model
/// still sees what kind of thing it is.
pub(super) fn to_size(value: Value, bytes: usize, handle: &str) -> String {
    let whole = value.to_string().len();
    let note = json!({
        "bytes": whole,
        "handle": handle,
        "hint": "read the rest with agent_result",
    });
    let mut kept = match value {
        Value::Object(fields) => fields,
        other => Map::from_iter([("value".to_owned(), other)]),
    };
    kept.insert("cut".to_owned(), note);
    let mut kept = Value::Object(kept);
    loop {
        let size = kept.to_string().len();
        if size <= bytes || !shorten(&mut kept, size - bytes) {
            return kept.to_string();
        }
    }
}

/// Takes as much away from the largest list or text as must go, if it has that much. Tells whether
/// there was something.
fn shorten(value: &mut Value, too_much: usize) -> bool {
    let Some(largest) = largest(value) else {
        return false;
    };
    match largest {
        Value::Array(list) => {
            let mut freed = 0;
            while freed < too_much && list.len() > 1 {
                freed += list.pop().map_or(0, |entry| entry.to_string().len() + 1);
            }
        }
        Value::String(text) => {
            let keep = escaped(text).saturating_sub(too_much + 3);
            let kept = beginning(text, keep.max(SHORTEST_TEXT)).len();
            text.truncate(kept);
            text.push('…');
        }
        _ => return false,
    }
    true
}

/// The largest list with more than one entry, or the largest text that can be cut. A list comes
/// before the texts in it: whole passages are worth more than pieces of all.
fn largest(value: &mut Value) -> Option<&mut Value> {
    fn weight(value: &Value) -> usize {
        match value {
            Value::Array(list) if list.len() > 1 => value.to_string().len() * 2,
            Value::Array(list) => list.iter().map(weight).max().unwrap_or(0),
            Value::String(text) if escaped(text) > SHORTEST_TEXT + 3 => escaped(text),
            Value::Object(fields) => {
                let others = fields.iter().filter(|(name, _)| *name != "cut");
                others.map(|(_, field)| weight(field)).max().unwrap_or(0)
            }
            _ => 0,
        }
    }
    if weight(value) == 0 {
        return None;
    }
    match value {
        Value::Array(list) if list.len() > 1 => Some(value),
        Value::Array(list) => list.first_mut().and_then(largest),
        Value::Object(fields) => {
            let others = fields.iter_mut().filter(|(name, _)| *name != "cut");
            let (_, heaviest) = others.max_by_key(|(_, field)| weight(field))?;
            largest(heaviest)
        }
        _ => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use dodona_plugin::tool_text::numbered_lines;

    use super::*;

    #[test]
    fn a_list_loses_its_end_and_stays_a_list() {
        let passages: Vec<Value> = (0..10)
            .map(|n| json!({ "n": n, "text": "x".repeat(100) }))
            .collect();
        let cut = to_size(json!({ "passages": passages }), 600, "h1");
        let cut: Value = serde_json::from_str(&cut).unwrap();
        let kept = cut["passages"].as_array().unwrap().len();
        assert!((1..6).contains(&kept), "{cut}");
        assert_eq!(cut["passages"][0]["n"], 0);
        assert_eq!(cut["cut"]["handle"], "h1");
    }

    #[test]
    fn one_long_text_is_cut_on_a_character() {
        let cut = to_size(json!({ "text": "ü".repeat(10_000) }), 1_000, "h");
        assert!(cut.len() < 1_100, "{}", cut.len());
        let cut: Value = serde_json::from_str(&cut).unwrap();
        assert!(cut["text"].as_str().unwrap().ends_with("ü…"));
    }

    #[test]
    fn what_cannot_be_cut_is_left() {
        let cut = to_size(json!([1, 2, 3]), 1, "h");
        assert!(serde_json::from_str::<Value>(&cut).is_ok(), "{cut}");
        let cut = to_size(json!(7), 1, "h");
        assert!(cut.starts_with(r#"{"value":7"#), "{cut}");
    }

    #[test]
    fn results_share_the_room() {
        assert_eq!(share(0, 16_000, 1), 6_000);
        assert_eq!(share(8_000, 16_000, 4), 800);
        assert_eq!(share(16_000, 16_000, 4), LEAST);
        // A source file of 60 kB has about 17,000 tokens.
        assert!(share(2_000, 64_000, 1) > 20_000);
    }

    fn file(text: &str) -> Value {
        let source = Source {
            kind: dodona_proto::SourceKind::Code,
            path: "a.rs".to_owned(),
            line_start: 11,
            line_end: 10 + u32::try_from(text.lines().count()).unwrap(),
            hash: hash_of(text),
            title: None,
        };
        json!({ "source": source, "text": text, "next_line": null })
    }

    /// What is shown grows with the room, is a beginning of the text, and reading on from the line
    /// that the note names yields the rest.
    #[test]
    fn a_file_is_cut_between_lines_and_can_be_read_on() {
        for length in [0, 1, 30, 500] {
            let lines: Vec<String> = (0..200)
                .map(|n| format!("{n}\t\"{}\"", "é".repeat(length * (n % 3))))
                .collect();
            let text = lines.join("\n");
            let mut shown_before = 0;
            for bytes in [2_100, 3_000, 10_000, 60_000] {
                let mut result = file(&text);
                if !to_lines(&mut result, "code_read", bytes) {
                    assert!(numbered_lines(&text, 11).len() <= bytes, "{length} {bytes}");
                    continue;
                }
                let shown = result["text"].as_str().unwrap();
                assert!(numbered_lines(shown, 11).len() <= bytes);
                assert!(shown.len() >= shown_before);
                shown_before = shown.len();
                let next = usize::try_from(result["next_line"].as_u64().unwrap()).unwrap();
                assert_eq!(result["source"]["line_end"], next - 1);
                assert_eq!(result["source"]["hash"], hash_of(shown));
                let note = result["cut"].as_str().unwrap();
                let call = format!("code_read {{\"path\":\"a.rs\",\"from\":{next}}}");
                assert!(note.ends_with(&call), "{note}");
                let rest = lines[next - 11..].join("\n");
                assert_eq!(format!("{shown}\n{rest}"), text);
            }
        }
    }

    /// The JSON of a larger text once showed less of it.
    #[test]
    fn escapes_count_when_a_text_is_cut() {
        for lines in [400, 2_000, 100_000] {
            let text = "short \"line\"\n".repeat(lines);
            let cut = to_size(json!({ "text": text }), 4_000, "h");
            assert!((3_000..=4_000).contains(&cut.len()), "{}", cut.len());
            let cut: Value = serde_json::from_str(&cut).unwrap();
            assert!(cut["text"].as_str().unwrap().ends_with("line\"…"), "{cut}");
        }
    }

    #[test]
    fn a_line_that_does_not_fit_is_left_to_the_handle() {
        let mut result = file(&"x".repeat(10_000));
        assert!(!to_lines(&mut result, "code_read", 1_000));
        assert!(!to_lines(&mut json!({ "text": "a\nb" }), "code_read", 1));
        assert!(!to_lines(&mut json!(7), "code_read", 1));
    }

    #[test]
    fn a_list_is_cut_between_items() {
        let items = (0..10).map(|n| format!("[{n}] a.rs:{n}\n{n}\tlet a;\n"));
        let text = ToolText::list("10 hits", items);
        let whole = text.whole();
        let shown = cut(&text, &whole, 100);
        assert!(
            whole[..shown.end].ends_with(";\n\n"),
            "{:?}",
            &whole[..shown.end]
        );
        assert_eq!(shown.items, whole[..shown.end].matches("a.rs").count());
        let note = note(&text, &whole, &shown, "r1");
        let expected = format!(
            "[cut: {} of 10 items, characters 1-{} of {} are shown. Read on with agent_result {{\"handle\": \"r1\", \"from\": {}}}]",
            shown.items,
            shown.end,
            whole.len(),
            shown.end
        );
        assert_eq!(note, expected);
    }

    /// For files from 1 byte to 5 MB and lines from 1 to 100,000 characters: what is shown grows
    /// with the room, is a beginning of the text, and the parts that follow are the rest exactly.
    #[test]
    fn every_cut_is_a_beginning_and_the_parts_are_the_rest() {
        let sizes = [1, 100, 10_000, 1_000_000, 5_000_000];
        for (size, line) in sizes
            .iter()
            .flat_map(|size| [1, 80, 5_000, 100_000].map(|line| (*size, line)))
        {
            let mut content = String::with_capacity(size + 4);
            let mut column = 0;
            while content.len() < size {
                column += 1;
                content.push(if column % (line + 1) == 0 {
                    '\n'
                } else {
                    ['a', 'é', '"', '\\'][column % 4]
                });
            }
            let text = ToolText::list("head", content.lines().map(str::to_owned));
            let whole = text.whole();
            let mut before = 0;
            for bytes in [1, 10, 777, 4_000, 50_000, 1_000_000, 10_000_000] {
                let shown = cut(&text, &whole, bytes);
                assert!(shown.end <= bytes, "{size} {line} {bytes}");
                assert!(shown.end >= before, "{size} {line} {bytes}");
                assert!(
                    whole.len() <= bytes || shown.end * 2 + 8 >= bytes,
                    "{size} {line} {bytes}"
                );
                assert!(whole.is_char_boundary(shown.end));
                before = shown.end;
            }
            assert_eq!(before, whole.len());
            // As `agent.result` reads on, with room for less than it was asked for.
            let room = (whole.len() / 7).max(1_000);
            let first = cut(&text, &whole, room).end;
            let mut read = whole[..first].to_owned();
            while read.len() < whole.len() {
                let from = read.chars().count();
                let rest = &whole[read.len()..];
                let mut part = json!({ "handle": "r1", "from": from, "text": rest, "next": null });
                if to_part(&mut part, room) {
                    let next = part["next"].as_u64().unwrap();
                    read.push_str(part["text"].as_str().unwrap());
                    assert_eq!(next, read.chars().count() as u64);
                } else {
                    assert!(rest.len() <= room);
                    read.push_str(rest);
                }
            }
            assert!(read == whole, "{size} {line}");
        }
    }
}
