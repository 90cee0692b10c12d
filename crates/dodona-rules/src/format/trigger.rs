//! Triggers of rules.

use std::fmt;
use std::str::FromStr;

use dodona_proto::RULE_TRIGGERS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a rule is evaluated.
#[doc(alias = "HookPoint")]
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Trigger {
    /// A query has started.
    OnQueryStart,
    /// Before each request to a model.
    OnTurnStart,
    /// After a request and the tool calls in its response.
    OnTurnEnd,
    /// Before a tool runs.
    OnToolCall,
    /// After a tool succeeded.
    OnToolComplete,
    /// After a tool failed, timed out, was denied or cancelled.
    OnToolFailure,
    /// A session has ended.
    OnSessionEnd,
}

impl Trigger {
    /// Whether the trigger is about a tool call.
    pub fn is_of_tools(self) -> bool {
        matches!(
            self,
            Self::OnToolCall | Self::OnToolComplete | Self::OnToolFailure
        )
    }

    /// All of them, in the order of [`RULE_TRIGGERS`].
    pub const ALL: [Self; 7] = [
        Self::OnQueryStart,
        Self::OnTurnStart,
        Self::OnTurnEnd,
        Self::OnToolCall,
        Self::OnToolComplete,
        Self::OnToolFailure,
        Self::OnSessionEnd,
    ];

    /// The name used in rule files.
    pub fn as_str(self) -> &'static str {
        RULE_TRIGGERS[self.index()]
    }

    /// The type of the corresponding event.
    pub fn event_type(self) -> &'static str {
        match self {
            Self::OnQueryStart => "query.start",
            Self::OnTurnStart => "agent.turn.start",
            Self::OnTurnEnd => "agent.turn.end",
            Self::OnToolCall => "tool.call.pending",
            Self::OnToolComplete => "tool.call.success",
            Self::OnToolFailure => "tool.call.failure",
            Self::OnSessionEnd => "session.end",
        }
    }

    /// The trigger of an event type.
    pub fn of_event(kind: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|trigger| trigger.event_type() == kind)
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An unknown trigger name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown trigger `{0}`")]
pub struct UnknownTrigger(pub String);

impl FromStr for Trigger {
    type Err = UnknownTrigger;

    fn from_str(name: &str) -> Result<Self, UnknownTrigger> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == name);
        found.ok_or_else(|| UnknownTrigger(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_has_one_name_everywhere() {
        for trigger in Trigger::ALL {
            assert_eq!(trigger.as_str().parse(), Ok(trigger));
            assert_eq!(serde_json::to_value(trigger).unwrap(), trigger.as_str());
            assert_eq!(Trigger::of_event(trigger.event_type()), Some(trigger));
        }
        assert!("on_turn".parse::<Trigger>().is_err());
    }
}
