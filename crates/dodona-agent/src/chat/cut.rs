//! Results that are too large, made to fit.

use serde_json::{Map, Value, json};

/// One result may take this part of the whole budget.
const SHARE: u64 = 8;

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
    each.min(budget / SHARE).max(LEAST)
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
            let keep = text.len().saturating_sub(too_much + 3).max(SHORTEST_TEXT);
            text.truncate(text.floor_char_boundary(keep));
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
            Value::String(text) if text.len() > SHORTEST_TEXT + 3 => text.len(),
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
        assert_eq!(room(0, 16_000, 1), 2_000);
        assert_eq!(room(8_000, 16_000, 4), 1_000);
        assert_eq!(room(16_000, 16_000, 4), LEAST);
    }
}
