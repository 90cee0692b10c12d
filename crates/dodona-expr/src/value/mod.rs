//! Values: Python's, as far as expressions need them, borrowed from the host where possible.

mod collection;
mod compare;
mod json;
pub(crate) mod number;
mod repr;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

pub use collection::{Dict, List, Map, Mapping, Sequence, Set};
pub(crate) use compare::{Asked, equals, identical, order};
pub(crate) use repr::{ascii, display, repr};

/// A value that an expression reads or makes.
///
/// It is as large as a text and cheap to clone. The lifetime is that of the scope, whose texts,
/// lists and dicts are borrowed.
#[derive(Clone, Debug, Default)]
pub enum Value<'a> {
    /// `None`.
    #[default]
    None,
    /// `True` or `False`; arithmetic takes them as 1 and 0.
    Bool(bool),
    /// An integer of 64 bits.
    Int(i64),
    /// A float.
    Float(f64),
    /// A text.
    Str(Text<'a>),
    /// A list.
    List(List<'a>),
    /// A tuple.
    Tuple(List<'a>),
    /// A set, in the order in which elements were added.
    Set(Arc<Set<'a>>),
    /// A dict, or a record of the host.
    Dict(Dict<'a>),
}

/// A text: borrowed, or shared.
#[derive(Clone)]
pub enum Text<'a> {
    /// Of the host, or of the expression.
    Borrowed(&'a str),
    /// Made by the evaluation.
    Shared(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<'a> Value<'a> {
    /// A borrowed text.
    pub fn str(text: &'a str) -> Self {
        Self::Str(Text::Borrowed(text))
    }

    /// A text of its own.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::Str(Text::Shared(text.into()))
    }

    /// A list of these.
    pub fn list(items: Vec<Value<'a>>) -> Self {
        Self::List(List::Shared(items.into()))
    }

    pub(crate) fn tuple(items: Vec<Value<'a>>) -> Self {
        Self::Tuple(List::Shared(items.into()))
    }

    /// A list of the host.
    pub fn sequence(sequence: &'a dyn Sequence) -> Self {
        Self::List(List::Host(sequence))
    }

    /// A dict or record of the host.
    pub fn mapping(mapping: &'a dyn Mapping) -> Self {
        Self::Dict(Dict::Host(mapping))
    }

    /// What Python's `type(…).__name__` says, in messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Set(_) => "set",
            Self::Dict(Dict::Host(mapping)) if mapping.is_record() => "record",
            Self::Dict(_) => "dict",
        }
    }

    /// The type with its article, in messages.
    pub(crate) fn a_type(&self) -> String {
        match self.type_name() {
            "None" => "None".to_owned(),
            name => format!("{} {name}", article(name)),
        }
    }

    /// Whether a condition with this value holds.
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(list) | Self::Tuple(list) => !list.is_empty(),
            Self::Set(set) => !set.is_empty(),
            Self::Dict(Dict::Host(mapping)) => mapping.is_record() || !mapping.is_empty(),
            Self::Dict(Dict::Shared(map)) => !map.is_empty(),
        }
    }

    /// The integer that this is or, being a bool, counts as.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The number that this is, as a float.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            other => other.as_int().map(|value| value as f64),
        }
    }

    /// The text that this is.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// A view of a constant that shares no counter.
    #[inline]
    pub(crate) fn borrowed(&'a self) -> Value<'a> {
        match self {
            Self::None => Value::None,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Str(text) => Value::Str(Text::Borrowed(text)),
            Self::List(List::Shared(items)) => Value::List(List::Borrowed(items)),
            Self::Tuple(List::Shared(items)) => Value::Tuple(List::Borrowed(items)),
            other => other.clone(),
        }
    }
}

/// `a` or `an`.
pub(crate) fn article(name: &str) -> &'static str {
    if name.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    }
}

impl fmt::Display for Value<'_> {
    /// As Python's `str` writes it; long values are cut.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&repr::short(self, repr::Style::Str))
    }
}

impl<'a> Value<'a> {
    /// As Python's `repr` writes it; long values are cut.
    pub fn short_repr(&self) -> String {
        repr::short(self, repr::Style::Repr)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::str(text)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}
