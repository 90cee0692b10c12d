//! Parameters and results of the plugin `plugins`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dodona_plugin::manifest::Code;
use dodona_plugin::reading::Problem;
use dodona_plugin::{Capability, LogLine, Setting};
use dodona_proto::{PluginName, PluginState, PluginStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Deserialize, JsonSchema)]
pub(super) struct PluginParams {
    /// Which plugin.
    pub(super) plugin: PluginName,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RemoveParams {
    /// Which plugin.
    pub(super) plugin: PluginName,
    /// Whether to delete its databases, its data directory and its state. This cannot be undone.
    #[serde(default)]
    pub(super) delete_data: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct RemoveResult {
    #[serde(flatten)]
    pub(super) reload: ReloadResult,
    /// Whether its data was deleted.
    pub(super) data_deleted: bool,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct AddParams {
    /// Its name.
    pub(super) plugin: PluginName,
    /// Where it comes from, as the roster says it: `mcp:` and a command or an address, or `dir:`
    /// and a directory.
    #[schemars(length(min = 1, max = 8192))]
    pub(super) module: String,
    /// Variables of our own environment that an MCP server is given.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) env: Vec<String>,
    /// Headers for an MCP server at an address, each with the variable that holds its value.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct AddResult {
    #[serde(flatten)]
    pub(super) status: PluginStatus,
    /// What it brings.
    pub(super) methods: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CapabilityParams {
    /// Which plugin.
    pub(super) plugin: PluginName,
    /// What it may do, such as `prompt`, `call:vault` or `net:jira.example`.
    #[schemars(length(min = 1, max = 64))]
    pub(super) capabilities: Vec<Capability>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SettingsParams {
    /// Only this plugin's.
    pub(super) plugin: Option<PluginName>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SetParams {
    /// Which plugin's setting.
    pub(super) plugin: PluginName,
    /// Which setting.
    pub(super) setting: String,
    /// What it shall be for the caller.
    pub(super) value: Value,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct UnsetParams {
    /// Which plugin's setting.
    pub(super) plugin: PluginName,
    /// Which setting.
    pub(super) setting: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TraceParams {
    /// Only this plugin's.
    pub(super) plugin: Option<PluginName>,
    /// How many runs at most, the latest last.
    #[serde(default = "runs")]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: usize,
}

fn runs() -> usize {
    50
}

#[derive(Serialize, JsonSchema)]
pub(super) struct TraceResult {
    /// `hook`, `plugin`, `name`, `priority` and `runs` of each.
    pub(super) hooks: Vec<Value>,
    /// `at`, `plugin`, `hook`, `name`, `micros`, `edit`, `effects` and `error` of each.
    pub(super) runs: Vec<Value>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct LogsParams {
    /// Which plugin's.
    pub(super) plugin: PluginName,
    /// How many lines at most, the latest last.
    #[serde(default = "lines")]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: usize,
}

fn lines() -> usize {
    100
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogsResult {
    /// Oldest first.
    pub(super) lines: Vec<LogLine>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ListResult {
    /// By name.
    pub(super) plugins: Vec<PluginStatus>,
    /// What is wrong in the roster and in plugins' files.
    pub(super) problems: Vec<Problem>,
    /// Where the roster is, or would be.
    pub(super) roster: Option<PathBuf>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct OrderResult {
    /// In the order of activation.
    pub(super) plugins: Vec<Ordered>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Ordered {
    pub(super) name: PluginName,
    pub(super) state: PluginState,
    /// What must be active before it, with versions.
    pub(super) needs: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ReloadResult {
    /// New ones, and those that changed.
    pub(super) activated: Vec<PluginName>,
    /// Those that were active and are not.
    pub(super) deactivated: Vec<PluginName>,
    /// Those that did not change.
    pub(super) kept: Vec<PluginName>,
    /// Why nothing was changed.
    pub(super) refused: Option<String>,
    /// What is wrong in the roster and in plugins' files.
    pub(super) problems: Vec<Problem>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct InfoResult {
    #[serde(flatten)]
    pub(super) status: PluginStatus,
    /// `name` of its manifest, if that is not the plugin's name.
    pub(super) display_name: Option<String>,
    pub(super) description: String,
    /// Where it comes from, as the roster says it.
    pub(super) module: String,
    pub(super) class: Option<String>,
    /// Where its manifest is.
    pub(super) directory: Option<PathBuf>,
    /// Where its settings are, or would be.
    pub(super) config_file: Option<PathBuf>,
    /// What must be active before it, with versions.
    pub(super) needs: Vec<String>,
    /// Tools that others must provide.
    pub(super) requires: Vec<String>,
    /// What it asks for.
    pub(super) uses: Vec<Capability>,
    /// What it is granted; absent where that is everything.
    pub(super) granted: Option<Vec<Capability>>,
    pub(super) methods: Vec<String>,
    /// The hook points it has a say at.
    pub(super) hooks: Vec<String>,
    /// The files with its rules.
    pub(super) rules: Vec<PathBuf>,
    pub(super) settings: BTreeMap<String, SettingInfo>,
    /// A script or a process that it would run.
    pub(super) code: Option<Code>,
    /// What it did beyond its capabilities.
    pub(super) warnings: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SettingInfo {
    #[serde(flatten)]
    pub(super) setting: Setting,
    /// What holds for the caller.
    pub(super) value: Value,
    /// Whether the caller set it.
    pub(super) own: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SettingsResult {
    /// By plugin and by name.
    pub(super) plugins: BTreeMap<String, BTreeMap<String, SettingInfo>>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SetResult {
    /// What holds for the caller now.
    pub(super) settings: Map<String, Value>,
}
