//! One process owns the home.
//!
//! The owner holds a lock on the data directory, which the system releases however the process ends,
//! and writes into a file who it is. The file is locked as well, for versions that know only that
//! lock: alone it would not do, because a file that is removed and created again is another one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The file below the data directory.
const FILE: &str = "owner.lock";

/// How often, and how long apart, a note that makes no sense is read again: its writer may be
/// in the middle of it.
const READS: u32 = 5;
const BETWEEN_READS: Duration = Duration::from_millis(10);

/// The most that a note may have; anything longer is none.
const NOTE_BYTES: u64 = 4096;

/// What the owner tells about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnerNote {
    /// Its process.
    pub(crate) pid: u32,
    /// Where it serves, once it does.
    pub(crate) url: Option<String>,
    /// Since when.
    pub(crate) started: Timestamp,
}

/// Why this process is not the owner.
#[derive(Debug, Error)]
pub(crate) enum OwnerError {
    /// Another process is.
    #[error("{}", held(.note.as_ref()))]
    Held {
        /// What it tells about itself, if that could be read.
        note: Option<OwnerNote>,
    },
    /// The file cannot be used.
    #[error("could not lock `{}`", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn held(note: Option<&OwnerNote>) -> String {
    match note {
        Some(note) => format!("process {} is using the home directory", note.pid),
        None => "another process is using the home directory".to_owned(),
    }
}

/// The right to use the home, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Ownership {
    /// Locked for as long as it is open.
    #[cfg(unix)]
    _directory: File,
    file: File,
    note: OwnerNote,
}

impl Ownership {
    /// Takes the home, if nobody has it.
    pub(crate) fn take(data: &Path) -> Result<Self, OwnerError> {
        let path = data.join(FILE);
        #[cfg(unix)]
        let directory = lock_directory(data, &path)?;
        let file = match open(&path) {
            Ok(file) => file,
            Err(source) => return Err(OwnerError::Lock { path, source }),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OwnerError::Held { note: read(&path) }),
            Err(TryLockError::Error(source)) => return Err(OwnerError::Lock { path, source }),
        }
        let note = OwnerNote {
            pid: std::process::id(),
            url: None,
            started: Timestamp::now(),
        };
        let mut ownership = Self {
            #[cfg(unix)]
            _directory: directory,
            file,
            note,
        };
        // The lock is what counts: on a full disk there are still things to be read.
        if let Err(error) = ownership.write() {
            tracing::warn!(%error, "could not note who owns the home directory");
        }
        Ok(ownership)
    }

    /// Tells other processes where this one serves.
    pub(crate) fn announce(&mut self, url: &str) -> io::Result<()> {
        self.note.url = Some(url.to_owned());
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let note = serde_json::to_vec(&self.note)?;
        self.file.rewind()?;
        self.file.set_len(0)?;
        self.file.write_all(&note)
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        // So that the next owner is not taken for this one in its first moments. If it fails, that
        // is all that happens.
        let _ = self.file.set_len(0);
    }
}

#[cfg(unix)]
fn lock_directory(data: &Path, note: &Path) -> Result<File, OwnerError> {
    let failed = |source| OwnerError::Lock {
        path: data.to_owned(),
        source,
    };
    let directory = File::open(data).map_err(failed)?;
    match directory.try_lock() {
        Ok(()) => Ok(directory),
        Err(TryLockError::WouldBlock) => Err(OwnerError::Held { note: read(note) }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// What the owner wrote, read again for a moment while it makes no sense.
fn read(path: &Path) -> Option<OwnerNote> {
    for attempt in 0..READS {
        if attempt > 0 {
            std::thread::sleep(BETWEEN_READS);
        }
        let mut text = Vec::new();
        let read = File::open(path).and_then(|file| file.take(NOTE_BYTES).read_to_end(&mut text));
        if read.is_ok()
            && let Ok(note) = serde_json::from_slice(&text)
        {
            return Some(note);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_told_who_the_first_is() {
        let folder = tempfile::tempdir().unwrap();
        let first = Ownership::take(folder.path()).unwrap();
        let Err(OwnerError::Held { note }) = Ownership::take(folder.path()) else {
            panic!("there are two owners");
        };
        assert_eq!(note, Some(first.note.clone()));
        drop(first);
        Ownership::take(folder.path()).unwrap();
    }

    #[test]
    fn a_torn_note_hides_who_owns_it_and_not_that_it_is_owned() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Ownership::take(folder.path()).unwrap();
        first.file.set_len(7).unwrap();
        let error = Ownership::take(folder.path()).unwrap_err();
        assert!(matches!(error, OwnerError::Held { note: None }));
        first.write().unwrap();
        let error = Ownership::take(folder.path()).unwrap_err();
        assert!(matches!(error, OwnerError::Held { note: Some(_) }));
    }

    #[cfg(unix)]
    #[test]
    fn removing_the_file_does_not_make_a_second_owner() {
        let folder = tempfile::tempdir().unwrap();
        let _first = Ownership::take(folder.path()).unwrap();
        std::fs::remove_file(folder.path().join(FILE)).unwrap();
        let second = Ownership::take(folder.path());
        assert!(matches!(second, Err(OwnerError::Held { note: None })));
    }

    #[test]
    fn what_a_dead_owner_left_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let left = r#"{"pid":1,"url":"http://127.0.0.1:1","started":"2026-01-01T00:00:00Z"}"#;
        std::fs::write(folder.path().join(FILE), left).unwrap();
        let owner = Ownership::take(folder.path()).unwrap();
        assert_eq!(read(&folder.path().join(FILE)), Some(owner.note.clone()));
        assert_eq!(owner.note.pid, std::process::id());
    }
}
