//! What a rule does.

use dodona_proto::{Category, DeliverAt, Priority, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::trigger::Trigger;

/// What `log` says where the rule does not.
const TRIGGERED: &str = "Rule triggered";

/// One action. In a file its texts are templates; from a script they are what they are.
#[doc(alias = "RuleAction")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Tells the agent something, at one of its injection points.
    NotifySelf {
        /// The text.
        message: String,
        /// What sort of thing it is.
        #[serde(default)]
        category: Category,
        /// Which goes first where there is not room for all.
        #[serde(default)]
        priority: Priority,
        /// When it is told.
        #[serde(default)]
        deliver_at: DeliverAt,
    },
    /// Writes a line to the server's log.
    Log {
        /// The line.
        #[serde(default = "triggered")]
        message: String,
        /// How much it matters.
        #[serde(default)]
        level: Severity,
    },
    /// Keeps a value in the state of the rule's plugin, for this user and project.
    SetState {
        /// Its name.
        key: String,
        /// Any value. A text that is one `{{ expression }}` keeps the type of the expression.
        #[serde(default)]
        value: Value,
    },
    /// Puts an event on the bus.
    EmitEvent {
        /// What happened; begins with `custom.`.
        event_type: String,
        /// Particulars: a table, or nothing.
        #[serde(default)]
        payload: Value,
    },
    /// Keeps the tool from running. At `on_tool_call` only.
    Deny {
        /// Why, for whoever called it: a model reads it as the tool's result.
        message: String,
    },
    /// Has a person agree first. At `on_tool_call` only.
    RequireApproval {
        /// To what.
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
    /// Tells the agent something.
    NotifySelf,
    /// Writes a line to the log.
    Log,
    /// Keeps a value.
    SetState,
    /// Puts an event on the bus.
    EmitEvent,
    /// Keeps a tool from running.
    Deny,
    /// Has a person agree first.
    RequireApproval,
}

impl ActionKind {
    /// Every type by its name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("notify_self", Self::NotifySelf),
        ("log", Self::Log),
        ("set_state", Self::SetState),
        ("emit_event", Self::EmitEvent),
        ("deny", Self::Deny),
        ("require_approval", Self::RequireApproval),
    ];

    /// Its name, as files have it.
    pub fn as_str(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(name, _)| name)
    }

    /// Whether it decides over a call, and so belongs to `on_tool_call` alone.
    pub fn is_gate(self) -> bool {
        matches!(self, Self::Deny | Self::RequireApproval)
    }

    /// The keys that it has.
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

/// The longest key of a state, in bytes: as long as the hub keeps.
const KEY_BYTES: usize = 256;

/// What the types of events begin with that rules make up.
const CUSTOM: &str = "custom.";

impl Action {
    /// Its type.
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

    /// The action that a script returned, if it is one for this trigger.
    ///
    /// # Errors
    ///
    /// With what is wrong with it.
    pub fn from_script(table: Value, trigger: Trigger) -> Result<Self, String> {
        let action: Self = serde_json::from_value(table)
            .map_err(|error| format!("the script returned what is no action: {error}"))?;
        match action.fault(trigger) {
            Some(why) => Err(format!(
                "the script returned an action that does not fit: {why}"
            )),
            None => Ok(action),
        }
    }

    /// Why it cannot be done at a trigger, beyond its fields' types.
    pub(super) fn fault(&self, trigger: Trigger) -> Option<String> {
        let kind = self.kind();
        if kind.is_gate() && trigger != Trigger::OnToolCall {
            let kind = kind.as_str();
            return Some(format!(
                "`{kind}` is for `on_tool_call`, not for `{trigger}`"
            ));
        }
        match self {
            Self::SetState { key, .. } if key.trim().is_empty() || key.len() > KEY_BYTES => {
                Some(format!("`key` has 1 to {KEY_BYTES} bytes"))
            }
            Self::EmitEvent { event_type, .. } if !is_custom(event_type) => Some(format!(
                "`event_type` begins with `{CUSTOM}` and goes on with words of a-z, 0-9, `_` and `-` between dots"
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
                "begins with `custom.`",
            ),
            (
                json!({"type": "emit_event", "event_type": "custom."}),
                "begins with `custom.`",
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
