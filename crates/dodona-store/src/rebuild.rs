//! Databases that are built from other data: a damaged one is removed and built again.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use crate::error::DbError;
use crate::files;
use crate::options::Durability;
use crate::session::Session;
use crate::target::Target;

/// What marks a database as damaged until it is opened the next time. Removing a file that other
/// threads have open would leave them with the damaged one.
const MARK: &str = ".damaged";

fn beside(target: &Target, suffix: &str) -> PathBuf {
    let mut name: OsString = target.path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Notes that a database is damaged. Only derived ones are marked.
pub(crate) fn mark(target: &Target) {
    if target.durability == Durability::Rebuildable {
        // Without the mark the damage is found again.
        let _ = files::create_file(&beside(target, MARK));
    }
}

/// As [`mark`], where an error says that the database is damaged.
pub(crate) fn mark_on(target: &Target, error: &DbError) {
    if matches!(error, DbError::Corrupt { .. }) {
        mark(target);
    }
}

/// Removes a derived database that is marked or cannot be read at all. Its owner fills the new one.
pub(crate) fn remove_damaged(target: &Target) -> Result<(), DbError> {
    if target.durability != Durability::Rebuildable || !target.path.exists() {
        return Ok(());
    }
    let is_marked = beside(target, MARK).exists();
    let is_damaged = || {
        let looked = Session::reader(target).and_then(|session| {
            let sql = "SELECT name FROM sqlite_schema";
            session.tx().query(sql, (), |row| row.get::<String>(0))
        });
        matches!(looked, Err(DbError::Corrupt { .. }))
    };
    if !is_marked && !is_damaged() {
        return Ok(());
    }
    tracing::warn!(file = target.file, "rebuilding a damaged database");
    for suffix in ["-wal", "-shm", "", MARK] {
        match fs::remove_file(beside(target, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(crate::classify::file_access(&target.file, &error));
            }
            _ => {}
        }
    }
    Ok(())
}
