//! What the machine itself gives: permissions, room, time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dodona_store::backup;
use jiff::Timestamp;

use super::finding::Finding;
#[cfg(unix)]
use crate::quantity::show_size;

/// With less room than this, writes are about to fail.
#[cfg(unix)]
const ROOM: u64 = 256 << 20;

/// How far in the future a file may have been written: clocks of two machines differ a little.
const TOLERANCE: Duration = Duration::from_secs(300);

/// Whether users other than the owner may do anything with a path.
#[cfg(unix)]
pub(super) fn others_may_see(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub(super) fn others_may_see(_: &Path) -> bool {
    false
}

/// Whether there is room left.
#[cfg(unix)]
pub(super) fn disk(data: &Path) -> Finding {
    const CHECK: &str = "disk";
    // What does not exist yet would be made where the nearest directory is that does.
    let existing = data.ancestors().find(|dir| dir.is_dir()).unwrap_or(data);
    match rustix::fs::statvfs(existing) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let message = format!("{} free", show_size(free));
            if free < ROOM {
                let advice = "free some space; what cannot be stored fails";
                Finding::wrong(CHECK, message, advice)
            } else {
                Finding::ok(CHECK, message)
            }
        }
        Err(error) => Finding::skipped(CHECK, format!("could not be determined: {error}")),
    }
}

#[cfg(not(unix))]
pub(super) fn disk(_: &Path) -> Finding {
    Finding::skipped("disk", "is not looked at on this system")
}

/// Whether the clock is plausible: not before the data it has written.
pub(super) fn clock(data: &Path) -> Finding {
    const CHECK: &str = "clock";
    let now = Timestamp::now();
    let newest = newest(data).filter(|(_, written)| *written > now + TOLERANCE);
    match newest {
        Some((file, written)) => Finding::wrong(
            CHECK,
            format!("it is {now:.0} by the clock, but `{file}` was written at {written:.0}"),
            "set the clock: journal and limits go by it",
        ),
        None => Finding::ok(CHECK, format!("{now:.0}")),
    }
}

/// The name of the newest copy that was made of a database before a migration.
pub(super) fn newest_backup(database: &Path) -> Option<String> {
    let prefix = format!("{}.before-v", database.file_name()?.to_str()?);
    let files = fs::read_dir(database.parent()?).ok()?.flatten();
    let backups = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        let is_backup = name.starts_with(&prefix) && name.ends_with(".bak");
        is_backup.then_some((file.metadata().ok()?.modified().ok()?, name))
    });
    backups.max().map(|(_, name)| name)
}

/// The newest backup below the data directory that has a database.
pub(super) fn newest_full_backup(data: &Path, database: &str) -> Option<PathBuf> {
    let dirs = fs::read_dir(data.join(backup::DIRECTORY)).ok()?.flatten();
    let backups = dirs.filter_map(|dir| {
        let manifest = backup::read_manifest(&dir.path()).ok()?;
        let holds = manifest.databases.contains_key(database);
        holds.then(|| (manifest.created_at, dir.path()))
    });
    backups.max().map(|(_, path)| path)
}

/// The file in a directory that was written last.
fn newest(dir: &Path) -> Option<(String, Timestamp)> {
    let files = fs::read_dir(dir).ok()?.flatten();
    let written = files.filter_map(|file| {
        let written = file.metadata().ok()?.modified().ok()?;
        let name = file.file_name().to_string_lossy().into_owned();
        Some((name, Timestamp::try_from(written).ok()?))
    });
    written.max_by_key(|(_, written)| *written)
}
