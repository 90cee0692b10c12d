//! Identity and origin of a rule.

use std::fmt;
use std::str::FromStr;

use dodona_proto::PluginName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The plugin of rules that belong to no other plugin.
pub const STANDALONE: &str = "rules";

/// The name of a rule: plugin and id, such as `rules/token-budget-warning`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleKey {
    /// The plugin that the rule belongs to.
    pub plugin: PluginName,
    /// The id within the plugin.
    pub id: String,
}

impl fmt::Display for RuleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.plugin, self.id)
    }
}

/// An invalid rule name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a valid rule name; use `plugin/id`, or `id` for a rule that belongs to no plugin"
)]
pub struct NoRuleKey(pub String);

impl FromStr for RuleKey {
    type Err = NoRuleKey;

    /// Parses `plugin/id`, or `id` for a rule that belongs to no plugin.
    fn from_str(text: &str) -> Result<Self, NoRuleKey> {
        let (plugin, id) = text.split_once('/').unwrap_or((STANDALONE, text));
        let plugin = PluginName::new(plugin).map_err(|_| NoRuleKey(text.to_owned()))?;
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        match !id.is_empty() && id.chars().all(kebab) {
            true => Ok(Self {
                plugin,
                id: id.to_owned(),
            }),
            false => Err(NoRuleKey(text.to_owned())),
        }
    }
}

impl Serialize for RuleKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Where a rule comes from. Decides what the rule may declare.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Bundled with the program.
    Bundled,
    /// The rules of the user.
    User,
    /// The rules of a plugin.
    Plugin(PluginName),
    /// A project's rules. They may have been written by others.
    Project,
}

impl Scope {
    /// Whether `core` and `plugin_id` apply in this scope.
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Bundled | Self::User)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundled => f.write_str("bundled"),
            Self::User => f.write_str("user"),
            Self::Plugin(name) => write!(f, "plugin {name}"),
            Self::Project => f.write_str("project"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_named_with_or_without_its_plugin() {
        let key: RuleKey = "token-budget".parse().unwrap();
        assert_eq!(key.to_string(), "rules/token-budget");
        let key: RuleKey = "jira/ticket".parse().unwrap();
        assert_eq!((key.plugin.as_str(), key.id.as_str()), ("jira", "ticket"));
        for wrong in ["", "a/", "A", "a/b/c", "../x", "a b"] {
            assert!(wrong.parse::<RuleKey>().is_err(), "{wrong}");
        }
    }
}
