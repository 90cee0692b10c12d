//! Mapping database errors to errors for clients. Internal details go to the log only.

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
                "retry in a moment",
            ),
            DbError::Full { .. } => (
                ErrorCode::Storage,
                "the disk is full",
                "free some disk space and retry",
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
            DbError::Open { .. } | DbError::Io { .. } | DbError::Spawn { .. } => {
                (ErrorCode::Storage, "disk I/O error", "run `dodona doctor`")
            }
            DbError::Commit {
                source: Some(inner),
                ..
            } => return CallError::from(DbError::clone(inner)),
            DbError::Closed { .. } => (
                ErrorCode::Storage,
                "the server is stopping",
                "retry when the server has restarted",
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
                format!("a value of {size} bytes exceeds the limit of {limit} bytes"),
            ),
            other => CallError::new(ErrorCode::Storage, "journal error")
                .hint("run `dodona doctor`")
                .log(chain(&other)),
        }
    }
}

/// An error with its causes, for the log.
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let _ = write!(text, ": {error}");
        inner = error.source();
    }
    text
}
