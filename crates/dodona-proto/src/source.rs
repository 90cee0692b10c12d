//! What an answer rests on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A citation: a range of lines, and a hash of the text that stood there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// What it is.
    pub kind: SourceKind,
    /// Where it is: below the project's root; `commit:` and an id; `thread:`, the thread's name, `#`
    /// and the number of the entry; `context:`, the conversation's id, `#` and the place in it; or a
    /// URL.
    pub path: String,
    /// The first line, from 1.
    pub line_start: u32,
    /// The last line.
    pub line_end: u32,
    /// SHA-256 of those lines, in hex: whoever reads them again can tell whether they changed.
    pub hash: String,
    /// A name for people: a heading, a symbol.
    pub title: Option<String>,
}

impl SourceKind {
    /// Its name, as JSON has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Code => "code",
            Self::Text => "text",
            Self::Commit => "commit",
            Self::Thread => "thread",
            Self::Web => "web",
            Self::Context => "context",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::Note,
            Self::Code,
            Self::Text,
            Self::Commit,
            Self::Thread,
            Self::Web,
            Self::Context,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == name)
    }
}

/// What a source is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A note in Markdown.
    Note,
    /// Source code.
    Code,
    /// Any other text.
    Text,
    /// The message of a commit.
    Commit,
    /// An entry of a thread.
    Thread,
    /// A page of the web, as it was fetched.
    Web,
    /// Something that was said or kept in a conversation.
    Context,
}
