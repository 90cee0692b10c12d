//! What can go wrong, and where.

use std::ops::Range;

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The source is no template.
    Syntax,
    /// The source is a Jinja template, but uses what this crate leaves out.
    Unsupported,
    /// A value was needed where there is none.
    Undefined,
    /// A value of this kind cannot be used like this.
    Operation,
    /// A bound of [`Limits`](crate::Limits) was reached.
    Limit,
}

impl ErrorKind {
    /// The name for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Unsupported => "unsupported",
            Self::Undefined => "undefined",
            Self::Operation => "operation",
            Self::Limit => "limit",
        }
    }
}

/// A position in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The bytes of the source that are meant.
    pub span: Range<usize>,
}

impl Place {
    pub(crate) fn new(source: &str, span: Range<usize>) -> Self {
        let start = floor(source, span.start);
        let end = floor(source, span.end).max(start);
        let before = &source[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            span: start..end,
        }
    }
}

fn floor(source: &str, mut at: usize) -> usize {
    at = at.min(source.len());
    while !source.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Why a template could not be compiled or rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.prefix())]
pub struct TemplateError {
    /// What sort of fault it is.
    pub kind: ErrorKind,
    /// What is wrong, for the author of the template.
    pub message: String,
    /// Where, unless it is the template as a whole.
    pub place: Option<Place>,
}

impl TemplateError {
    fn prefix(&self) -> String {
        match &self.place {
            Some(place) => format!("line {}, column {}: ", place.line, place.column),
            None => String::new(),
        }
    }
}

/// A byte range of the source; small, because every expression has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// An error on its way up: the innermost expression that knows its place adds it.
#[derive(Debug)]
pub(crate) struct Fault(Box<(ErrorKind, String, Option<Span>)>);

pub(crate) type Result<T, E = Fault> = std::result::Result<T, E>;

impl Fault {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new((kind, message.into(), None)))
    }

    pub(crate) fn operation(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Operation, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    pub(crate) fn at(mut self, span: Span) -> Self {
        self.0.2.get_or_insert(span);
        self
    }

    pub(crate) fn into_error(self, source: &str) -> TemplateError {
        let (kind, message, span) = *self.0;
        let place = span.map(|span| Place::new(source, span.start as usize..span.end as usize));
        TemplateError {
            kind,
            message,
            place,
        }
    }
}
