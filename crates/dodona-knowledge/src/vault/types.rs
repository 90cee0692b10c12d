//! Parameters and results of the plugin `vault`.

use std::collections::BTreeMap;

use dodona_proto::Source;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::{Change, Edit};
use super::ledger::Gone;
use super::scribe::Made;
use crate::author::Author;
use crate::library::{FileRow, LinkRow, hash_of};

#[derive(Deserialize, JsonSchema)]
pub(super) struct SearchParams {
    /// A question, or words.
    pub(super) query: String,
    /// How many passages at most.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    pub(super) limit: u32,
}

fn five() -> u32 {
    5
}

fn twenty() -> u32 {
    20
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct NoteParams {
    /// The note, below the project's root.
    pub(super) path: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadParams {
    /// The note, below the project's root.
    pub(super) path: String,
    /// A version of it, as `vault.history` names them; what is there now without.
    pub(super) version: Option<String>,
    /// The first line to read, from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub(super) from: u32,
}

fn first() -> u32 {
    1
}

#[derive(Serialize, JsonSchema)]
pub(super) struct NoteText {
    /// Which note, and which of its lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<Source>,
    /// Which version, for `if_version`.
    pub(super) version: String,
    pub(super) text: String,
    /// The line from which to read on, where the file has more than fits into one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_line: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct VersionsParams {
    /// The notes, below the project's root.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub(super) paths: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Versions {
    /// Another one when notes come, go or get another title.
    list: String,
    /// By path, of those that are there.
    versions: BTreeMap<String, String>,
}

impl Versions {
    pub(super) fn of(notes: &[FileRow], paths: &[String]) -> Self {
        let lines: Vec<String> = notes
            .iter()
            .map(|note| format!("{}\t{}", note.path, note.title))
            .collect();
        let wanted = notes.iter().filter(|note| paths.contains(&note.path));
        Self {
            list: hash_of(&lines.join("\n")),
            versions: wanted
                .map(|note| (note.path.clone(), note.hash.clone()))
                .collect(),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ListParams {
    /// The folder; all of the project without.
    pub(super) folder: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Notes {
    pub(super) notes: Vec<NoteRef>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct NoteRef {
    path: String,
    title: String,
}

impl From<FileRow> for NoteRef {
    fn from(file: FileRow) -> Self {
        Self {
            path: file.path,
            title: file.title,
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Backlinks {
    pub(super) backlinks: Vec<WrittenLink>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct FollowParams {
    /// The note the link stands in; without it, it is read from the root.
    #[serde(default)]
    pub(super) from: String,
    /// The link as it is written, without `[[`, `#heading` and `|alias`.
    pub(super) target: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Followed {
    /// The note it leads to; none where it leads nowhere.
    pub(super) path: Option<String>,
}

/// A link as it stands in a note.
#[derive(Serialize, JsonSchema)]
pub(super) struct WrittenLink {
    path: String,
    line: u32,
    target: String,
}

impl From<&LinkRow> for WrittenLink {
    fn from(link: &LinkRow) -> Self {
        Self {
            path: link.path.clone(),
            line: link.line,
            target: link.target.clone(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Tags {
    pub(super) tags: Vec<Tag>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Tag {
    pub(super) tag: String,
    pub(super) notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Graph {
    pub(super) notes: Vec<NoteRef>,
    pub(super) edges: Vec<Edge>,
    /// Links that lead to no note.
    pub(super) unresolved: Vec<WrittenLink>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(super) struct Edge {
    pub(super) from: String,
    pub(super) to: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct WriteParams {
    /// The note, below the project's root; it is made where there is none.
    pub(super) path: String,
    /// The text. Frontmatter that is there is kept, unless this begins with its own.
    pub(super) body: String,
    /// Becomes a heading where the text begins with none.
    pub(super) title: Option<String>,
    /// Write only if the note is this version, as `vault.read` tells it; `none` if there must be no
    /// note yet.
    pub(super) if_version: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct MoveParams {
    /// Where the note is.
    pub(super) old_path: String,
    /// Where it shall be.
    pub(super) new_path: String,
    /// Move only if the note is this version.
    pub(super) if_version: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct DeleteParams {
    /// The note, below the project's root.
    pub(super) path: String,
    /// Delete only if the note is this version.
    pub(super) if_version: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct IndexParams {
    /// The folder whose notes are listed, in its `index.md`; empty for all of the vault.
    pub(super) folder: String,
    /// The heading of a new index; the folder's name without.
    pub(super) title: Option<String>,
    /// Show the beginning of each note, too.
    #[serde(default)]
    pub(super) include_summaries: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct UndoParams {
    /// Take back the newest change of this note, in all notes it touched.
    pub(super) path: Option<String>,
    /// With `path`: bring back this version of it instead.
    pub(super) version: Option<String>,
    /// Take back everything that was changed in this query, as one step.
    pub(super) query: Option<String>,
    /// Take back this change.
    pub(super) change: Option<i64>,
}

/// What was done to the notes. All of it can be undone by the number of the change.
#[derive(Serialize, JsonSchema)]
pub(super) struct Done {
    /// The number of the change; none where nothing had to be changed.
    change: Option<i64>,
    /// What is other than before, note by note.
    notes: Vec<NoteEdit>,
}

impl From<Made> for Done {
    fn from(made: Made) -> Self {
        Self {
            change: made.change,
            notes: made.edits.into_iter().map(NoteEdit::from).collect(),
        }
    }
}

/// What became of a note.
#[derive(Serialize, JsonSchema)]
pub(super) struct NoteEdit {
    path: String,
    /// The version it is; none where it is gone.
    version: Option<String>,
    /// The version it was; none where it is new.
    previous: Option<String>,
    /// Where it was until now.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Option<String>,
}

impl From<Edit> for NoteEdit {
    fn from(edit: Edit) -> Self {
        Self {
            path: edit.path,
            version: edit.after,
            previous: edit.before,
            moved_from: edit.origin,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct HistoryParams {
    /// The note, below the project's root; one that is gone has a history, too.
    pub(super) path: String,
    /// How many changes at most.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 500))]
    pub(super) limit: u32,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct History {
    /// Newest first.
    pub(super) history: Vec<Past>,
}

/// A change of one note.
#[derive(Serialize, JsonSchema)]
pub(super) struct Past {
    #[serde(flatten)]
    by: ChangeInfo,
    #[serde(flatten)]
    note: NoteEdit,
}

impl From<(Change, Edit)> for Past {
    fn from((change, edit): (Change, Edit)) -> Self {
        Self {
            by: change.into(),
            note: edit.into(),
        }
    }
}

/// Who changed notes, when and why.
#[derive(Serialize, JsonSchema)]
pub(super) struct ChangeInfo {
    /// The number of the change.
    change: i64,
    at: Timestamp,
    /// `write`, `move`, `delete`, `create_index`, `undo` or `restore`; `outside` for an editor or
    /// another program, `found` for what was there when the note was seen first.
    method: String,
    /// None where it happened outside.
    author: Option<Author>,
    user: Option<String>,
    /// The query it was done in.
    query: Option<String>,
    /// The call, and the names it came through.
    call: Option<String>,
    call_path: Option<String>,
    /// The change that took this one back.
    undone_by: Option<i64>,
}

impl From<Change> for ChangeInfo {
    fn from(change: Change) -> Self {
        let why = change.why;
        Self {
            change: change.id,
            at: Timestamp::from_millisecond(change.at).unwrap_or_default(),
            method: why.method,
            author: why.author,
            user: why.user,
            query: why.query,
            call: why.call,
            call_path: why.call_path,
            undone_by: change.undone_by,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ChangesParams {
    /// Only those of this query, or of this call and those below it.
    pub(super) query: Option<String>,
    /// How many changes at most.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 500))]
    pub(super) limit: u32,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Changes {
    /// Newest first.
    pub(super) changes: Vec<WholeChange>,
}

/// How many notes of a change are listed.
const LISTED: usize = 50;

/// A change with the notes it touched.
#[derive(Serialize, JsonSchema)]
pub(super) struct WholeChange {
    #[serde(flatten)]
    by: ChangeInfo,
    /// How many notes it touched.
    count: usize,
    /// They, or the first of them.
    notes: Vec<NoteEdit>,
}

impl From<Change> for WholeChange {
    fn from(mut change: Change) -> Self {
        let mut edits = std::mem::take(&mut change.edits);
        let count = edits.len();
        edits.truncate(LISTED);
        Self {
            by: change.into(),
            count,
            notes: edits.into_iter().map(NoteEdit::from).collect(),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct DiffParams {
    /// The note, below the project's root.
    pub(super) path: String,
    /// A version of it; the one before `to` without.
    pub(super) from: Option<String>,
    /// Another version; what is there now without.
    pub(super) to: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Difference {
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    /// As a unified diff; empty where they are the same.
    pub(super) diff: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TrashParams {
    /// How many notes at most.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 500))]
    pub(super) limit: u32,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Trash {
    /// What went last comes first.
    pub(super) notes: Vec<GoneNote>,
}

/// A note that is gone.
#[derive(Serialize, JsonSchema)]
pub(super) struct GoneNote {
    path: String,
    /// Its last version.
    version: String,
    #[serde(flatten)]
    by: ChangeInfo,
}

impl From<Gone> for GoneNote {
    fn from(gone: Gone) -> Self {
        Self {
            path: gone.path,
            version: gone.version,
            by: gone.change.into(),
        }
    }
}
