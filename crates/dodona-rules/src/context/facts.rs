//! The data of an event that rules read.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use dodona_proto::Surface;
use dodona_proto::hook::{ToolEnded, ToolPending};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::empty;

/// The data of an event that all rules share.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    pub turn: Turn,
    pub history: History,
    /// The user of the event.
    pub user: Party,
    /// The project of the event.
    pub project: Party,
    /// The event that is evaluated.
    pub event: Option<EventFacts>,
    /// The tool that is about to run.
    pub call: Option<CallFacts>,
    /// The tool that has run.
    pub result: Option<ResultFacts>,
    /// Start of the session, if known.
    pub session_started: Option<Timestamp>,
    /// Id of the conversation, if any.
    pub context_id: Option<String>,
    /// Id of the query, if any.
    pub query_id: Option<String>,
    /// The surface of a tool call; `None` for other events.
    pub surface: Option<Surface>,
}

/// One request to a model and its tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// Number in the conversation, from 1.
    pub number: i64,
    /// Used part of the token budget, from 0 to 1.
    pub token_usage: f64,
    /// Used part of the model's context window, from 0 to 1.
    pub context_usage: f64,
    /// Number in the query, from 1.
    pub iteration_count: i64,
    /// Maximum number of turns of the query.
    pub max_iterations: i64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// Messages as `{role, content}`, oldest first.
    pub messages: Arc<Value>,
    /// Tool calls as `{name, arguments, result, success, timestamp}`, oldest first.
    pub tools: Arc<Value>,
    /// Number of failures of each tool.
    pub failures: Arc<Value>,
    /// Number of ended tool calls.
    pub total_tool_calls: i64,
    /// Number of failed tool calls.
    pub total_failures: i64,
    /// Number of all messages; `messages` may contain only the last ones.
    pub message_count: i64,
}

impl Default for History {
    fn default() -> Self {
        static NONE: OnceLock<Arc<Value>> = OnceLock::new();
        let none = NONE.get_or_init(|| Arc::new(Value::Array(Vec::new())));
        Self {
            messages: Arc::clone(none),
            tools: Arc::clone(none),
            failures: empty(),
            total_tool_calls: 0,
            total_failures: 0,
            message_count: 0,
        }
    }
}

/// A user or a project.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Party {
    /// The id; empty if there is no project.
    pub id: String,
    /// The settings, an object.
    pub settings: Arc<Value>,
}

impl Default for Party {
    fn default() -> Self {
        Self {
            id: String::new(),
            settings: empty(),
        }
    }
}

/// The event that a rule is evaluated for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventFacts {
    #[serde(rename = "type")]
    pub kind: String,
    pub source: String,
    /// Severity in lower case.
    pub severity: String,
    pub payload: Arc<Value>,
    /// Time in RFC 3339.
    pub timestamp: String,
}

impl Default for EventFacts {
    fn default() -> Self {
        Self {
            kind: String::new(),
            source: String::new(),
            severity: "info".to_owned(),
            payload: empty(),
            timestamp: String::new(),
        }
    }
}

impl EventFacts {
    /// Time of the event, if it is valid.
    pub fn time(&self) -> Option<Timestamp> {
        self.timestamp.parse().ok()
    }
}

/// A tool that is about to run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallFacts {
    /// Tool name, such as `vault_search`.
    pub tool_name: String,
    pub arguments: Data,
}

/// A tool that has run or was denied.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResultFacts {
    /// Tool name, such as `vault_search`.
    pub tool_name: String,
    /// Whether the call succeeded.
    pub success: bool,
    pub result: Data,
    pub error: Option<String>,
    /// Duration of the call in milliseconds.
    pub duration_ms: f64,
}

impl Default for ResultFacts {
    fn default() -> Self {
        Self {
            tool_name: String::new(),
            success: false,
            result: Data::from(Value::Null),
            error: None,
            duration_ms: 0.0,
        }
    }
}

/// A value that may be large, shared with the payload of the hook point.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Value")]
pub enum Data {
    Own(Arc<Value>),
    /// The parameters of a call that is about to run.
    ArgumentsOf(Arc<ToolPending>),
    /// The result of a call that has run.
    ResultOf(Arc<ToolEnded>),
}

impl Default for Data {
    fn default() -> Self {
        Self::Own(empty())
    }
}

impl From<Value> for Data {
    fn from(value: Value) -> Self {
        Self::Own(Arc::new(value))
    }
}

impl Deref for Data {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Self::Own(value) => value,
            Self::ArgumentsOf(call) => &call.arguments,
            Self::ResultOf(call) => &call.result,
        }
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Facts {
    /// The surface of a tool call outside queries; `None` for other events.
    pub(crate) fn outside_surface(&self) -> Option<Surface> {
        self.surface.filter(|_| self.query_id.is_none())
    }
}
