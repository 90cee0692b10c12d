//! A change of notes: what it does to which, who makes it, and why.

use dodona_plugin::CallCtx;
use dodona_plugin::store::{DbError, Row};
use sha2::{Digest, Sha256};

use crate::author::Author;

/// The number of a change.
pub(super) type ChangeId = i64;

/// SHA-256 of a note's bytes, in hex: its version.
pub(super) fn version_of(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// What happens to one note, with what was there and what shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Planned {
    /// Below the project's root.
    pub(super) path: String,
    /// Nothing where the note is new.
    pub(super) before: Option<Vec<u8>>,
    /// Nothing where it goes.
    pub(super) after: Option<Vec<u8>>,
    /// Where it was until now, for a note that moves.
    pub(super) origin: Option<String>,
}

/// The same as it is remembered, by versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) path: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    pub(super) origin: Option<String>,
}

impl From<&Planned> for Edit {
    fn from(planned: &Planned) -> Self {
        let version = |bytes: &Option<Vec<u8>>| bytes.as_deref().map(version_of);
        Self {
            path: planned.path.clone(),
            before: version(&planned.before),
            after: version(&planned.after),
            origin: planned.origin.clone(),
        }
    }
}

/// A note that is not as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: String,
    /// The version that was seen.
    pub(super) before: Option<String>,
    pub(super) after: Option<Vec<u8>>,
    pub(super) origin: Option<String>,
}

impl Found {
    pub(super) fn edit(&self) -> Edit {
        Edit {
            path: self.path.clone(),
            before: self.before.clone(),
            after: self.after.as_deref().map(version_of),
            origin: self.origin.clone(),
        }
    }
}

/// What notes were when they were seen first.
pub(super) const FOUND: &str = "found";

/// What an editor or another program did.
pub(super) const OUTSIDE: &str = "outside";

/// Who makes a change, and in which call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Why {
    /// `write`, `move`, and so on, [`FOUND`] or [`OUTSIDE`].
    pub(super) method: String,
    /// Nobody we know, where it happened outside.
    pub(super) author: Option<Author>,
    pub(super) user: Option<String>,
    /// The call, and the names it came through.
    pub(super) call: Option<String>,
    pub(super) call_path: Option<String>,
    /// The query it was made in.
    pub(super) query: Option<String>,
}

impl Why {
    /// What a call does.
    pub(super) fn of(ctx: &CallCtx, method: &str) -> Self {
        Self {
            method: method.to_owned(),
            author: Some(Author::of(ctx)),
            user: Some(ctx.principal.user.to_string()),
            call: Some(ctx.call_id.to_string()),
            call_path: Some(ctx.path.to_string()),
            query: ctx.snapshot.as_ref().map(|query| query.query_id.clone()),
        }
    }

    /// What was found on the disk.
    pub(super) fn outside(method: &str) -> Self {
        Self {
            method: method.to_owned(),
            author: None,
            user: None,
            call: None,
            call_path: None,
            query: None,
        }
    }
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) id: ChangeId,
    /// Milliseconds since 1970.
    pub(super) at: i64,
    pub(super) why: Why,
    /// The change that took this one back.
    pub(super) undone_by: Option<ChangeId>,
    pub(super) edits: Vec<Edit>,
}

/// The columns that [`Change::read`] expects.
pub(super) const COLUMNS: &str =
    "c.id, c.at, c.method, c.author, c.user, c.call, c.call_path, c.query, c.undone_by";

impl Change {
    /// From a row that begins with [`COLUMNS`]; the edits are read by themselves.
    pub(super) fn read(row: &Row<'_>) -> Result<Self, DbError> {
        let author: Option<String> = row.get(3)?;
        Ok(Self {
            id: row.get(0)?,
            at: row.get(1)?,
            why: Why {
                method: row.get(2)?,
                author: author.as_deref().and_then(Author::from_name),
                user: row.get(4)?,
                call: row.get(5)?,
                call_path: row.get(6)?,
                query: row.get(7)?,
            },
            undone_by: row.get(8)?,
            edits: Vec::new(),
        })
    }
}
