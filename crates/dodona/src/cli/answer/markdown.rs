//! Markdown on a terminal, while it arrives.
//!
//! Answers are streamed in pieces that end anywhere. Text is written as it arrives and wrapped at the
//! width of the terminal. Held back are the first characters of a line until it is clear what the line
//! is, and the start of a word near the right edge, which may have to go to the next line. Supported is what models write in answers: headings, lists, quotes,
//! code blocks, `code`, **bold** and *emphasis*. Everything else is shown unchanged.

use unicode_width::UnicodeWidthStr;

use crate::paint::Paint;

/// A word that has begun is written before its end if this many columns are left for it.
const ROOM_FOR_WORD: usize = 16;

/// Lines are not wrapped wider than this, because long lines are hard to read.
const WIDEST: usize = 100;

/// Renders pieces of Markdown. Feed it with [`push`](Self::push) and end with
/// [`finish`](Self::finish).
pub(super) struct Markdown {
    paint: Paint,
    width: usize,
    /// The part of the current line that was not written yet.
    pending: String,
    line: Line,
    /// Columns of the current line that are used.
    column: usize,
    /// Spaces in front of wrapped lines.
    indent: usize,
    span: Span,
    /// Whether the last word was written in part.
    is_mid_word: bool,
    is_in_fence: bool,
}

/// What the current line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Not known yet.
    Start,
    Text,
    Heading,
    /// Written unchanged when the line is complete: code, tables.
    Verbatim,
}

/// What the next word is part of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Span {
    is_bold: bool,
    is_emphasis: bool,
    is_code: bool,
}

impl Markdown {
    pub(super) fn new(paint: Paint, width: usize) -> Self {
        Self {
            paint,
            width: width.clamp(20, WIDEST),
            pending: String::new(),
            line: Line::Start,
            column: 0,
            indent: 0,
            span: Span::default(),
            is_mid_word: false,
            is_in_fence: false,
        }
    }

    /// Takes a piece and returns what can be written now.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut out = String::new();
        for c in piece.chars() {
            match c {
                '\n' => self.end_line(&mut out),
                _ => {
                    self.pending.push(c);
                    if c == ' ' {
                        self.advance(&mut out);
                    }
                }
            }
        }
        self.write_partial_word(&mut out);
        out
    }

    /// Writes the word that has begun, if it cannot become a mark and will fit on the line.
    fn write_partial_word(&mut self, out: &mut String) {
        if self.line == Line::Start && self.pending.starts_with(char::is_alphabetic) {
            self.begin_line(out);
        }
        let fits = self.column + 1 + self.pending.width() + ROOM_FOR_WORD <= self.width;
        if !matches!(self.line, Line::Text | Line::Heading)
            || self.pending.is_empty()
            || self.pending.ends_with(['*', '`'])
            || !fits
        {
            return;
        }
        let part = std::mem::take(&mut self.pending);
        self.word(&part, out);
        self.is_mid_word = true;
    }

    /// Returns what is left, without a line end.
    pub(super) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.flush_line(&mut out);
        self.reset_line();
        out
    }

    /// Writes the complete words of the current line, once it is known what the line is.
    fn advance(&mut self, out: &mut String) {
        if self.line == Line::Start {
            self.begin_line(out);
        }
        if matches!(self.line, Line::Text | Line::Heading) {
            while let Some(end) = self.pending.find(' ') {
                let word: String = self.pending.drain(..=end).collect();
                self.word(word.trim_end(), out);
            }
        }
    }

    /// Recognises the line by its first characters; leaves it undecided while they can still become
    /// something else.
    fn begin_line(&mut self, out: &mut String) {
        let text = self.pending.trim_start();
        if text.is_empty() {
            return;
        }
        let spaces = self.pending.len() - text.len();
        if self.is_in_fence
            || text.starts_with(['|', '`', '~']) && is_block(text)
            || spaces >= 4 && !is_item(text)
        {
            self.line = Line::Verbatim;
            return;
        }
        if text.trim_end().chars().all(|c| c == '#') && text.len() <= 7 {
            self.line = Line::Heading;
            self.pending.clear();
            return;
        }
        if let Some(marker) = item_marker(text) {
            let bullet = match marker {
                "-" | "*" | "+" => "•",
                number => number,
            };
            out.push_str(&format!("{:spaces$}{bullet}", ""));
            self.column = spaces + bullet.width();
            self.indent = self.column + 1;
            self.pending.drain(..spaces + marker.len() + 1);
        } else if text.starts_with("> ") {
            out.push_str(&self.paint.dim("│").to_string());
            self.column = 1;
            self.indent = 2;
            self.pending.drain(..spaces + 2);
        }
        self.line = Line::Text;
    }

    fn end_line(&mut self, out: &mut String) {
        self.flush_line(out);
        out.push('\n');
        self.reset_line();
    }

    fn flush_line(&mut self, out: &mut String) {
        if self.line == Line::Start && !self.pending.is_empty() {
            // A space completes the marker of a heading or list that has no text.
            self.pending.push(' ');
            self.begin_line(out);
        }
        let rest = std::mem::take(&mut self.pending);
        match self.line {
            Line::Text | Line::Heading => {
                for word in rest.split(' ') {
                    self.word(word, out);
                }
            }
            Line::Start | Line::Verbatim => self.verbatim(rest.trim_end(), out),
        }
    }

    fn verbatim(&mut self, text: &str, out: &mut String) {
        let is_fence = text.trim_start().starts_with("```") || text.trim_start().starts_with("~~~");
        self.is_in_fence ^= is_fence;
        self.column = text.width();
        match (is_fence, self.is_in_fence || text.starts_with("    ")) {
            (true, _) => out.push_str(&self.paint.dim(text).to_string()),
            (false, true) => out.push_str(&self.paint.code(text).to_string()),
            (false, false) => out.push_str(text),
        }
    }

    fn reset_line(&mut self) {
        self.line = Line::Start;
        self.column = 0;
        self.indent = 0;
        self.span = Span::default();
        self.is_mid_word = false;
    }

    /// Writes a word, or the rest of one that was written in part.
    fn word(&mut self, word: &str, out: &mut String) {
        let is_rest = std::mem::take(&mut self.is_mid_word);
        if word.is_empty() {
            return;
        }
        let (text, width) = self.styled(word, is_rest);
        let gap = usize::from(self.column > 0 && !is_rest);
        if self.column + gap + width > self.width && self.column > self.indent && !is_rest {
            out.push('\n');
            out.push_str(&" ".repeat(self.indent));
            self.column = self.indent;
        } else if gap == 1 {
            out.push(' ');
            self.column += 1;
        }
        out.push_str(&text);
        self.column += width;
    }

    /// A word with its marks replaced by styles, and the columns it takes.
    fn styled(&mut self, word: &str, is_rest: bool) -> (String, usize) {
        let (mut text, mut width) = (String::new(), 0);
        let mut plain = String::new();
        let mut rest = word;
        while let Some(c) = rest.chars().next() {
            let mut after = self.span;
            let mark = if c == '`' {
                after.is_code ^= true;
                "`"
            } else if self.span.is_code {
                ""
            } else if rest.starts_with("**") {
                after.is_bold ^= true;
                "**"
            } else if c == '*'
                && is_emphasis_mark(rest, !is_rest && rest.len() == word.len(), self.span)
            {
                after.is_emphasis ^= true;
                "*"
            } else {
                ""
            };
            if mark.is_empty() {
                plain.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
            width += plain.width();
            text.push_str(&self.paint_span(&std::mem::take(&mut plain)));
            self.span = after;
            rest = &rest[mark.len()..];
        }
        width += plain.width();
        text.push_str(&self.paint_span(&plain));
        (text, width)
    }

    fn paint_span(&self, text: &str) -> String {
        match (self.line, self.span) {
            _ if text.is_empty() => String::new(),
            (_, Span { is_code: true, .. }) => self.paint.code(text).to_string(),
            (Line::Heading, _) | (_, Span { is_bold: true, .. }) => {
                self.paint.bold(text).to_string()
            }
            (
                _,
                Span {
                    is_emphasis: true, ..
                },
            ) => self.paint.emphasis(text).to_string(),
            _ => text.to_owned(),
        }
    }
}

/// Whether a `*` opens or closes emphasis: it stands at the start or the end of a word.
fn is_emphasis_mark(rest: &str, is_first: bool, span: Span) -> bool {
    let next = rest[1..].chars().next();
    match span.is_emphasis {
        true => next.is_none_or(|c| !c.is_alphanumeric()),
        false => is_first && next.is_some_and(char::is_alphanumeric),
    }
}

/// Whether a line that starts like a table or code block is one.
fn is_block(text: &str) -> bool {
    text.starts_with('|') || text.starts_with("```") || text.starts_with("~~~")
}

fn is_item(text: &str) -> bool {
    item_marker(text).is_some()
}

/// The marker of a list item, which a space must follow.
fn item_marker(text: &str) -> Option<&str> {
    let (marker, _) = text.split_once(' ')?;
    let digits = marker.strip_suffix(['.', ')']);
    let is_number = digits.is_some_and(|digits| {
        !digits.is_empty() && digits.len() <= 3 && digits.bytes().all(|b| b.is_ascii_digit())
    });
    (matches!(marker, "-" | "*" | "+") || is_number).then_some(marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, width: usize) -> String {
        let mut markdown = Markdown::new(Paint::plain(), width);
        let mut out = markdown.push(text);
        out.push_str(&markdown.finish());
        out
    }

    #[test]
    fn words_are_wrapped_and_never_broken() {
        assert_eq!(
            rendered("one two three four five six", 20),
            "one two three four\nfive six"
        );
        assert_eq!(
            rendered("- one two three four five six\n12. seven", 20),
            "• one two three four\n  five six\n12. seven"
        );
        let long = "x".repeat(60);
        assert_eq!(
            rendered(&format!("a {long} b"), 20),
            format!("a\n{long}\nb")
        );
    }

    #[test]
    fn marks_become_styles_and_other_text_stays() {
        assert_eq!(
            rendered("## A **bold** `co de` word", 80),
            "A bold co de word"
        );
        assert_eq!(
            rendered("2 * 3 and a*b and *this one* here", 80),
            "2 * 3 and a*b and this one here"
        );
        assert_eq!(rendered("`**kept**` [1]", 80), "**kept** [1]");
        assert_eq!(rendered("#hash and -dash", 80), "#hash and -dash");
        assert_eq!(rendered("> quoted text", 80), "│ quoted text");
    }

    #[test]
    fn code_and_tables_are_not_changed() {
        let code =
            "```rust\nfn  main() { a * b }  // **x** and a very long line of code\n```\nafter";
        assert_eq!(rendered(code, 30), code);
        let table = "| a | b |\n|---|---|\n| **x** | `y` |";
        assert_eq!(rendered(table, 10), table);
    }

    #[test]
    fn any_split_gives_the_same_text() {
        let text = "# Title\n\nSome **bold text** and `code` that is long enough to wrap.\n\n- first item\n  - nested *item* here\n\n```\nlet x = 1;\n```\nEnd [1].";
        let whole = rendered(text, 30);
        let chars: Vec<String> = text.chars().map(String::from).collect();
        for size in [1, 2, 3, 7] {
            let mut markdown = Markdown::new(Paint::plain(), 30);
            let mut out: String = chars
                .chunks(size)
                .map(|piece| markdown.push(&piece.concat()))
                .collect();
            out.push_str(&markdown.finish());
            assert_eq!(out, whole, "pieces of {size}");
        }
    }
}
