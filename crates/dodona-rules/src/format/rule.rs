//! The parts of a rule.

use std::ops::Range;

use dodona_proto::{PluginName, Surface};
use semver::Version;
use serde::Serialize;

use super::action::Action;
use super::limits::Limits;
use super::test::RuleTest;
use super::trigger::Trigger;

/// Maximum length of an id in bytes.
pub const ID_LENGTH: usize = 128;

/// The content of a rule file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rule {
    /// Kebab-case, unique within its plugin.
    pub id: String,
    /// Display name. Default: the id.
    pub name: String,
    /// Purpose of the rule.
    pub description: String,
    pub version: Version,
    /// The trigger of the rule.
    pub trigger: Trigger,
    /// From 1 to 1000. Rules with a higher priority are evaluated first.
    pub priority: u16,
    /// Default true. When false, the rule is loaded and validated but never evaluated.
    pub enabled: bool,
    /// The rule cannot be disabled. Applies to bundled rules and the user's rules.
    pub core: bool,
    /// The plugin that the rule belongs to, if the file names one.
    pub plugin_id: Option<PluginName>,
    /// Surfaces whose tool calls outside queries the rule covers too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub surfaces: Vec<Surface>,
    pub condition: Condition,
    /// The actions in order; at least one.
    pub actions: Vec<Action>,
    /// Cooldown, `once_per` and `on_error`.
    pub limits: Limits,
    /// The tests of the rule.
    pub tests: Vec<RuleTest>,
    /// Positions of its parts.
    #[serde(skip)]
    pub spots: Spots,
}

/// The condition of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    Expression(String),
    /// A Luau script: path relative to the rule file.
    Script(String),
}

/// A position in a rule file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spot {
    pub span: Range<usize>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The text of the line.
    pub text: String,
}

/// Positions of the parts of a rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spots {
    pub id: Spot,
    /// `core`, where it is there.
    pub core: Spot,
    /// `plugin_id`, where it is there.
    pub plugin_id: Spot,
    /// The value of `expression` or `script`.
    pub condition: Spot,
    /// Positions of the templates of each action, by key.
    pub actions: Vec<Vec<(String, Spot)>>,
}
