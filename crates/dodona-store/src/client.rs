//! What a client may know of a database's trouble: enough to act on, no inner text.

use std::error::Error as StdError;
use std::fmt::Write;

use dodona_proto::{CallError, ErrorCode};

use crate::DbError;
use crate::journal::JournalError;

impl From<DbError> for CallError {
    fn from(error: DbError) -> Self {
        let (code, message, hint) = match &error {
            DbError::Busy { .. } => (
                ErrorCode::Storage,
                "the database is busy",
                "try again in a moment",
            ),
            DbError::Full { .. } => (
                ErrorCode::Storage,
                "the disk is full",
                "free some disk space and try again",
            ),
            DbError::ReadOnly { .. } => (
                ErrorCode::Storage,
                "the data directory is read-only",
                "check its permissions",
            ),
            DbError::Corrupt { .. } => (
                ErrorCode::Storage,
                "a database is damaged",
                "run `dodona doctor`",
            ),
            DbError::Missing { .. } => (
                ErrorCode::Storage,
                "a database is missing",
                "run `dodona doctor`",
            ),
            DbError::Open { .. } | DbError::Io { .. } | DbError::Spawn { .. } => (
                ErrorCode::Storage,
                "the disk did not do its part",
                "run `dodona doctor`",
            ),
            DbError::Commit {
                source: Some(inner),
                ..
            } => return CallError::from(DbError::clone(inner)),
            DbError::Closed { .. } => (
                ErrorCode::Storage,
                "the server is stopping",
                "try again when it is back",
            ),
            _ => {
                return CallError::new(ErrorCode::Internal, "a database request failed")
                    .log(chain(&error));
            }
        };
        CallError::new(code, message).hint(hint).log(chain(&error))
    }
}

impl From<JournalError> for CallError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Database(error) => error.into(),
            JournalError::TooLarge { size, limit } => CallError::new(
                ErrorCode::TooLarge,
                format!("a value of {size} bytes is larger than the {limit} allowed"),
            ),
            other => CallError::new(ErrorCode::Storage, "the journal did not do its part")
                .hint("run `dodona doctor`")
                .log(chain(&other)),
        }
    }
}

/// An error and everything below it, for the log.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let _ = write!(text, ": {error}");
        inner = error.source();
    }
    text
}
