//! Copies of a database from before it was migrated.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::MigrateError;
use crate::classify;
use crate::error::Cause;
use crate::files;
use crate::session::Session;
use crate::target::Target;

/// How many copies of one database are kept.
const KEPT: usize = 3;

/// Copies a database, and drops copies that have become too many.
pub(super) fn before(target: &Target, session: &Session, version: u32) -> Result<(), MigrateError> {
    let backup = sibling(&target.path, &format!(".before-v{version}.bak"));
    let failed = |source| MigrateError::Backup {
        file: target.file.clone(),
        backup: backup.clone(),
        source,
    };
    let temporary = sibling(&backup, ".tmp");
    copy(session, &temporary).map_err(failed)?;
    files::publish(&temporary, &backup).map_err(|error| failed(Cause::from(&error)))?;
    if let Err(error) = drop_oldest(&target.path, &backup) {
        // Too many copies are no reason to refuse the migration.
        tracing::warn!(file = target.file, %error, "could not remove old backups");
    }
    Ok(())
}

/// Copies page by page, what is still in the log included. Copying through SQL instead would
/// number rows anew, and a full-text index refers to rows by their number.
pub(crate) fn copy(session: &Session, to: &Path) -> Result<(), Cause> {
    // One of a migration that was cut short.
    files::remove(to)
        .and_then(|()| files::create_file(to))
        .map_err(|error| Cause::from(&error))?;
    let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(|error| classify::cause(&error))?;
    // The copy counts only once it is complete, synced and renamed: until then it needs no
    // journal of its own.
    copy.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))
        .and_then(|()| copy.pragma_update(None, "synchronous", "OFF"))
        .map_err(|error| classify::cause(&error))?;
    let step = Backup::new(session.connection(), &mut copy)
        .and_then(|backup| backup.step(-1))
        .map_err(|error| classify::cause(&error))?;
    match step {
        StepResult::Done => Ok(()),
        _ => Err(Cause::new("another process holds the database")),
    }
}

/// Keeps the newest copies by age, whatever their version: after an old copy has been restored,
/// the one just made may have a lower version than those of the time before.
fn drop_oldest(database: &Path, newest: &Path) -> io::Result<()> {
    let mut others: Vec<(SystemTime, u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir(newest.parent().unwrap_or(newest))? {
        let entry = entry?;
        let path = entry.path();
        if path == newest {
            continue;
        }
        if let Some(version) = version_of(database, &path) {
            // The version decides between copies made within one tick of the file system's clock.
            others.push((entry.metadata()?.modified()?, version, path));
        }
    }
    others.sort_unstable();
    let surplus = (others.len() + 1).saturating_sub(KEPT);
    others
        .iter()
        .take(surplus)
        .try_for_each(|(_, _, path)| files::remove(path))
}

/// The version before which a file was made, if it is a copy of this database.
fn version_of(database: &Path, path: &Path) -> Option<u32> {
    path.file_name()?
        .to_str()?
        .strip_prefix(database.file_name()?.to_str()?)?
        .strip_prefix(".before-v")?
        .strip_suffix(".bak")?
        .parse()
        .ok()
}

/// The path with something added to its name.
fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
