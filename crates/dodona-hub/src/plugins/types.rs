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
    /// The name of the plugin.
    pub(super) plugin: PluginName,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct RemoveParams {
    /// The name of the plugin.
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
    /// The name of the new plugin.
    pub(super) plugin: PluginName,
    /// Where the plugin comes from: `mcp:` with a command or a URL, or `dir:` with a directory.
    #[schemars(length(min = 1, max = 8192))]
    pub(super) module: String,
    /// Names of environment variables of the server process that are passed to the MCP server.
    #[serde(default)]
    #[schemars(length(max = 64))]
    pub(super) env: Vec<String>,
    /// HTTP headers for an MCP server with a URL: header name, and the environment variable with its value.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct AddResult {
    #[serde(flatten)]
    pub(super) status: PluginStatus,
    /// The methods of the plugin.
    pub(super) methods: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct CapabilityParams {
    /// The name of the plugin.
    pub(super) plugin: PluginName,
    /// The capabilities, such as `prompt`, `call:vault` or `net:jira.example`.
    #[schemars(length(min = 1, max = 64))]
    pub(super) capabilities: Vec<Capability>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SettingsParams {
    /// Only those of this plugin.
    pub(super) plugin: Option<PluginName>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct SetParams {
    /// The name of the plugin.
    pub(super) plugin: PluginName,
    /// The name of the setting.
    pub(super) setting: String,
    /// The new value for you.
    pub(super) value: Value,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct UnsetParams {
    /// The name of the plugin.
    pub(super) plugin: PluginName,
    /// The name of the setting.
    pub(super) setting: String,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TraceParams {
    /// Only those of this plugin.
    pub(super) plugin: Option<PluginName>,
    /// Maximum number of runs, newest last.
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
    /// The name of the plugin.
    pub(super) plugin: PluginName,
    /// Maximum number of lines, newest last.
    #[serde(default = "lines")]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) limit: usize,
}

fn lines() -> usize {
    100
}

#[derive(Serialize, JsonSchema)]
pub(super) struct LogsResult {
    /// The lines, oldest first.
    pub(super) lines: Vec<LogLine>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ListResult {
    /// The plugins, sorted by name.
    pub(super) plugins: Vec<PluginStatus>,
    /// Problems in the roster and in plugin files.
    pub(super) problems: Vec<Problem>,
    /// Path of the roster. The file may not exist.
    pub(super) roster: Option<PathBuf>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct OrderResult {
    /// In order of activation.
    pub(super) plugins: Vec<Ordered>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Ordered {
    pub(super) name: PluginName,
    pub(super) state: PluginState,
    /// Required plugins, with version requirements.
    pub(super) needs: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ReloadResult {
    /// New and changed plugins.
    pub(super) activated: Vec<PluginName>,
    /// Plugins that were deactivated.
    pub(super) deactivated: Vec<PluginName>,
    /// Plugins that did not change.
    pub(super) kept: Vec<PluginName>,
    /// Why the reload was rejected.
    pub(super) refused: Option<String>,
    /// Problems in the roster and in plugin files.
    pub(super) problems: Vec<Problem>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct InfoResult {
    #[serde(flatten)]
    pub(super) status: PluginStatus,
    /// The `name` in its manifest, if it differs from the plugin's name.
    pub(super) display_name: Option<String>,
    pub(super) description: String,
    /// Where the plugin comes from, in the form of the roster.
    pub(super) module: String,
    pub(super) class: Option<String>,
    /// Path of its manifest.
    pub(super) directory: Option<PathBuf>,
    /// Path of its settings. The file may not exist.
    pub(super) config_file: Option<PathBuf>,
    /// Required plugins, with version requirements.
    pub(super) needs: Vec<String>,
    /// Required tools of other plugins.
    pub(super) requires: Vec<String>,
    /// The capabilities it requests.
    pub(super) uses: Vec<Capability>,
    /// The capabilities it is granted; absent if it has all.
    pub(super) granted: Option<Vec<Capability>>,
    pub(super) methods: Vec<String>,
    /// The hook points it uses.
    pub(super) hooks: Vec<String>,
    /// Paths of its rule files.
    pub(super) rules: Vec<PathBuf>,
    pub(super) settings: BTreeMap<String, SettingInfo>,
    /// The script or process it runs.
    pub(super) code: Option<Code>,
    /// Uses that exceed its capabilities.
    pub(super) warnings: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SettingInfo {
    #[serde(flatten)]
    pub(super) setting: Setting,
    /// The value for you.
    pub(super) value: Value,
    /// Whether you set it yourself.
    pub(super) own: bool,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SettingsResult {
    /// Sorted by plugin and name.
    pub(super) plugins: BTreeMap<String, BTreeMap<String, SettingInfo>>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct SetResult {
    /// The value for you now.
    pub(super) settings: Map<String, Value>,
}
