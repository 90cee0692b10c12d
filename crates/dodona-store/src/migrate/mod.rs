//! Numbered changes of a schema, each applied once.

mod backup;
mod error;
mod history;

use std::borrow::Cow;

use crate::error::DbError;
use crate::rebuild;
use crate::session::Session;
use crate::target::Target;

pub(crate) use backup::copy as copy_database;
pub use error::MigrateError;
pub(crate) use history::version;

/// One step of a schema. Once released its text must never change; add another one instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Its number: 1 for the first of a database, then counting up by one.
    pub version: u32,
    /// What it does, in a few words.
    pub name: Cow<'static, str>,
    /// The statements, separated by semicolons. They run inside a transaction that they may not
    /// end, and foreign keys are checked once after all of them: a table can be rebuilt without
    /// losing the rows that point to it.
    pub sql: Cow<'static, str>,
}

impl Migration {
    /// A migration written into the program.
    pub const fn new(version: u32, name: &'static str, sql: &'static str) -> Self {
        Migration {
            version,
            name: Cow::Borrowed(name),
            sql: Cow::Borrowed(sql),
        }
    }
}

/// Applies what is pending. The caller must not have the database open for writing.
pub(crate) fn run(target: &Target, migrations: &[Migration]) -> Result<(), MigrateError> {
    check_numbering(target, migrations)?;
    rebuild::remove_damaged(target).map_err(|source| transaction(target, source))?;
    // Looked up through a connection that cannot write, so that a database to be refused stays
    // as it is, to the byte.
    let history = history::read(target)?;
    let pending = history::pending(target, &history, migrations)?;
    let Some(last) = pending.last() else {
        return Ok(());
    };

    let session = begin(target).map_err(|source| transaction(target, source))?;
    if history.has_content {
        backup::before(target, &session, last.version)?;
    }
    apply(target, &session, pending)
}

fn check_numbering(target: &Target, migrations: &[Migration]) -> Result<(), MigrateError> {
    for (expected, migration) in (1..).zip(migrations) {
        let found = migration.version;
        if found != expected {
            return Err(MigrateError::Numbering {
                file: target.file.clone(),
                expected,
                found,
            });
        }
    }
    Ok(())
}

/// Opens the database with foreign keys off: with them on, dropping a table in order to rebuild
/// it would delete the rows that point to it. Inside a transaction they can no longer be switched.
fn begin(target: &Target) -> Result<Session, DbError> {
    let session = Session::writer(target)?;
    session.control("PRAGMA foreign_keys = OFF")?;
    Ok(session)
}

/// Runs the pending migrations in one transaction. On an error the session's end undoes it.
fn apply(target: &Target, session: &Session, pending: &[Migration]) -> Result<(), MigrateError> {
    let failed = |source| transaction(target, source);
    session.control("BEGIN IMMEDIATE").map_err(failed)?;
    history::create(session).map_err(failed)?;
    for migration in pending {
        let failed = |line, source| MigrateError::Apply {
            file: target.file.clone(),
            version: migration.version,
            name: migration.name.to_string(),
            line,
            source,
        };
        let ran = session.run_script(&migration.sql);
        ran.map_err(|error| failed(error.line, error.source))?;
        // A fault of the record is about no line of the migration.
        history::record(session, migration).map_err(|source| failed(1, source))?;
    }
    if let Some(table) = first_dangling(session).map_err(failed)? {
        return Err(MigrateError::Dangling {
            file: target.file.clone(),
            table,
        });
    }
    session.control("COMMIT").map_err(failed)
}

fn first_dangling(session: &Session) -> Result<Option<String>, DbError> {
    session
        .tx()
        .query_opt("PRAGMA foreign_key_check", (), |row| row.get(0))
}

fn transaction(target: &Target, source: DbError) -> MigrateError {
    MigrateError::Transaction {
        file: target.file.clone(),
        source,
    }
}
