//! Backup and restore of all databases of a data directory.
//!
//! A backup is a directory with one file per database and a `manifest.json` with checksums. Read transactions on
//! all databases are started before the first one is copied, so that the copies are consistent with each other.
//! The journal is last, because other databases refer to its streams.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::check;
use crate::error::DbError;
use crate::files;
use crate::migrate::copy_database;
use crate::options::{Durability, StoreOptions};
use crate::registry::{self, DatabaseKind, Registry};
use crate::session::Session;
use crate::target::Target;

/// Name of the backup directory in the data directory.
pub const DIRECTORY: &str = "backups";

const MANIFEST: &str = "manifest.json";
const JOURNAL: &str = "journal.db";
const FORMAT: u32 = 1;

/// Exists while a restore is in progress. After a crash it shows that the databases are inconsistent.
const RESTORING: &str = "restoring";

/// Why a backup or a restore failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BackupError {
    /// A file could not be read or written.
    #[error("could not {action} `{}`", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A database could not be read.
    #[error("could not copy the database `{file}`")]
    Copy {
        file: String,
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A file of the backup is damaged.
    #[error("`{file}` in the backup is damaged: {problem}")]
    Damaged { file: String, problem: String },
    /// The directory is not a backup that this version can read.
    #[error("`{}` is not a backup: {reason}", path.display())]
    NotABackup { path: PathBuf, reason: String },
    /// The target already exists.
    #[error("`{}` exists already", path.display())]
    Exists { path: PathBuf },
}

/// The manifest of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    format: u32,
    /// Time of the backup.
    pub created_at: Timestamp,
    /// The databases, by name.
    pub databases: BTreeMap<String, BackedUp>,
}

/// One database of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackedUp {
    /// Its size in bytes.
    pub bytes: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> BackupError + 'a {
    move |source| BackupError::File {
        action,
        path: path.to_owned(),
        source,
    }
}

/// Copies all databases that are not derived to a new directory and verifies the copies. The server may be
/// running.
pub fn create(data_dir: &Path, to: &Path) -> Result<BackupManifest, BackupError> {
    if to.exists() {
        return Err(BackupError::Exists {
            path: to.to_owned(),
        });
    }
    let draft = to.with_extension("unfinished");
    let _ = fs::remove_dir_all(&draft);
    files::create_dir(&draft).map_err(failed("create", &draft))?;
    let made = fill(data_dir, &draft);
    let made = made.and_then(|manifest| {
        let text = serde_json::to_vec_pretty(&manifest).map_err(io::Error::from);
        let file = draft.join(MANIFEST);
        text.and_then(|text| files::create_file(&file).and_then(|()| fs::write(&file, text)))
            .and_then(|()| fs::File::open(&file)?.sync_all())
            .map_err(failed("write", &file))?;
        verify(&draft)?;
        fs::rename(&draft, to).map_err(failed("create", to))?;
        Ok(manifest)
    });
    if made.is_err() {
        let _ = fs::remove_dir_all(&draft);
    }
    made
}

fn fill(data_dir: &Path, draft: &Path) -> Result<BackupManifest, BackupError> {
    let derived = Registry::load(data_dir).known();
    let mut names = check::database_names(data_dir);
    names.retain(|file| derived.get(file) != Some(&DatabaseKind::Derived));
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by_key(|file| file == JOURNAL);
    let copy_failed = |file: &str, source: DbError| BackupError::Copy {
        file: file.to_owned(),
        source: Arc::new(source),
    };
    let mut snapshots = Vec::new();
    for file in names {
        let snapshot = pinned(data_dir, &file).map_err(|error| copy_failed(&file, error))?;
        snapshots.push((file, snapshot));
    }
    let mut databases = BTreeMap::new();
    for (file, snapshot) in &snapshots {
        let to = draft.join(file);
        copy_database(snapshot, &to).map_err(|source| BackupError::Copy {
            file: file.clone(),
            source: Arc::new(source),
        })?;
        // A copy in WAL mode could not be checked without creating files next to it.
        let plain = rusqlite::Connection::open(&to).and_then(|copy| {
            copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
        });
        plain.map_err(|error| BackupError::Copy {
            file: file.clone(),
            source: Arc::new(error),
        })?;
        fs::File::open(&to)
            .and_then(|copy| copy.sync_all())
            .map_err(failed("write", &to))?;
        let backed_up = measure(&to).map_err(failed("read", &to))?;
        databases.insert(file.clone(), backed_up);
    }
    Ok(BackupManifest {
        format: FORMAT,
        created_at: Timestamp::now(),
        databases,
    })
}

/// A database in a started read transaction: it sees the state of this moment.
fn pinned(data_dir: &Path, file: &str) -> Result<Session, DbError> {
    let session = Session::snapshot(&target(data_dir, file))?;
    let sql = "SELECT name FROM sqlite_schema";
    session.tx().query(sql, (), |row| row.get::<String>(0))?;
    Ok(session)
}

fn target(dir: &Path, file: &str) -> Target {
    Target {
        file: file.to_owned(),
        path: dir.join(file),
        durability: Durability::Full,
        options: Arc::new(StoreOptions::default()),
        registry: None,
        limits: None,
    }
}

fn measure(path: &Path) -> io::Result<BackedUp> {
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut file = fs::File::open(path)?;
    let mut part = vec![0; 1 << 20];
    loop {
        let count = io::Read::read(&mut file, &mut part)?;
        if count == 0 {
            break;
        }
        hash.update(&part[..count]);
        bytes += count as u64;
    }
    let sha256 = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(BackedUp { bytes, sha256 })
}

/// Reads the manifest of a backup without checking its files.
pub fn read_manifest(backup: &Path) -> Result<BackupManifest, BackupError> {
    let not_a_backup = |reason: String| BackupError::NotABackup {
        path: backup.to_owned(),
        reason,
    };
    let text = fs::read(backup.join(MANIFEST))
        .map_err(|error| not_a_backup(format!("`{MANIFEST}` cannot be read: {error}")))?;
    let manifest: BackupManifest = serde_json::from_slice(&text)
        .map_err(|error| not_a_backup(format!("`{MANIFEST}` is invalid: {error}")))?;
    if manifest.format != FORMAT {
        let format = manifest.format;
        return Err(not_a_backup(format!("its format {format} is unknown")));
    }
    let leaves = |file: &&String| Target::check_name(file).is_err();
    match manifest.databases.keys().find(leaves) {
        Some(file) => Err(not_a_backup(format!("`{file}` is not a database name"))),
        None => Ok(manifest),
    }
}

/// Verifies the checksums of a backup and checks each database.
pub fn verify(backup: &Path) -> Result<BackupManifest, BackupError> {
    let manifest = read_manifest(backup)?;
    for (file, expected) in &manifest.databases {
        let path = backup.join(file);
        let damaged = |problem: String| BackupError::Damaged {
            file: file.clone(),
            problem,
        };
        let found = measure(&path).map_err(|error| damaged(error.to_string()))?;
        if found != *expected {
            return Err(damaged("its checksum differs from the manifest".to_owned()));
        }
        if let Some(problem) = check::problems_of_copy(&path).into_iter().next() {
            return Err(damaged(problem));
        }
    }
    Ok(manifest)
}

/// Whether a restore was interrupted, so that the databases are inconsistent.
pub fn is_half_restored(data_dir: &Path) -> bool {
    data_dir.join(RESTORING).exists()
}

/// Replaces the databases of a data directory by those of a backup. No process may use the directory meanwhile.
/// Returns the directory to which the old databases were moved.
pub fn restore(data_dir: &Path, backup: &Path) -> Result<PathBuf, BackupError> {
    let manifest = verify(backup)?;
    let draft = data_dir.join(DIRECTORY).join("restore.unfinished");
    let _ = fs::remove_dir_all(&draft);
    for file in manifest.databases.keys() {
        let (from, to) = (backup.join(file), draft.join(file));
        files::create_file(&to).map_err(failed("create", &to))?;
        fs::write(&to, fs::read(&from).map_err(failed("read", &from))?)
            .and_then(|()| fs::File::open(&to)?.sync_all())
            .map_err(failed("write", &to))?;
    }
    let mark = data_dir.join(RESTORING);
    files::create_file(&mark).map_err(failed("create", &mark))?;
    let aside = set_aside(data_dir, &manifest)?;
    let mut known = BTreeMap::new();
    for file in manifest.databases.keys() {
        let (from, to) = (draft.join(file), data_dir.join(file));
        if let Some(parent) = to.parent() {
            files::create_dir(parent).map_err(failed("create", parent))?;
        }
        files::publish(&from, &to).map_err(failed("write", &to))?;
        known.insert(file.clone(), DatabaseKind::Original);
    }
    registry::replace(data_dir, &known).map_err(failed("write", data_dir))?;
    fs::remove_file(&mark).map_err(failed("remove", &mark))?;
    let _ = fs::remove_dir_all(&draft);
    Ok(aside)
}

/// Moves the existing databases away. Also moves a write-ahead log without database, because SQLite would apply
/// it to the restored one.
fn set_aside(data_dir: &Path, manifest: &BackupManifest) -> Result<PathBuf, BackupError> {
    let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%S").to_string();
    let backups = data_dir.join(DIRECTORY);
    let aside = (0..)
        .map(|n: u32| match n {
            0 => backups.join(format!("replaced-{stamp}")),
            n => backups.join(format!("replaced-{stamp}-{n}")),
        })
        .find(|path| !path.exists())
        .unwrap_or_else(|| backups.join("replaced"));
    let mut names = check::database_names(data_dir);
    names.extend(manifest.databases.keys().cloned());
    for file in names {
        for suffix in ["", "-wal", "-shm"] {
            let name = format!("{file}{suffix}");
            let (from, to) = (data_dir.join(&name), aside.join(&name));
            if !from.exists() {
                continue;
            }
            if let Some(parent) = to.parent() {
                files::create_dir(parent).map_err(failed("create", parent))?;
            }
            fs::rename(&from, &to).map_err(failed("move", &from))?;
        }
    }
    Ok(aside)
}
