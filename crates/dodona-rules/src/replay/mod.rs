//! Evaluating rules for recorded events, oldest first.
//!
//! A [`Replay`] has its own state and cooldowns and evaluates rules like the engine. If the journal lacks data
//! that a rule reads, the rule is not evaluated for that event, and the [`Gap`] gives the reason.

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

/// Why a rule cannot be evaluated for a recorded event.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// The rule reads a result that was too large for the journal.
    Result,
    /// The rule reads messages of the conversation, and those of this request are not stored.
    Messages,
    /// The rule reads earlier tool calls, and not all of them are in the selected part of the journal.
    Tools,
}

impl Gap {
    const ALL: [(Self, Reads); 3] = [
        (Self::Result, Reads::RESULT),
        (Self::Messages, Reads::MESSAGES),
        (Self::Tools, Reads::TOOLS),
    ];

    /// The first missing part that these reads need.
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
