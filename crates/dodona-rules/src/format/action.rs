//! The actions of a rule.

use dodona_proto::{Category, DeliverAt, Priority, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::trigger::Trigger;

/// Default message of `log`.
const TRIGGERED: &str = "Rule triggered";

/// One action. In a file its strings are templates; from a script they are plain text.
#[doc(alias = "RuleAction")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Sends a message to the agent, at one of its injection points.
    NotifySelf {
        /// The text of the message.
        message: String,
        /// Category of the message.
        #[serde(default)]
        category: Category,
        /// Higher priorities are delivered first if there is not enough room.
        #[serde(default)]
        priority: Priority,
        /// When the message is delivered.
        #[serde(default)]
        deliver_at: DeliverAt,
    },
    /// Writes a line to the server's log.
    Log {
        /// The text of the line.
        #[serde(default = "triggered")]
        message: String,
        /// Level of the log line.
        #[serde(default)]
        level: Severity,
    },
    /// Stores a value in the state of the rule's plugin, for this user and project.
    SetState {
        /// The key in the state.
        key: String,
        /// Any value. A string that is a single `{{ expression }}` keeps the type of the expression.
        #[serde(default)]
        value: Value,
    },
    /// Publishes an event on the bus.
    EmitEvent {
        /// The type of the event, starting with `custom.`.
        event_type: String,
        /// The payload: a table, or absent.
        #[serde(default)]
        payload: Value,
    },
    /// Denies the tool call. Only for `on_tool_call`.
    Deny {
        /// The reason. The model reads it as the result of the tool.
        message: String,
    },
    /// Requires a person's approval. Only for `on_tool_call`.
    RequireApproval {
        /// The question shown to the person.
        message: String,
    },
}

pub(super) fn triggered() -> String {
    TRIGGERED.to_owned()
}

/// The type of an action.
#[doc(alias = "ActionType")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// Sends a message to the agent.
    NotifySelf,
    /// Writes a log line.
    Log,
    /// Stores a value in the state.
    SetState,
    /// Publishes an event on the bus.
    EmitEvent,
    /// Denies a tool call.
    Deny,
    /// Requires the approval of a person.
    RequireApproval,
}

impl ActionKind {
    /// All types with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("notify_self", Self::NotifySelf),
        ("log", Self::Log),
        ("set_state", Self::SetState),
        ("emit_event", Self::EmitEvent),
        ("deny", Self::Deny),
        ("require_approval", Self::RequireApproval),
    ];

    /// The name used in rule files.
    pub fn as_str(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(name, _)| name)
    }

    /// Whether it is a verdict about a call, and therefore allowed only for `on_tool_call`.
    pub fn is_gate(self) -> bool {
        matches!(self, Self::Deny | Self::RequireApproval)
    }

    /// The keys it accepts.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::NotifySelf => &["type", "message", "category", "priority", "deliver_at"],
            Self::Log => &["type", "message", "level"],
            Self::SetState => &["type", "key", "value"],
            Self::EmitEvent => &["type", "event_type", "payload"],
            Self::Deny | Self::RequireApproval => &["type", "message"],
        }
    }
}

/// Maximum length of a state key in bytes, the same as in the hub.
const KEY_BYTES: usize = 256;

/// Prefix of the types of events that rules publish.
const CUSTOM: &str = "custom.";

impl Action {
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::NotifySelf { .. } => ActionKind::NotifySelf,
            Self::Log { .. } => ActionKind::Log,
            Self::SetState { .. } => ActionKind::SetState,
            Self::EmitEvent { .. } => ActionKind::EmitEvent,
            Self::Deny { .. } => ActionKind::Deny,
            Self::RequireApproval { .. } => ActionKind::RequireApproval,
        }
    }

    /// Parses an action that a script returned.
    ///
    /// # Errors
    ///
    /// If it is not a valid action for the trigger.
    pub fn from_script(table: Value, trigger: Trigger) -> Result<Self, String> {
        let action: Self = serde_json::from_value(table)
            .map_err(|error| format!("the script returned an invalid action: {error}"))?;
        match action.fault(trigger) {
            Some(why) => Err(format!(
                "the script returned an action that is not allowed: {why}"
            )),
            None => Ok(action),
        }
    }

    /// Returns why the action is invalid for a trigger.
    pub(super) fn fault(&self, trigger: Trigger) -> Option<String> {
        let kind = self.kind();
        if kind.is_gate() && trigger != Trigger::OnToolCall {
            let kind = kind.as_str();
            return Some(format!(
                "`{kind}` is only allowed for `on_tool_call`, not for `{trigger}`"
            ));
        }
        match self {
            Self::SetState { key, .. } if key.trim().is_empty() || key.len() > KEY_BYTES => {
                Some(format!("`key` has 1 to {KEY_BYTES} bytes"))
            }
            Self::EmitEvent { event_type, .. } if !is_custom(event_type) => Some(format!(
                "`event_type` must start with `{CUSTOM}`, followed by words of a-z, 0-9, `_` and `-` separated by dots"
            )),
            Self::EmitEvent { payload, .. } if !(payload.is_object() || payload.is_null()) => {
                Some("`payload` must be a table".to_owned())
            }
            _ => None,
        }
    }
}

fn is_custom(kind: &str) -> bool {
    let word = |word: &str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
        !word.is_empty() && word.chars().all(fits)
    };
    let rest = kind.strip_prefix(CUSTOM);
    kind.len() <= KEY_BYTES && rest.is_some_and(|rest| rest.split('.').all(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scripts_table_is_an_action_or_says_why_not() {
        let at = Trigger::OnTurnStart;
        let fine = Action::from_script(json!({"type": "log"}), at).unwrap();
        assert_eq!(
            fine,
            Action::Log {
                message: TRIGGERED.to_owned(),
                level: Severity::Info
            }
        );
        for (table, why) in [
            (json!({}), "missing field `type`"),
            (json!({"type": "shout"}), "unknown variant `shout`"),
            (json!({"type": "notify_self"}), "missing field `message`"),
            (
                json!({"type": "log", "colour": "red"}),
                "unknown field `colour`",
            ),
            (
                json!({"type": "log", "level": "loud"}),
                "unknown variant `loud`",
            ),
            (
                json!({"type": "deny", "message": "no"}),
                "for `on_tool_call`",
            ),
            (json!({"type": "set_state", "key": " "}), "1 to 256 bytes"),
            (
                json!({"type": "emit_event", "event_type": "tool.call"}),
                "must start with `custom.`",
            ),
            (
                json!({"type": "emit_event", "event_type": "custom."}),
                "must start with `custom.`",
            ),
            (
                json!({"type": "emit_event", "event_type": "custom.x", "payload": [1]}),
                "must be a table",
            ),
        ] {
            let error = Action::from_script(table.clone(), at).unwrap_err();
            assert!(error.contains(why), "{table}: {error}");
        }
    }

    #[test]
    fn every_type_has_one_name_and_its_own_keys() {
        for (name, kind) in ActionKind::ALL {
            assert_eq!(kind.as_str(), name);
            assert_eq!(serde_json::to_value(kind).unwrap(), name);
            assert_eq!(kind.keys()[0], "type");
        }
    }
}
