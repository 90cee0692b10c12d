//! Parameters and results of the plugin `vault`.

use dodona_proto::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::library::{FileRow, LinkRow};

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

#[derive(Deserialize, JsonSchema)]
pub(super) struct NoteParams {
    /// The note, below the project's root.
    pub(super) path: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct NoteText {
    /// Which note, all of its lines.
    pub(super) source: Source,
    pub(super) text: String,
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
