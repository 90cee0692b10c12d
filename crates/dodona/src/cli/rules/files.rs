//! Rules in files that the command line names.

use std::path::{Path, PathBuf};

use dodona_rules::Scope;
use dodona_rules::format::Condition;
use dodona_rules::load::{LoadedFile, load_file, rule_files};
use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// Whether a name is that of a file or a directory, and not of a rule.
pub(super) fn is_path(name: &str) -> bool {
    name.contains(['/', '\\', '.']) && !is_rule_of_a_plugin(name)
}

/// `plugin/id` looks like a path, and is one only if it is there.
fn is_rule_of_a_plugin(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let is_name = |part: &&str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
    };
    parts.len() == 2 && parts.iter().all(is_name) && !Path::new(name).exists()
}

/// The files that are meant: each by itself, those of a directory by name.
pub(super) fn named(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return match path.exists() {
            true => Ok(vec![path.to_owned()]),
            false => {
                let message = format!("no such file: `{}`", path.display());
                Err(Failure::usage(message).hint("`dodona rules list` names the rules in use"))
            }
        };
    }
    let files = rule_files(path).map_err(|problem| Failure::usage(problem.to_string()))?;
    match files.is_empty() {
        true => {
            let message = format!("`{}` has no rules: no file ends in `.toml`", path.display());
            Err(Failure::usage(message))
        }
        false => Ok(files),
    }
}

/// Loads a file as one of the user's.
pub(super) fn load(path: &Path) -> LoadedFile {
    load_file(path, Scope::User)
}

/// A file as it is sent to be tried, with its script.
pub(super) fn sent(path: &Path) -> Result<Value, Failure> {
    let shown = path.display().to_string();
    let unreadable = |path: &Path, error: std::io::Error| {
        Failure::usage(format!("could not read `{}`: {error}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
    let mut scripts = Map::new();
    let (rule, _) = dodona_rules::format::parse(&shown, &text);
    if let Some(Condition::Script(script)) = rule.map(|rule| rule.condition) {
        let file = path.parent().unwrap_or(Path::new(".")).join(&script);
        let source = std::fs::read_to_string(&file).map_err(|error| unreadable(&file, error))?;
        scripts.insert(script, Value::from(source));
    }
    Ok(json!({ "path": shown, "text": text, "scripts": scripts }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_of_a_plugin_is_told_from_a_path() {
        assert!(!is_path("token-budget-warning"));
        assert!(!is_path("standup/long-query"));
        assert!(is_path("./rules"));
        assert!(is_path("rules/x.toml"));
        assert!(is_path("a/b/c"));
    }
}
