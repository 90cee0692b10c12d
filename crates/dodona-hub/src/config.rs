//! The configuration of a hub.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dodona_plugin::Loaders;
use dodona_plugin::http::HttpClient;
use dodona_proto::{MethodName, PluginName};
use dodona_store::StoreOptions;
use dodona_store::journal::{JournalOptions, Retention};
use serde_json::{Map, Value};

/// Settings of a hub. The defaults suit one person's machine.
#[derive(Debug, Clone)]
pub struct HubConfig {
    /// Timeout of unary calls if neither the method nor the caller sets one. Default 60 s.
    pub unary_timeout: Duration,
    /// Timeout of streaming calls if neither the method nor the caller sets one. Default 1 h.
    pub stream_timeout: Duration,
    /// How long a stream without readers continues. Default 60 s.
    pub stream_grace: Duration,
    /// How long a plugin may take to activate. Default 120 s.
    pub activation_timeout: Duration,
    /// Whether the start waits for plugins that need preparation, such as MCP servers whose tools are
    /// not cached. Default true; `dodona serve` sets it to false.
    pub wait_for_plugins: bool,
    /// Which calls need approval, and how long they wait for it.
    pub approvals: ApprovalsConfig,
    /// What happens to a built-in plugin that exceeds its capabilities.
    pub capability_mode: CapabilityMode,
    /// Create plugins from files outside the program: scripts, processes, MCP servers.
    pub loaders: Loaders,
    /// How often the files of plugins are checked for changes. `None` (the default) means never.
    pub watch: Option<Duration>,
    /// Directories in which every user with the scope `hub:projects` may register projects. Elsewhere
    /// that needs `hub:admin`.
    pub project_roots: Vec<PathBuf>,
    /// Paths in which no project may be registered, in addition to the data and configuration
    /// directories. Includes the directory of the owner's token.
    pub private: Vec<PathBuf>,
    /// The user's configuration file as parsed. Plugins may read it.
    pub global: Map<String, Value>,
    /// The HTTP client of plugins. It knows which private hosts the user allows.
    pub http: HttpClient,
    /// Rate and concurrency limits.
    pub limits: LimitsConfig,
    /// How long and how much the journal keeps.
    pub retention: Retention,
    /// Queue sizes of the journal.
    pub journal: JournalOptions,
    /// Options for opening databases.
    pub store: StoreOptions,
}

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            unary_timeout: Duration::from_secs(60),
            stream_timeout: Duration::from_secs(3600),
            stream_grace: Duration::from_secs(60),
            activation_timeout: Duration::from_secs(120),
            wait_for_plugins: true,
            approvals: ApprovalsConfig::default(),
            capability_mode: CapabilityMode::default(),
            loaders: Loaders::new(),
            watch: None,
            project_roots: Vec::new(),
            private: Vec::new(),
            global: Map::new(),
            http: HttpClient::new(&[]),
            limits: LimitsConfig::default(),
            retention: Retention::default(),
            journal: JournalOptions::default(),
            store: StoreOptions::default(),
        }
    }
}

/// Which calls need a person's approval, and whether a person is available.
#[derive(Debug, Clone)]
pub struct ApprovalsConfig {
    /// How long a call waits for an answer. Default 1 h.
    pub timeout: Duration,
    /// Tools that always need approval, in addition to those declared so.
    pub methods: BTreeSet<MethodName>,
    /// Tools that agents may use without approval although they are declared `agents`.
    pub unattended: BTreeSet<MethodName>,
    /// Whether a person is available to answer.
    pub approvers: Approvers,
}

impl Default for ApprovalsConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(3600),
            methods: BTreeSet::new(),
            unattended: BTreeSet::new(),
            approvers: Approvers::None,
        }
    }
}

/// Whether a person is available to answer approval requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approvers {
    /// No person can answer. A call that needs approval is rejected at once.
    None,
    /// A client can connect to this hub, or the process itself prompts the user.
    Available,
}

/// What happens to a built-in plugin that registers a hook outside its capabilities. Other plugins
/// always fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapabilityMode {
    /// A warning is logged.
    #[default]
    Warn,
    /// The plugin fails to activate.
    Enforce,
}

/// The directories of a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubPaths {
    /// Databases and other files of plugins.
    pub data: PathBuf,
    /// The roster, plugins and their settings. Without it only the built-in plugins are loaded.
    pub config: Option<PathBuf>,
}

impl From<&Path> for HubPaths {
    /// A data directory without a configuration directory.
    fn from(data: &Path) -> Self {
        Self {
            data: data.to_owned(),
            config: None,
        }
    }
}

impl From<&PathBuf> for HubPaths {
    fn from(data: &PathBuf) -> Self {
        Self::from(data.as_path())
    }
}

/// Rate and concurrency limits of calls.
#[derive(Debug, Clone)]
pub struct LimitsConfig {
    /// For the calls of each user from surfaces. Nested calls are not counted: a query to an agent is
    /// one call of its user.
    pub user: Limit,
    /// For all calls to a plugin, from all users, nested calls included.
    pub plugin: HashMap<PluginName, Limit>,
    /// For the calls of each user to a plugin, nested calls included.
    pub user_and_plugin: HashMap<PluginName, Limit>,
    /// Maximum number of nested calls that run at once in one call tree. Default 256.
    pub nested: u32,
    /// Maximum size of untrusted parameters, in bytes of JSON. Default 4 MiB.
    pub params_bytes: usize,
    /// Maximum nesting depth of untrusted parameters. Default 64.
    pub params_depth: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            user: Limit {
                per_second: 10_000,
                burst: 20_000,
                concurrent: 1_024,
            },
            plugin: HashMap::new(),
            user_and_plugin: HashMap::new(),
            nested: 256,
            params_bytes: 4 << 20,
            params_depth: 64,
        }
    }
}

/// A limit on calls. Zero means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Sustained calls per second.
    pub per_second: u32,
    /// Calls accepted at once after a pause. Zero means one second's worth.
    pub burst: u32,
    /// Calls running at the same time.
    pub concurrent: u32,
}
