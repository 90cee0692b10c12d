//! A file among the user's rules or the project's: one that may be changed from here.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dodona_plugin::{CallCtx, CallError, ErrorCode, WrittenFiles, content_hash};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Desk;
use super::file::{Place, RuleFile, is_file_name, make_below};
use super::source::version;
use crate::Problem;
use crate::compile::{CompiledRule, Origin};
use crate::identity::Scope;
use crate::load::{load_text, relative, script_below, script_path};

/// Texts of scripts, by the paths by which rules name them.
pub(super) type Scripts = BTreeMap<String, String>;

/// Whose rules can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum WriteScope {
    /// The user's, which count in every project.
    User,
    /// The project's.
    Project,
}

/// What became of a file.
#[derive(Serialize, JsonSchema)]
pub(super) struct Saved {
    /// The rule in it, as `plugin/id`.
    pub(super) rule: String,
    /// All of its path.
    pub(super) path: String,
    /// For the next time.
    pub(super) version: String,
    /// What is wrong with it all the same, such as a test that does not pass.
    pub(super) problems: Vec<Problem>,
}

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("`{file}` is no name of a rule's file")]
    Name { file: String },
    #[error("{}", if *.scope == WriteScope::User { "this server keeps no rules of its user" } else { "there is no project here" })]
    NoPlace { scope: WriteScope },
    #[error("`{file}` has {}, and was not saved", if problems.len() == 1 { "a fault".to_owned() } else { format!("{} faults", problems.len()) })]
    Broken {
        file: String,
        problems: Vec<Problem>,
    },
    #[error("`{file}` does not name the script `{script}`")]
    Unnamed { file: String, script: String },
    #[error("there is a file `{file}` already")]
    There { file: String },
    #[error("there is a rule `{rule}` already")]
    Taken { rule: String },
    #[error("`{file}` was changed by somebody else since it was read")]
    Changed { file: String },
    #[error("`{file}` could not be saved: {source}")]
    Io { file: String, source: io::Error },
    #[error("the file is saved, and could not be trusted: {}", .0.message)]
    Trust(CallError),
    #[error("the rule is renamed, and could not be switched off again: {}", .0.message)]
    Switch(CallError),
}

impl From<WriteError> for CallError {
    fn from(error: WriteError) -> Self {
        let message = error.to_string();
        match error {
            WriteError::Name { .. } => Self::new(ErrorCode::InvalidParams, message)
                .hint("it ends with `.toml`, does not begin with `.`, and has no directory"),
            WriteError::NoPlace { .. } => Self::new(ErrorCode::InvalidRequest, message),
            WriteError::Broken { problems, .. } => Self::plugin("rules.broken", message)
                .hint("correct what is marked; the version in use stays so")
                .data(json!({ "problems": problems })),
            WriteError::Unnamed { .. } => Self::new(ErrorCode::InvalidParams, message)
                .hint("only the script in its `[condition]` is saved with a rule"),
            WriteError::There { .. } | WriteError::Taken { .. } => {
                Self::plugin("rules.exists", message).hint("choose another id, or edit that one")
            }
            WriteError::Changed { .. } => {
                Self::plugin("rules.changed", message).hint("read it again and repeat your change")
            }
            WriteError::Io { .. } => Self::new(ErrorCode::Storage, message),
            WriteError::Switch(error) | WriteError::Trust(error) => error,
        }
    }
}

/// Where a file of rules is, whether or not it is there.
pub(super) struct OwnFile {
    scope: WriteScope,
    name: String,
    /// As the loader names it.
    pub(super) path: PathBuf,
    /// Where it really is.
    real: PathBuf,
}

impl OwnFile {
    /// The file of that name. Its directory is made if need be.
    pub(super) fn find(
        desk: &Desk,
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
                let directory = desk.user.as_ref().ok_or(WriteError::NoPlace { scope })?;
                let path = directory.join(&name);
                // People keep such files elsewhere and link to them; the link stays one.
                let real = path.canonicalize().unwrap_or_else(|_| path.clone());
                fs::create_dir_all(directory).map(|()| (path, real))
            }
            WriteScope::Project => {
                let project = ctx.project.as_ref().ok_or(WriteError::NoPlace { scope })?;
                let below = Path::new(".dodona/rules");
                // A link in somebody else's work is replaced and not followed.
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

    /// The text and its scripts, if they are what somebody has read.
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

    /// Refuses where there is such a file.
    pub(super) fn must_be_new(&self) -> Result<(), WriteError> {
        match self.path.symlink_metadata() {
            Ok(_) => Err(WriteError::There {
                file: self.name.clone(),
            }),
            Err(_) => Ok(()),
        }
    }

    /// Refuses to write over a script that nobody has looked at: other rules may name it too.
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

    /// The rule that a text would be here, if it can run. Scripts that are not given are those on disk.
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

    /// Saves the scripts, then the text, each whole or not at all.
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
        desk: &Desk,
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
        let host = &desk.live.host;
        let trusted = host.trust_written(&project.root, &ctx.principal.user, written);
        trusted.await.map_err(WriteError::Trust)
    }

    /// Takes the file away; of a link, the link.
    pub(super) fn remove(&self) -> Result<(), WriteError> {
        fs::remove_file(&self.path).map_err(|source| self.failed(source))
    }

    /// Its path, as rules and problems name it.
    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// What version the file has now, with the scripts that the text names.
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

/// Where a script of a rule in this directory belongs, with the folders above it. No link leads out.
fn place_of(directory: &Path, script: &str) -> io::Result<PathBuf> {
    let outside = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
    let below = relative(script).map_err(outside)?;
    let folder = make_below(directory, below.parent().unwrap_or(Path::new("")))?;
    Ok(folder.join(below.file_name().unwrap_or_default()))
}

/// Puts a text in the place of a file, whole or not at all, with the permissions it had.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // Hidden, so that nobody takes it for a rule.
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
