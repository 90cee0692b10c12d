//! What a user may set about a process: the table `[server]` in `plugins/<name>.toml`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::child::{Secret, span};

/// The table's name, the same as for MCP servers.
const TABLE: &str = "server";

/// What is set about a process. It is the user's: a project cannot set any of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ProcessConfig {
    /// How long a call may take where its method does not say.
    #[serde(deserialize_with = "span")]
    pub(super) timeout: Duration,
    /// How long the process may take to answer `initialize`.
    #[serde(deserialize_with = "span")]
    pub(super) start_timeout: Duration,
    /// How large a single message may be.
    pub(super) max_message: usize,
    /// Variables for the process.
    pub(super) env: BTreeMap<String, Secret>,
}

impl Default for ProcessConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(10),
            max_message: 8 << 20,
            env: BTreeMap::new(),
        }
    }
}

impl ProcessConfig {
    /// Reads the table out of a plugin's own file.
    pub(super) fn read(file: &Map<String, Value>) -> Result<Self, String> {
        let Some(table) = file.get(TABLE) else {
            return Ok(Self::default());
        };
        let config = Self::deserialize(table).map_err(|error| format!("`[{TABLE}]`: {error}"))?;
        let is_wrong = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = config.env.keys().find(is_wrong) {
            return Err(format!(
                "`{name}` in `[{TABLE}.env]` is not a variable's name"
            ));
        }
        if config.max_message < 1024 {
            return Err(format!(
                "`max_message` in `[{TABLE}]` must be at least 1024"
            ));
        }
        Ok(config)
    }

    /// The variables with their values.
    pub(super) fn variables(&self) -> Result<Vec<(String, String)>, String> {
        let load = |(name, secret): (&String, &Secret)| match secret.load() {
            Ok(value) => Ok((name.clone(), value)),
            Err(why) => Err(format!("the variable `{name}`: {why}")),
        };
        self.env.iter().map(load).collect()
    }
}
