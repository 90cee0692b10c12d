//! Identity of calls and of the streams they write to.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// How many levels of calls may nest below a root.
///
/// A bound that no honest chain of plugins reaches, small enough for a [`CallId`] to be a plain
/// value that is copied, not cloned.
pub const MAX_NESTING: usize = 15;

/// Identifies a root call and the stream of items it and everything below it emit.
///
/// Random and 122 bits wide: it cannot be guessed, and it is checked against its owner anyway.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct StreamId(Uuid);

impl StreamId {
    /// A new id.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// The id of the call at the root of this stream.
    pub fn root_call(self) -> CallId {
        CallId {
            stream: self,
            depth: 0,
            ordinals: [0; MAX_NESTING],
        }
    }

    /// A byte that differs between streams, for spreading them over shards.
    pub fn first_byte(self) -> u8 {
        self.0.as_bytes()[0]
    }

    /// The first eight digits: enough for people to tell calls apart.
    pub fn short(self) -> String {
        let mut text = self.0.simple().to_string();
        text.truncate(8);
        text
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for StreamId {
    type Err = CallIdError;

    fn from_str(text: &str) -> Result<Self, CallIdError> {
        // Only the hyphenated form in lower case: one id has one spelling.
        let canonical = text.len() == 36 && !text.bytes().any(|b| b.is_ascii_uppercase());
        match Uuid::try_parse(text) {
            Ok(id) if canonical => Ok(Self(id)),
            _ => Err(CallIdError::Stream),
        }
    }
}

impl TryFrom<String> for StreamId {
    type Error = CallIdError;

    fn try_from(text: String) -> Result<Self, CallIdError> {
        text.parse()
    }
}

impl From<StreamId> for String {
    fn from(id: StreamId) -> String {
        id.to_string()
    }
}

/// Why a text is not a call id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallIdError {
    /// The part before the first dot is not a stream id.
    #[error("not a stream id: expected the hyphenated form of a UUID")]
    Stream,
    /// A part after a dot is not a positive number.
    #[error("a call's ordinal is a number from 1")]
    Ordinal,
    /// Too many levels.
    #[error("calls nest at most {MAX_NESTING} levels below the root")]
    TooDeep,
}

/// Identifies one call: its stream, then which child of which child it is.
///
/// The root of stream `s` prints as `s`; its third child as `s.3`; that one's first as `s.3.1`.
/// Ordinals count per parent, so a replayed query gives its calls the same ids whatever the
/// timing of parallel branches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct CallId {
    stream: StreamId,
    /// Unused places are zero, so that derived equality holds, and the derived order puts a
    /// parent before its children and those before its next sibling.
    ordinals: [u32; MAX_NESTING],
    depth: u8,
}

impl CallId {
    /// The stream the call belongs to.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Zero for a root call.
    pub fn depth(&self) -> usize {
        usize::from(self.depth)
    }

    /// The id of the `ordinal`-th child, counted from 1; `None` when it would nest too deep.
    pub fn child(&self, ordinal: u32) -> Option<CallId> {
        let mut child = *self;
        *child.ordinals.get_mut(self.depth())? = ordinal;
        child.depth += 1;
        Some(child)
    }

    /// The id of the call this one was made by; `None` for a root call.
    pub fn parent(&self) -> Option<CallId> {
        let mut parent = *self;
        parent.depth = parent.depth.checked_sub(1)?;
        parent.ordinals[parent.depth()] = 0;
        Some(parent)
    }

    /// Whether this call is `ancestor` or lies below it.
    pub fn is_within(&self, ancestor: &CallId) -> bool {
        let depth = ancestor.depth();
        self.stream == ancestor.stream
            && self.depth() >= depth
            && self.ordinals[..depth] == ancestor.ordinals[..depth]
    }

    /// As [`StreamId::short`], with the ordinals.
    pub fn short(&self) -> String {
        let mut text = self.stream.short();
        for ordinal in &self.ordinals[..self.depth()] {
            text.push('.');
            text.push_str(&ordinal.to_string());
        }
        text
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.stream, f)?;
        self.ordinals[..self.depth()]
            .iter()
            .try_for_each(|n| write!(f, ".{n}"))
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for CallId {
    type Err = CallIdError;

    fn from_str(text: &str) -> Result<Self, CallIdError> {
        let mut parts = text.split('.');
        let stream: StreamId = parts.next().unwrap_or_default().parse()?;
        parts.try_fold(stream.root_call(), |id, part| {
            let canonical = part.bytes().all(|b| b.is_ascii_digit()) && !part.starts_with('0');
            let ordinal = part
                .parse()
                .ok()
                .filter(|_| canonical)
                .ok_or(CallIdError::Ordinal)?;
            id.child(ordinal).ok_or(CallIdError::TooDeep)
        })
    }
}

impl TryFrom<String> for CallId {
    type Error = CallIdError;

    fn try_from(text: String) -> Result<Self, CallIdError> {
        text.parse()
    }
}

impl From<CallId> for String {
    fn from(id: CallId) -> String {
        id.to_string()
    }
}
