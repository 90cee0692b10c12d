//! What a hook or a rule wants to happen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{PluginName, Severity};

/// Something to be done beside what a hook point may change. Whoever fires the point does it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Effect {
    /// Tell the agent something, at one of its injection points.
    NotifySelf(Notification),
    /// Write a line to the log.
    Log {
        /// How much it matters.
        #[serde(default)]
        level: Severity,
        /// The line.
        message: String,
    },
    /// Keep a value in the plugin's state, for this user and project.
    SetState {
        /// Its name.
        key: String,
        /// The value, of any type.
        #[serde(default)]
        value: Value,
    },
    /// Put an event on the bus.
    EmitEvent {
        /// What happened; begins with `custom.`.
        event_type: String,
        /// Particulars; an object, or null.
        #[serde(default)]
        payload: Value,
    },
}

/// An effect, and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginEffect {
    /// Who wants it.
    pub plugin: PluginName,
    /// What.
    #[serde(flatten)]
    pub effect: Effect,
}

/// Something an agent should know.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Notification {
    /// The text.
    pub message: String,
    /// What sort of thing it is.
    #[serde(default)]
    pub category: Category,
    /// Which goes first where there is not room for all.
    #[serde(default)]
    pub priority: Priority,
    /// When it is told.
    #[serde(default)]
    pub deliver_at: DeliverAt,
    /// The rule that says so, as `plugin/id`; nothing where a plugin does. Who rules are is not for
    /// texts from outside to say.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Whether a core rule sends it. Such a notification is never dropped.
    #[serde(default, skip)]
    pub is_core: bool,
}

impl Notification {
    /// A text as the defaults have it.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            category: Category::default(),
            priority: Priority::default(),
            deliver_at: DeliverAt::default(),
            rule: None,
            is_core: false,
        }
    }
}

/// The first line of the message that delivers notifications to a model. The message has the role
/// of a user's and is not one. Each line below it names its author unless that is the user or
/// Dodona itself.
pub const NOTICES: &str = "Notices from Dodona, not from the user:";

/// What sort of thing a notification is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Good to know.
    #[default]
    Info,
    /// Something to take care of.
    Warning,
    /// Something that went wrong.
    Error,
    /// Something not to forget.
    Reminder,
}

/// How urgent a notification is, the least urgent first.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// May be left out.
    Low,
    /// As usual.
    #[default]
    Normal,
    /// Before others.
    High,
    /// Before everything.
    Critical,
}

/// When an agent is told of something.
#[doc(alias = "InjectionPoint")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliverAt {
    /// At the beginning of the next turn.
    #[default]
    TurnStart,
    /// With the results of the tools that run.
    AfterTool,
    /// Before the next request to the model, whichever comes first.
    Immediate,
}
