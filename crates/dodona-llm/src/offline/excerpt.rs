//! The part of a passage that is quoted.

use std::ops::Range;

use super::definition::{self, Telling};
use super::found::{Found, Wish};
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

/// What a quote is chosen by.
pub(super) struct Aim<'q> {
    /// The words of the question.
    pub(super) words: &'q [String],
    pub(super) wish: &'q Wish,
}

impl Aim<'_> {
    /// The lines of a passage that say most: from the sentence that defines what is asked for, or
    /// else those with most of the question's words.
    fn lines(&self, lines: &[&str]) -> Range<usize> {
        let start = self.opening(&lines.join("\n"));
        let start = start.map_or_else(|| densest(lines, self.words), |(line, _)| line);
        whole(lines, start)
    }

    /// Where a text says what is asked for: the line, and where in it.
    fn opening(&self, text: &str) -> Option<(usize, usize)> {
        let Wish::Definition(term) = self.wish else {
            return None;
        };
        let told = definition::told(text, term)?;
        (told.how == Telling::Definition).then_some((told.line, told.column))
    }

    /// A text from the sentence on that says what is asked for, where its first line has that.
    fn opened<'t>(&self, text: &'t str) -> &'t str {
        match self.opening(text) {
            Some((0, column)) => &text[column..],
            _ => text,
        }
    }
}

impl Span {
    /// The lines that are quoted of a passage; `None` for what is no file's.
    pub(super) fn of(passage: &Found, aim: &Aim<'_>) -> Option<Self> {
        let first = passage.line_start.filter(|_| passage.is_file())?;
        let lines: Vec<&str> = passage.text.lines().collect();
        let best = aim.lines(&lines);
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
pub(super) fn spans(found: &[Found], aim: &Aim<'_>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for span in found.iter().filter_map(|passage| Span::of(passage, aim)) {
        match spans.iter_mut().find(|other| other.is_near(&span)) {
            Some(other) => {
                // A quote that opens with a definition goes on opening with it.
                if !matches!(aim.wish, Wish::Definition(_)) {
                    other.from = other.from.min(span.from);
                }
                other.to = other.to.max(span.to);
            }
            None => spans.push(span),
        }
    }
    spans
}

/// The lines of a passage that say most, and its number.
pub(super) fn quote(passage: &Found, aim: &Aim<'_>) -> String {
    let lines: Vec<&str> = passage.text.lines().collect();
    let text = lines[aim.lines(&lines)].join("\n");
    quote_lines(&text, passage, passage.cite, aim)
}

/// Lines of a passage's file and their number, as Markdown: of prose what is before a definition in
/// the first is left out, and code stands in a block.
pub(super) fn quote_lines(text: &str, passage: &Found, cite: u64, aim: &Aim<'_>) -> String {
    if let Some(language) = passage.language() {
        // A block ends only with as many marks as it began with.
        let marks = if text.contains("```") { "````" } else { "```" };
        return format!("{marks}{language}\n{text}\n{marks}\n[{cite}]");
    }
    let text = aim.opened(text);
    let last = text.lines().last().unwrap_or_default().trim_start();
    // Behind these a number would become a part of them.
    let gap = match last.starts_with(['|', '`', '~', '<']) {
        true => "\n\n",
        false => " ",
    };
    format!("{text}{gap}[{cite}]")
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

fn window(lines: &[&str], start: usize) -> Range<usize> {
    start..(start + LINES).min(lines.len())
}

/// Where the lines begin that have most of the question's words, with a paragraph if possible.
fn densest(lines: &[&str], words: &[String]) -> usize {
    let begins = |start: usize| start == 0 || is_blank(lines[start - 1]);
    let starts = 0..lines.len().saturating_sub(LINES - 1).max(1);
    let best = starts.max_by_key(|start| {
        let text = lines[window(lines, *start)].join("\n");
        let reversed = std::cmp::Reverse(*start);
        (words::in_text(&text, words), begins(*start), reversed)
    });
    best.unwrap_or_default()
}

/// The lines from one on, to the end of a paragraph where that is near.
fn whole(lines: &[&str], start: usize) -> Range<usize> {
    let Range { mut start, mut end } = window(lines, start);
    let limit = (end + MORE).min(lines.len());
    if let Some(paragraph) = (end..=limit).find(|at| *at == lines.len() || is_blank(lines[*at])) {
        end = paragraph;
    }
    while start < end && is_blank(lines[start]) {
        start += 1;
    }
    end = before_open_block(lines, start..end);
    while end > start && is_blank(lines[end - 1]) {
        end -= 1;
    }
    start..end
}

/// Where a block of code begins that does not end within these lines, if something is before it;
/// their end otherwise.
fn before_open_block(lines: &[&str], range: Range<usize>) -> usize {
    let end = range.end;
    let marks = range.clone().filter(|at| lines[*at].starts_with("```"));
    let marks: Vec<usize> = marks.collect();
    match marks.last() {
        Some(open) if marks.len() % 2 == 1 && *open > range.start => *open,
        _ => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::found::passage;

    fn aim<'q>(words: &'q [String], wish: &'q Wish) -> Aim<'q> {
        Aim { words, wish }
    }

    #[test]
    fn quotes_that_lie_close_together_are_one() {
        let found = [
            passage("a.md", 10, "the journal\nis written"),
            passage("b.md", 10, "the journal"),
            passage("a.md", 14, "by the journal's pump"),
            passage("a.md", 40, "the journal again"),
        ];
        let question = "How is the journal written?";
        let spans = spans(
            &found,
            &aim(&words::of_question(question), &Wish::of(question)),
        );
        let told: Vec<(&str, u32, u32)> = spans
            .iter()
            .map(|span| (span.path.as_str(), span.from, span.to))
            .collect();
        assert_eq!(told, [("a.md", 10, 14), ("b.md", 10, 10), ("a.md", 40, 40)]);
    }

    #[test]
    fn quotes_are_markdown_that_stays_what_it_is() {
        let (words, wish) = (words::of_question("How are rules kept?"), Wish::Anything);
        let aim = aim(&words, &wish);
        for (path, text, quoted) in [
            ("a.md", "rules", "rules [1]"),
            ("a.md", "| rules |", "| rules |\n\n[1]"),
            ("a.md", "rules\n```\nx\n```", "rules\n```\nx\n```\n\n[1]"),
            ("a.md", "rules:\n\n```\nx\n", "rules: [1]"),
            ("a.rs", "fn rules() {}", "```rust\nfn rules() {}\n```\n[1]"),
            (
                "a.rs",
                "/// ```\n/// rules\n/// ```",
                "````rust\n/// ```\n/// rules\n/// ```\n````\n[1]",
            ),
        ] {
            assert_eq!(quote(&passage(path, 1, text), &aim), quoted);
        }
    }

    #[test]
    fn whole_paragraphs_are_quoted_where_they_are_short() {
        let text = "# Title\n\none\ntwo\n\nThe journal is\nwritten by a pump,\nwhich is one thread.\n\nlast\nof\nall\n\n";
        let lines: Vec<&str> = text.lines().collect();
        let words = words::of_question("Who writes the journal with a pump thread?");
        let aim = aim(&words, &Wish::Anything);
        let quoted = lines[aim.lines(&lines)].join("\n");
        assert!(quoted.contains("The journal is\nwritten"), "{quoted}");
        assert!(!quoted.ends_with("of"), "{quoted}");
        assert_eq!(aim.lines(&[]), 0..0);
        assert_eq!(aim.lines(&["", " "]), 2..2);
    }

    #[test]
    fn an_answer_to_what_something_is_opens_with_its_definition() {
        let text = "# Rules\n\n| field | of a rule |\n|---|---|\n| id | a rule |\n\nRules are kept. A rule is a\ntrigger and actions.\n\nMore rules.";
        let question = "What is a rule?";
        let (words, wish) = (words::of_question(question), Wish::of(question));
        let found = [
            passage("a.md", 10, text),
            passage("a.md", 14, "rules\nabove"),
        ];
        let aim = aim(&words, &wish);
        let spans = spans(&found, &aim);
        let told: Vec<(u32, u32)> = spans.iter().map(|span| (span.from, span.to)).collect();
        assert_eq!(told, [(16, 19)]);
        assert_eq!(
            quote(&found[0], &aim),
            "A rule is a\ntrigger and actions.\n\nMore rules. [1]"
        );
    }
}
