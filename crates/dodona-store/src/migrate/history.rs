//! The record, kept in each database, of the migrations it has had.

use std::fmt::Write;
use std::fs;

use sha2::{Digest, Sha256};

use super::{MigrateError, Migration};
use crate::error::DbError;
use crate::session::Session;
use crate::target::Target;

/// What a database was found to have had.
#[derive(Default)]
pub(super) struct History {
    applied: Vec<Applied>,
    /// Whether there is anything in the database, recorded here or not.
    pub(super) has_content: bool,
}

/// A migration as recorded when it was applied.
struct Applied {
    version: u32,
    checksum: String,
}

/// Reads the record without changing anything; a database that does not exist has an empty one.
pub(super) fn read(target: &Target) -> Result<History, MigrateError> {
    if !fs::metadata(&target.path).is_ok_and(|file| file.len() > 0) {
        return Ok(History::default());
    }
    let look = |session: Session| {
        let applied = applied(&session)?;
        let anything = session
            .tx()
            .query_opt("SELECT 1 FROM sqlite_schema", (), |_| Ok(()))?;
        Ok(History {
            applied,
            has_content: anything.is_some(),
        })
    };
    Session::undo_half_done(target)
        .and_then(|()| Session::snapshot(target))
        .and_then(look)
        .map_err(|source| MigrateError::Inspect {
            file: target.file.clone(),
            source,
        })
}

fn applied(session: &Session) -> Result<Vec<Applied>, DbError> {
    let tx = session.tx();
    let recorded =
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'dodona_migrations'";
    if tx.query_opt(recorded, (), |_| Ok(()))?.is_none() {
        return Ok(Vec::new());
    }
    tx.query(
        "SELECT version, checksum FROM dodona_migrations ORDER BY version",
        (),
        |row| {
            Ok(Applied {
                version: row.get(0)?,
                checksum: row.get(1)?,
            })
        },
    )
}

/// The version a database is at; 0 before its first migration.
pub(crate) fn version(session: &Session) -> Result<u32, DbError> {
    Ok(applied(session)?.last().map_or(0, |newest| newest.version))
}

/// Which migrations the database has not had, if it is one that this list belongs to.
pub(super) fn pending<'m>(
    target: &Target,
    history: &History,
    migrations: &'m [Migration],
) -> Result<&'m [Migration], MigrateError> {
    let applied = &history.applied;
    let file = || target.file.clone();
    let known = migrations.last().map_or(0, |newest| newest.version);
    let found = applied.last().map_or(0, |newest| newest.version);
    if found > known {
        return Err(MigrateError::Newer {
            file: file(),
            found,
            known,
        });
    }
    for ((version, applied), migration) in (1..).zip(applied).zip(migrations) {
        if applied.version != version {
            return Err(MigrateError::Gap {
                file: file(),
                version,
            });
        }
        if applied.checksum != checksum(&migration.sql) {
            let name = migration.name.to_string();
            return Err(MigrateError::Changed {
                file: file(),
                version,
                name,
            });
        }
    }
    Ok(&migrations[applied.len()..])
}

pub(super) fn create(session: &Session) -> Result<(), DbError> {
    session.control(
        "CREATE TABLE IF NOT EXISTS dodona_migrations (
            version INTEGER PRIMARY KEY,
            name TEXT NOT NULL,
            checksum TEXT NOT NULL,
            applied_at TEXT NOT NULL
        ) STRICT",
    )
}

pub(super) fn record(session: &Session, migration: &Migration) -> Result<(), DbError> {
    let insert = "INSERT INTO dodona_migrations (version, name, checksum, applied_at)
                  VALUES (?1, ?2, ?3, ?4)";
    let now = jiff::Timestamp::now().to_string();
    let checksum = checksum(&migration.sql);
    session
        .tx()
        .execute(insert, (migration.version, &*migration.name, checksum, now))?;
    Ok(())
}

fn checksum(sql: &str) -> String {
    Sha256::digest(sql.as_bytes())
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
            hex
        })
}
