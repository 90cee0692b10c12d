//! `rules.write`.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use dodona_plugin::{CallCtx, CallError, ErrorCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Desk;
use super::file::{is_file_name, make_below};
use super::source::version;
use crate::Problem;
use crate::compile::Origin;
use crate::identity::Scope;
use crate::load::{LARGEST, load_text, read_text, script_below};

#[derive(Deserialize, JsonSchema)]
pub(super) struct WriteParams {
    /// Among whose rules.
    scope: WriteScope,
    /// The name of the file, without a directory: `no-main-writes.toml`.
    #[schemars(length(min = 6, max = 200))]
    file: String,
    /// All of its text.
    #[schemars(length(max = 262_144))]
    text: String,
    /// The version that was read, so that nobody's change is lost. Without it the file must be new.
    #[schemars(length(max = 128))]
    if_version: Option<String>,
}

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
    rule: String,
    /// All of its path.
    path: String,
    /// For the next time.
    version: String,
    /// What is wrong with it all the same, such as a test that does not pass.
    problems: Vec<Problem>,
}

/// Why a file was not saved.
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
    #[error("there is a file `{file}` already")]
    There { file: String },
    #[error("`{file}` was changed by somebody else since it was read")]
    Changed { file: String },
    #[error("`{file}` could not be saved: {source}")]
    Io { file: String, source: io::Error },
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
            WriteError::There { .. } => {
                Self::plugin("rules.exists", message).hint("choose another id, or edit that one")
            }
            WriteError::Changed { .. } => {
                Self::plugin("rules.changed", message).hint("read it again and repeat your change")
            }
            WriteError::Io { .. } => Self::new(ErrorCode::Storage, message),
        }
    }
}

pub(super) async fn write(desk: &Desk, ctx: &CallCtx, p: WriteParams) -> Result<Saved, WriteError> {
    if !is_file_name(&p.file) {
        return Err(WriteError::Name { file: p.file });
    }
    let _alone = desk.writing.lock().await;
    let failed = |source| WriteError::Io {
        file: p.file.clone(),
        source,
    };
    let (path, real) = place(desk, ctx, &p)?.map_err(failed)?;
    check_version(&path, &p)?;
    let mut saved = checked(&path, &p)?;
    replace(&real, &p.text).map_err(failed)?;
    let rules = desk.rules(ctx).await;
    let problems = rules.library.problems.iter();
    saved.problems = problems
        .filter(|problem| problem.fault.path == saved.path)
        .cloned()
        .collect();
    Ok(saved)
}

/// The file as the loader names it, and where it really is. Its directory is made if need be.
fn place(
    desk: &Desk,
    ctx: &CallCtx,
    p: &WriteParams,
) -> Result<io::Result<(PathBuf, PathBuf)>, WriteError> {
    let none = WriteError::NoPlace { scope: p.scope };
    match p.scope {
        WriteScope::User => {
            let directory = desk.user.clone().ok_or(none)?;
            let path = directory.join(&p.file);
            // People keep such files elsewhere and link to them; the link stays one.
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            Ok(fs::create_dir_all(directory).map(|()| (path, real)))
        }
        WriteScope::Project => {
            let root = &ctx.project.as_ref().ok_or(none)?.root;
            // A link in somebody else's work is replaced and not followed.
            let made = make_below(root).map(|real| real.join(&p.file));
            Ok(made.map(|real| (root.join(".dodona/rules").join(&p.file), real)))
        }
    }
}

fn check_version(path: &Path, p: &WriteParams) -> Result<(), WriteError> {
    let file = p.file.clone();
    match (&p.if_version, path.symlink_metadata().is_ok()) {
        (None, false) => Ok(()),
        (None, true) => Err(WriteError::There { file }),
        (Some(_), false) => Err(WriteError::Changed { file }),
        (Some(seen), true) => match read_text(path, LARGEST) {
            Ok(text) if version(&text) == *seen => Ok(()),
            _ => Err(WriteError::Changed { file }),
        },
    }
}

/// What the text would be, if it can run.
fn checked(path: &Path, p: &WriteParams) -> Result<Saved, WriteError> {
    let origin = Origin {
        scope: match p.scope {
            WriteScope::User => Scope::User,
            WriteScope::Project => Scope::Project,
        },
        path: path.display().to_string(),
    };
    let directory = path.parent().unwrap_or(Path::new("."));
    let loaded = load_text(origin, &p.text, &|script| script_below(directory, script));
    match loaded.rule {
        Some(rule) => Ok(Saved {
            rule: rule.label.clone(),
            path: rule.origin.path.clone(),
            version: version(&p.text),
            problems: Vec::new(),
        }),
        None => Err(WriteError::Broken {
            file: p.file.clone(),
            problems: loaded.problems,
        }),
    }
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
