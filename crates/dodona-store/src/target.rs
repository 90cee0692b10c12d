//! Which file a database is, and how it is to be opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::options::{DatabaseLimits, Durability, StoreOptions};
use crate::registry::Registry;

/// Everything a thread needs to open a database.
#[derive(Debug)]
pub(crate) struct Target {
    /// The name relative to the data directory, as users see it.
    pub(crate) file: String,
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) options: Arc<StoreOptions>,
    /// Where databases that exist are entered; without it nothing is noticed.
    pub(crate) registry: Option<Arc<Registry>>,
    /// Bounds of a database whose SQL is a plugin's.
    pub(crate) limits: Option<DatabaseLimits>,
}

impl Target {
    /// `data_dir` must be absolute: an absolute path can never begin with `file:`, which the
    /// bundled engine would take for a URI with options of its own.
    pub(crate) fn new(
        data_dir: &Path,
        file: &str,
        durability: Durability,
        options: &Arc<StoreOptions>,
        registry: &Arc<Registry>,
    ) -> Result<Self, &'static str> {
        Self::check_name(file)?;
        Ok(Target {
            file: file.to_owned(),
            path: data_dir.join(file),
            durability,
            options: Arc::clone(options),
            registry: Some(Arc::clone(registry)),
            limits: None,
        })
    }

    /// Accepts names that stay below the data directory and mean the same file on every platform.
    pub(crate) fn check_name(file: &str) -> Result<(), &'static str> {
        check_name(file)
    }
}

fn check_name(file: &str) -> Result<(), &'static str> {
    let known = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '_' | '-' | '.' | '/');
    if !file.chars().all(known) {
        return Err("its name may have only lower-case letters, digits, `_`, `-`, `.` and `/`");
    }
    if file
        .split('/')
        .any(|part| part.is_empty() || part.starts_with('.'))
    {
        return Err("its name must be a path below the data directory, without `.` or `..` parts");
    }
    if !file.ends_with(".db") {
        return Err("its name must end in `.db`, or `dodona doctor` would not find it");
    }
    Ok(())
}
