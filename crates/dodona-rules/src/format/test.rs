//! The tests of a rule: `[[tests]]`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::rule::Spot;

/// One test: a context and the expected result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleTest {
    /// Name of the test.
    pub name: String,
    /// Values under `context.`; others have their default.
    pub context: Map<String, Value>,
    /// Settings of the rule's plugin that differ from their defaults.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub settings: Map<String, Value>,
    pub expect: Expect,
    /// Position in the file.
    #[serde(skip)]
    pub at: Spot,
}

/// The expected result of a test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expect {
    /// Whether the rule must fire.
    pub fired: bool,
    /// Text that one of its messages must contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Type of an event that it must emit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// State that it must set, by key.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub state: Map<String, Value>,
}
