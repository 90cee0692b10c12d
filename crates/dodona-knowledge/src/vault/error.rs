//! Why notes were not changed.

use std::io;

use dodona_plugin::store::DbError;
use dodona_plugin::{CallError, ErrorCode};
use serde_json::json;

use super::path::PathError;

/// The largest note: what is larger would not be found again, either.
pub(super) const MAX_NOTE: usize = 1 << 20;

/// The most notes that one change touches.
pub(super) const MAX_NOTES: usize = 10_000;

/// Why notes were not changed. Unless it is said otherwise, nothing was.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("there is no note `{path}`")]
    Missing { path: String },
    #[error("there is a note `{path}` already")]
    Exists { path: String },
    #[error("`{path}` is not the version that was expected")]
    Conflict {
        path: String,
        /// What it is; nothing where there is no note.
        current: Option<String>,
    },
    #[error("`{path}` would have {size} bytes; a note has at most {MAX_NOTE}")]
    TooLarge { path: String, size: usize },
    #[error("this would change {count} notes; one step changes at most {MAX_NOTES}")]
    TooMany { count: usize },
    #[error("`{path}` is not UTF-8 text")]
    NotText { path: String },
    #[error("the frontmatter of `{path}` says what its title is")]
    TitleInFrontmatter { path: String },
    #[error("`{path}` is being changed by another program, again and again")]
    Busy { path: String },
    #[error("nothing of that can be undone: {why}")]
    NothingToUndo { why: String },
    #[error("{} changed since, so that this cannot be undone", paths.join(", "))]
    ChangedSince { paths: Vec<String> },
    #[error("`{path}` has no version `{version}`")]
    NoVersion { path: String, version: String },
    #[error("could not read or write `{path}`")]
    Disk { path: String, source: io::Error },
    #[error("what notes were could not be kept")]
    Ledger(#[from] DbError),
    #[error("a change of notes was lost on the way")]
    Lost,
}

impl WriteError {
    /// Something about the file of a note went wrong.
    pub(super) fn disk(path: &str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Disk { path, source }
    }
}

impl From<WriteError> for CallError {
    fn from(error: WriteError) -> Self {
        let message = error.to_string();
        let invalid = |message| Self::new(ErrorCode::InvalidParams, message);
        match error {
            WriteError::Path(error) => error.into(),
            WriteError::Ledger(error) => error.into(),
            WriteError::Missing { .. } | WriteError::NoVersion { .. } => {
                Self::new(ErrorCode::NotFound, message)
                    .hint("`vault.list` tells the notes, `vault.history` the versions of one")
            }
            WriteError::Exists { .. } => Self::plugin("vault.exists", message)
                .hint("choose another path, or delete that note first"),
            WriteError::Conflict { current, .. } => {
                let hint = match &current {
                    Some(version) => format!("it is version {version} now: read it, and try again"),
                    None => "it is not there now".to_owned(),
                };
                Self::plugin("vault.conflict", message)
                    .hint(hint)
                    .data(json!({ "current_version": current }))
            }
            WriteError::TooLarge { .. } | WriteError::TooMany { .. } => {
                Self::new(ErrorCode::TooLarge, message).hint("do it in smaller parts")
            }
            WriteError::NotText { .. } => invalid(message).hint("convert the file first"),
            WriteError::TitleInFrontmatter { .. } => invalid(message)
                .hint("leave `title` out, or begin the body with the frontmatter it shall have"),
            WriteError::Busy { .. } => Self::plugin("vault.busy", message).hint("try again later"),
            WriteError::NothingToUndo { .. } => {
                Self::plugin("vault.nothing_to_undo", message).hint("`vault.history` tells what was done")
            }
            WriteError::ChangedSince { paths } => Self::plugin("vault.conflict", message)
                .hint("undo what came after it first, or restore a version of each note with `version`")
                .data(json!({ "paths": paths })),
            WriteError::Disk { source, .. } => {
                Self::new(ErrorCode::Storage, message).log(source)
            }
            WriteError::Lost => Self::new(ErrorCode::Internal, message)
                .hint("the next use of the vault finishes it, or takes it back"),
        }
    }
}
