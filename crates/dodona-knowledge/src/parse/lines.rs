//! A text seen as numbered lines.

/// The lines of a text, numbered from 0 inside the parsers; a chunk's numbers start at 1.
///
/// A line ends at `\n`, with or without a `\r` before it: the same rows that tree-sitter counts,
/// so that line numbers agree whoever found them.
pub(crate) struct Lines<'a> {
    lines: Vec<&'a str>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            lines: text.lines().collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The line at an index; empty past the end, so that no caller has to care about it.
    pub(crate) fn get(&self, index: usize) -> &'a str {
        self.lines.get(index).copied().unwrap_or("")
    }

    pub(crate) fn is_blank(&self, index: usize) -> bool {
        self.get(index).trim().is_empty()
    }

    /// A span without the blank lines at its two ends; `None` where nothing else is in it.
    pub(crate) fn trim(&self, span: Span) -> Option<Span> {
        let end = span.end.min(self.len());
        let start = (span.start..end).find(|&line| !self.is_blank(line))?;
        let last = (start..end).rev().find(|&line| !self.is_blank(line))?;
        Some(Span {
            start,
            end: last + 1,
        })
    }

    /// The text of a span, its lines joined by `\n` whatever ended them in the file.
    pub(crate) fn text(&self, span: Span) -> String {
        let end = span.end.min(self.len());
        self.lines
            .get(span.start..end)
            .map(|lines| lines.join("\n"))
            .unwrap_or_default()
    }
}

/// Lines from `start` up to but not including `end`, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }
}

/// The number that people see for a line index.
pub(crate) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1)
}
