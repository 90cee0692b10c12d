//! Text without a structure that we know, cut into windows of lines.

use super::Chunk;
use super::lines::{Lines, Span, number};

/// How large a window may become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    pub(crate) lines: usize,
    /// A single line that is longer still makes one window: a line is never torn.
    pub(crate) chars: usize,
}

/// For text of no known kind.
pub(crate) const TEXT: Limit = Limit {
    lines: 50,
    chars: 6_000,
};

/// A whole text as windows that belong to no symbol.
pub(crate) fn chunks(lines: &Lines<'_>) -> Vec<Chunk> {
    let all = Span {
        start: 0,
        end: lines.len(),
    };
    cut(lines, all, TEXT, |_| true)
        .into_iter()
        .map(|span| chunk(lines, span, "", ""))
        .collect()
}

/// A chunk of those lines.
pub(crate) fn chunk(lines: &Lines<'_>, span: Span, heading: &str, symbol: &str) -> Chunk {
    Chunk {
        line_start: number(span.start),
        line_end: number(span.end.saturating_sub(1)),
        heading: heading.to_owned(),
        symbol: symbol.to_owned(),
        text: lines.text(span),
    }
}

/// Cuts a span into windows that begin and end with text.
///
/// A cut is made at a blank line in the second half of a window where there is one, because a
/// paragraph or a statement that is torn is found by neither half. `may_cut` vetoes blank lines
/// that only look like a boundary, such as those inside a code fence.
pub(crate) fn cut(
    lines: &Lines<'_>,
    span: Span,
    limit: Limit,
    may_cut: impl Fn(usize) -> bool,
) -> Vec<Span> {
    let mut windows = Vec::new();
    let mut rest = lines.trim(span);
    while let Some(span) = rest {
        let full = fill(lines, span, limit);
        let end = if full == span.end {
            full
        } else {
            let half = span.start + (full - span.start) / 2;
            (half.max(span.start + 1)..=full)
                .rev()
                .find(|&line| lines.is_blank(line) && may_cut(line))
                .unwrap_or(full)
        };
        let window = Span {
            start: span.start,
            end,
        };
        windows.extend(lines.trim(window));
        rest = lines.trim(Span {
            start: end,
            end: span.end,
        });
    }
    windows
}

/// Where a window that starts here is full: at least one line further.
fn fill(lines: &Lines<'_>, span: Span, limit: Limit) -> usize {
    let mut chars = 0;
    for line in span.start..span.end {
        chars += lines.get(line).chars().count() + 1;
        let first = line == span.start;
        if !first && (line - span.start >= limit.lines || chars > limit.chars) {
            return line;
        }
    }
    span.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str, lines: usize) -> Vec<(u32, u32)> {
        let limit = Limit { lines, chars: 100 };
        let text = Lines::new(text);
        let all = Span {
            start: 0,
            end: text.len(),
        };
        cut(&text, all, limit, |_| true)
            .into_iter()
            .map(|span| (number(span.start), number(span.end - 1)))
            .collect()
    }

    #[test]
    fn a_cut_prefers_a_blank_line_in_the_second_half() {
        assert_eq!(spans("a\nb\nc\n\nd\ne", 5), [(1, 3), (5, 6)]);
        assert_eq!(spans("a\n\nb\nc\nd\ne\nf", 4), [(1, 4), (5, 7)]);
    }

    #[test]
    fn blank_lines_at_the_ends_belong_to_no_window() {
        assert_eq!(spans("\n\n  \na\n\t\n\n", 5), [(4, 4)]);
        assert_eq!(spans("\n \n", 5), []);
        assert_eq!(spans("", 5), []);
    }

    #[test]
    fn a_window_is_bounded_in_characters_but_a_line_is_never_torn() {
        let long = "x".repeat(300);
        assert_eq!(
            spans(&format!("a\n{long}\nb"), 50),
            [(1, 1), (2, 2), (3, 3)]
        );
    }
}
