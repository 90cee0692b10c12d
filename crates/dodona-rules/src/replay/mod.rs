//! Asking rules again about what happened: the journal's events, oldest first.
//!
//! A [`Replay`] has its own state and its own memory of what fired, and asks the same way as the
//! live engine does. What the journal does not have is not made up: a rule whose answer could
//! depend on it is not asked about that event, and the [`Gap`] says why.

mod decode;
mod messages;
mod past;
mod run;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use decode::Unreadable;
pub use messages::Messages;
pub use run::{Replay, Setup, Step};

use crate::reads::Reads;

/// Why a rule cannot be asked again about an event.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// It reads a result that was too large for the journal.
    Result,
    /// It reads the messages of the conversation, and those of this request are not kept.
    Messages,
    /// It looks at earlier tool calls, and not all of them are in what is read of the journal.
    Tools,
}

impl Gap {
    const ALL: [(Self, Reads); 3] = [
        (Self::Result, Reads::RESULT),
        (Self::Messages, Reads::MESSAGES),
        (Self::Tools, Reads::TOOLS),
    ];

    /// The first of what is missing that concerns somebody who reads this.
    fn concerning(missing: Reads, reads: Reads) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|(_, part)| missing.any(*part) && reads.any(*part));
        found.map(|(gap, _)| gap)
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Result => "it reads a result that was too large for the journal",
            Self::Messages => {
                "it reads the messages of the conversation, and those of this request are not kept"
            }
            Self::Tools => {
                "it looks at earlier tool calls, and not all of them are in what is read of the journal"
            }
        })
    }
}
