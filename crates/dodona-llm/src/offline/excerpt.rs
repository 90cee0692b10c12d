//! The part of a passage that is quoted.

use std::ops::Range;

use super::found::Found;
use super::words;

/// How many lines are quoted of one passage.
const LINES: usize = 8;

/// How many lines more a paragraph may bring that is not yet at its end.
const MORE: usize = 4;

/// How many lines may lie between two quotes that are given as one.
const GAP: u32 = 3;

/// Lines of a file, from 1, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) path: String,
    pub(super) from: u32,
    pub(super) to: u32,
}

impl Span {
    /// The lines that are quoted of a passage; `None` for what is no file's.
    pub(super) fn of(passage: &Found, words: &[String]) -> Option<Self> {
        let first = passage.line_start.filter(|_| passage.is_file())?;
        let lines: Vec<&str> = passage.text.lines().collect();
        let best = best(&lines, words);
        let line = |index: usize| first + u32::try_from(index).unwrap_or(u32::MAX);
        (!best.is_empty()).then(|| Self {
            path: passage.path.clone(),
            from: line(best.start),
            to: line(best.end - 1),
        })
    }

    fn is_near(&self, other: &Self) -> bool {
        self.path == other.path && self.from <= other.to + GAP && other.from <= self.to + GAP
    }
}

/// The lines that are quoted of passages: what lies close together is one quote, in the place of
/// the better one.
pub(super) fn spans(found: &[Found], words: &[String]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for span in found.iter().filter_map(|passage| Span::of(passage, words)) {
        match spans.iter_mut().find(|other| other.is_near(&span)) {
            Some(other) => {
                other.from = other.from.min(span.from);
                other.to = other.to.max(span.to);
            }
            None => spans.push(span),
        }
    }
    spans
}

/// The lines of a passage that say most, and its number.
pub(super) fn quote(passage: &Found, words: &[String]) -> String {
    let lines: Vec<&str> = passage.text.lines().collect();
    let text = lines[best(&lines, words)].join("\n");
    quote_lines(&text, passage.cite)
}

/// Lines as they are, and their number.
pub(super) fn quote_lines(text: &str, cite: u64) -> String {
    format!("{text} [{cite}]")
}

/// The lines with most of the question's words, from the beginning of a paragraph to the end of
/// one where that is near.
fn best(lines: &[&str], words: &[String]) -> Range<usize> {
    let blank = |line: &&str| line.trim().is_empty();
    let window = |start: usize| start..(start + LINES).min(lines.len());
    let begins = |start: usize| start == 0 || blank(&lines[start - 1]);
    let start = (0..lines.len().saturating_sub(LINES - 1).max(1))
        .max_by_key(|start| {
            let text = lines[window(*start)].join("\n");
            let reversed = std::cmp::Reverse(*start);
            (words::in_text(&text, words), begins(*start), reversed)
        })
        .unwrap_or_default();
    let Range { mut start, mut end } = window(start);
    let limit = (end + MORE).min(lines.len());
    if let Some(paragraph) = (end..=limit).find(|at| *at == lines.len() || blank(&lines[*at])) {
        end = paragraph;
    }
    while start < end && blank(&lines[start]) {
        start += 1;
    }
    while end > start && blank(&lines[end - 1]) {
        end -= 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::found::passage;

    #[test]
    fn quotes_that_lie_close_together_are_one() {
        let found = [
            passage("a.md", 10, "the journal\nis written"),
            passage("b.md", 10, "the journal"),
            passage("a.md", 14, "by the journal's pump"),
            passage("a.md", 40, "the journal again"),
        ];
        let words = words::of_question("How is the journal written?");
        let spans = spans(&found, &words);
        let told: Vec<(&str, u32, u32)> = spans
            .iter()
            .map(|span| (span.path.as_str(), span.from, span.to))
            .collect();
        assert_eq!(told, [("a.md", 10, 14), ("b.md", 10, 10), ("a.md", 40, 40)]);
    }

    #[test]
    fn whole_paragraphs_are_quoted_where_they_are_short() {
        let text = "# Title\n\none\ntwo\n\nThe journal is\nwritten by a pump,\nwhich is one thread.\n\nlast\nof\nall\n\n";
        let lines: Vec<&str> = text.lines().collect();
        let words = words::of_question("Who writes the journal with a pump thread?");
        let quoted = lines[best(&lines, &words)].join("\n");
        assert!(quoted.contains("The journal is\nwritten"), "{quoted}");
        assert!(!quoted.ends_with("of"), "{quoted}");
        assert_eq!(best(&[], &words), 0..0);
        assert_eq!(best(&["", " "], &words), 2..2);
    }
}
