//! What an operator may set.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dodona_plugin::Loaders;
use dodona_plugin::http::HttpClient;
use dodona_proto::{MethodName, PluginName};
use dodona_store::StoreOptions;
use dodona_store::journal::{JournalOptions, Retention};
use serde_json::{Map, Value};

/// Settings of a hub. The defaults are for one person's machine.
#[derive(Debug, Clone)]
pub struct HubConfig {
    /// How long a unary call may take where neither the method nor the caller says.
    pub unary_timeout: Duration,
    /// The same for a streaming call.
    pub stream_timeout: Duration,
    /// How long a stream that nobody reads goes on.
    pub stream_grace: Duration,
    /// How long a plugin may take to activate.
    pub activation_timeout: Duration,
    /// Whether a start waits for plugins that must be prepared, such as MCP servers that are not
    /// known yet. A server does not: it is ready without them.
    pub wait_for_plugins: bool,
    /// What a person is asked.
    pub approvals: ApprovalsConfig,
    /// What becomes of a built-in plugin that does more than it may.
    pub capability_mode: CapabilityMode,
    /// Who makes plugins of what is outside the program: scripts, MCP servers.
    pub loaders: Loaders,
    /// How often the files of plugins are looked at, to load those that changed; never, without.
    pub watch: Option<Duration>,
    /// Directories below which every user with `hub:projects` may register projects. Elsewhere it
    /// needs `hub:admin`.
    pub project_roots: Vec<PathBuf>,
    /// Paths in which no project may be registered, next to the data and the configuration
    /// directory: the directory that holds the owner's token.
    pub private: Vec<PathBuf>,
    /// The user's settings as they are written, which plugins may read.
    pub global: Map<String, Value>,
    /// What plugins send HTTP requests with; it knows which private hosts the user allows.
    pub http: HttpClient,
    /// Rates and concurrency.
    pub limits: LimitsConfig,
    /// What the journal keeps.
    pub retention: Retention,
    /// How large the journal's queues may grow.
    pub journal: JournalOptions,
    /// How databases are opened.
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

/// What a person is asked, and whether one is there.
#[derive(Debug, Clone)]
pub struct ApprovalsConfig {
    /// How long a call waits for the answer.
    pub timeout: Duration,
    /// Tools that always ask, beside those that are marked so.
    pub methods: BTreeSet<MethodName>,
    /// Tools that agents may use without asking although they are marked `agents`.
    pub unattended: BTreeSet<MethodName>,
    /// Whether anybody can answer.
    pub answerers: Answerers,
}

impl Default for ApprovalsConfig {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(3600),
            methods: BTreeSet::new(),
            unattended: BTreeSet::new(),
            answerers: Answerers::Nobody,
        }
    }
}

/// Whether anybody can answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerers {
    /// Nobody: what would be asked is refused at once.
    Nobody,
    /// Somebody: others can call this hub, or the process asks by itself.
    Somebody,
}

/// What becomes of a built-in plugin that registers a hook outside its capabilities. Plugins from
/// outside the program are always refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapabilityMode {
    /// It is logged.
    #[default]
    Warn,
    /// The plugin fails.
    Enforce,
}

/// Where a hub keeps things and finds what users wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Databases and whatever else plugins store.
    pub data: PathBuf,
    /// The roster, plugins and their settings. Without it there are the built-in plugins alone.
    pub config: Option<PathBuf>,
}

impl From<&Path> for Places {
    /// A data directory, and no configuration.
    fn from(data: &Path) -> Self {
        Self {
            data: data.to_owned(),
            config: None,
        }
    }
}

impl From<&PathBuf> for Places {
    fn from(data: &PathBuf) -> Self {
        Self::from(data.as_path())
    }
}

/// Who may call how often and how much at once.
#[derive(Debug, Clone)]
pub struct LimitsConfig {
    /// Each user's calls from outside. What those calls call in turn is not counted again: one
    /// question to an agent is one call of its user.
    pub user: Limit,
    /// All calls of a plugin's methods, whoever makes them, nested ones included.
    pub plugin: HashMap<PluginName, Limit>,
    /// Each user's calls of a plugin's methods, nested ones included.
    pub user_and_plugin: HashMap<PluginName, Limit>,
    /// How many calls below one root may run at once.
    pub nested: u32,
    /// The most bytes of JSON that parameters from outside may have.
    pub params_bytes: usize,
    /// The deepest that parameters from outside may nest.
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

/// A bound on calls. Zero is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Calls a second in the long run.
    pub per_second: u32,
    /// Calls at once after a pause.
    pub burst: u32,
    /// Calls that run at the same time.
    pub concurrent: u32,
}
