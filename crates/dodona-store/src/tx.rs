//! The transaction passed to functions in `Db::read` and `Db::write`.

use rusqlite::types::ToSqlOutput;
use rusqlite::{CachedStatement, Connection, ToSql};

use crate::classify;
use crate::clock::StatementClock;
use crate::error::{Cause, DbError};
use crate::params::{Binder, Params};
use crate::row::Row;
use crate::value::ValueRef;

/// A transaction: everything done through it is seen by others together or not at all.
///
/// Placeholders are written `?1`, `?2` and so on. Statements are kept prepared by their text, so
/// pass values as parameters instead of building them into it. Beginning, committing and
/// attaching are the store's business; statements that try are refused.
pub struct Tx<'a> {
    conn: &'a Connection,
    file: &'a str,
    access: Access,
    clock: Option<&'a StatementClock>,
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl<'a> Tx<'a> {
    pub(crate) fn new(
        conn: &'a Connection,
        file: &'a str,
        access: Access,
        clock: Option<&'a StatementClock>,
    ) -> Self {
        Tx {
            conn,
            file,
            access,
            clock,
        }
    }

    /// Runs a statement without result rows and returns the number of changed rows.
    pub fn execute(&self, sql: &str, params: impl Params) -> Result<u64, DbError> {
        let mut statement = self.prepare(sql, &params)?;
        let changed = statement
            .raw_execute()
            .map_err(|error| self.error(sql, &error))?;
        Ok(changed as u64)
    }

    /// Runs a query and collects what `read` makes of each row, in order.
    pub fn query<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        let mut statement = self.prepare(sql, &params)?;
        let mut rows = statement.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(|error| self.error(sql, &error))? {
            found.push(read(&Row::new(row))?);
        }
        Ok(found)
    }

    /// Runs a query and reads its first row; without one it fails with [`DbError::NoRow`].
    pub fn query_one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.query_opt(sql, params, read)?.ok_or(DbError::NoRow)
    }

    /// Runs a query and reads its first row, if it has one.
    pub fn query_opt<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Option<T>, DbError> {
        let mut statement = self.prepare(sql, &params)?;
        let mut rows = statement.raw_query();
        match rows.next().map_err(|error| self.error(sql, &error))? {
            Some(row) => read(&Row::new(row)).map(Some),
            None => Ok(None),
        }
    }

    /// The id the database gave to the row inserted last in this transaction. Meaningless before
    /// the first insert.
    pub fn last_insert_id(&self) -> i64 {
        self.conn.last_insert_rowid()
    }

    fn prepare(&self, sql: &str, params: &impl Params) -> Result<CachedStatement<'a>, DbError> {
        if self.conn.is_autocommit() {
            // The engine has undone the transaction, and the caller ignored the error that said
            // so. What it does next would be stored at once and without the rest.
            return Err(DbError::Commit {
                file: self.file.to_owned(),
                source: None,
            });
        }
        if let Some(clock) = self.clock {
            clock.start();
        }
        let mut statement = self
            .conn
            .prepare_cached(sql)
            .map_err(|error| self.error(sql, &error))?;
        let expected = statement.parameter_count();
        let mut put = |index: usize, value: ValueRef<'_>| {
            if index > expected {
                // Counted, and reported below with the full number.
                return Ok(());
            }
            statement
                .raw_bind_parameter(index, Bound(value))
                .map_err(|error| self.error(sql, &error))
        };
        let mut binder = Binder::new(&mut put);
        params.bind(&mut binder)?;
        let given = binder.bound();
        if given != expected {
            return Err(DbError::ParameterCount {
                sql: classify::quote(sql),
                expected,
                given,
            });
        }
        Ok(statement)
    }

    fn error(&self, sql: &str, error: &rusqlite::Error) -> DbError {
        match classify::statement(self.file, sql, error) {
            // A write inside a read is the caller's mistake and says nothing about the file.
            DbError::ReadOnly { .. } if self.access == Access::Read => DbError::Statement {
                sql: classify::quote(sql),
                source: Cause::new("a read may not change the database"),
            },
            other => other,
        }
    }
}

/// Lets the engine take a value as it is, without a copy on our side.
struct Bound<'a>(ValueRef<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            ValueRef::Null => rusqlite::types::ValueRef::Null,
            ValueRef::Integer(number) => rusqlite::types::ValueRef::Integer(number),
            ValueRef::Real(number) => rusqlite::types::ValueRef::Real(number),
            ValueRef::Text(text) => rusqlite::types::ValueRef::Text(text.as_bytes()),
            ValueRef::Blob(bytes) => rusqlite::types::ValueRef::Blob(bytes),
        }))
    }
}
