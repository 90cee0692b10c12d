//! Facts on the bus.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::{CallId, ProjectId, UserId};

/// An immutable fact, such as `tool.call.success`. On the bus and in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Tells copies of one event from two alike; sorts by time.
    pub id: Uuid,
    /// What happened, dotted.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who says so: a plugin's name.
    pub source: String,
    /// How much it matters.
    pub severity: Severity,
    /// Particulars; an object, or null.
    pub payload: Value,
    /// When.
    pub timestamp: Timestamp,
    /// On whose behalf.
    pub user: Option<UserId>,
    /// In which project.
    pub project: Option<ProjectId>,
    /// In which call.
    pub call: Option<CallId>,
    /// The types of the events that led to this one, the first of them first: a plugin that was
    /// told of an event published the next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

impl Event {
    /// What led to this event, and itself: the causes of an event that answers it.
    pub fn chain(&self) -> Vec<String> {
        let own = std::iter::once(&self.kind);
        self.causes.iter().chain(own).cloned().collect()
    }
}

/// How much an event matters.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// For those who look for it.
    Debug,
    /// As it should be.
    #[default]
    Info,
    /// Worth a look.
    Warning,
    /// Broken.
    Error,
}
