//! The bundled rules: the files in `/rules`, embedded in the program.

use super::file::{LoadedFile, load_text, relative};
use crate::compile::Origin;
use crate::identity::Scope;

/// A file of `/rules`.
#[derive(Debug, Clone, Copy)]
pub struct BundledFile {
    /// Its path below `/rules`.
    pub path: &'static str,
    pub text: &'static str,
}

/// Embeds files of `/rules`.
macro_rules! bundle {
    ($($path:literal),* $(,)?) => {
        &[$(BundledFile {
            path: $path,
            text: include_str!(concat!("../../../../rules/", $path)),
        }),*]
    };
}

/// Every rule and every script of a rule. A test compares the list with the directory.
pub const BUNDLED: &[BundledFile] = bundle![
    "context-limit-warning.toml",
    "iteration-budget-warning.toml",
    "large-result-hint.toml",
    "query-start-log.toml",
    "repeated-failure-warning.toml",
    "scripts/repeated-failure.lua",
    "token-budget-warning.toml",
];

/// Loads the bundled rules.
pub fn bundled() -> Vec<LoadedFile> {
    let rules = BUNDLED.iter().filter(|file| file.path.ends_with(".toml"));
    rules.map(load).collect()
}

fn load(file: &BundledFile) -> LoadedFile {
    let origin = Origin {
        scope: Scope::Bundled,
        path: format!("bundled:{}", file.path),
    };
    load_text(origin, file.text, &script)
}

fn script(path: &str) -> Result<String, String> {
    relative(path)?;
    let found = BUNDLED.iter().find(|file| file.path == path);
    found
        .map(|file| file.text.to_owned())
        .ok_or_else(|| format!("script `{path}` is not bundled with the program"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn files(directory: &Path, prefix: &str, found: &mut Vec<String>) {
        let Ok(entries) = std::fs::read_dir(directory) else {
            return;
        };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            match path.is_dir() {
                true => files(&path, &format!("{prefix}{name}/"), found),
                false if name.ends_with(".md") => {}
                false => found.push(format!("{prefix}{name}")),
            }
        }
    }

    #[test]
    fn every_file_of_the_directory_is_embedded() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../rules");
        let mut found = Vec::new();
        files(&directory, "", &mut found);
        found.sort();
        let mut embedded: Vec<&str> = BUNDLED.iter().map(|file| file.path).collect();
        embedded.sort_unstable();
        assert_eq!(found, embedded);
    }

    #[test]
    fn every_bundled_rule_loads_without_a_word() {
        for loaded in bundled() {
            assert!(loaded.problems.is_empty(), "{:#?}", loaded.problems);
            assert!(loaded.rule.is_some());
        }
    }
}
