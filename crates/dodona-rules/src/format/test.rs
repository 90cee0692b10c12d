//! What a rule promises of itself: `[[tests]]`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::rule::Spot;

/// One test: a context, and what the rule makes of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleTest {
    /// What it shows.
    pub name: String,
    /// What is under `context.`; the rest has its default.
    pub context: Map<String, Value>,
    /// Settings of the rule's plugin that differ from their defaults.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    /// What should come of it.
    pub expect: Expect,
    /// Where it stands.
    #[serde(skip)]
    pub at: Spot,
}

/// What should come of a test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expect {
    /// Whether the rule fires.
    pub fired: bool,
    /// What one of its messages contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The type of an event that it emits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// What it sets, by key.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub state: Map<String, Value>,
}
