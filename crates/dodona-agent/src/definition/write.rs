//! Writing and deleting definitions in the user's configuration.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use dodona_plugin::reading::Problem;
use dodona_plugin::{CallError, ErrorCode};
use serde::Serialize;
use serde_json::json;

use super::read::{self, NAME_HINT};
use super::{BUNDLED, Definition, DefinitionSource, Definitions, is_name};
use crate::conversation::DEFAULT_AGENT;

/// A definition to be written. The order of the fields is that of the file.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct NewDefinition {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) allowed_tools: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) extra_tools: Vec<String>,
    pub(crate) max_turns: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model_override: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_budget: Option<u64>,
    /// In the file itself and not in one of its own, so that one rename replaces the whole.
    pub(crate) system_prompt: String,
}

/// A definition that was written.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) path: String,
    /// Whether it replaced an earlier definition of the user.
    pub(crate) replaced: bool,
}

/// A definition that was deleted.
#[derive(Debug)]
pub(crate) struct Deleted {
    pub(crate) path: String,
    /// The prompt file that it named. It stays.
    pub(crate) prompt_path: Option<String>,
    /// Whether a bundled definition of the same name is in use again.
    pub(crate) is_bundled: bool,
}

impl NewDefinition {
    /// The definition as it would be read from its file.
    pub(crate) fn checked(&self) -> Result<(Definition, String), CallError> {
        check_name(&self.name)?;
        let text = toml::to_string(self).map_err(|error| {
            CallError::new(ErrorCode::InvalidParams, "the definition cannot be written").log(error)
        })?;
        let file = format!("{}.toml", self.name);
        let source = DefinitionSource::User;
        let read = read::definition(
            &file,
            &text,
            source,
            |_| Err(io::ErrorKind::NotFound.into()),
        );
        match read {
            Ok(definition) => Ok((definition, text)),
            Err(problems) => Err(invalid(&self.name, &problems)),
        }
    }
}

/// The error for a definition with problems. Nothing of it is stored.
pub(crate) fn invalid(name: &str, problems: &[Problem]) -> CallError {
    // The file does not exist yet: its lines would mean nothing to the caller.
    let told: Vec<String> = problems
        .iter()
        .map(|problem| match &problem.hint {
            Some(hint) => format!("{} ({hint})", problem.message),
            None => problem.message.clone(),
        })
        .collect();
    let message = format!("invalid definition of `{name}`: {}", told.join("; "));
    CallError::plugin("agent.invalid_definition", message)
        .hint("correct the parameters and try again; nothing was written")
        .data(json!({ "problems": problems }))
}

fn check_name(name: &str) -> Result<(), CallError> {
    let error = |message: String| CallError::new(ErrorCode::InvalidParams, message);
    if name == DEFAULT_AGENT {
        let message = format!("`{DEFAULT_AGENT}` is the main agent and cannot be defined");
        return Err(error(message).hint("replace its prompt with `prompts/oracle.md` instead"));
    }
    match is_name(name) {
        true => Ok(()),
        false => Err(error(format!("invalid agent name `{name}`")).hint(NAME_HINT)),
    }
}

impl Definitions {
    /// Writes a definition, whole or not at all. It must have been checked.
    pub(crate) fn write(
        &self,
        name: &str,
        text: &str,
        replace: bool,
    ) -> Result<Written, CallError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path_of(name)?;
        let exists = path.symlink_metadata().is_ok();
        if exists && !replace {
            let message = format!(
                "the agent `{name}` is already defined in {}",
                path.display()
            );
            return Err(CallError::plugin("agent.exists", message)
                .hint("pass `replace` to overwrite it, or choose another name"));
        }
        match store(&path, text) {
            Ok(()) => Ok(Written {
                path: path.display().to_string(),
                replaced: exists,
            }),
            Err(error) => Err(failed("written", &path, &error)),
        }
    }

    /// Deletes a definition of the user. A prompt in a file of its own stays.
    pub(crate) fn delete(&self, name: &str) -> Result<Deleted, CallError> {
        check_name(name)?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.path_of(name)?;
        let is_bundled = BUNDLED
            .iter()
            .any(|(file, ..)| Path::new(file).file_stem() == path.file_stem());
        let prompt_path = read::file(&path).ok().and_then(|read| read.prompt_path);
        match fs::remove_file(&path) {
            Ok(()) => {
                sync_directory(&path);
                Ok(Deleted {
                    path: path.display().to_string(),
                    prompt_path: prompt_path
                        .map(|prompt| path.with_file_name(prompt).display().to_string()),
                    is_bundled,
                })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(not_yours(name, is_bundled))
            }
            Err(error) => Err(failed("deleted", &path, &error)),
        }
    }

    fn path_of(&self, name: &str) -> Result<PathBuf, CallError> {
        let dir = self.dir.as_ref().ok_or_else(|| {
            let message = "this server has no directory for definitions of agents";
            CallError::new(ErrorCode::InvalidRequest, message)
        })?;
        Ok(dir.join(format!("{name}.toml")))
    }
}

fn not_yours(name: &str, is_bundled: bool) -> CallError {
    match is_bundled {
        true => {
            let message = format!("the agent `{name}` is bundled and cannot be deleted");
            CallError::plugin("agent.bundled", message)
                .hint("define an agent of the same name to replace it")
        }
        false => {
            let message = format!("you have no definition of an agent `{name}`");
            CallError::new(ErrorCode::NotFound, message)
                .hint("`dodona agents list` shows where each agent is defined")
        }
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> CallError {
    let message = format!("{} could not be {what}: {error}", path.display());
    CallError::new(ErrorCode::Storage, message)
}

/// Replaces a file in one step. A link stays a link: people keep such files elsewhere.
fn store(path: &Path, text: &str) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // The ending keeps a file that a crash leaves behind from being read as a definition.
    let new = real.with_extension("toml.new");
    let stored = write_new(&new, text).and_then(|()| fs::rename(&new, &real));
    if stored.is_err() {
        let _ = fs::remove_file(&new);
        return stored;
    }
    sync_directory(&real);
    Ok(())
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The rename itself lasts only once the directory is on disk. Where a directory cannot be synced,
/// a power cut may bring the old version back, whole.
fn sync_directory(path: &Path) {
    if let Some(dir) = path.parent() {
        let _ = fs::File::open(dir).and_then(|dir| dir.sync_all());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::brought::Brought;

    fn scout() -> NewDefinition {
        NewDefinition {
            name: "scout".to_owned(),
            description: "Finds \"things\"\nin code.".to_owned(),
            allowed_tools: vec!["code_search".to_owned()],
            extra_tools: Vec::new(),
            max_turns: 5,
            model_override: None,
            token_budget: Some(8_000),
            system_prompt: "You are {{ agent }}.\n\u{7f}'''\"\"\" \\ and ä.\n".to_owned(),
        }
    }

    #[test]
    fn a_definition_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let definitions = Definitions::new(Some(folder.path().join("agents")), BTreeMap::new());
        let new = scout();
        let (_, text) = new.checked().unwrap();
        let written = definitions.write("scout", &text, false).unwrap();
        assert!(!written.replaced);
        let read = definitions.get("scout", &Brought::default()).unwrap();
        assert_eq!(read.prompt_text(), new.system_prompt);
        assert_eq!(read.description, new.description);
        assert_eq!((read.max_turns, read.token_budget), (5, Some(8_000)));

        let again = definitions.write("scout", &text, false).unwrap_err();
        assert!(again.message.contains("already defined"), "{again:?}");
        assert!(definitions.write("scout", &text, true).unwrap().replaced);
        assert!(!definitions.delete("scout").unwrap().is_bundled);
        assert!(definitions.delete("scout").is_err());
        let left = fs::read_dir(folder.path().join("agents")).unwrap().count();
        assert_eq!(left, 0);
    }

    #[test]
    fn a_prompt_file_survives_its_definition() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        write("scout.md", "You are {{ agent }}.");
        write(
            "scout.toml",
            "name = \"scout\"\nsystem_prompt_path = \"scout.md\"\nallowed_tools = []",
        );
        let definitions = Definitions::new(Some(folder.path().to_owned()), BTreeMap::new());
        let deleted = definitions.delete("scout").unwrap();
        assert!(deleted.prompt_path.unwrap().ends_with("scout.md"));
        assert!(folder.path().join("scout.md").exists());
    }

    #[test]
    fn an_invalid_definition_is_refused_before_anything_is_written() {
        let cases = [
            (
                NewDefinition {
                    name: "Scout".to_owned(),
                    ..scout()
                },
                "invalid agent name",
            ),
            (
                NewDefinition {
                    name: "../x".to_owned(),
                    ..scout()
                },
                "invalid agent name",
            ),
            (
                NewDefinition {
                    name: "oracle".to_owned(),
                    ..scout()
                },
                "main agent",
            ),
            (
                NewDefinition {
                    max_turns: 0,
                    ..scout()
                },
                "from 1 to 100",
            ),
            (
                NewDefinition {
                    system_prompt: " ".to_owned(),
                    ..scout()
                },
                "is empty",
            ),
            (
                NewDefinition {
                    system_prompt: "{{ a".to_owned(),
                    ..scout()
                },
                "invalid template",
            ),
        ];
        for (new, expected) in cases {
            let error = new.checked().unwrap_err();
            assert!(error.message.contains(expected), "{error:?}");
        }
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_definition() {
        let folder = tempfile::tempdir().unwrap();
        let definitions = Definitions::new(Some(folder.path().to_owned()), BTreeMap::new());
        let (_, text) = scout().checked().unwrap();
        definitions.write("scout", &text, false).unwrap();
        // A directory stands where the new file would be written.
        fs::create_dir(folder.path().join("scout.toml.new")).unwrap();
        let error = definitions.write("scout", "name = 1", true).unwrap_err();
        assert!(error.message.contains("could not be written"), "{error:?}");
        assert!(definitions.get("scout", &Brought::default()).is_ok());
    }
}
