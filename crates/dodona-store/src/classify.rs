//! From the engine's error codes to our errors, in one place.

use std::io;

use rusqlite::ffi::{self, ErrorCode};

use crate::error::{Cause, ConstraintKind, DbError};

/// The length of a statement as quoted in an error.
const QUOTED_SQL: usize = 200;

/// The error of a statement that a caller's function ran.
pub(crate) fn statement(file: &str, sql: &str, error: &rusqlite::Error) -> DbError {
    if let Some(error) = environmental(file, error) {
        return error;
    }
    if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
        return DbError::Timeout { sql: quote(sql) };
    }
    match error {
        rusqlite::Error::SqliteFailure(failure, _)
            if failure.code == ErrorCode::ConstraintViolation =>
        {
            DbError::Constraint {
                kind: constraint(failure.extended_code),
                source: cause(error),
            }
        }
        _ => DbError::Statement {
            sql: quote(sql),
            source: cause(error),
        },
    }
}

/// The error of opening or configuring a connection, where no statement can be at fault.
pub(crate) fn opening(file: &str, error: &rusqlite::Error) -> DbError {
    environmental(file, error).unwrap_or_else(|| DbError::Open {
        file: file.to_owned(),
        source: cause(error),
    })
}

/// Our error for a failure of the file or the machine, or `None` if the statement is at fault.
fn environmental(file: &str, error: &rusqlite::Error) -> Option<DbError> {
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return None;
    };
    let file = file.to_owned();
    let source = cause(error);
    match failure.code {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::FileLockingProtocolFailed => Some(DbError::Busy { file, source }),
        ErrorCode::DiskFull => Some(DbError::Full { file, source }),
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            Some(DbError::ReadOnly { file, source })
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            Some(DbError::Corrupt { file, source })
        }
        ErrorCode::SystemIoFailure => Some(DbError::Io { file, source }),
        ErrorCode::CannotOpen => Some(DbError::Open { file, source }),
        _ => None,
    }
}

fn constraint(extended_code: i32) -> ConstraintKind {
    match extended_code {
        ffi::SQLITE_CONSTRAINT_UNIQUE
        | ffi::SQLITE_CONSTRAINT_PRIMARYKEY
        | ffi::SQLITE_CONSTRAINT_ROWID => ConstraintKind::Unique,
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => ConstraintKind::ForeignKey,
        ffi::SQLITE_CONSTRAINT_NOTNULL => ConstraintKind::NotNull,
        ffi::SQLITE_CONSTRAINT_CHECK => ConstraintKind::Check,
        _ => ConstraintKind::Other,
    }
}

/// The error of preparing a file before the engine sees it.
pub(crate) fn file_access(file: &str, error: &io::Error) -> DbError {
    let file = file.to_owned();
    let source = Cause::from(error);
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DbError::Full { file, source },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            DbError::ReadOnly { file, source }
        }
        _ => DbError::Open { file, source },
    }
}

/// What the engine said, without its types and without the statement, which our errors quote.
pub(crate) fn cause(error: &rusqlite::Error) -> Cause {
    let (failure, message) = match error {
        rusqlite::Error::SqliteFailure(failure, Some(message)) => (failure, message.clone()),
        rusqlite::Error::SqliteFailure(failure, None) => (failure, failure.to_string()),
        rusqlite::Error::SqlInputError { error, msg, .. } => (error, msg.clone()),
        other => return Cause::new(other.to_string()),
    };
    if failure.code == ErrorCode::AuthorizationForStatementDenied {
        return Cause::new(format!(
            "{message}: PRAGMA, ATTACH, DETACH, VACUUM and transaction statements cannot be used here"
        ));
    }
    Cause::new(format!("{message} (code {})", failure.extended_code))
}

/// The beginning of a statement, long enough to recognise it by.
pub(crate) fn quote(sql: &str) -> String {
    match sql.char_indices().nth(QUOTED_SQL) {
        Some((end, _)) => format!("{}…", &sql[..end]),
        None => sql.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The variant's name, which is what a caller matches on.
    fn variant(error: &DbError) -> String {
        let text = format!("{error:?}");
        text.split(' ').next().unwrap().to_owned()
    }

    #[test]
    fn each_code_of_the_engine_has_the_variant_a_caller_can_act_on() {
        for (code, expected) in [
            (ffi::SQLITE_BUSY, "Busy"),
            (ffi::SQLITE_BUSY_SNAPSHOT, "Busy"),
            (ffi::SQLITE_LOCKED, "Busy"),
            (ffi::SQLITE_PROTOCOL, "Busy"),
            (ffi::SQLITE_FULL, "Full"),
            (ffi::SQLITE_READONLY, "ReadOnly"),
            (ffi::SQLITE_READONLY_DIRECTORY, "ReadOnly"),
            (ffi::SQLITE_PERM, "ReadOnly"),
            (ffi::SQLITE_CORRUPT, "Corrupt"),
            (ffi::SQLITE_CORRUPT_INDEX, "Corrupt"),
            (ffi::SQLITE_NOTADB, "Corrupt"),
            (ffi::SQLITE_IOERR_FSYNC, "Io"),
            (ffi::SQLITE_CANTOPEN, "Open"),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, "Constraint"),
            (ffi::SQLITE_AUTH, "Statement"),
            (ffi::SQLITE_ERROR, "Statement"),
        ] {
            let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = statement("hub.db", "SELECT 1", &failure);
            assert_eq!(variant(&error), expected, "code {code}");
        }
    }

    #[test]
    fn each_kind_of_system_error_has_the_variant_a_caller_can_act_on() {
        for (kind, expected) in [
            (io::ErrorKind::PermissionDenied, "ReadOnly"),
            (io::ErrorKind::ReadOnlyFilesystem, "ReadOnly"),
            (io::ErrorKind::StorageFull, "Full"),
            (io::ErrorKind::QuotaExceeded, "Full"),
            (io::ErrorKind::NotADirectory, "Open"),
        ] {
            let error = file_access("hub.db", &io::Error::from(kind));
            assert_eq!(variant(&error), expected, "{kind:?}");
        }
    }

    #[test]
    fn a_long_statement_is_quoted_by_its_beginning() {
        let quoted = quote(&"é".repeat(QUOTED_SQL + 1));
        assert_eq!(quoted, "é".repeat(QUOTED_SQL) + "…");
    }
}
