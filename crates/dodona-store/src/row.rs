//! One row of a query's answer.

use crate::error::DbError;
use crate::value::{self, FromValue, ValueError, ValueRef};

/// A row, valid until the function that was given it returns.
pub struct Row<'a> {
    inner: &'a rusqlite::Row<'a>,
}

impl<'a> Row<'a> {
    pub(crate) fn new(inner: &'a rusqlite::Row<'a>) -> Self {
        Row { inner }
    }

    /// The value of a column, counted from 0.
    pub fn get<T: FromValue>(&self, index: usize) -> Result<T, DbError> {
        T::from_value(self.get_ref(index)?).map_err(|source| DbError::Column { index, source })
    }

    /// The number of columns.
    pub fn column_count(&self) -> usize {
        self.inner.as_ref().column_count()
    }

    /// The name of a column, counted from 0.
    pub fn column_name(&self, index: usize) -> Option<&str> {
        self.inner.as_ref().column_name(index).ok()
    }

    /// The text of a column, without copying it.
    pub fn text(&self, index: usize) -> Result<&str, DbError> {
        value::text(self.get_ref(index)?).map_err(|source| DbError::Column { index, source })
    }

    /// The bytes of a column, without copying them.
    pub fn blob(&self, index: usize) -> Result<&[u8], DbError> {
        value::blob(self.get_ref(index)?).map_err(|source| DbError::Column { index, source })
    }

    /// Whatever a column holds, without copying it.
    pub fn get_ref(&self, index: usize) -> Result<ValueRef<'_>, DbError> {
        let unreadable = |reason| DbError::Column {
            index,
            source: ValueError::new(reason),
        };
        let value = self
            .inner
            .get_ref(index)
            .map_err(|_| unreadable("there is no such column"))?;
        Ok(match value {
            rusqlite::types::ValueRef::Null => ValueRef::Null,
            rusqlite::types::ValueRef::Integer(number) => ValueRef::Integer(number),
            rusqlite::types::ValueRef::Real(number) => ValueRef::Real(number),
            rusqlite::types::ValueRef::Text(bytes) => ValueRef::Text(
                str::from_utf8(bytes).map_err(|_| unreadable("the stored text is not UTF-8"))?,
            ),
            rusqlite::types::ValueRef::Blob(bytes) => ValueRef::Blob(bytes),
        })
    }
}
