//! What a user may set about a server: the table `[server]` in `plugins/<name>.toml`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::child::{Secret, span};

/// The table's name.
const TABLE: &str = "server";

/// What is set about a server. It is the user's: a project cannot set any of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerConfig {
    /// How long a call may take.
    #[serde(deserialize_with = "span")]
    pub(crate) timeout: Duration,
    /// How long the server may take until it answers for the first time.
    #[serde(deserialize_with = "span")]
    pub(crate) start_timeout: Duration,
    /// How many bytes of a result are passed on.
    pub(crate) max_output: usize,
    /// How large a single message may be.
    pub(crate) max_message: usize,
    /// Which calls of agents a person must agree to.
    pub(crate) approval: Policy,
    /// The same for single tools, by the server's names for them.
    pub(crate) approve: BTreeMap<String, Ask>,
    /// What becomes of the process when a call is cancelled.
    pub(crate) on_cancel: OnCancel,
    /// Which agents are offered the tools.
    pub(crate) agents: Vec<String>,
    /// Which version of the protocol to begin with.
    pub(crate) protocol: Protocol,
    /// Where the program starts.
    pub(crate) cwd: Option<PathBuf>,
    /// Variables for the program.
    pub(crate) env: BTreeMap<String, Secret>,
    /// Headers of each request.
    pub(crate) headers: BTreeMap<String, Secret>,
}

/// Which tools a person must agree to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Policy {
    /// Those that do not say of themselves that they only read.
    #[default]
    Writes,
    /// Every one, whoever calls it.
    Always,
    /// None.
    Never,
}

/// Whether a person must agree to one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// To what agents do.
    Agents,
    /// To each call.
    Always,
    /// No.
    Never,
}

/// What becomes of the process when a call is cancelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnCancel {
    /// It is told. If it then shows that it goes on, it is ended.
    #[default]
    Tell,
    /// It is ended at once, with whatever else it does, and started anew when needed.
    End,
}

/// Which version of the protocol to begin with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Protocol {
    /// The newest that the server knows.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// 2026-07-28, without a handshake.
    #[serde(rename = "2026-07-28")]
    Stateless,
    /// 2025-11-25, or what the server makes of it.
    #[serde(rename = "2025-11-25")]
    November2025,
    /// 2025-06-18, or what the server makes of it.
    #[serde(rename = "2025-06-18")]
    June2025,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            // A server may have to be fetched first. Below what the hub gives a plugin to activate, so
            // that it is told what was late.
            start_timeout: Duration::from_secs(60),
            max_output: 1_000_000,
            max_message: 16 << 20,
            approval: Policy::default(),
            approve: BTreeMap::new(),
            on_cancel: OnCancel::default(),
            agents: vec!["oracle".to_owned()],
            protocol: Protocol::default(),
            cwd: None,
            env: BTreeMap::new(),
            headers: BTreeMap::new(),
        }
    }
}

impl ServerConfig {
    /// Reads the table out of a plugin's own file.
    pub(crate) fn read(file: &Map<String, Value>) -> Result<Self, String> {
        let Some(table) = file.get(TABLE) else {
            return Ok(Self::default());
        };
        let config = Self::deserialize(table).map_err(|error| format!("`[{TABLE}]`: {error}"))?;
        for name in config.env.keys() {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(format!(
                    "`{name}` in `[{TABLE}.env]` is no name of a variable"
                ));
            }
        }
        if config.max_message < 1024 {
            return Err(format!(
                "`max_message` in `[{TABLE}]` must be at least 1024"
            ));
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(table: Value) -> Result<ServerConfig, String> {
        ServerConfig::read(json!({ "server": table }).as_object().unwrap())
    }

    #[test]
    fn everything_has_a_default_and_can_be_set() {
        assert_eq!(ServerConfig::read(&Map::new()), Ok(ServerConfig::default()));
        let config = read(json!({
            "timeout": "2m", "start_timeout": "500ms", "max_output": 1000, "approval": "always",
            "approve": {"read_file": "never"}, "on_cancel": "end", "agents": ["librarian"],
            "protocol": "2025-06-18", "cwd": "/srv", "env": {"A": "b", "T": {"env": "TOKEN"}},
            "headers": {"authorization": {"file": "/k", "prefix": "Bearer "}},
        }));
        let config = config.unwrap();
        assert_eq!(config.timeout, Duration::from_secs(120));
        assert_eq!(config.start_timeout, Duration::from_millis(500));
        assert_eq!(config.approve["read_file"], Ask::Never);
        assert_eq!((config.env.len(), config.headers.len()), (2, 1));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (table, why) in [
            (json!({"timeot": "1s"}), "unknown field `timeot`"),
            (json!({"timeout": "soon"}), "`soon` is no time"),
            (json!({"timeout": "0s"}), "`0s` is no time"),
            (json!({"timeout": 5}), "string"),
            (json!({"approval": "maybe"}), "maybe"),
            (json!({"env": {"A=B": "c"}}), "no name of a variable"),
            (json!({"max_message": 1}), "at least 1024"),
            (json!({"env": {"A": {"envv": "c"}}}), "env"),
        ] {
            let told = read(table).unwrap_err();
            assert!(told.contains(why) && told.contains("[server"), "{told}");
        }
    }
}
