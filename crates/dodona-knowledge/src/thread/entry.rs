//! An entry of a thread, and how it is found and cited.

use dodona_plugin::store::{DbError, Row};
use dodona_proto::{Source, SourceKind};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::author::Author;
use crate::library::{THREAD, hash_of};
use crate::search::FileChunks;

/// What an entry is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EntryType {
    /// Something that came to mind.
    #[default]
    Thought,
    /// What was decided, and why.
    Decision,
    /// What was found out.
    Research,
    /// What follows from it.
    Insight,
}

impl EntryType {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Thought => "thought",
            Self::Decision => "decision",
            Self::Research => "research",
            Self::Insight => "insight",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::Thought, Self::Decision, Self::Research, Self::Insight]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
}

/// An entry as it is stored. None is ever changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Counted over all threads.
    pub(super) id: i64,
    pub(super) thread: String,
    /// Its place in the thread, from 1.
    pub(super) n: u64,
    /// Milliseconds since 1970.
    pub(super) at: i64,
    pub(super) author: Author,
    pub(super) user: String,
    pub(super) entry_type: EntryType,
    pub(super) content: String,
    pub(super) query: Option<String>,
}

/// The columns that [`Entry::read`] expects.
pub(super) const COLUMNS: &str = "id, thread, n, at, author, user, entry_type, content, query";

impl Entry {
    pub(super) fn read(row: &Row<'_>) -> Result<Self, DbError> {
        Ok(Self {
            id: row.get(0)?,
            thread: row.get(1)?,
            n: row.get(2)?,
            at: row.get(3)?,
            author: Author::from_name(row.text(4)?).unwrap_or(Author::User),
            user: row.get(5)?,
            entry_type: EntryType::from_name(row.text(6)?).unwrap_or_default(),
            content: row.get(7)?,
            query: row.get(8)?,
        })
    }

    pub(super) fn at(&self) -> Timestamp {
        Timestamp::from_millisecond(self.at).unwrap_or_default()
    }

    /// Where it is, in a citation and in the index.
    pub(super) fn path(&self) -> String {
        format!("{THREAD}{}#{}", self.thread, self.n)
    }

    /// For people: `decision of 3 March 2026 by oracle`.
    fn heading(&self) -> String {
        let day = self.at().strftime("%-d %B %Y");
        let (kind, author) = (self.entry_type.as_str(), self.author.as_str());
        format!("{kind} of {day} by {author}")
    }

    /// What cites all of it.
    pub(super) fn source(&self) -> Source {
        let lines: Vec<&str> = self.content.lines().collect();
        Source {
            kind: SourceKind::Thread,
            path: self.path(),
            line_start: 1,
            line_end: u32::try_from(lines.len().max(1)).unwrap_or(u32::MAX),
            hash: hash_of(&lines.join("\n")),
            title: Some(format!("{}, {}", self.thread, self.heading())),
        }
    }

    /// As the index has it.
    pub(super) fn passages(&self) -> FileChunks {
        let mut passages = FileChunks::of("entry.md", &self.content);
        for chunk in &mut passages.chunks {
            chunk.heading = self.heading();
        }
        FileChunks {
            path: self.path(),
            kind: SourceKind::Thread,
            title: self.thread.clone(),
            ..passages
        }
    }
}

/// The thread and the number of the entry that a path names.
pub(super) fn of_path(path: &str) -> Option<(&str, u64)> {
    let (thread, n) = path.strip_prefix(THREAD)?.rsplit_once('#')?;
    Some((thread, n.parse().ok()?))
}
