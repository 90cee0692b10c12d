//! A tool that a model asked for, and what became of it.

use std::fmt;

use dodona_proto::ToolCall;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::error::Invalid;

/// The longest name of a tool, as providers have it.
const LONGEST_NAME: usize = 128;

/// The longest id of a call, in bytes. Providers' are below fifty.
const LONGEST_ID: usize = 256;

/// Where a call is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallStatus {
    /// It has not ended.
    #[default]
    Pending,
    /// It did what it should.
    Success,
    /// It did not; the ending says why.
    Error,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It did what it should.
    Success,
    /// It failed, or was none: an unknown tool, arguments that do not fit.
    Error,
    /// It took too long.
    Timeout,
    /// A rule or a person said no.
    Denied,
    /// Somebody stopped it.
    Cancelled,
    /// The process ended, or the query was dropped, before it answered.
    Interrupted,
}

impl Ending {
    /// The status that the data model has for it.
    pub fn status(self) -> ToolCallStatus {
        match self {
            Self::Success => ToolCallStatus::Success,
            _ => ToolCallStatus::Error,
        }
    }

    /// As it is stored and written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }

    /// The result that the model sees of a call that returned none. `has_started` is false for a
    /// call that never ran.
    pub(crate) fn result_text(self, has_started: bool) -> String {
        let what = match (self, has_started) {
            (Self::Success, _) => "the call succeeded; its result was lost",
            (Self::Error, _) => "the call failed",
            (Self::Timeout, _) => "the call timed out and was stopped",
            (Self::Denied, _) => "the call was denied",
            (Self::Cancelled, true) => {
                "the call was cancelled while it ran; it may have taken effect"
            }
            (Self::Interrupted, true) => {
                "the call was interrupted while it ran; it may have taken effect"
            }
            (Self::Cancelled, false) => {
                "the call was cancelled before it started; it had no effect"
            }
            (Self::Interrupted, false) => {
                "the call was interrupted before it started; it had no effect"
            }
        };
        json!({ "error": what, "ending": self }).to_string()
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The record of a tool call: the data model's `ToolCall`, and how it ended.
#[doc(alias = "ToolCall")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallRecord {
    /// The model's own id for it.
    pub id: String,
    /// The tool's name on the model's side, such as `vault_search`.
    pub name: String,
    /// Its parameters.
    pub arguments: Map<String, Value>,
    /// What it answered, once it has ended.
    #[serde(default)]
    pub result: Option<String>,
    /// Where it is in its life.
    #[serde(default)]
    pub status: ToolCallStatus,
    /// How long it took.
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// How it ended, more exactly than the status says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

impl ToolCallRecord {
    /// A call that a model just asked for. Arguments that are no object, which some models send,
    /// are kept below a name of their own: the model should see what it wrote, and providers take
    /// nothing but an object.
    pub fn pending(call: &ToolCall) -> Self {
        let arguments = match &call.arguments {
            Value::Object(fields) => fields.clone(),
            Value::Null => Map::new(),
            other => Map::from_iter([("invalid_arguments".to_owned(), other.clone())]),
        };
        Self {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments,
            result: None,
            status: ToolCallStatus::Pending,
            duration_ms: None,
            ending: None,
        }
    }

    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.status == ToolCallStatus::Pending
    }

    /// Ends it.
    pub(super) fn end(&mut self, ending: Ending, result: String, duration_ms: Option<u64>) {
        self.status = ending.status();
        self.ending = Some(ending);
        self.result = Some(result);
        self.duration_ms = duration_ms;
    }

    /// As a model is shown it.
    pub(super) fn shown(&self) -> ToolCall {
        ToolCall {
            id: self.id.clone(),
            name: self.name.clone(),
            arguments: Value::Object(self.arguments.clone()),
        }
    }

    /// The rules that a record must keep on its own. That the name is a defined tool's and the
    /// arguments fit its schema is checked before it runs.
    pub(super) fn check(&self) -> Result<(), Invalid> {
        if self.id.is_empty() || self.id.len() > LONGEST_ID {
            return Err(Invalid::new("id", "has 1 to 256 bytes"));
        }
        let named = !self.name.trim().is_empty() && self.name.len() <= LONGEST_NAME;
        if !named || self.name.chars().any(char::is_control) {
            return Err(Invalid::new("name", "has 1 to 128 printable characters"));
        }
        let agrees = match self.ending {
            None => true,
            Some(ending) => ending.status() == self.status,
        };
        if !agrees {
            return Err(Invalid::new("ending", "does not go with the status"));
        }
        if self.is_open() && (self.result.is_some() || self.duration_ms.is_some()) {
            return Err(Invalid::new(
                "status",
                "must be updated after execution: there is a result, and it is `pending`",
            ));
        }
        Ok(())
    }
}
