//! Results that are too large, made to fit.

use dodona_proto::Source;
use serde_json::{Map, Value, json};

use crate::conversation::hash_of;

/// One result may take this many eighths of the whole budget.
const SHARE: u64 = 3;

/// This part of the budget is left for what the model says next.
const RESERVE: u64 = 4;

/// No result is cut to less than this: a model that cannot see what it asked for asks again.
const LEAST: u64 = 200;

/// The shortest that a text is cut to.
const SHORTEST_TEXT: usize = 80;

/// How many tokens a result may take when `waiting` of them, itself included, are still to come.
pub(super) fn room(used: u64, budget: u64, waiting: usize) -> u64 {
    let left = budget.saturating_sub(used).saturating_sub(budget / RESERVE);
    let each = left / waiting.max(1) as u64;
    each.min(budget / 8 * SHARE).max(LEAST)
}

/// Shortens the text of a file to the whole lines that take at most this many bytes as JSON. The
/// source becomes that of the lines that are shown, so that a citation covers what the model has
/// read. Returns whether there was anything to shorten.
///
/// Only a tool that can read on from a line is cut like this: the model reads the rest with it.
pub(super) fn to_lines(result: &mut Value, bytes: usize) -> bool {
    let Some((mut source, text)) = file_text(result) else {
        return false;
    };
    let shown = whole_lines(text, bytes);
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
    let more = match result["next_line"].is_null() {
        true => "",
        false => " and more",
    };
    let (from, to) = (source.line_start, source.line_end);
    let note = format!(
        "lines {from}-{to} are shown, {next}-{last}{more} follow; read on with `from` = {next}"
    );
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

/// As many whole lines as take at most this many bytes in JSON.
fn whole_lines(text: &str, bytes: usize) -> WholeLines {
    let mut shown = WholeLines { end: 0, lines: 0 };
    let (mut taken, mut end) = (0, 0);
    for line in text.split_inclusive('\n') {
        taken += escaped(line);
        if taken > bytes {
            break;
        }
        end += line.len();
        shown.end = end - usize::from(line.ends_with('\n'));
        shown.lines += 1;
    }
    shown
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
    fn calls_share_what_room_there_is() {
        assert_eq!(room(0, 16_000, 1), 6_000);
        assert_eq!(room(8_000, 16_000, 4), 1_000);
        assert_eq!(room(16_000, 16_000, 4), LEAST);
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
            for bytes in [2_000, 3_000, 10_000, 60_000] {
                let mut result = file(&text);
                if !to_lines(&mut result, bytes) {
                    assert!(escaped(&text) <= bytes, "{length} {bytes}");
                    continue;
                }
                let shown = result["text"].as_str().unwrap();
                assert!(escaped(shown) <= bytes);
                assert!(shown.len() >= shown_before);
                shown_before = shown.len();
                let next = usize::try_from(result["next_line"].as_u64().unwrap()).unwrap();
                assert_eq!(result["source"]["line_end"], next - 1);
                assert_eq!(result["source"]["hash"], hash_of(shown));
                let rest = lines[next - 11..].join("\n");
                assert_eq!(format!("{shown}\n{rest}"), text);
            }
        }
    }

    /// The larger the file, the less was shown.
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
        assert!(!to_lines(&mut result, 1_000));
        assert!(!to_lines(&mut json!({ "text": "a\nb" }), 1));
        assert!(!to_lines(&mut json!(7), 1));
    }
}
