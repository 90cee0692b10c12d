//! Who writes.

use dodona_plugin::CallInfo;
use dodona_proto::Surface;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who wrote something, as notes and threads remember it. Taken from the call, never from what the
/// caller says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Author {
    /// A person, at the command line, the page or a program of theirs.
    User,
    /// An MCP client.
    Claude,
    /// Our agent, or one of its subagents without an entry of its own here.
    Oracle,
    /// The subagent that keeps notes in order.
    Librarian,
}

impl Author {
    const ALL: [Self; 4] = [Self::User, Self::Claude, Self::Oracle, Self::Librarian];

    /// Its name, as JSON has it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Claude => "claude",
            Self::Oracle => "oracle",
            Self::Librarian => "librarian",
        }
    }

    /// The author of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|author| author.as_str() == name)
    }

    /// Whoever makes a call. The path is the hub's, so that nobody can take another's name.
    pub(crate) fn of(call: &CallInfo) -> Self {
        let mut names = call.path.segments();
        let by_agent = names.any(|name| name == "agent");
        match (by_agent, call.principal.surface) {
            (true, _) if names.next() == Some("librarian") => Self::Librarian,
            (true, _) => Self::Oracle,
            (false, Surface::Mcp) => Self::Claude,
            (false, _) => Self::User,
        }
    }
}
