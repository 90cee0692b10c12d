//! Database errors, one variant for each possible reaction of the caller.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use thiserror::Error;

use crate::value::ValueError;

/// The error text of the database engine or the operating system. Text only, so that no caller depends on a
/// particular engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Cause {
    message: String,
}

impl Cause {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Cause {
            message: message.into(),
        }
    }
}

impl From<&io::Error> for Cause {
    fn from(error: &io::Error) -> Self {
        Cause::new(error.to_string())
    }
}

/// The kind of constraint that a statement violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConstraintKind {
    /// A unique index or a primary key already holds the value.
    Unique,
    /// A row points to a row that does not exist.
    ForeignKey,
    /// A column that needs a value got none.
    NotNull,
    /// A `CHECK` was not met.
    Check,
    /// Any other rule, such as one raised by a trigger.
    Other,
}

/// Why a read or a write failed.
///
/// The error is cheap to clone because all writes that shared one commit share its fate.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum DbError {
    /// The handle can never work, because of how it was asked for. Fix the caller.
    #[error("the database `{file}` cannot be used: {reason}")]
    Refused {
        /// The name the handle was asked for.
        file: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The store was closed before the request could run. Give up; the server is stopping.
    #[error("the store was closed before `{file}` could answer")]
    Closed { file: String },
    /// Failed to start a thread for the database. Retry later.
    #[error("failed to start a thread for the database `{file}`")]
    Spawn {
        file: String,
        /// What the operating system said.
        source: Cause,
    },
    /// The file or its folder could not be opened or created. Tell the user.
    #[error("failed to open the database `{file}`")]
    Open {
        file: String,
        /// The error of the engine or the operating system.
        source: Cause,
    },
    /// Another process holds the database. Retry.
    #[error("the database `{file}` is locked by another process")]
    Busy {
        file: String,
        /// The error of the engine.
        source: Cause,
    },
    /// The disk is full. Nothing was stored. Tell the user to free space, then retry.
    #[error("disk full: failed to write to the database `{file}`; free some disk space")]
    Full {
        /// The database that could not grow.
        file: String,
        /// The error of the engine or the operating system.
        source: Cause,
    },
    /// The file or its folder may not be written. Tell the user.
    #[error("the database `{file}` or its folder is read-only; check its permissions")]
    ReadOnly {
        /// The database that could not be written.
        file: String,
        /// The error of the engine or the operating system.
        source: Cause,
    },
    /// The file is damaged or not a database. Other databases are not affected.
    #[error("the database `{file}` is damaged; run `dodona doctor` for what to do")]
    Corrupt {
        file: String,
        /// The error of the engine.
        source: Cause,
    },
    /// The database was there before and is missing or empty. Give up on this database; tell the
    /// user to restore it.
    #[error(
        "the database `{file}` existed before and is missing or empty; restore a backup with \
         `dodona restore`, or create it again without its data with `--accept-data-loss`"
    )]
    Missing { file: String },
    /// The disk failed to read or write. If a commit was under way its outcome is unknown: read
    /// before writing the same again.
    #[error("disk I/O error in the database `{file}`")]
    Io {
        /// The database being used.
        file: String,
        /// The error of the engine.
        source: Cause,
    },
    /// A query that must find a row found none.
    #[error("the query found no row")]
    NoRow,
    /// The statement would break a rule of the schema.
    #[error("constraint violation")]
    Constraint {
        /// Which sort of rule.
        kind: ConstraintKind,
        /// Which rule, in the engine's words.
        source: Cause,
    },
    /// The statement itself is wrong: its syntax, its names, or what it tries to do. Fix the
    /// caller.
    #[error("the statement `{sql}` failed")]
    Statement {
        /// The beginning of the statement.
        sql: String,
        /// The error of the engine.
        source: Cause,
    },
    /// The statement took longer than the database's limit. If it changed something, the whole
    /// transaction was rolled back.
    #[error("the statement `{sql}` took too long and was stopped")]
    Timeout {
        /// The beginning of the statement.
        sql: String,
    },
    /// The statement has another number of placeholders than values were given. Fix the caller.
    #[error("the statement `{sql}` has {expected} placeholders, but {given} values were given")]
    ParameterCount {
        /// The beginning of the statement.
        sql: String,
        /// How many placeholders it has.
        expected: usize,
        /// How many values there were.
        given: usize,
    },
    /// A value has no stored form.
    #[error("value {index} of the statement cannot be stored")]
    Parameter {
        /// The number of the placeholder, counted from 1.
        index: usize,
        source: ValueError,
    },
    /// A column does not hold what the caller expects.
    #[error("column {index} of the row has an unexpected type")]
    Column {
        /// The number of the column, counted from 0.
        index: usize,
        source: ValueError,
    },
    /// The commit was refused, and with it every write that shared it. Nothing was stored. A
    /// write that is not itself at fault succeeds when tried again.
    #[error("the commit to the database `{file}` failed; nothing was stored")]
    Commit {
        /// The database that was written.
        file: String,
        /// The fault, unless the write that caused it hid it.
        source: Option<Arc<DbError>>,
    },
    /// The caller's own function panicked; its writes were undone.
    #[error("the function given to the database panicked: {message}")]
    Panicked { message: String },
    /// The caller's own function gave up with an error of its own; its writes were undone.
    #[error("the work was aborted")]
    Abort {
        source: Arc<dyn StdError + Send + Sync>,
    },
}

impl DbError {
    /// Gives up a read or a write from inside it, for a reason the database knows nothing about.
    pub fn abort(source: impl StdError + Send + Sync + 'static) -> Self {
        DbError::Abort {
            source: Arc::new(source),
        }
    }

    /// Whether the fault lies with the file or the machine, and so is as true for a neighbour's
    /// request as for the one that met it.
    pub(crate) fn is_environmental(&self) -> bool {
        matches!(
            self,
            DbError::Open { .. }
                | DbError::Busy { .. }
                | DbError::Full { .. }
                | DbError::ReadOnly { .. }
                | DbError::Corrupt { .. }
                | DbError::Io { .. }
        )
    }
}
