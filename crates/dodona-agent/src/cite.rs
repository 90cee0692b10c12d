//! Citations: numbered as they come, checked before they are shown.

use std::fmt::Write;

use dodona_plugin::{CallCtx, CallError};
use dodona_proto::Source;
use serde::Deserialize;
use serde_json::{Value, json};

/// The sources that tools have brought, and those that the answer cites.
#[derive(Default)]
pub(crate) struct Citations {
    /// Numbered from 1, as the model knows them.
    brought: Vec<Source>,
    /// The number that the model used, and the one that the reader sees, if it holds.
    seen: Vec<(usize, Option<usize>)>,
    /// Numbered from 1, as the reader sees them.
    cited: Vec<Source>,
    /// The end of the text so far, if a citation may begin there.
    held: String,
}

impl Citations {
    /// Gives every source in a tool's result a number, and writes it beside the source, where
    /// the model sees it.
    pub(crate) fn number(&mut self, value: &mut Value) {
        match value {
            Value::Array(values) => values.iter_mut().for_each(|value| self.number(value)),
            Value::Object(fields) => {
                let source = fields
                    .get("source")
                    .and_then(|source| serde_json::from_value(source.clone()).ok());
                if let Some(source) = source {
                    fields.insert("cite".to_owned(), json!(self.add(source)));
                }
                fields.values_mut().for_each(|value| self.number(value));
            }
            _ => {}
        }
    }

    fn add(&mut self, source: Source) -> usize {
        let known = self.brought.iter().position(|known| *known == source);
        1 + known.unwrap_or_else(|| {
            self.brought.push(source);
            self.brought.len() - 1
        })
    }

    /// What the answer cites, in the order it does.
    pub(crate) fn cited(&self) -> &[Source] {
        &self.cited
    }

    /// Passes on some text of the answer: citations are numbered in the order they appear, and
    /// those that cite nothing, or something that no longer stands there, are left out. The
    /// beginning of a citation is held back until the rest comes.
    pub(crate) async fn pass(&mut self, ctx: &CallCtx, more: &str) -> Result<String, CallError> {
        let mut text = std::mem::take(&mut self.held);
        text.push_str(more);
        self.held = text.split_off(text.len() - unfinished(&text));
        self.renumber(ctx, &text).await
    }

    /// What was held back when no more text comes.
    pub(crate) fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    async fn renumber(&mut self, ctx: &CallCtx, text: &str) -> Result<String, CallError> {
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, number, after)) = next_citation(rest) {
            shown.push_str(before);
            if let Some(number) = self.number_for_reader(ctx, number).await? {
                let _ = write!(shown, "[{number}]");
            }
            rest = after;
        }
        shown.push_str(rest);
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
            .and_then(|index| self.brought.get(index));
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

/// How many bytes at the end of a text may be the beginning of a citation.
fn unfinished(text: &str) -> usize {
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
        stale: bool,
    }
    let Resolved { stale } = ctx
        .call("search.resolve", json!({ "source": source }))
        .await?;
    Ok(!stale)
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
            ("", 0),
        ] {
            assert_eq!(unfinished(text), held, "{text:?}");
        }
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
