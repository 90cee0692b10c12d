//! The examination that `dodona doctor` reports.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::iter;
use std::path::Path;
use std::sync::Arc;

use crate::error::DbError;
use crate::migrate;
use crate::options::{Durability, StoreOptions};
use crate::session::Session;
use crate::target::Target;

/// The most problems reported of each kind; a damaged file can have one per row.
const MAX_PROBLEMS: usize = 100;

/// What was found out about one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseReport {
    /// The name relative to the data directory.
    pub file: String,
    /// The newest migration it has had, 0 for none, or `None` if that could not be read.
    pub version: Option<u32>,
    /// The size of the file.
    pub size_bytes: u64,
    /// What is wrong, in words for the user; empty for a sound database.
    pub problems: Vec<String>,
}

/// Examines the databases in `used` and those found below `data_dir`.
pub(crate) async fn all(
    data_dir: &Path,
    options: &Arc<StoreOptions>,
    used: BTreeSet<String>,
) -> Vec<DatabaseReport> {
    let data_dir = data_dir.to_owned();
    let options = Arc::clone(options);
    let work = move || {
        let mut files = used;
        let mut reports = Vec::new();
        find(&data_dir, "", &mut files, &mut reports);
        reports.extend(files.into_iter().map(|file| one(&data_dir, &options, file)));
        reports
    };
    // Reading whole files takes long, and the reader threads are for the server's own reads.
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| vec![unreadable(".", format!("the examination failed: {error}"))])
}

/// Adds the names of the databases in a folder and those below it, and a report for each folder
/// that cannot be listed. Links are not followed.
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
        if kind.is_dir() {
            find(&entry.path(), &format!("{name}/"), files, reports);
        } else if kind.is_file() && name.ends_with(".db") {
            files.insert(name);
        }
    }
}

fn one(data_dir: &Path, options: &Arc<StoreOptions>, file: String) -> DatabaseReport {
    let path = data_dir.join(&file);
    let size_bytes = match fs::metadata(&path) {
        Ok(metadata) => metadata.len(),
        Err(error) => return unreadable(&file, format!("the file cannot be read: {error}")),
    };
    let options = Arc::clone(options);
    let target = Target {
        file,
        path,
        durability: Durability::Full,
        options,
    };
    let (version, problems) = match Session::snapshot(&target) {
        Ok(session) => examine(&session),
        Err(error) => (None, vec![in_full(&error)]),
    };
    DatabaseReport {
        file: target.file,
        version,
        size_bytes,
        problems,
    }
}

fn examine(session: &Session) -> (Option<u32>, Vec<String>) {
    let mut problems = Vec::new();
    let version = migrate::version(session);
    problems.extend(version.as_ref().err().map(|error| in_full(error)));
    for look in [integrity, dangling] {
        match look(session) {
            Ok(found) => problems.extend(found),
            Err(error) => problems.push(in_full(&error)),
        }
    }
    // A file that cannot be read at all says so to every question.
    problems.dedup();
    (version.ok(), problems)
}

fn integrity(session: &Session) -> Result<Vec<String>, DbError> {
    let sql = format!("PRAGMA integrity_check({MAX_PROBLEMS})");
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
