//! The integrity check of `dodona doctor`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::io;
use std::iter;
use std::path::Path;
use std::sync::Arc;

use crate::backup;
use crate::error::DbError;
use crate::migrate;
use crate::options::{Durability, StoreOptions};
use crate::rebuild;
use crate::registry::DatabaseKind;
use crate::session::Session;
use crate::target::Target;

/// Maximum number of problems of each kind; a damaged file can have one per row.
const MAX_PROBLEMS: usize = 100;

/// The check result of one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseReport {
    /// The name relative to the data directory.
    pub file: String,
    /// The newest applied migration; 0 for none, `None` if it could not be read.
    pub version: Option<u32>,
    /// File size in bytes.
    pub size_bytes: u64,
    /// Problems as text for the user; empty for a healthy database.
    pub problems: Vec<String>,
}

/// Depth of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    Quick,
    Full,
}

/// Checks the databases in `files` and those found in `data_dir`. Databases in `known` existed before.
pub(crate) async fn all(
    data_dir: &Path,
    options: &Arc<StoreOptions>,
    files: BTreeSet<String>,
    known: BTreeMap<String, DatabaseKind>,
    depth: Depth,
) -> Vec<DatabaseReport> {
    let data_dir = data_dir.to_owned();
    let options = Arc::clone(options);
    let work = move || {
        let mut files = files;
        let mut reports = Vec::new();
        find(&data_dir, "", &mut files, &mut reports);
        let examined = files.into_iter().map(|file| {
            let kind = known.get(&file).copied();
            one(&data_dir, &options, file, kind, depth)
        });
        reports.extend(examined);
        reports
    };
    // Not on the reader threads: reading whole files takes long and would delay the server's reads.
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| vec![unreadable(".", format!("the check failed: {error}"))])
}

/// The databases below a data directory.
pub(crate) fn database_names(data_dir: &Path) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    find(data_dir, "", &mut files, &mut Vec::new());
    files
}

/// Checks a copy of a database.
pub(crate) fn problems_of_copy(path: &Path) -> Vec<String> {
    let (dir, file) = match (path.parent(), path.file_name()) {
        (Some(dir), Some(file)) => (dir, file.to_string_lossy().into_owned()),
        _ => return vec!["it has no name".to_owned()],
    };
    let options = Arc::new(StoreOptions::default());
    one(dir, &options, file, None, Depth::Full).problems
}

/// Collects database names recursively, and a report for each directory that cannot be listed. Links are not
/// followed.
fn find(dir: &Path, prefix: &str, files: &mut BTreeSet<String>, reports: &mut Vec<DatabaseReport>) {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            let folder = if prefix.is_empty() { "." } else { prefix };
            reports.push(unreadable(
                folder,
                format!("the folder cannot be listed: {error}"),
            ));
            return;
        }
    };
    // An entry that vanishes while the folder is being listed is nothing to examine.
    for entry in entries.flatten() {
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else {
            continue;
        };
        let name = format!("{prefix}{name}");
        if kind.is_dir() && name == backup::DIRECTORY {
            // Copies, which are verified when they are used.
            continue;
        }
        if kind.is_dir() {
            find(&entry.path(), &format!("{name}/"), files, reports);
        } else if kind.is_file() && name.ends_with(".db") {
            files.insert(name);
        }
    }
}

fn one(
    data_dir: &Path,
    options: &Arc<StoreOptions>,
    file: String,
    kind: Option<DatabaseKind>,
    depth: Depth,
) -> DatabaseReport {
    let path = data_dir.join(&file);
    let size_bytes = match fs::metadata(&path) {
        Ok(metadata) if metadata.len() == 0 && kind == Some(DatabaseKind::Original) => {
            return unreadable(
                &file,
                "the file is empty but contained data before".to_owned(),
            );
        }
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound && kind.is_some() => {
            return unreadable(&file, "the file is missing".to_owned());
        }
        Err(error) => return unreadable(&file, format!("the file cannot be read: {error}")),
    };
    let options = Arc::clone(options);
    let target = Target {
        file,
        path,
        durability: match kind {
            Some(DatabaseKind::Derived) => Durability::Rebuildable,
            _ => Durability::Full,
        },
        options,
        registry: None,
        limits: None,
    };
    let (version, problems) = match Session::snapshot(&target) {
        Ok(session) => examine(&session, depth),
        Err(error) => (None, vec![in_full(&error)]),
    };
    if !problems.is_empty() && depth == Depth::Quick {
        rebuild::mark(&target);
    }
    DatabaseReport {
        file: target.file,
        version,
        size_bytes,
        problems,
    }
}

/// Runs one kind of check.
type Look = fn(&Session) -> Result<Vec<String>, DbError>;

fn examine(session: &Session, depth: Depth) -> (Option<u32>, Vec<String>) {
    let mut problems = Vec::new();
    let version = migrate::version(session);
    problems.extend(version.as_ref().err().map(|error| in_full(error)));
    let looks: &[Look] = match depth {
        Depth::Quick => &[quick_integrity],
        Depth::Full => &[integrity, dangling],
    };
    for look in looks {
        match look(session) {
            Ok(found) => problems.extend(found),
            Err(error) => problems.push(in_full(&error)),
        }
    }
    // A file that cannot be read fails every check; report it once.
    problems.dedup();
    (version.ok(), problems)
}

fn integrity(session: &Session) -> Result<Vec<String>, DbError> {
    pragma(session, "integrity_check")
}

fn quick_integrity(session: &Session) -> Result<Vec<String>, DbError> {
    pragma(session, "quick_check")
}

fn pragma(session: &Session, name: &str) -> Result<Vec<String>, DbError> {
    let sql = format!("PRAGMA {name}({MAX_PROBLEMS})");
    let mut found = session.tx().query(&sql, (), |row| row.get::<String>(0))?;
    found.retain(|line| line != "ok");
    Ok(found)
}

fn dangling(session: &Session) -> Result<Vec<String>, DbError> {
    let sql = format!(
        "SELECT \"table\", \"parent\", count(*) FROM pragma_foreign_key_check
         GROUP BY 1, 2 LIMIT {MAX_PROBLEMS}"
    );
    session.tx().query(&sql, (), |row| {
        let (table, parent, count) = (row.text(0)?, row.text(1)?, row.get::<i64>(2)?);
        Ok(format!(
            "{count} rows of `{table}` point to rows of `{parent}` that do not exist"
        ))
    })
}

fn unreadable(file: &str, problem: String) -> DatabaseReport {
    DatabaseReport {
        file: file.to_owned(),
        version: None,
        size_bytes: 0,
        problems: vec![problem],
    }
}

/// An error with its sources, none of which repeats another.
fn in_full(error: &dyn Error) -> String {
    let sources = iter::successors(error.source(), |&error| error.source());
    sources.fold(error.to_string(), |text, source| {
        format!("{text}: {source}")
    })
}
