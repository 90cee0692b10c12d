//! The parts of a rule.

use std::ops::Range;

use dodona_proto::{PluginName, Surface};
use semver::Version;
use serde::Serialize;

use super::action::Action;
use super::limits::Limits;
use super::test::RuleTest;
use super::trigger::Trigger;

/// The longest id, in bytes.
pub const ID_LENGTH: usize = 128;

/// A rule as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rule {
    /// Kebab-case, unique within its plugin.
    pub id: String,
    /// For people; the id where the file has none.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Semantic.
    pub version: Version,
    /// When it is asked.
    pub trigger: Trigger,
    /// From 1 to 1000; higher is asked earlier.
    pub priority: u16,
    /// Whether it is asked at all.
    pub enabled: bool,
    /// Whether nobody can switch it off. Counts in bundled rules and the user's.
    pub core: bool,
    /// Whose it is, where the file says.
    pub plugin_id: Option<PluginName>,
    /// From which surfaces it also covers calls of tools that are made outside of a query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub surfaces: Vec<Surface>,
    /// When it fires.
    pub condition: Condition,
    /// What it does then, in this order; at least one.
    pub actions: Vec<Action>,
    /// How often it may fire, and what its failure means.
    pub limits: Limits,
    /// What it promises of itself.
    pub tests: Vec<RuleTest>,
    /// Where its parts stand.
    #[serde(skip)]
    pub spots: Spots,
}

/// When a rule fires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// A Python expression.
    Expression(String),
    /// A Luau script: its path, relative to the rule's file.
    Script(String),
}

/// A place in a rule's file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spot {
    /// The bytes.
    pub span: Range<usize>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The text of the line.
    pub text: String,
}

/// Where the parts of a rule stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spots {
    /// `id`.
    pub id: Spot,
    /// `core`, where it is there.
    pub core: Spot,
    /// `plugin_id`, where it is there.
    pub plugin_id: Spot,
    /// The value of `expression` or `script`.
    pub condition: Spot,
    /// Each action's texts by key, as templates are told of.
    pub actions: Vec<Vec<(String, Spot)>>,
}
