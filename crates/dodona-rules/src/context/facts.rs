//! The facts of an event.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use dodona_proto::Surface;
use dodona_proto::hook::{ToolEnded, ToolPending};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::empty;

/// What is the same for all rules that are asked about an event.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Facts {
    /// The turn.
    pub turn: Turn,
    /// What happened before.
    pub history: History,
    /// EventOwner query it is.
    pub user: Party,
    /// What it is about.
    pub project: Party,
    /// What the rule is asked about.
    pub event: Option<EventFacts>,
    /// The tool that is about to run.
    pub call: Option<CallFacts>,
    /// The tool that has run.
    pub result: Option<ResultFacts>,
    /// When the session began, where that is known.
    pub session_started: Option<Timestamp>,
    /// The conversation, where there is one.
    pub context_id: Option<String>,
    /// The query, where there is one.
    pub query_id: Option<String>,
    /// By which surface a call of a tool came in; nothing for any other event.
    pub surface: Option<Surface>,
}

/// One request to a model and the tools it asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// Counted over the conversation, from 1.
    pub number: i64,
    /// The part of the token budget that is used.
    pub token_usage: f64,
    /// The part of the model's window that is used.
    pub context_usage: f64,
    /// Counted over the query, from 1.
    pub iteration_count: i64,
    /// How many the query may have.
    pub max_iterations: i64,
}

/// What happened before.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// Each `{role, content}`, the oldest first.
    pub messages: Arc<Value>,
    /// Each `{name, arguments, result, success, timestamp}`, the oldest first.
    pub tools: Arc<Value>,
    /// How often each tool failed.
    pub failures: Arc<Value>,
    /// Tool calls that have ended.
    pub total_tool_calls: i64,
    /// Those of them that failed.
    pub total_failures: i64,
    /// How many messages there are, of which `messages` may be the last ones.
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
    /// Which; empty for none.
    pub id: String,
    /// What is set, an object.
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

/// What a rule is asked about.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventFacts {
    /// What happened, dotted.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who says so.
    pub source: String,
    /// How much it matters, as a word.
    pub severity: String,
    /// Particulars, an object.
    pub payload: Arc<Value>,
    /// When, in RFC 3339.
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
    /// When it happened, where it says.
    pub fn time(&self) -> Option<Timestamp> {
        self.timestamp.parse().ok()
    }
}

/// A tool that is about to run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallFacts {
    /// As a model calls it.
    pub tool_name: String,
    /// Its parameters.
    pub arguments: Data,
}

/// A tool that has run, or was kept from it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResultFacts {
    /// As a model calls it.
    pub tool_name: String,
    /// Whether it gave a result.
    pub success: bool,
    /// What it gave.
    pub result: Data,
    /// What went wrong.
    pub error: Option<String>,
    /// How long it took.
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

/// A value that may be large and belongs to somebody else.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Value")]
pub enum Data {
    /// Its own.
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
    /// The surface of a tool call that was made outside of a query; nothing for any other event.
    pub(crate) fn outside_surface(&self) -> Option<Surface> {
        self.surface.filter(|_| self.query_id.is_none())
    }
}
