//! The part of a passage that is quoted.

use std::ops::Range;

use super::definition::{self, Telling};
use super::found::{Found, Wish};
use super::words;

/// Lines that are scored together when the best part of a long section is looked for.
const WINDOW: usize = 8;

/// A section or passage of at most this many lines is quoted whole.
const WHOLE: usize = 16;

/// The most lines of one quote. A block that has begun is quoted to its end up to here.
const MAX_LINES: usize = 28;

/// How many lines may lie between two quotes that are given as one.
const GAP: u32 = 3;

/// Lines of a file, from 1, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) path: String,
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Whether lines that start with `#` are headings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Prose,
    Code,
}

impl TextKind {
    fn of(passage: &Found) -> Self {
        match passage.language() {
            Some(_) => Self::Code,
            None => Self::Prose,
        }
    }
}

/// What a quote is chosen by.
pub(super) struct Aim<'q> {
    /// The words of the question.
    pub(super) words: &'q [String],
    pub(super) wish: &'q Wish,
}

impl Aim<'_> {
    /// The lines to quote of a passage: from the sentence that defines the term in question, or
    /// else the section, or part of a section, with most words of the question.
    fn lines(&self, lines: &[&str], kind: TextKind) -> Range<usize> {
        if let Some((start, _)) = self.opening(&lines.join("\n")) {
            return to_end_of_block(lines, start..lines.len(), start);
        }
        let section = match kind {
            TextKind::Prose => best_section(lines, self.words),
            TextKind::Code => 0..lines.len(),
        };
        if section.len() <= WHOLE {
            let end = before_open_block(lines, section.clone());
            return trim(lines, section.start..end);
        }
        let start = densest(lines, section.clone(), self.words);
        to_end_of_block(lines, section, start)
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
        let best = aim.lines(&lines, TextKind::of(passage));
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
    let text = lines[aim.lines(&lines, TextKind::of(passage))].join("\n");
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

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn is_list_item(line: &str) -> bool {
    let line = line.trim_start();
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with("* ")
        || (after_number.len() < line.len() && after_number.starts_with(". "))
}

/// The section with most words of the question: from a heading to the line before the next one.
/// Of sections with equally many words, the one that repeats them most.
fn best_section(lines: &[&str], words: &[String]) -> Range<usize> {
    let mut starts = vec![0];
    let mut in_fence = false;
    for (at, line) in lines.iter().enumerate() {
        in_fence ^= is_fence(line);
        if at > 0 && !in_fence && line.starts_with('#') {
            starts.push(at);
        }
    }
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    let sections = starts.iter().copied().zip(ends).map(|(from, to)| from..to);
    let score = |section: &Range<usize>| {
        let text = lines[section.clone()].join("\n");
        let repeated: usize = lines[section.clone()]
            .iter()
            .map(|line| words::in_text(line, words))
            .sum();
        let is_first = std::cmp::Reverse(section.start);
        (words::in_text(&text, words), repeated, is_first)
    };
    sections.max_by_key(score).unwrap_or(0..0)
}

/// Where the lines of a section start that have most words of the question, at the start of a
/// paragraph if there is a choice.
fn densest(lines: &[&str], section: Range<usize>, words: &[String]) -> usize {
    let begins = |start: usize| start == section.start || is_blank(lines[start - 1]);
    let last = section.end.saturating_sub(WINDOW).max(section.start);
    let best = (section.start..=last).max_by_key(|start| {
        let text = lines[*start..(*start + WINDOW).min(section.end)].join("\n");
        let is_first = std::cmp::Reverse(*start);
        (words::in_text(&text, words), begins(*start), is_first)
    });
    best.unwrap_or(section.start)
}

/// The lines of a section from `start` to the end of the paragraph, list or code block in which the
/// window ends, and of the list or code block that this paragraph introduces. The answer to a
/// question is often the command or the list below the sentence with its words.
fn to_end_of_block(lines: &[&str], section: Range<usize>, start: usize) -> Range<usize> {
    let limit = section.end.min(start + MAX_LINES);
    let mut end = limit.min(start + WINDOW);
    let mut open = lines[start..end]
        .iter()
        .filter(|line| is_fence(line))
        .count()
        % 2
        == 1;
    while end < limit {
        let line = lines[end];
        let is_between_blocks = !open && is_blank(line);
        if is_between_blocks && !introduces_next(lines, start..end, section.end) {
            break;
        }
        open ^= is_fence(line);
        end += 1;
    }
    let end = before_open_block(lines, start..end);
    trim(lines, start..end)
}

/// Whether the block after a blank line belongs to the lines before it: code or a list after a
/// sentence that ends with a colon, and further items of a list.
fn introduces_next(lines: &[&str], quoted: Range<usize>, section_end: usize) -> bool {
    let next = (quoted.end..section_end).find(|at| !is_blank(lines[*at]));
    let (Some(next), Some(last)) = (next, lines[quoted].iter().rfind(|line| !is_blank(line)))
    else {
        return false;
    };
    let next = lines[next];
    let announces = last.trim_end().ends_with(':');
    (announces && (is_fence(next) || is_list_item(next) || next.starts_with("    ")))
        || (is_list_item(last) && (is_list_item(next) || next.starts_with("  ")))
}

fn trim(lines: &[&str], range: Range<usize>) -> Range<usize> {
    let Range { mut start, mut end } = range;
    while start < end && is_blank(lines[start]) {
        start += 1;
    }
    while end > start && is_blank(lines[end - 1]) {
        end -= 1;
    }
    start..end
}

/// Where a block of code begins that does not end within these lines, if something is before it;
/// their end otherwise.
fn before_open_block(lines: &[&str], range: Range<usize>) -> usize {
    let fences: Vec<usize> = range.clone().filter(|at| is_fence(lines[*at])).collect();
    match fences.last() {
        Some(open) if fences.len() % 2 == 1 && *open > range.start => *open,
        _ => range.end,
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

    fn quoted(question: &str, text: &str) -> String {
        let (words, wish) = (words::of_question(question), Wish::of(question));
        let lines: Vec<&str> = text.lines().collect();
        lines[aim(&words, &wish).lines(&lines, TextKind::Prose)].join("\n")
    }

    #[test]
    fn the_section_that_answers_is_quoted_to_its_end() {
        let note = "# Decisions\n\n## Tokens\n\nLogin issues a token.\n\n## Deployment\n\nDeploy with `make ship`.\n\n## Other\n\nMore.\n";
        assert_eq!(
            quoted("How do I deploy?", note),
            "## Deployment\n\nDeploy with `make ship`."
        );
        // A comment in a code block is not a heading.
        let code = "## Run\n\n```sh\n# start the server\nserve --now\n```\n";
        assert_eq!(quoted("How do I run the server?", code), code.trim_end());
    }

    #[test]
    fn a_long_section_is_quoted_to_the_end_of_the_command_that_answers() {
        let filler = "one\ntwo\nthree\n\n".repeat(6);
        let answer = "The development server runs with the debugger\nif you pass the option:\n\n```console\n$ flask run --debug\n```";
        let note = format!("## Server\n\n{filler}{answer}\n\n{filler}");
        let quote = quoted(
            "How do I run the development server with the debugger?",
            &note,
        );
        assert!(quote.contains("$ flask run --debug\n```"), "{quote}");
        assert!(quote.lines().count() <= MAX_LINES, "{quote}");
    }

    #[test]
    fn paragraphs_are_quoted_whole() {
        let filler = "a\nb\nc\n\n".repeat(5);
        let note =
            format!("{filler}The journal is\nwritten by a pump,\nwhich is one thread.\n\n{filler}");
        let quote = quoted("Who writes the journal with a pump thread?", &note);
        assert!(quote.contains("The journal is\nwritten by a pump,\nwhich is one thread."));
        assert_eq!(quoted("Who?", ""), "");
        assert_eq!(quoted("Who?", "\n \n"), "");
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
