//! Parameters and results of the plugin `thread`.

use dodona_proto::Source;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::book::ThreadRow;
use super::entry::{Entry, EntryType};
use crate::author::Author;

fn five() -> u32 {
    5
}

fn ten() -> u32 {
    10
}

fn yes() -> bool {
    true
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct PushParams {
    /// The thread, such as `auth-rework`; it is made where there is none.
    pub(super) thread_id: String,
    /// What to write, in Markdown.
    pub(super) content: String,
    /// What it is.
    #[serde(default)]
    pub(super) entry_type: EntryType,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadParams {
    /// The thread.
    pub(super) thread_id: String,
    /// How many entries at most, the newest of them.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    pub(super) limit: u32,
    /// Only entries before this number.
    pub(super) before: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SeekParams {
    /// A question, or words.
    pub(super) query: String,
    /// How many passages at most.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    pub(super) limit: u32,
}

/// Which threads are meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// Those that are not put away.
    #[default]
    Active,
    /// Those that are.
    Archived,
    /// All.
    All,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListParams {
    /// Which threads.
    #[serde(default)]
    pub(super) status: Status,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ArchiveParams {
    /// The thread.
    pub(super) thread_id: String,
    /// False to bring it back.
    #[serde(default = "yes")]
    pub(super) archived: bool,
}

/// An entry that was written.
#[derive(Serialize, JsonSchema)]
pub(super) struct Pushed {
    thread_id: String,
    /// Its number in the thread, from 1.
    entry: u64,
    author: Author,
    at: Timestamp,
}

impl From<Entry> for Pushed {
    fn from(entry: Entry) -> Self {
        Self {
            at: entry.at(),
            entry: entry.n,
            author: entry.author,
            thread_id: entry.thread,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ThreadText {
    pub(super) thread_id: String,
    /// Oldest first.
    pub(super) entries: Vec<ThreadEntry>,
}

/// An entry.
#[derive(Serialize, JsonSchema)]
pub(super) struct ThreadEntry {
    /// What cites it.
    source: Source,
    /// Its number in the thread, from 1.
    entry: u64,
    entry_type: EntryType,
    author: Author,
    /// On whose behalf.
    user: String,
    at: Timestamp,
    /// The query it was written in.
    query: Option<String>,
    text: String,
}

impl From<Entry> for ThreadEntry {
    fn from(entry: Entry) -> Self {
        Self {
            source: entry.source(),
            entry: entry.n,
            entry_type: entry.entry_type,
            author: entry.author,
            at: entry.at(),
            user: entry.user,
            query: entry.query,
            text: entry.content,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Threads {
    /// The one with the newest entry first.
    pub(super) threads: Vec<ThreadRef>,
}

/// A thread.
#[derive(Serialize, JsonSchema)]
pub(super) struct ThreadRef {
    thread_id: String,
    archived: bool,
    /// How many entries it has.
    entries: u64,
    began: Timestamp,
    latest: Timestamp,
    /// The first line of the newest entry.
    last: String,
}

/// How much of an entry is shown in a list.
const SHOWN: usize = 120;

impl From<ThreadRow> for ThreadRef {
    fn from(row: ThreadRow) -> Self {
        let time = |at| Timestamp::from_millisecond(at).unwrap_or_default();
        let first = row.last.lines().find(|line| !line.trim().is_empty());
        Self {
            thread_id: row.id,
            archived: row.archived,
            entries: row.entries,
            began: time(row.began),
            latest: time(row.latest),
            last: first.unwrap_or_default().chars().take(SHOWN).collect(),
        }
    }
}
