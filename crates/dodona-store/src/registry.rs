//! Which databases exist, so that one that vanishes is noticed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::files;
use crate::options::Durability;

/// The file below the data directory.
const FILE: &str = "databases.json";

/// Whether a database can be built again from other data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DatabaseKind {
    /// It holds the only copy of its data.
    Original,
    /// It is built from other data and rebuilt when it is damaged.
    Derived,
}

impl From<Durability> for DatabaseKind {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Full => Self::Original,
            Durability::Rebuildable => Self::Derived,
        }
    }
}

/// The databases that were opened in a data directory, by name.
#[derive(Debug)]
pub(crate) struct Registry {
    path: PathBuf,
    known: Mutex<BTreeMap<String, DatabaseKind>>,
}

impl Registry {
    /// A file that cannot be read knows nothing: each database is entered again when it is opened.
    pub(crate) fn load(data_dir: &Path) -> Self {
        let path = data_dir.join(FILE);
        let known = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(%error, "could not read `{FILE}`; missing databases are not noticed");
                BTreeMap::new()
            }),
            Err(_) => BTreeMap::new(),
        };
        Self {
            path,
            known: Mutex::new(known),
        }
    }

    pub(crate) fn known(&self) -> BTreeMap<String, DatabaseKind> {
        self.lock().clone()
    }

    pub(crate) fn is_known(&self, file: &str) -> bool {
        self.lock().contains_key(file)
    }

    /// Enters a database that exists now.
    pub(crate) fn add(&self, file: &str, kind: DatabaseKind) {
        let mut known = self.lock();
        if known.get(file) == Some(&kind) {
            return;
        }
        known.insert(file.to_owned(), kind);
        if let Err(error) = write(&self.path, &known) {
            // The database works without it; only its loss would not be noticed.
            tracing::warn!(%error, "could not write `{FILE}`");
        }
    }

    /// Forgets a database that is about to be removed.
    pub(crate) fn remove(&self, file: &str) -> io::Result<()> {
        let mut known = self.lock();
        match known.remove(file) {
            Some(_) => write(&self.path, &known),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, DatabaseKind>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Replaces the list of a data directory.
pub(crate) fn replace(data_dir: &Path, known: &BTreeMap<String, DatabaseKind>) -> io::Result<()> {
    write(&data_dir.join(FILE), known)
}

fn write(path: &Path, known: &BTreeMap<String, DatabaseKind>) -> io::Result<()> {
    let temporary = path.with_extension("json.tmp");
    files::remove(&temporary)?;
    files::create_file(&temporary)?;
    fs::write(&temporary, serde_json::to_vec(known)?)?;
    files::publish(&temporary, path)
}
