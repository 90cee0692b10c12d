//! What a plugin may do.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use dodona_proto::{HookPoint, PluginName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::reading::nearest;

/// A permission: a group of hook points, or the way to something outside the plugin.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Capability {
    /// `tool_registry`: adding tools for agents.
    ToolRegistry,
    /// `prompt`: changing the system prompt.
    Prompt,
    /// `preload`: changing what is retrieved before the first request to a model.
    Preload,
    /// `llm_io`: changing what a model is sent and what it answered.
    LlmIo,
    /// `tool_exec`: a say over tool calls and their results.
    ToolExec,
    /// `daemon_server`: routes of the server.
    DaemonServer,
    /// `turn_lifecycle`: being told about sessions, queries, turns and compaction.
    TurnLifecycle,
    /// `call:<plugin>`: calling another plugin's methods.
    Call(PluginName),
    /// `events:<prefix>`: events whose type is the prefix or lies below it; `events:*` is every event.
    Events(String),
    /// `net:<host>`: HTTP requests to a host, as `host` or `host:port`.
    Net(String),
    /// `fs:<dir>`: files below a directory.
    Fs(String),
}

/// Those that stand alone, with their names.
const PLAIN: [(&str, Capability); 7] = [
    ("tool_registry", Capability::ToolRegistry),
    ("prompt", Capability::Prompt),
    ("preload", Capability::Preload),
    ("llm_io", Capability::LlmIo),
    ("tool_exec", Capability::ToolExec),
    ("daemon_server", Capability::DaemonServer),
    ("turn_lifecycle", Capability::TurnLifecycle),
];

impl Capability {
    /// What a plugin needs for a hook at a point.
    pub fn for_hook(point: HookPoint) -> Self {
        match point {
            HookPoint::ToolRegistryBuild => Self::ToolRegistry,
            HookPoint::SystemPromptExtend => Self::Prompt,
            HookPoint::PrePreload | HookPoint::PostPreload => Self::Preload,
            HookPoint::PreLlmCall | HookPoint::PostLlmResponse => Self::LlmIo,
            HookPoint::PreToolExecute | HookPoint::PostToolExecute => Self::ToolExec,
            HookPoint::DaemonServerRegister => Self::DaemonServer,
            HookPoint::SessionResolved
            | HookPoint::QueryReceived
            | HookPoint::TurnCompleted
            | HookPoint::PreCompact
            | HookPoint::PostCompact
            | HookPoint::SessionEnd => Self::TurnLifecycle,
        }
    }
}

/// Why a text is not a capability.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapabilityError {
    /// No capability has this name.
    #[error("unknown capability `{name}`; {hint}")]
    Unknown {
        /// The text that was parsed.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// What follows the colon is wrong.
    #[error("`{name}` is not a capability: {why}")]
    Part {
        /// The text that was parsed.
        name: String,
        /// Why it is invalid.
        why: String,
    },
}

impl FromStr for Capability {
    type Err = CapabilityError;

    fn from_str(text: &str) -> Result<Self, CapabilityError> {
        if let Some((_, known)) = PLAIN.iter().find(|(name, _)| *name == text) {
            return Ok(known.clone());
        }
        let part = |why: String| CapabilityError::Part {
            name: text.chars().take(80).collect(),
            why,
        };
        match text.split_once(':') {
            Some(("call", plugin)) => PluginName::new(plugin)
                .map(Self::Call)
                .map_err(|error| part(error.to_string())),
            Some(("events", prefix)) => {
                if prefix == "*" || is_event_type(prefix) {
                    Ok(Self::Events(prefix.to_owned()))
                } else {
                    Err(part(
                        "write the start of an event type, such as `events:custom`".to_owned(),
                    ))
                }
            }
            Some(("net", host)) => {
                if is_host(host) {
                    Ok(Self::Net(host.to_owned()))
                } else {
                    Err(part("write a host such as `net:jira.example`".to_owned()))
                }
            }
            Some(("fs", dir)) => {
                if dir.is_empty() || dir.contains("..") {
                    Err(part("write a directory without `..`".to_owned()))
                } else {
                    Ok(Self::Fs(dir.to_owned()))
                }
            }
            _ => Err(unknown(text)),
        }
    }
}

fn unknown(text: &str) -> CapabilityError {
    let name: String = text.chars().take(80).collect();
    let known = PLAIN.iter().map(|(name, _)| *name);
    let hint = match nearest(&name, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "there is {}, call:PLUGIN, events:PREFIX, net:HOST, fs:DIR",
            known.collect::<Vec<_>>().join(", ")
        ),
    };
    CapabilityError::Unknown { name, hint }
}

/// Whether a text is a dotted type of events, or the start of one in whole words.
fn is_event_type(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    let is_word = |word: &str| !word.is_empty() && word.chars().all(fits);
    text.len() <= 256 && text.split('.').all(is_word)
}

fn is_host(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    !text.is_empty() && text.len() <= 253 && text.chars().all(fits)
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(plugin) => write!(f, "call:{plugin}"),
            Self::Events(prefix) => write!(f, "events:{prefix}"),
            Self::Net(host) => write!(f, "net:{host}"),
            Self::Fs(dir) => write!(f, "fs:{dir}"),
            plain => {
                let found = PLAIN.iter().find(|(_, known)| known == plain);
                f.write_str(found.map_or("", |(name, _)| name))
            }
        }
    }
}

impl TryFrom<String> for Capability {
    type Error = CapabilityError;

    fn try_from(text: String) -> Result<Self, CapabilityError> {
        text.parse()
    }
}

impl From<Capability> for String {
    fn from(capability: Capability) -> String {
        capability.to_string()
    }
}

/// What a plugin is allowed in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Capabilities {
    /// Everything: a built-in that nobody restricts.
    All,
    /// These and nothing else.
    Only(BTreeSet<Capability>),
}

impl Capabilities {
    /// Whether a capability is among them.
    pub fn allow(&self, capability: &Capability) -> bool {
        match self {
            Self::All => true,
            Self::Only(these) => these.contains(capability),
        }
    }

    /// Whether events of a prefix may be read; an empty prefix is every event.
    pub fn allow_events(&self, prefix: &str) -> bool {
        let Self::Only(these) = self else { return true };
        these.iter().any(|capability| match capability {
            Capability::Events(granted) if granted == "*" => true,
            Capability::Events(granted) => crate::event_handler::is_below(granted, prefix),
            _ => false,
        })
    }

    /// The hosts that may be reached, as `host` or `host:port`; `None` is any.
    pub fn hosts(&self) -> Option<Vec<String>> {
        let Self::Only(these) = self else { return None };
        let hosts = these.iter().filter_map(|capability| match capability {
            Capability::Net(host) => Some(host.clone()),
            _ => None,
        });
        Some(hosts.collect())
    }

    /// The plugins that may be called; `None` is any.
    pub fn callable(&self) -> Option<BTreeSet<PluginName>> {
        let Self::Only(these) = self else { return None };
        let plugins = these.iter().filter_map(|capability| match capability {
            Capability::Call(plugin) => Some(plugin.clone()),
            _ => None,
        });
        Some(plugins.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_is_read_as_it_is_written() {
        let texts = PLAIN.map(|(name, _)| name).into_iter().chain([
            "call:vault",
            "events:custom.release",
            "events:*",
            "net:jira.example:443",
            "fs:notes/public",
        ]);
        for text in texts {
            assert_eq!(text.parse::<Capability>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_none_says_what_was_meant() {
        let why = |text: &str| text.parse::<Capability>().unwrap_err().to_string();
        assert_eq!(
            why("tool_exce"),
            "unknown capability `tool_exce`; did you mean `tool_exec`?"
        );
        assert!(why("call:../x").contains("is not a capability"));
        assert!(why("net:http://x/").contains("net:jira.example"));
        assert!(why("fs:../../etc").contains("without `..`"));
        assert!(why("everything at all").contains("call:PLUGIN"));
        for wrong in ["events:", "events:custom.", "events:.x", "events:a b"] {
            assert!(why(wrong).contains("events:custom"), "{wrong}");
        }
    }

    #[test]
    fn a_prefix_of_events_is_granted_in_whole_words() {
        let granted = |text: &str| Capabilities::Only(BTreeSet::from([text.parse().unwrap()]));
        let custom = granted("events:custom.release");
        assert!(
            custom.allow_events("custom.release") && custom.allow_events("custom.release.done")
        );
        for other in ["", "custom", "custom.releases", "tool.call"] {
            assert!(!custom.allow_events(other), "{other}");
        }
        assert!(granted("events:*").allow_events("") && Capabilities::All.allow_events("tool"));
        assert!(!granted("call:custom").allow_events("custom"));
    }
}
