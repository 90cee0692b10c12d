//! Hook points: what each is called, what plugins are shown there and what they may change.

mod edit;
mod payload;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use edit::{
    CompactEdit, ModelCallEdit, ModelOptionsEdit, ModelResponseEdit, NoEdit, PreloadEdit,
    PreloadedEdit, PromptEdit, ResultEdit, ServerRoute, ToolAddition, Verdict,
};
pub use payload::{
    Compacted, Compacting, ModelCall, ModelResponse, Passage, Preload, PreloadRequest, Preloaded,
    QueryReceived, RouteTable, SessionEnd, SessionEnded, SessionResolved, SystemPrompt, ToolEnded,
    ToolEnding, ToolPending, ToolTable, TurnCompleted,
};

/// A moment at which plugins may look, change or refuse.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum HookPoint {
    /// It is known which conversation a query belongs to.
    SessionResolved,
    /// Before passages are looked for that the model is shown unasked.
    PrePreload,
    /// After they were found.
    PostPreload,
    /// While the system prompt is made.
    SystemPromptExtend,
    /// While the tools are gathered that a model is offered.
    ToolRegistryBuild,
    /// A question has come.
    QueryReceived,
    /// Before each request to a model.
    PreLlmCall,
    /// After each answer of a model.
    PostLlmResponse,
    /// Before a tool runs.
    PreToolExecute,
    /// After a tool has run, or was kept from it.
    PostToolExecute,
    /// A request to a model and the tools it asked for are done.
    TurnCompleted,
    /// Before a conversation is shortened.
    PreCompact,
    /// After it was.
    PostCompact,
    /// A conversation is over.
    SessionEnd,
    /// While the server gathers its routes.
    DaemonServerRegister,
}

/// What callbacks can do at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Look.
    Observe,
    /// Change what is there.
    Transform,
    /// Change a text, each what the one before left.
    Chain,
    /// Add to a list.
    Collect,
    /// Allow, change, refuse, ask or answer.
    Gate,
}

impl HookPoint {
    /// All points, in the order in which a server and then a query reach them for the first time.
    /// `docs/reference/hooks.md` has the same order, and a test of the agent compares both with a
    /// real query.
    pub const ALL: [Self; 15] = [
        Self::DaemonServerRegister,
        Self::ToolRegistryBuild,
        Self::SessionResolved,
        Self::QueryReceived,
        Self::SystemPromptExtend,
        Self::PrePreload,
        Self::PostPreload,
        Self::PreLlmCall,
        Self::PreCompact,
        Self::PostCompact,
        Self::PostLlmResponse,
        Self::PreToolExecute,
        Self::PostToolExecute,
        Self::TurnCompleted,
        Self::SessionEnd,
    ];

    /// Its name, as plugins from outside and logs have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionResolved => "SESSION_RESOLVED",
            Self::PrePreload => "PRE_PRELOAD",
            Self::PostPreload => "POST_PRELOAD",
            Self::SystemPromptExtend => "SYSTEM_PROMPT_EXTEND",
            Self::ToolRegistryBuild => "TOOL_REGISTRY_BUILD",
            Self::QueryReceived => "QUERY_RECEIVED",
            Self::PreLlmCall => "PRE_LLM_CALL",
            Self::PostLlmResponse => "POST_LLM_RESPONSE",
            Self::PreToolExecute => "PRE_TOOL_EXECUTE",
            Self::PostToolExecute => "POST_TOOL_EXECUTE",
            Self::TurnCompleted => "TURN_COMPLETED",
            Self::PreCompact => "PRE_COMPACT",
            Self::PostCompact => "POST_COMPACT",
            Self::SessionEnd => "SESSION_END",
            Self::DaemonServerRegister => "DAEMON_SERVER_REGISTER",
        }
    }

    /// What callbacks can do there.
    pub fn kind(self) -> HookKind {
        match self {
            Self::SessionResolved
            | Self::QueryReceived
            | Self::TurnCompleted
            | Self::PostCompact
            | Self::SessionEnd => HookKind::Observe,
            Self::PrePreload
            | Self::PostPreload
            | Self::PreLlmCall
            | Self::PostLlmResponse
            | Self::PostToolExecute
            | Self::PreCompact => HookKind::Transform,
            Self::SystemPromptExtend => HookKind::Chain,
            Self::ToolRegistryBuild | Self::DaemonServerRegister => HookKind::Collect,
            Self::PreToolExecute => HookKind::Gate,
        }
    }
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A name that no hook point has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no hook point `{0}`")]
pub struct UnknownHookPoint(pub String);

impl FromStr for HookPoint {
    type Err = UnknownHookPoint;

    fn from_str(name: &str) -> Result<Self, UnknownHookPoint> {
        let found = Self::ALL.into_iter().find(|point| point.as_str() == name);
        found.ok_or_else(|| UnknownHookPoint(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_one_name_everywhere() {
        for point in HookPoint::ALL {
            assert_eq!(point.as_str().parse(), Ok(point));
            assert_eq!(serde_json::to_value(point).unwrap(), point.as_str());
        }
        assert!("PRE_TOOL".parse::<HookPoint>().is_err());
    }
}
