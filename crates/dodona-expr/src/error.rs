//! One error for everything that can go wrong, with the place in the source.

use std::fmt;
use std::sync::Arc;

/// A range of bytes of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

impl Span {
    /// The range from `start` up to, and without, `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The text in this range; empty where the range is not one of this source.
    pub fn of(self, source: &str) -> &str {
        source.get(self.start..self.end).unwrap_or_default()
    }
}

/// What kind of thing went wrong; programs can rely on the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The source is no expression.
    Syntax,
    /// Python has it, this language does not.
    Unsupported,
    /// No such name, field, function or method.
    Unknown,
    /// The operation is not defined for these types.
    Type,
    /// The type fits, the value does not.
    Value,
    /// A dict has no such key.
    Key,
    /// A sequence has no such place.
    Index,
    /// Something is None where a value is needed.
    None,
    /// Division by zero.
    ZeroDivision,
    /// A number left the range of 64 bits.
    Overflow,
    /// A bound on size, nesting, steps or memory.
    Limit,
    /// A function of the host failed.
    Host,
}

impl ErrorKind {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Unsupported => "unsupported",
            Self::Unknown => "unknown",
            Self::Type => "type",
            Self::Value => "value",
            Self::Key => "key",
            Self::Index => "index",
            Self::None => "none",
            Self::ZeroDivision => "zero_division",
            Self::Overflow => "overflow",
            Self::Limit => "limit",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What went wrong, and where.
///
/// `{}` is the message alone, `{:#}` adds the line of the source with the place marked below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Body>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Body {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    span: Span,
    source: Arc<str>,
}

impl Error {
    pub(crate) fn new(fault: Fault, span: Span, source: &Arc<str>) -> Self {
        let FaultBody {
            kind,
            message,
            hint,
            ..
        } = *fault.0;
        Self(Box::new(Body {
            kind,
            message,
            hint,
            span,
            source: source.clone(),
        }))
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What went wrong, in one sentence.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to try instead, where we can guess.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Where in the source.
    pub fn span(&self) -> Span {
        self.0.span
    }

    /// The whole source.
    pub fn source_text(&self) -> &str {
        &self.0.source
    }

    /// The line of the source with the place marked below it.
    pub fn excerpt(&self) -> String {
        excerpt(&self.0.source, self.0.span)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())?;
        if let Some(hint) = self.hint() {
            write!(f, ", {hint}")?;
        }
        if f.alternate() {
            write!(f, "\n{}", self.excerpt())?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// What is not wrong yet, and may be when the expression runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What may happen.
    pub message: String,
    /// Where in the source.
    pub span: Span,
}

/// How many characters of a long line are shown on each side of the place.
const AROUND: usize = 60;

pub(crate) fn excerpt(source: &str, span: Span) -> String {
    let start = floor_boundary(source, span.start);
    let end = floor_boundary(source, span.end).max(start);
    let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = source[start..]
        .find('\n')
        .map_or(source.len(), |at| start + at);
    let before: Vec<char> = source[line_start..start].chars().collect();
    let cut_before = before.len().saturating_sub(AROUND);
    let marked = source[start..end.min(line_end)].chars().count();
    let rest: String = source[start..line_end]
        .chars()
        .take(marked.min(AROUND) + AROUND)
        .collect();
    let lead = if cut_before > 0 { "…" } else { "" };
    let tail = if rest.len() < line_end - start {
        "…"
    } else {
        ""
    };
    let shown: String = before[cut_before..].iter().collect();
    let indent = before.len() - cut_before + lead.chars().count();
    let marks = "^".repeat(marked.clamp(1, 2 * AROUND));
    format!(
        "  {lead}{shown}{rest}{tail}\n  {}{marks}",
        " ".repeat(indent)
    )
}

fn floor_boundary(source: &str, at: usize) -> usize {
    let mut at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// An error before its place in the source is known.
#[derive(Debug)]
pub(crate) struct Fault(Box<FaultBody>);

#[derive(Debug)]
struct FaultBody {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    node: Option<u32>,
}

impl Fault {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(FaultBody {
            kind,
            message: message.into(),
            hint: None,
            node: None,
        }))
    }

    #[cold]
    pub(crate) fn type_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Type, message)
    }

    #[cold]
    pub(crate) fn value_error(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Value, message)
    }

    #[cold]
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    #[cold]
    pub(crate) fn overflow() -> Self {
        Self::new(
            ErrorKind::Overflow,
            "the result does not fit a 64-bit integer",
        )
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Names the node that failed, unless a deeper one has already been named.
    #[cold]
    pub(crate) fn at(mut self, node: u32) -> Self {
        self.0.node.get_or_insert(node);
        self
    }

    pub(crate) fn node(&self) -> Option<u32> {
        self.0.node
    }

    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_marks_the_place() {
        let source = "first\nsecond + third\nfourth";
        assert_eq!(
            excerpt(source, Span::new(15, 20)),
            "  second + third\n           ^^^^^"
        );
    }

    #[test]
    fn an_excerpt_survives_a_span_that_is_none() {
        assert_eq!(excerpt("é", Span::new(1, 9)), "  é\n  ^");
        assert_eq!(excerpt("", Span::new(5, 2)), "  \n  ^");
    }
}
