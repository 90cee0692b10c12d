//! Citations: numbered as they come, checked before they are shown.

use std::collections::BTreeSet;
use std::fmt::Write;

use dodona_plugin::{CallCtx, CallError};
use dodona_proto::{Message, Source};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::preload::PASSAGES;
use crate::conversation::{NumberedSource, hash_of};

/// The highest number that a citation can have: four digits.
const MOST: usize = 9_999;

/// The sources that tools have brought, and those that the answer cites.
#[derive(Default)]
pub(super) struct Citations {
    /// Numbered from 1, as the model knows them. A number may be missing: what it stood for has
    /// left the window.
    brought: Vec<Option<Source>>,
    /// The numbers of sources that the model has not been shown: their part of a result was cut.
    hidden: BTreeSet<usize>,
    /// Sources that are not stored yet.
    unstored: Vec<NumberedSource>,
    /// The number that the model used, and the one that the reader sees, if it holds.
    seen: Vec<(usize, Option<usize>)>,
    /// Numbered from 1, as the reader sees them.
    cited: Vec<Source>,
    /// The end of the text so far, if a citation or a block of code may begin there.
    held: String,
    place: Place,
}

/// Where in the answer the text so far ends.
#[derive(Clone, Copy)]
struct Place {
    begins_line: bool,
    /// In a block of code, where `[0]` is no citation.
    in_code: bool,
}

impl Citations {
    /// The sources of earlier queries, by the numbers that the model saw then. New ones come after.
    /// Results that are JSON have them in the text: those of a model that quotes, and of earlier
    /// versions.
    pub(super) fn of(window: &[Message], stored: Vec<NumberedSource>) -> Self {
        let mut citations = Self::default();
        for NumberedSource { number, source } in stored {
            citations.insert(number as usize, source);
        }
        for message in window {
            match message {
                Message::Tool { content, .. } => {
                    if let Ok(result) = serde_json::from_str(content) {
                        citations.recall(&result);
                    }
                }
                // Preloaded passages stay in the conversation: their numbers are taken.
                Message::User { content } if content.starts_with(PASSAGES) => {
                    citations.reserve(content);
                }
                _ => {}
            }
        }
        citations
    }

    /// Keeps the numbers of passages free that are in a text.
    fn reserve(&mut self, text: &str) {
        let number = |paragraph: &str| match next_citation(paragraph) {
            Some(("", number, _)) => Some(number),
            _ => None,
        };
        let most = text.split("\n\n").filter_map(number).max();
        if let Some(most) = most.filter(|most| *most <= MOST && *most > self.brought.len()) {
            self.brought.resize(most, None);
        }
    }

    fn recall(&mut self, value: &Value) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| self.recall(value)),
            Value::Object(fields) => {
                let number = fields.get("cite").and_then(Value::as_u64);
                let number = number.and_then(|number| usize::try_from(number).ok());
                if let (Some(number), Some(source)) = (number, source_of(fields)) {
                    self.insert(number, source);
                }
                fields.values().for_each(|value| self.recall(value));
            }
            _ => {}
        }
    }

    fn insert(&mut self, number: usize, source: Source) {
        if (1..=MOST).contains(&number) {
            let length = self.brought.len().max(number);
            self.brought.resize(length, None);
            self.brought[number - 1] = Some(source);
        }
    }

    /// Takes the sources that are not stored yet.
    pub(super) fn take_unstored(&mut self) -> Vec<NumberedSource> {
        std::mem::take(&mut self.unstored)
    }

    /// Hides the sources of a result that was cut before their part. What was not shown cannot be
    /// cited.
    pub(super) fn hide(&mut self, cut_off: &str) {
        let numbers = 1..=self.brought.len();
        self.hidden
            .extend(numbers.filter(|number| has_mark(cut_off, *number)));
    }

    /// Makes the sources in a text citable: the model reads it now.
    pub(super) fn reveal(&mut self, shown: &str) {
        self.hidden.retain(|number| !has_mark(shown, *number));
    }

    /// Gives every source in a tool's result a number, and writes it beside the source, where
    /// the model sees it. A source without text gets none.
    pub(super) fn number(&mut self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.number(value)),
            Value::Object(fields) => {
                if let Some(source) = source_of(fields) {
                    fields.insert("cite".to_owned(), json!(self.add(source)));
                }
                fields.values_mut().for_each(|value| self.number(value));
            }
            _ => {}
        }
    }

    fn add(&mut self, source: Source) -> usize {
        let same = |known: &Option<Source>| known.as_ref() == Some(&source);
        if let Some(known) = self.brought.iter().position(same) {
            return known + 1;
        }
        self.brought.push(Some(source.clone()));
        let number = self.brought.len();
        if let (1..=MOST, Ok(number)) = (number, u32::try_from(number)) {
            self.unstored.push(NumberedSource { number, source });
        }
        number
    }

    /// What the answer cites, in the order it does.
    pub(super) fn cited(&self) -> &[Source] {
        &self.cited
    }

    /// Passes on some text of the answer: citations are numbered in the order they appear, and
    /// those that cite nothing, or something that no longer stands there, are left out. The
    /// beginning of a citation is held back until the rest comes.
    pub(super) async fn pass(&mut self, ctx: &CallCtx, more: &str) -> Result<String, CallError> {
        let mut text = std::mem::take(&mut self.held);
        text.push_str(more);
        self.held = text.split_off(text.len() - unfinished(&text));
        self.renumber(ctx, &text).await
    }

    /// What was held back when no more text comes.
    pub(super) fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    async fn renumber(&mut self, ctx: &CallCtx, text: &str) -> Result<String, CallError> {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = next_piece(rest, self.place);
            self.place = self.place.after(&piece);
            rest = after;
            match piece {
                Piece::Text(text) => shown.push_str(text),
                Piece::Mark => shown.push_str(MARK),
                Piece::Citation(number) => {
                    if let Some(number) = self.number_for_reader(ctx, number).await? {
                        let _ = write!(shown, "[{number}]");
                    }
                }
            }
        }
        Ok(shown)
    }

    async fn number_for_reader(
        &mut self,
        ctx: &CallCtx,
        number: usize,
    ) -> Result<Option<usize>, CallError> {
        if let Some((_, shown)) = self.seen.iter().find(|(known, _)| *known == number) {
            return Ok(*shown);
        }
        let source = number
            .checked_sub(1)
            .filter(|_| !self.hidden.contains(&number))
            .and_then(|index| self.brought.get(index)?.as_ref());
        let shown = match source {
            Some(source) if holds(ctx, source).await? => {
                self.cited.push(source.clone());
                Some(self.cited.len())
            }
            _ => None,
        };
        self.seen.push((number, shown));
        Ok(shown)
    }
}

/// The source of an object that has one. An empty text supports no statement, so it has no source.
fn source_of(fields: &Map<String, Value>) -> Option<Source> {
    let source: Source = serde_json::from_value(fields.get("source")?.clone()).ok()?;
    let text = fields.get("text").and_then(Value::as_str);
    let is_empty = text.is_some_and(|text| text.trim().is_empty()) || source.hash == hash_of("");
    (!is_empty).then_some(source)
}

/// Whether a line of a text begins with the mark of a source.
fn has_mark(text: &str, number: usize) -> bool {
    let mark = format!("[{number}] ");
    text.match_indices(&mark)
        .any(|(at, _)| at == 0 || text[..at].ends_with(['\n', '-', ' ']))
}

/// How many paragraphs without a citation are told.
const UNCITED: usize = 20;

/// How much is shown of each.
const SHOWN: usize = 120;

/// The paragraphs of an answer that cite nothing. Headings and code make no statement.
pub(super) fn uncited(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_code = false;
    for paragraph in text.split("\n\n") {
        let was_code = in_code;
        in_code ^= paragraph.matches("```").count() % 2 == 1;
        let paragraph = paragraph.trim();
        let states = !was_code && !paragraph.contains("```") && !paragraph.starts_with('#');
        if states && !paragraph.is_empty() && next_citation(paragraph).is_none() {
            let shown: String = paragraph.chars().take(SHOWN).collect();
            found.push(shown);
        }
    }
    found.truncate(UNCITED);
    found
}

/// What begins a block of code at the beginning of a line, and ends it there.
const MARK: &str = "```";

impl Default for Place {
    fn default() -> Self {
        Self {
            begins_line: true,
            in_code: false,
        }
    }
}

impl Place {
    /// Behind a part.
    fn after(self, piece: &Piece<'_>) -> Self {
        Self {
            begins_line: matches!(piece, Piece::Text(text) if text.ends_with('\n')),
            in_code: self.in_code != matches!(piece, Piece::Mark),
        }
    }
}

/// A part of an answer's text.
#[derive(Debug, PartialEq)]
enum Piece<'t> {
    Text(&'t str),
    /// The beginning or the end of a block of code.
    Mark,
    Citation(usize),
}

/// The first part of a text that is not empty, and the rest.
fn next_piece(text: &str, place: Place) -> (Piece<'_>, &str) {
    if let Some(rest) = text.strip_prefix(MARK)
        && place.begins_line
    {
        return (Piece::Mark, rest);
    }
    let mut lines = text.match_indices('\n').map(|(at, _)| at + 1);
    let mark = lines.find(|at| text[*at..].starts_with(MARK));
    let mark = mark.unwrap_or(text.len());
    match next_citation(&text[..mark]).filter(|_| !place.in_code) {
        Some(("", number, after)) => (Piece::Citation(number), &text[mark - after.len()..]),
        Some((before, ..)) => (Piece::Text(before), &text[before.len()..]),
        None => (Piece::Text(&text[..mark]), &text[mark..]),
    }
}

/// How many bytes at the end of a text may be the beginning of a citation, or of a mark.
fn unfinished(text: &str) -> usize {
    let marks = text.len() - text.trim_end_matches('`').len();
    if (1..MARK.len()).contains(&marks) {
        return marks;
    }
    match text.rfind('[') {
        Some(open)
            if text.len() - open <= 5 && text[open + 1..].bytes().all(|b| b.is_ascii_digit()) =>
        {
            text.len() - open
        }
        _ => 0,
    }
}

/// Whether what a source cites still stands there.
async fn holds(ctx: &CallCtx, source: &Source) -> Result<bool, CallError> {
    #[derive(Deserialize)]
    struct Resolved {
        text: String,
        stale: bool,
    }
    let Resolved { text, stale } = ctx
        .call("search.resolve", json!({ "source": source }))
        .await?;
    Ok(!stale && !text.trim().is_empty())
}

/// The text before the next `[n]`, the number, and the text after it.
fn next_citation(text: &str) -> Option<(&str, usize, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('[').map(|at| from + at) {
        let inside = &text[open + 1..];
        let digits = inside.bytes().take_while(u8::is_ascii_digit).count();
        if (1..=4).contains(&digits)
            && inside[digits..].starts_with(']')
            && let Ok(number) = inside[..digits].parse()
        {
            return Some((&text[..open], number, &inside[digits + 1..]));
        }
        from = open + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_in_brackets_are_citations() {
        assert_eq!(
            next_citation("a[i] = b [12]."),
            Some(("a[i] = b ", 12, "."))
        );
        assert_eq!(next_citation("#[derive] x[] [99999]"), None);
    }

    #[test]
    fn the_beginning_of_a_citation_is_held_back() {
        for (text, held) in [
            ("so it is [1", 2),
            ("so [", 1),
            ("x[0]", 0),
            ("a[i", 0),
            ("[12345", 0),
            ("so `it", 0),
            ("so:\n``", 2),
            ("so:\n```", 0),
            ("", 0),
        ] {
            assert_eq!(unfinished(text), held, "{text:?}");
        }
    }

    #[test]
    fn a_number_in_a_block_of_code_is_no_citation() {
        let text = "So [1]:\n```rust\na[0] = b[2];\n// ```\n```\nor [12] ``` c[3]";
        let (mut rest, mut place) = (text, Place::default());
        let (mut numbers, mut same) = (Vec::new(), String::new());
        while !rest.is_empty() {
            let (piece, after) = next_piece(rest, place);
            (rest, place) = (after, place.after(&piece));
            match piece {
                Piece::Text(text) => same.push_str(text),
                Piece::Mark => same.push_str(MARK),
                Piece::Citation(number) => {
                    numbers.push(number);
                    let _ = write!(same, "[{number}]");
                }
            }
        }
        assert_eq!(numbers, [1, 12, 3]);
        assert_eq!(same, text);
    }

    #[test]
    fn numbers_go_on_where_an_earlier_query_ended() {
        let passage = |line, cite| json!({ "cite": cite, "source": { "kind": "code", "path": "a.rs", "line_start": line, "line_end": 9, "hash": "", "title": null } });
        let content = json!({ "passages": [passage(1, 1), passage(5, 3)] }).to_string();
        let tool_call_id = "x".to_owned();
        let window = [Message::Tool {
            tool_call_id,
            content,
        }];
        let mut citations = Citations::of(&window, Vec::new());
        let mut value = json!([passage(7, 0), passage(5, 0)]);
        citations.number(&mut value);
        assert_eq!(
            (&value[0]["cite"], &value[1]["cite"]),
            (&json!(4), &json!(3))
        );
    }

    #[test]
    fn paragraphs_that_cite_nothing_are_told() {
        let text = "# Login\n\nA token lasts a day [1].\n\nI think it is short.\n\n```\ncode\n\nmore\n```\n\nDone.";
        assert_eq!(uncited(text), ["I think it is short.", "Done."]);
    }

    #[test]
    fn a_source_that_comes_twice_has_one_number() {
        let passage = |line| json!({ "source": { "kind": "code", "path": "a.rs", "line_start": line, "line_end": 9, "hash": "", "title": null } });
        let mut value = json!({ "passages": [passage(1), passage(5), passage(1)] });
        let mut citations = Citations::default();
        citations.number(&mut value);
        let numbers: Vec<_> = value["passages"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|p| p["cite"].clone())
            .collect();
        assert_eq!(numbers, [json!(1), json!(2), json!(1)]);
    }
}
