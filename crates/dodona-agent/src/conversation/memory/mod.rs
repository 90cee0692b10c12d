//! What is found again of all conversations of a user about a project.
//!
//! A *memory* is what was decided, remembered or pinned, and what of an exchange must outlive it:
//! the same facts of which a summary is made. It belongs to a *topic*: a question and what was
//! answered to it, or the thing alone. Each is found by its words, with the others of its topic.
//!
//! `keep` makes memories, `seek` finds them, `resolve` turns a citation of one back into its text.
//! What was said is made a memory when its query has ended, or before somebody seeks; what is
//! purged or taken back is none any more, and what is closed still is one.

mod keep;
mod resolve;
mod seek;

use dodona_proto::{Source, SourceKind};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::decision::DecisionKind;
use super::error::ConversationError;
use super::id::ContextId;
use super::rows;

pub(super) use keep::{keep_decision, keep_pin, release_pin, take_back};
pub use seek::Found;

/// What begins the path of a source in a conversation.
const CONTEXT: &str = "context:";

/// What sort of thing a memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Something that was decided, and recorded as such.
    Decision,
    /// Something that was found out, and recorded as such.
    Fact,
    /// Something that the user wants, and that was recorded as such.
    Preference,
    /// A text that is kept word for word.
    Pinned,
    /// What of an exchange must outlive it.
    Said,
    /// A question without such a thing: what was answered to it is found by its words too.
    Asked,
}

impl MemoryKind {
    const ALL: [Self; 6] = [
        Self::Decision,
        Self::Fact,
        Self::Preference,
        Self::Pinned,
        Self::Said,
        Self::Asked,
    ];

    /// As it is stored and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Fact => "fact",
            Self::Preference => "preference",
            Self::Pinned => "pinned",
            Self::Said => "said",
            Self::Asked => "asked",
        }
    }

    fn parse(text: &str) -> Result<Self, ConversationError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| rows::unreadable("memory", format!("kind `{text}`")))
    }
}

impl From<DecisionKind> for MemoryKind {
    fn from(kind: DecisionKind) -> Self {
        match kind {
            DecisionKind::Decision => Self::Decision,
            DecisionKind::Fact => Self::Fact,
            DecisionKind::Preference => Self::Preference,
        }
    }
}

/// Where in a conversation something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In an exchange.
    Exchange(u64),
    /// Among the key decisions, by its id.
    Decision(String),
    /// Among the pinned texts, by the beginning of its hash.
    Pin(String),
}

impl Place {
    fn parse(text: &str) -> Option<Self> {
        if let Some(id) = text.strip_prefix("decision-") {
            return Some(Self::Decision(id.to_owned()));
        }
        match text.strip_prefix("pin-") {
            Some(hash) => Some(Self::Pin(hash.to_owned())),
            None => text.parse().ok().map(Self::Exchange),
        }
    }

    fn pin(text: &str) -> Self {
        let mut hash = hash_of(text);
        hash.truncate(16);
        Self::Pin(hash)
    }

    /// The exchange; 0 where it is none.
    fn position(&self) -> u64 {
        match self {
            Self::Exchange(position) => *position,
            Self::Decision(_) | Self::Pin(_) => 0,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exchange(position) => write!(f, "{position}"),
            Self::Decision(id) => write!(f, "decision-{id}"),
            Self::Pin(hash) => write!(f, "pin-{hash}"),
        }
    }
}

/// The lines of a text that something stands in, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Lines {
    from: u32,
    to: u32,
    hash: String,
}

impl Lines {
    /// All of a text.
    fn whole(text: &str) -> Self {
        let count = u32::try_from(text.lines().count())
            .unwrap_or(u32::MAX)
            .max(1);
        Self {
            from: 1,
            to: count,
            hash: hash_of(&part(text, 1, count)),
        }
    }

    /// The fewest that hold all of the pieces that they can.
    fn holding<'p>(text: &str, pieces: impl Iterator<Item = &'p str> + Clone) -> Self {
        let holds = |line: &str| pieces.clone().any(|piece| line.contains(piece));
        let numbers = (1..).zip(text.lines());
        let mut holding = numbers.filter(|(_, line)| holds(line)).map(|(n, _)| n);
        let Some(from) = holding.next() else {
            return Self::whole(text);
        };
        let to = holding.last().unwrap_or(from);
        Self {
            from,
            to,
            hash: hash_of(&part(text, from, to)),
        }
    }
}

/// Some lines of a text.
fn part(text: &str, from: u32, to: u32) -> String {
    let count = to.saturating_sub(from) as usize + 1;
    let lines = text.lines().skip(from.max(1) as usize - 1).take(count);
    lines.collect::<Vec<_>>().join("\n")
}

/// SHA-256 in hex, as every source has it.
pub(crate) fn hash_of(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A citation of something in a conversation.
fn source(context: &ContextId, place: &str, lines: Lines, title: String) -> Source {
    Source {
        kind: SourceKind::Context,
        path: format!("{CONTEXT}{context}#{place}"),
        line_start: lines.from,
        line_end: lines.to,
        hash: lines.hash,
        title: Some(title),
    }
}

/// The conversation and the place that a citation names.
fn of_path(path: &str) -> Option<(&str, Place)> {
    let (context, place) = path.strip_prefix(CONTEXT)?.split_once('#')?;
    Some((context, Place::parse(place)?))
}

/// What it is, and when it was said.
fn title(kind: MemoryKind, name: Option<&str>, at: Timestamp) -> String {
    let day = at.strftime("%Y-%m-%d");
    let what = match kind {
        MemoryKind::Decision => "decision of",
        MemoryKind::Fact => "fact of",
        MemoryKind::Preference => "preference of",
        MemoryKind::Pinned => "pinned on",
        MemoryKind::Said => "said on",
        MemoryKind::Asked => "asked on",
    };
    match name {
        Some(name) => format!("{name}, {what} {day}"),
        None => format!("{what} {day}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_conversation_and_its_place() {
        for place in [
            Place::Exchange(12),
            Place::Decision("0198".to_owned()),
            Place::pin("x"),
        ] {
            let path = format!("{CONTEXT}abc#{place}");
            assert_eq!(of_path(&path), Some(("abc", place)));
        }
        assert_eq!(of_path("context:abc"), None);
        assert_eq!(of_path("thread:abc#1"), None);
        assert_eq!(of_path("context:abc#somewhere"), None);
    }

    #[test]
    fn the_lines_are_those_that_hold_the_pieces() {
        let text = "Hello.\n\nWe use JWT.\nFor 30 s.\n\nBye.";
        let lines = Lines::holding(text, ["30 s", "We use JWT."].into_iter());
        assert_eq!((lines.from, lines.to), (3, 4));
        assert_eq!(lines.hash, hash_of("We use JWT.\nFor 30 s."));
        let none = Lines::holding(text, ["nowhere"].into_iter());
        assert_eq!((none.from, none.to), (1, 6));
        assert_eq!(Lines::whole("").to, 1);
    }
}
