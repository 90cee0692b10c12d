//! Why a thread was not read or written.

use dodona_plugin::store::DbError;
use dodona_plugin::{CallError, ErrorCode};

/// The longest entry, in bytes.
pub(super) const MAX_CONTENT: usize = 64 << 10;

/// The most entries of a thread, and the most threads of a project.
pub(super) const MAX_ENTRIES: u64 = 10_000;
pub(super) const MAX_THREADS: u64 = 10_000;

/// Why a thread was not read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum ThreadError {
    #[error("`{}` is not a thread's name", id.escape_debug())]
    Name { id: String },
    #[error("there is no thread `{id}`")]
    Missing { id: String },
    #[error("there is no entry {n} in the thread `{id}`")]
    NoEntry { id: String, n: u64 },
    #[error("the thread `{id}` is archived")]
    Archived { id: String },
    #[error("an entry has from 1 to {MAX_CONTENT} bytes, this one has {size}")]
    Size { size: usize },
    #[error("the thread `{id}` is full: it has {MAX_ENTRIES} entries")]
    Full { id: String },
    #[error("this project has {MAX_THREADS} threads, and no room for another")]
    TooMany,
    #[error("the threads could not be read or written")]
    Store(#[source] DbError),
}

impl From<DbError> for ThreadError {
    /// An error of ours that was given up inside of a transaction comes out of it as itself.
    fn from(error: DbError) -> Self {
        match error {
            DbError::Abort { source } => match source.downcast_ref::<Self>() {
                Some(Self::Archived { id }) => Self::Archived { id: id.clone() },
                Some(Self::Full { id }) => Self::Full { id: id.clone() },
                Some(Self::Missing { id }) => Self::Missing { id: id.clone() },
                Some(Self::TooMany) => Self::TooMany,
                _ => Self::Store(DbError::Abort { source }),
            },
            error => Self::Store(error),
        }
    }
}

impl From<ThreadError> for CallError {
    fn from(error: ThreadError) -> Self {
        let message = error.to_string();
        match error {
            ThreadError::Name { .. } => Self::new(ErrorCode::InvalidParams, message)
                .hint("use letters, digits, `-`, `_` and `.`, at most 100, as in `auth-rework`"),
            ThreadError::Missing { .. } | ThreadError::NoEntry { .. } => {
                Self::new(ErrorCode::NotFound, message).hint("`thread.list` tells the threads")
            }
            ThreadError::Archived { id } => Self::plugin("thread.archived", message).hint(format!(
                "open it again with `dodona threads archive --reopen {id}`, or use another"
            )),
            ThreadError::Size { .. } | ThreadError::Full { .. } => {
                Self::new(ErrorCode::TooLarge, message).hint("divide it, or begin another thread")
            }
            ThreadError::TooMany => {
                Self::new(ErrorCode::TooLarge, message).hint("go on in one that is there")
            }
            ThreadError::Store(error) => error.into(),
        }
    }
}
