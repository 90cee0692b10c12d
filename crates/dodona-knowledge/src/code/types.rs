//! Parameters and results of the plugin `code`.

use dodona_proto::Source;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::library::{Definition, Place};

#[derive(Deserialize, JsonSchema)]
pub(super) struct SearchParams {
    /// A question, or words, or names.
    pub(super) query: String,
    /// How many passages at most.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 20))]
    pub(super) limit: u32,
    /// Only this language, such as `rust`.
    pub(super) language: Option<String>,
    /// Only below this path.
    pub(super) path: Option<String>,
}

fn five() -> u32 {
    5
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct DefinitionParams {
    /// The name, such as `Hub` or `Hub::call`.
    pub(super) symbol: String,
    /// Only below this path.
    pub(super) scope: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Definitions {
    pub(super) definitions: Vec<Defined>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Defined {
    path: String,
    line_start: u32,
    line_end: u32,
    name: String,
    kind: String,
    /// What it is inside of.
    container: String,
    /// Its first line.
    signature: String,
}

impl From<Definition> for Defined {
    fn from(found: Definition) -> Self {
        let Definition {
            path,
            name,
            kind,
            container,
            line_start,
            line_end,
            signature,
        } = found;
        Self {
            path,
            line_start,
            line_end,
            name,
            kind,
            container,
            signature,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReferenceParams {
    /// The name.
    pub(super) symbol: String,
    /// How many places at most.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 50))]
    pub(super) limit: u32,
}

fn twenty() -> u32 {
    20
}

#[derive(Serialize, JsonSchema)]
pub(super) struct References {
    pub(super) references: Vec<Used>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Used {
    path: String,
    line: u32,
}

impl From<Place> for Used {
    fn from(place: Place) -> Self {
        Self {
            path: place.path,
            line: place.line,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct MapParams {
    /// Only below this path.
    pub(super) scope: Option<String>,
    /// How long the map may be, in tokens.
    #[serde(default = "two_thousand")]
    #[schemars(range(min = 500, max = 8000))]
    pub(super) max_tokens: u32,
}

fn two_thousand() -> u32 {
    2000
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct RepoMap {
    /// A line for each file, and below it one for each symbol.
    pub(super) text: String,
    /// How many symbols had no room.
    pub(super) left_out: usize,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadParams {
    /// The file, below the project's root.
    pub(super) path: String,
    /// The first line.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub(super) from: u32,
    /// The last line; to the end without.
    pub(super) to: Option<u32>,
}

fn first() -> u32 {
    1
}

#[derive(Serialize, JsonSchema)]
pub(super) struct FileText {
    /// Which lines of which file.
    pub(super) source: Source,
    pub(super) text: String,
    /// The line from which to read on, where the file has more than fits into one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_line: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct GrepParams {
    /// A regular expression, matched against each line.
    #[schemars(length(min = 1, max = 1000))]
    pub(super) pattern: String,
    /// Only paths that match, such as `*.rs` or `docs/**`; with `!` before it, only others.
    #[schemars(length(max = 1000))]
    pub(super) glob: Option<String>,
    /// Whether `a` also matches `A`.
    #[serde(default)]
    pub(super) ignore_case: bool,
    /// How many lines at most.
    #[serde(default = "fifty")]
    #[schemars(range(min = 1, max = 200))]
    pub(super) limit: u32,
}

fn fifty() -> u32 {
    50
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Matches {
    /// In the order of paths and lines.
    pub(super) matches: Vec<Match>,
    /// Whether there are more.
    pub(super) more: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Match {
    pub(super) source: Source,
    /// The line.
    pub(super) text: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct LogParams {
    /// A question, or words of the message; without it the newest commits come.
    pub(super) query: Option<String>,
    /// Only commits that touched this path.
    pub(super) path: Option<String>,
    /// How many commits at most.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    pub(super) limit: u32,
}

fn ten() -> u32 {
    10
}

#[derive(Default, Serialize, JsonSchema)]
pub(super) struct Logged {
    /// Best first where there was a question, newest first otherwise.
    pub(super) commits: Vec<LogEntry>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogEntry {
    /// Which commit; its title is the first line of the message.
    pub(super) source: Source,
    pub(super) author: String,
    /// When it was written.
    pub(super) date: String,
    /// The whole message.
    pub(super) text: String,
    /// How well it answers, where there was a question.
    pub(super) score: Option<f32>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct BlameParams {
    /// The file, below the project's root.
    pub(super) path: String,
    /// The first line.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    pub(super) from: u32,
    /// The last line; to the end without.
    pub(super) to: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Blame {
    pub(super) path: String,
    /// The lines, neighbours of one commit together.
    pub(super) ranges: Vec<BlameRange>,
}

/// Lines that came with one commit. Without one they were changed since the last.
#[derive(Serialize, JsonSchema)]
pub(super) struct BlameRange {
    pub(super) line_start: u32,
    pub(super) line_end: u32,
    pub(super) commit: Option<String>,
    pub(super) author: Option<String>,
    pub(super) date: Option<Timestamp>,
    /// The first line of the commit's message.
    pub(super) subject: Option<String>,
}
