//! A rule file of the user or the project, which may be written.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dodona_plugin::{CallCtx, CallError, ErrorCode, WrittenFiles, content_hash};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::RuleEditor;
use super::rule_file::{Place, RuleFile, is_file_name, make_below};
use super::source::version;
use crate::Problem;
use crate::compile::{CompiledRule, Origin};
use crate::identity::Scope;
use crate::load::{load_text, relative, script_below, script_path};

/// Texts of scripts, by the path used in the rule.
pub(super) type Scripts = BTreeMap<String, String>;

/// Where a rule file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum WriteScope {
    /// The user's rules, which apply in every project.
    User,
    /// The rules of the project.
    Project,
}

/// A saved rule file.
#[derive(Serialize, JsonSchema)]
pub(super) struct Saved {
    /// The rule, as `plugin/id`.
    pub(super) rule: String,
    /// Full path of the file.
    pub(super) path: String,
    /// The new version. Pass it as `if_version` to the next write.
    pub(super) version: String,
    /// Warnings that did not prevent saving.
    pub(super) problems: Vec<Problem>,
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("`{file}` is not a valid rule file name")]
    Name { file: String },
    #[error("{}", if *.scope == WriteScope::User { "this server has no directory for user rules" } else { "the call has no project" })]
    NoPlace { scope: WriteScope },
    #[error("`{file}` was not saved: {}", if problems.len() == 1 { "1 error".to_owned() } else { format!("{} errors", problems.len()) })]
    Broken {
        file: String,
        problems: Vec<Problem>,
    },
    #[error("`{file}` does not refer to script `{script}`")]
    Unnamed { file: String, script: String },
    #[error("file `{file}` already exists")]
    There { file: String },
    #[error("rule `{rule}` already exists")]
    Taken { rule: String },
    #[error("`{file}` has changed since it was read")]
    Changed { file: String },
    #[error("`{file}`: failed to save: {source}")]
    Io { file: String, source: io::Error },
    #[error("the file was saved, but marking it as trusted failed: {}", .0.message)]
    Trust(CallError),
    #[error("the rule was renamed, but disabling it again failed: {}", .0.message)]
    Switch(CallError),
}

impl From<WriteError> for CallError {
    fn from(error: WriteError) -> Self {
        let message = error.to_string();
        match error {
            WriteError::Name { .. } => Self::new(ErrorCode::InvalidParams, message).hint(
                "use a name that ends with `.toml`, does not start with `.` and has no directory",
            ),
            WriteError::NoPlace { .. } => Self::new(ErrorCode::InvalidRequest, message),
            WriteError::Broken { problems, .. } => Self::plugin("rules.broken", message)
                .hint("fix the marked errors; the previous version stays in force")
                .data(json!({ "problems": problems })),
            WriteError::Unnamed { .. } => Self::new(ErrorCode::InvalidParams, message)
                .hint("pass only the script that `[condition]` refers to"),
            WriteError::There { .. } | WriteError::Taken { .. } => {
                Self::plugin("rules.exists", message)
                    .hint("choose another id, or edit the existing rule")
            }
            WriteError::Changed { .. } => Self::plugin("rules.changed", message)
                .hint("read the file again and repeat your change"),
            WriteError::Io { .. } => Self::new(ErrorCode::Storage, message),
            WriteError::Switch(error) | WriteError::Trust(error) => error,
        }
    }
}

/// The location of a rule file. The file may not exist.
pub(super) struct WritableRuleFile {
    scope: WriteScope,
    name: String,
    /// The path as the loader reports it.
    pub(super) path: PathBuf,
    /// The path after links were resolved.
    real: PathBuf,
}

impl WritableRuleFile {
    /// Finds the file with this name. Creates its directory if necessary.
    pub(super) fn find(
        editor: &RuleEditor,
        ctx: &CallCtx,
        scope: WriteScope,
        name: &str,
    ) -> Result<Self, WriteError> {
        let name = name.to_owned();
        if !is_file_name(&name) {
            return Err(WriteError::Name { file: name });
        }
        let found = match scope {
            WriteScope::User => {
                let directory = editor.user.as_ref().ok_or(WriteError::NoPlace { scope })?;
                let path = directory.join(&name);
                // Users may link to files elsewhere. The target is written and the link is kept.
                let real = path.canonicalize().unwrap_or_else(|_| path.clone());
                fs::create_dir_all(directory).map(|()| (path, real))
            }
            WriteScope::Project => {
                let project = ctx.project.as_ref().ok_or(WriteError::NoPlace { scope })?;
                let below = Path::new(".dodona/rules");
                // A link in a project is replaced and not followed: it could lead to any file.
                let made = make_below(&project.root, below);
                made.map(|real| (project.root.join(below).join(&name), real.join(&name)))
            }
        };
        match found {
            Ok((path, real)) => Ok(Self {
                scope,
                name,
                path,
                real,
            }),
            Err(source) => Err(WriteError::Io { file: name, source }),
        }
    }

    /// Reads the text and its scripts. Fails if their version is not `version`.
    pub(super) fn read_as(&self, seen: &str) -> Result<(String, Scripts), WriteError> {
        let now = self.rule_file().text().ok().map(|text| {
            let scripts = self.scripts(&text);
            (text, scripts)
        });
        now.filter(|(text, scripts)| version(text, scripts) == seen)
            .ok_or_else(|| WriteError::Changed {
                file: self.name.clone(),
            })
    }

    /// Fails if the file exists.
    pub(super) fn must_be_new(&self) -> Result<(), WriteError> {
        match self.path.symlink_metadata() {
            Ok(_) => Err(WriteError::There {
                file: self.name.clone(),
            }),
            Err(_) => Ok(()),
        }
    }

    /// Fails if a script would be overwritten that the caller has not read: other rules may use it.
    pub(super) fn must_be_seen(&self, new: &Scripts, seen: &Scripts) -> Result<(), WriteError> {
        let is_other = |(script, text): &(&String, &String)| {
            let there = script_below(self.directory(), script);
            !seen.contains_key(*script) && there.is_ok_and(|there| there != **text)
        };
        match new.iter().find(is_other) {
            Some((script, _)) => Err(WriteError::There {
                file: script.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Compiles a text as if it were in this file. Scripts that are not passed are read from disk.
    pub(super) fn would_be(
        &self,
        text: &str,
        scripts: &Scripts,
    ) -> Result<Arc<CompiledRule>, WriteError> {
        let origin = Origin {
            scope: self.scope(),
            path: self.shown(),
        };
        let given = |script: &str| match scripts.get(script) {
            Some(text) => Ok(text.clone()),
            None => script_below(self.directory(), script),
        };
        let loaded = load_text(origin, text, &given);
        let file = self.name.clone();
        let Some(rule) = loaded.rule else {
            let problems = loaded.problems;
            return Err(WriteError::Broken { file, problems });
        };
        let mut unnamed = scripts
            .keys()
            .filter(|script| Some(*script) != loaded.script.as_ref());
        match unnamed.next().cloned() {
            Some(script) => Err(WriteError::Unnamed { file, script }),
            None => Ok(rule),
        }
    }

    /// Saves the scripts, then the text, each atomically.
    pub(super) fn save(&self, text: &str, scripts: &Scripts) -> Result<(), WriteError> {
        let saved = scripts.iter().try_for_each(|(script, text)| {
            let path = place_of(self.directory(), script)?;
            replace(&path, text)
        });
        saved
            .and_then(|()| replace(&self.real, text))
            .map_err(|source| self.failed(source))
    }

    /// Trusts what was just saved: in a project, writing a rule through Dodona is the act of
    /// trusting it. `text` is `None` for a deleted file.
    pub(super) async fn trust(
        &self,
        editor: &RuleEditor,
        ctx: &CallCtx,
        text: Option<&str>,
        scripts: &Scripts,
    ) -> Result<(), WriteError> {
        let Some(project) = ctx.project.as_ref() else {
            return Ok(());
        };
        if self.scope == WriteScope::User {
            return Ok(());
        }
        let base = project.root.join(".dodona");
        let mut written = WrittenFiles::new();
        let mut add = |path: &Path, text: Option<&str>| {
            let below = path.strip_prefix(&base).ok().and_then(Path::to_str);
            if let Some(below) = below {
                let hash = text.map(|text| content_hash(text.as_bytes()));
                written.insert(below.to_owned(), hash);
            }
        };
        add(&self.path, text);
        for (script, text) in scripts {
            if let Ok(path) = script_path(self.directory(), script) {
                add(&path, Some(text));
            }
        }
        let host = &editor.engine.host;
        let trusted = host.trust_written(&project.root, &ctx.principal.user, written);
        trusted.await.map_err(WriteError::Trust)
    }

    /// Deletes the file. Of a link, only the link.
    pub(super) fn remove(&self) -> Result<(), WriteError> {
        fs::remove_file(&self.path).map_err(|source| self.failed(source))
    }

    /// The path as rules and problems report it.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// The current version of the file and its scripts.
    pub(super) fn version(&self, text: &str) -> String {
        version(text, &self.scripts(text))
    }

    pub(super) fn scripts(&self, text: &str) -> Scripts {
        self.rule_file().scripts(&self.shown(), text)
    }

    fn rule_file(&self) -> RuleFile {
        RuleFile {
            scope: self.scope(),
            place: Place::Disk(self.path.clone()),
        }
    }

    fn scope(&self) -> Scope {
        match self.scope {
            WriteScope::User => Scope::User,
            WriteScope::Project => Scope::Project,
        }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    fn failed(&self, source: io::Error) -> WriteError {
        WriteError::Io {
            file: self.name.clone(),
            source,
        }
    }
}

/// The path of a script. Creates its directories. Fails if a link leads outside the directory.
fn place_of(directory: &Path, script: &str) -> io::Result<PathBuf> {
    let outside = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
    let below = relative(script).map_err(outside)?;
    let folder = make_below(directory, below.parent().unwrap_or(Path::new("")))?;
    Ok(folder.join(below.file_name().unwrap_or_default()))
}

/// Replaces a file atomically and keeps its permissions.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Hidden, so that the scanner does not read it as a rule.
    let new = path.with_file_name(format!(".{name}.new"));
    if let Err(error) = fs::remove_file(&new)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = fs::File::options()
        .write(true)
        .create_new(true)
        .open(&new)?;
    if let Ok(old) = fs::metadata(path) {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)
}
