//! Which tools a client is offered.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use dodona_proto::{MethodDescriptor, PluginName};

/// The group of the one tool that is no method of its own.
pub(super) const ASK: &str = "ask";

/// Everything there is.
const ALL: &str = "all";

/// Plugins whose tools have to be asked for. The agent's are for an agent in the middle of a
/// query, `echo` is there to be tried, and a client that wants to read the web has its own way.
const APART: [&str; 3] = ["agent", "echo", "web"];

/// The plugin that finds and calls tools for an agent. A client sees all of its tools and calls them
/// itself, so that neither is offered.
const FOR_AGENTS: &str = "tools";

/// The tools that a client is offered: those of some plugins, and `ask`.
///
/// ```
/// use dodona_server::mcp::Groups;
///
/// let groups: Groups = "vault,code,ask".parse()?;
/// assert_eq!(groups.to_string(), "ask,code,vault");
/// assert!("vault,,code".parse::<Groups>().is_err());
/// # Ok::<(), dodona_server::mcp::GroupsError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Groups {
    /// `ask`, and the tools of every plugin but `agent`, `echo` and `web`.
    #[default]
    Usual,
    /// Every tool.
    All,
    /// `ask` or the tools of these plugins.
    Named(BTreeSet<String>),
}

/// A text that names no groups.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no group of tools: write names of plugins, `ask` or `all`, with commas between"
)]
pub struct GroupsError(String);

impl FromStr for Groups {
    type Err = GroupsError;

    fn from_str(text: &str) -> Result<Self, GroupsError> {
        let wrong = |name: &str| GroupsError(name.chars().take(80).collect());
        let names: BTreeSet<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        if let Some(name) = names.iter().find(|name| PluginName::new(name).is_err()) {
            return Err(wrong(name));
        }
        match names.contains(ALL) {
            true => Ok(Self::All),
            false => Ok(Self::Named(names)),
        }
    }
}

impl fmt::Display for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usual => f.write_str("usual"),
            Self::All => f.write_str(ALL),
            Self::Named(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                f.write_str(&names.join(","))
            }
        }
    }
}

impl Groups {
    /// Whether the tool of a method is among them.
    pub(super) fn offer(&self, method: &MethodDescriptor) -> bool {
        let plugin = method.name.plugin();
        method.tool.is_some() && plugin != FOR_AGENTS && self.offer_plugin(plugin)
    }

    /// Whether what a plugin has is.
    pub(super) fn offer_plugin(&self, plugin: &str) -> bool {
        match self {
            Self::Usual => !APART.contains(&plugin),
            Self::All => true,
            Self::Named(names) => names.contains(plugin),
        }
    }

    /// Whether `ask` is.
    pub(super) fn offer_ask(&self) -> bool {
        match self {
            Self::Usual | Self::All => true,
            Self::Named(names) => names.contains(ASK),
        }
    }
}
