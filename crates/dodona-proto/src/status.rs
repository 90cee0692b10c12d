//! What the hub says about itself.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CallId, MethodName, PluginName, PluginPath, UserId};

/// Where a plugin is in its life, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PluginStatus {
    /// Which plugin.
    pub name: PluginName,
    /// Where it is.
    pub state: PluginState,
    /// Why it is there, where that needs a word.
    pub reason: Option<String>,
    /// Its version, once known.
    pub version: Option<String>,
}

/// The states of a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PluginState {
    /// Named by the roster or found in a directory.
    Discovered,
    /// Its code is there.
    Loaded,
    /// Something that it consists of is being started, for example its MCP server.
    Starting,
    /// Its methods can be called.
    Active,
    /// It could not be loaded or activated.
    Failed,
    /// The roster says no.
    Disabled,
    /// Something it needs is not active.
    SkippedDependency,
}

/// A running call, as `hub.calls` lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallSummary {
    /// Which call.
    pub call_id: CallId,
    /// The names that led to it.
    pub plugin_path: PluginPath,
    /// What was called; absent for a named inner part of a plugin.
    pub method: Option<MethodName>,
    /// On whose behalf.
    pub user: UserId,
    /// Since when.
    pub started: Timestamp,
    /// How long already.
    pub elapsed_ms: u64,
}
