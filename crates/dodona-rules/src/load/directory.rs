//! A directory of rules.

use std::path::{Path, PathBuf};

use dodona_plugin::reading;

use super::file::{LoadedFile, load_file};
use crate::Problem;
use crate::identity::Scope;

/// Maximum number of rule files in one directory.
const MOST_FILES: usize = 20_000;

/// Lists the rule files in a directory, sorted by name: `*.toml`, without hidden files and subdirectories. A
/// missing directory has none.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn rule_files(directory: &Path) -> Result<Vec<PathBuf>, Box<Problem>> {
    let wrong = |why: String| {
        let shown = directory.display().to_string();
        Box::new(Problem::error(reading::Problem::of_file(shown, why)))
    };
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(wrong(format!("failed to read the directory: {error}"))),
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_rule(path))
        .collect();
    if files.len() > MOST_FILES {
        return Err(wrong(format!(
            "the directory has {} rules; the maximum is {MOST_FILES}",
            files.len()
        )));
    }
    files.sort();
    Ok(files)
}

fn is_rule(path: &Path) -> bool {
    let hidden = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with('.'));
    !hidden
        && path
            .extension()
            .is_some_and(|extension| extension == "toml")
}

/// Loads all rules of a directory.
pub fn load_directory(directory: &Path, scope: &Scope) -> Vec<LoadedFile> {
    match rule_files(directory) {
        Ok(files) => (files.iter())
            .map(|file| load_file(file, scope.clone()))
            .collect(),
        Err(problem) => vec![LoadedFile {
            problems: vec![*problem],
            ..LoadedFile::default()
        }],
    }
}
