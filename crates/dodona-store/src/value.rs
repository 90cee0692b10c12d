//! Values on their way into and out of a database.

use std::borrow::Cow;

use thiserror::Error;

/// A value as a database holds it, borrowed from whoever has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    Null,
    Integer(i64),
    /// A floating-point number; never NaN, which databases do not agree on.
    Real(f64),
    Text(&'a str),
    Blob(&'a [u8]),
}

impl ValueRef<'_> {
    fn kind(&self) -> &'static str {
        match self {
            ValueRef::Null => "null",
            ValueRef::Integer(_) => "an integer",
            ValueRef::Real(_) => "a real number",
            ValueRef::Text(_) => "text",
            ValueRef::Blob(_) => "bytes",
        }
    }
}

/// Why a Rust value and a stored value do not fit each other.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct ValueError {
    reason: Cow<'static, str>,
}

impl ValueError {
    /// For implementations of [`ToValue`] and [`FromValue`] outside this crate.
    pub fn new(reason: impl Into<Cow<'static, str>>) -> Self {
        ValueError {
            reason: reason.into(),
        }
    }

    fn mismatch(expected: &'static str, found: ValueRef<'_>) -> Self {
        ValueError::new(format!("expected {expected}, found {}", found.kind()))
    }
}

/// A Rust value that can be bound to a placeholder.
pub trait ToValue {
    /// The stored form, borrowed so that binding copies no text.
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError>;
}

/// A Rust value that can be read from a column.
pub trait FromValue: Sized {
    /// Reads the stored form, refusing whatever would have to be guessed.
    fn from_value(value: ValueRef<'_>) -> Result<Self, ValueError>;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        self.as_ref().map_or(Ok(ValueRef::Null), T::to_value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: ValueRef<'_>) -> Result<Self, ValueError> {
        match value {
            ValueRef::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl ToValue for ValueRef<'_> {
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        match *self {
            // The engine would silently store NULL instead.
            ValueRef::Real(number) if number.is_nan() => {
                Err(ValueError::new("NaN has no stored form"))
            }
            value => Ok(value),
        }
    }
}

impl ToValue for f64 {
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        if self.is_nan() {
            return Err(ValueError::new("NaN has no stored form"));
        }
        Ok(ValueRef::Real(*self))
    }
}

impl FromValue for f64 {
    fn from_value(value: ValueRef<'_>) -> Result<Self, ValueError> {
        match value {
            ValueRef::Real(number) => Ok(number),
            other => Err(ValueError::mismatch("a real number", other)),
        }
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl ToValue for $type {
            fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
                i64::try_from(*self).map(ValueRef::Integer).map_err(|_| {
                    ValueError::new(format!("{self} is larger than a stored integer can be"))
                })
            }
        }

        impl FromValue for $type {
            fn from_value(value: ValueRef<'_>) -> Result<Self, ValueError> {
                match value {
                    ValueRef::Integer(number) => <$type>::try_from(number).map_err(|_| {
                        let name = stringify!($type);
                        ValueError::new(format!("{number} does not fit the type {name}"))
                    }),
                    other => Err(ValueError::mismatch("an integer", other)),
                }
            }
        }
    )*};
}

integers!(i64, i32, u32, u64, usize);

impl ToValue for bool {
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::Integer(i64::from(*self)))
    }
}

impl FromValue for bool {
    fn from_value(value: ValueRef<'_>) -> Result<Self, ValueError> {
        match value {
            ValueRef::Integer(0) => Ok(false),
            ValueRef::Integer(1) => Ok(true),
            ValueRef::Integer(other) => Err(ValueError::new(format!(
                "{other} is neither false (0) nor true (1)"
            ))),
            other => Err(ValueError::mismatch("a truth value", other)),
        }
    }
}

impl ToValue for str {
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::Text(self))
    }
}

impl ToValue for String {
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::Text(self))
    }
}

impl FromValue for String {
    fn from_value(value: ValueRef<'_>) -> Result<Self, ValueError> {
        text(value).map(str::to_owned)
    }
}

impl ToValue for [u8] {
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::Blob(self))
    }
}

impl ToValue for Vec<u8> {
    fn to_value(&self) -> Result<ValueRef<'_>, ValueError> {
        Ok(ValueRef::Blob(self))
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: ValueRef<'_>) -> Result<Self, ValueError> {
        blob(value).map(<[u8]>::to_vec)
    }
}

pub(crate) fn text(value: ValueRef<'_>) -> Result<&str, ValueError> {
    match value {
        ValueRef::Text(text) => Ok(text),
        other => Err(ValueError::mismatch("text", other)),
    }
}

pub(crate) fn blob(value: ValueRef<'_>) -> Result<&[u8], ValueError> {
    match value {
        ValueRef::Blob(bytes) => Ok(bytes),
        other => Err(ValueError::mismatch("bytes", other)),
    }
}
