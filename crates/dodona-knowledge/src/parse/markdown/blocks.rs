//! Which lines of a note are headings, which are code, which are prose.

use super::inline;
use crate::parse::lines::{Lines, Span};

/// A setext heading of more lines than this is prose above a rule.
const MAX_SETEXT_LINES: usize = 3;

/// A heading outside of code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) level: usize,
    /// Without markup.
    pub(super) text: String,
    /// With its underline, if that makes it one.
    pub(super) lines: Span,
}

/// The lines of a note by what they are.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pub(super) headings: Vec<Heading>,
    /// Whether a line is code, a comment or frontmatter: no headings, links or tags are in it.
    opaque: Vec<bool>,
}

/// Something that hides what looks like Markdown until it ends.
#[derive(Clone, Copy)]
enum Open {
    Fence {
        mark: char,
        len: usize,
        quoted: bool,
    },
    Comment,
}

/// What a line may continue or underline.
#[derive(Clone, Copy)]
enum Above {
    Nothing,
    /// Prose from that line on: only that can be underlined into a heading.
    Paragraph(usize),
    /// A list, a quote, a table or HTML, up to the next blank line.
    Container,
}

impl Blocks {
    /// Classifies the lines after the first `skip`.
    pub(super) fn scan(lines: &Lines<'_>, skip: usize) -> Self {
        let mut blocks = Self {
            headings: Vec::new(),
            opaque: vec![true; skip.min(lines.len())],
        };
        let mut open = None;
        let mut above = Above::Nothing;
        for index in skip..lines.len() {
            let line = lines.get(index);
            let (opaque, now) = step(open, line);
            blocks.opaque.push(opaque);
            open = now;
            let heading = match above {
                _ if opaque => None,
                Above::Paragraph(start) if index - start <= MAX_SETEXT_LINES => {
                    let span = Span {
                        start,
                        end: index + 1,
                    };
                    setext(line).map(|level| (level, prose(lines, start, index), span))
                }
                _ => None,
            };
            let end = index + 1;
            let heading = heading.or_else(|| {
                let (level, text) = atx(line).filter(|_| !opaque)?;
                Some((level, text.to_owned(), Span { start: index, end }))
            });
            let ends = opaque || line.trim().is_empty() || setext(line).is_some();
            above = match above {
                _ if ends || heading.is_some() => Above::Nothing,
                _ if is_container(line) => Above::Container,
                Above::Nothing if indent(line) <= 3 => Above::Paragraph(index),
                above => above,
            };
            if let Some((level, text, span)) = heading {
                blocks.push(level, &text, span);
            }
        }
        blocks
    }

    fn push(&mut self, level: usize, text: &str, lines: Span) {
        let text = inline::plain(text);
        self.headings.push(Heading { level, text, lines });
    }

    pub(super) fn is_opaque(&self, line: usize) -> bool {
        self.opaque.get(line).copied().unwrap_or(false)
    }

    /// The spans in which inline markup may go over the end of a line.
    pub(super) fn paragraphs(&self, lines: &Lines<'_>) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut open = false;
        let mut headings = self.headings.iter().peekable();
        for index in 0..lines.len() {
            while headings
                .next_if(|heading| heading.lines.end <= index)
                .is_some()
            {}
            let heading = headings.peek().map(|heading| heading.lines);
            let starts = heading.is_some_and(|span| span.start == index);
            let inside = heading.is_some_and(|span| span.start < index && index < span.end);
            if self.is_opaque(index) || lines.is_blank(index) {
                open = false;
                continue;
            }
            let line = lines.get(index);
            let alone = is_item(line)
                || line.trim_start().starts_with('|')
                || inline::reference_definition(line).is_some();
            let apart = starts || !inside && alone;
            match spans.last_mut() {
                Some(last) if open && !apart => last.end = index + 1,
                _ => spans.push(Span {
                    start: index,
                    end: index + 1,
                }),
            }
            // What follows a heading is not part of it.
            open = heading.is_none_or(|span| span.end != index + 1);
        }
        spans
    }
}

/// Whether a line is opaque, and what is open after it.
fn step(open: Option<Open>, line: &str) -> (bool, Option<Open>) {
    let (quoted, bare) = unquote(line);
    match open {
        Some(Open::Fence { quoted: true, .. }) if !quoted => step(None, line),
        Some(Open::Fence { mark, len, .. }) => {
            let run = bare.chars().take_while(|&c| c == mark).count();
            let closes = run >= len && bare[run..].trim().is_empty();
            (true, open.filter(|_| !closes))
        }
        Some(Open::Comment) => (true, open.filter(|_| !line.contains("-->"))),
        None => {
            if let Some(rest) = bare.strip_prefix("<!--") {
                let closes = rest.contains("-->");
                return (true, (!closes).then_some(Open::Comment));
            }
            match fence(item_text(bare)) {
                Some((mark, len)) => (true, Some(Open::Fence { mark, len, quoted })),
                None => (false, None),
            }
        }
    }
}

/// Whether a line is quoted, and what is behind the `>` and the indentation.
fn unquote(line: &str) -> (bool, &str) {
    let trimmed = line.trim_start();
    if trimmed.starts_with('>') {
        (true, trimmed.trim_start_matches(['>', ' ', '\t']))
    } else {
        (false, trimmed)
    }
}

/// The opening of a code fence. Its indentation is free, because lists indent theirs.
fn fence(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let len = line.chars().take_while(|&c| c == mark).count();
    let info = &line[len..];
    (len >= 3 && !(mark == '`' && info.contains('`'))).then_some((mark, len))
}

/// `## text ##`.
fn atx(line: &str) -> Option<(usize, &str)> {
    if indent(line) > 3 {
        return None;
    }
    let line = line.trim_start_matches('\u{feff}').trim();
    let level = line.bytes().take_while(|&b| b == b'#').count();
    let text = &line[level..];
    if !(1..=6).contains(&level) || !(text.is_empty() || text.starts_with([' ', '\t'])) {
        return None;
    }
    let text = text.trim();
    let open = text.trim_end_matches('#');
    let closed = open.is_empty() || open.ends_with([' ', '\t']);
    Some((level, if closed { open.trim_end() } else { text }))
}

/// The level that a line gives to the paragraph above it.
fn setext(line: &str) -> Option<usize> {
    let mark = line.trim();
    let of = |c: char| !mark.is_empty() && mark.chars().all(|m| m == c);
    match indent(line) {
        0..=3 if of('=') => Some(1),
        0..=3 if of('-') => Some(2),
        _ => None,
    }
}

fn indent(line: &str) -> usize {
    let blank = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
    blank.map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

/// Lines of a paragraph as one.
fn prose(lines: &Lines<'_>, start: usize, end: usize) -> String {
    let text: Vec<_> = (start..end).map(|line| lines.get(line).trim()).collect();
    text.join(" ")
}

fn is_container(line: &str) -> bool {
    is_item(line) || line.trim_start().starts_with(['>', '|', '<'])
}

/// Whether a list item starts here.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    item_text(line).len() < line.len()
}

/// A line without the mark of a list item.
fn item_text(line: &str) -> &str {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match digits {
        0 => line.starts_with(['-', '*', '+']),
        1..=9 => line[digits..].starts_with(['.', ')']),
        _ => false,
    };
    let rest = &line[digits..];
    match rest.get(1..) {
        Some(text) if mark && text.starts_with([' ', '\t']) => text.trim_start(),
        _ => line,
    }
}
