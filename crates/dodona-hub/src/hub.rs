//! The hub: its start, its stop, and the functions that surfaces use.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use dodona_hooks::Hooks;
use dodona_plugin::{EventBus, Plugin};
use dodona_proto::{
    CallError, CallSummary, ErrorCode, MethodDescriptor, MethodName, NameError, PluginName,
    PluginState, PluginStatus, Principal, ProjectId, Scope, StreamId, Surface,
};
use dodona_store::journal::{Journal, JournalError, Recovered};
use dodona_store::{DatabaseReport, DbError, Durability, MigrateError, OpenError, Redactor, Store};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::accounts::Accounts;
use crate::approvals::Approvals;
use crate::bus::Bus;
use crate::call_tree::CallTrees;
use crate::cancel::CancelTarget;
use crate::config::{HubConfig, HubPaths};
use crate::dispatch::PreparedCall;
use crate::history::History;
use crate::host::Host;
use crate::limits::UserLimits;
use crate::manager::{Handles, Module, PluginManager, Services, Sources};
use crate::methods::HubPlugin;
use crate::overrides::UserOverrides;
use crate::plugins::PluginsPlugin;
use crate::projects::{AllowedRoots, Projects};
use crate::request::Request;
use crate::router::RouterSnapshot;
use crate::state::PluginStates;
use crate::stream::CallStream;
use crate::trust::Trust;
use crate::{database, methods, plugins};

/// Why calls are cancelled when the server stops.
const STOPPING: &str = "the server is stopping";

/// Maximum time between two prunings of the journal. It is pruned earlier when it grows quickly.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3600);

/// Why a hub could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be opened or created.
    #[error("failed to open the data directory")]
    Store(#[from] OpenError),
    /// `hub.db` cannot be opened or migrated.
    #[error("failed to open the hub's database")]
    Migrate(#[from] MigrateError),
    /// `hub.db` cannot be read.
    #[error("failed to read the hub's database")]
    Database(#[from] DbError),
    /// The journal cannot be opened or recovered.
    #[error("failed to open the journal")]
    Journal(#[from] JournalError),
    /// The name of a built-in plugin is invalid.
    #[error("invalid plugin name")]
    InvalidName(#[from] NameError),
    /// Two built-in plugins have the same name.
    #[error("two plugins are named `{0}`")]
    DuplicateName(PluginName),
}

/// The state of a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The hub is stopping and rejects calls.
    pub stopping: bool,
    /// Time since the start.
    pub uptime: Duration,
    /// Number of running calls, nested calls included.
    pub calls: usize,
    /// Number of active plugins, and of plugins that are not active.
    pub plugins: (usize, usize),
    /// Bytes of journal entries that are not committed yet.
    pub journal_backlog: usize,
    /// What recovery found when the hub started.
    pub recovered: Recovered,
}

/// The host of all plugins: it loads them and runs their methods. Cheap to clone.
#[doc(alias = "Hub")]
#[derive(Clone)]
pub struct PluginHub {
    pub(crate) inner: Arc<HubInner>,
}

/// The state of the hub, shared by all its handles and calls.
pub(crate) struct HubInner {
    pub(crate) config: HubConfig,
    pub(crate) snapshot: ArcSwap<RouterSnapshot>,
    pub(crate) call_trees: CallTrees,
    pub(crate) user_limits: UserLimits,
    pub(crate) journal: Journal,
    pub(crate) accounts: Accounts,
    pub(crate) approvals: Approvals,
    pub(crate) projects: Arc<Projects>,
    pub(crate) trust: Arc<Trust>,
    /// The scope `hub:admin`, which shows the calls and streams of all users.
    pub(crate) admin: Scope,
    /// Metric: number of journaled items.
    pub(crate) items: metrics::Counter,
    store: Store,
    pub(crate) bus: Arc<dyn EventBus>,
    /// Becomes true when the start has activated all plugins.
    pub(crate) activated: watch::Sender<bool>,
    pub(crate) manager: PluginManager,
    pub(crate) overrides: Arc<UserOverrides>,
    started: Instant,
    stopping: AtomicBool,
}

impl PluginHub {
    /// Opens the data directory and activates the plugins: those in `modules`, and those that the
    /// roster and the plugin directories name. A plugin that fails does not fail the start. The caller
    /// must hold a lock on the directory: two hubs must not use it at once.
    pub async fn start<M: Into<Module>>(
        paths: impl Into<HubPaths>,
        config: HubConfig,
        modules: impl IntoIterator<Item = M>,
    ) -> Result<Self, StartError> {
        let paths = paths.into();
        let modules = check_names(modules.into_iter().map(Into::into).collect())?;
        let store = Store::open(&paths.data, config.store.clone())?;
        let journal = Journal::open(&store, config.journal.clone()).await?;
        let db = store.database(database::FILE, Durability::Full);
        db.migrate(database::MIGRATIONS).await?;
        let accounts = Accounts::load(db.clone()).await?;
        let allowed = AllowedRoots::new(&config, &paths);
        let projects = Arc::new(Projects::load(db.clone(), allowed).await?);
        let trust = Arc::new(Trust::load(db.clone()).await?);
        let approvals = Approvals::load(db.clone(), journal.clone()).await?;
        let overrides = Arc::new(UserOverrides::load(db.clone()).await?);
        let bus: Arc<dyn EventBus> = Arc::new(Bus::new(journal.clone()));
        let services = Services {
            data_dir: paths.data,
            store: store.clone(),
            bus: Arc::clone(&bus),
            history: Arc::new(History::new(journal.clone())),
            state: Arc::new(PluginStates::new(db)),
            overrides: Arc::clone(&overrides),
            global_config: Arc::new(config.global.clone()),
            config: config.clone(),
        };
        let inner = Arc::new_cyclic(|hub: &Weak<HubInner>| {
            let host = Arc::new(Host(hub.clone()));
            let handles = Handles {
                hooks: Arc::clone(&host) as _,
                rules: Arc::clone(&host) as _,
                trust: host,
                hub: hub.clone(),
            };
            let sources = Sources {
                modules,
                own: own_plugins(hub),
                loaders: config.loaders.clone(),
                projects: Arc::clone(&projects),
                trust: Arc::clone(&trust),
                config_dir: paths.config,
            };
            HubInner {
                snapshot: ArcSwap::default(),
                call_trees: CallTrees::default(),
                user_limits: UserLimits::new(&config.limits),
                journal,
                accounts,
                approvals,
                projects,
                trust,
                admin: methods::admin_scope(),
                items: metrics::counter!("dodona_items_total"),
                store,
                bus,
                activated: watch::Sender::new(false),
                manager: PluginManager::new(sources, services, handles),
                overrides,
                started: Instant::now(),
                stopping: AtomicBool::new(false),
                config,
            }
        });
        inner.manager.start(&inner.snapshot).await;
        inner.activated.send_replace(true);
        let hub = Self { inner };
        hub.spawn_pruning();
        hub.spawn_file_watch();
        Ok(hub)
    }

    /// Checks a request: scope, limits, method lookup, parameters. The returned call can be started
    /// with or without a stream. Use this if the method's kind decides which; otherwise use
    /// [`PluginHub::call`] or [`PluginHub::open`].
    pub fn prepare(&self, request: Request) -> Result<PreparedCall, CallError> {
        self.inner.dispatcher().prepare(request)
    }

    /// Calls a method and returns its result: the value of a unary method, the last data item of a
    /// streaming one. Dropping the future cancels the call.
    pub async fn call(&self, request: Request) -> Result<Value, CallError> {
        self.prepare(request)?.call().await
    }

    /// Starts a call and returns a stream of its items. Each item is committed to the journal before
    /// a reader gets it. Dropping the stream cancels the call.
    pub async fn open(&self, request: Request) -> Result<CallStream, CallError> {
        self.prepare(request)?.open().await
    }

    /// Returns the principal of a token. A transport extracts the token from its request and decides
    /// nothing else.
    pub fn authenticate(&self, token: &str, surface: Surface) -> Result<Principal, CallError> {
        self.inner.accounts.authenticate(token, surface)
    }

    /// Returns the token of the machine's owner in `file`. Creates the file, readable only by its
    /// owner, if it is missing or its token is no longer valid.
    pub async fn local_token(&self, file: &Path) -> Result<String, CallError> {
        self.inner.accounts.local_token(file).await
    }

    /// Exchanges the code of a one-time login link for a session token and its lifetime.
    pub async fn redeem_login(&self, code: &str) -> Result<(String, Duration), CallError> {
        self.inner.accounts.redeem(code).await
    }

    /// Returns the descriptor of a method that surfaces can call.
    pub fn method(&self, name: &str) -> Option<Arc<MethodDescriptor>> {
        let snapshot = self.inner.snapshot.load();
        let route = snapshot.routes.get(name)?;
        route
            .descriptor()
            .scope
            .is_some()
            .then(|| Arc::clone(route.method.descriptor()))
    }

    /// Lists the methods that the caller may call outside a project.
    pub fn methods(&self, caller: &Principal) -> Vec<Arc<MethodDescriptor>> {
        self.inner.methods(caller, None)
    }

    /// Lists the methods that the caller may call in a project, including those of the project's own
    /// plugins. Without a project the same as [`PluginHub::methods`].
    pub fn methods_in(
        &self,
        caller: &Principal,
        project: Option<&ProjectId>,
    ) -> Vec<Arc<MethodDescriptor>> {
        self.inner.methods(caller, project)
    }

    /// Lists all plugins with their status.
    pub fn plugins(&self) -> Vec<PluginStatus> {
        self.inner
            .snapshot
            .load()
            .plugins
            .values()
            .cloned()
            .collect()
    }

    /// The hooks of the active plugins. A reload replaces the set.
    pub fn hooks(&self) -> Arc<Hooks> {
        Arc::clone(&self.inner.snapshot.load().hooks)
    }

    /// Returns a plugin if it is active.
    pub fn plugin(&self, name: &str) -> Option<Arc<dyn Plugin>> {
        self.inner.manager.get(name)
    }

    pub fn is_active(&self, name: &str) -> bool {
        self.inner.manager.is_active(name)
    }

    /// Lists the running calls that the caller may see, parents before children.
    pub fn calls(&self, caller: &Principal) -> Vec<CallSummary> {
        self.inner.running_calls(caller)
    }

    /// Cancels calls and returns them.
    pub async fn cancel(
        &self,
        caller: &Principal,
        target: &CancelTarget,
    ) -> Result<Vec<CallSummary>, CallError> {
        self.inner
            .cancel(caller, target, StreamId::random().root_call())
            .await
    }

    pub fn health(&self) -> Health {
        self.inner.health()
    }

    pub fn bus(&self) -> &Arc<dyn EventBus> {
        &self.inner.bus
    }

    pub fn journal(&self) -> &Journal {
        &self.inner.journal
    }

    /// Checks the integrity of every database.
    pub async fn check(&self) -> Vec<DatabaseReport> {
        self.inner.store.check().await
    }

    /// Runs a quick integrity check of every database and logs the problems found. Reads all database
    /// files, so run it in the background.
    pub async fn report_damage(&self) {
        for report in self.inner.store.quick_check().await {
            for problem in &report.problems {
                tracing::error!(
                    file = report.file,
                    problem,
                    "database is damaged; run `dodona doctor`"
                );
            }
        }
    }

    /// Rejects new calls, waits up to `deadline` for running calls, cancels the rest, deactivates the
    /// plugins and closes the databases.
    pub async fn stop(&self, deadline: Duration) {
        let hub = &self.inner;
        hub.stopping.store(true, Ordering::Release);
        hub.approvals.close();
        // A watch ends when its reader leaves, and each open page has one: waiting for them would always
        // take the whole deadline.
        for tree in hub.call_trees.all() {
            let is_watch = |method: &MethodName| method.as_str() == "events.watch";
            let calls = tree.running_calls();
            if !calls.is_empty()
                && (calls.iter()).all(|call| call.info.method.as_ref().is_some_and(is_watch))
            {
                tree.cancel(STOPPING);
            }
        }
        let until = Instant::now() + deadline;
        while !hub.call_trees.is_empty() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for tree in hub.call_trees.all() {
            tree.cancel(STOPPING);
        }
        let until = Instant::now() + Duration::from_millis(200);
        while !hub.call_trees.is_empty() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        hub.manager.before_stop().await;
        hub.manager.deactivate_all().await;
        if let Err(error) = hub.journal.flush().await {
            tracing::warn!(%error, "failed to store the last journal entries");
        }
        hub.store.close().await;
    }

    /// Starts a task that reloads plugins when their files change. It ends with the hub.
    fn spawn_file_watch(&self) {
        let Some(interval) = self.inner.config.watch else {
            return;
        };
        let hub = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            // `None` differs from any stamp, so the first round reloads what changed since the start.
            let mut last = None;
            loop {
                tokio::time::sleep(interval).await;
                let Some(hub) = hub.upgrade() else { return };
                if hub.stopping.load(Ordering::Acquire) {
                    return;
                }
                let now = hub.manager.stamp().await;
                if now != last {
                    let reloaded = hub.manager.reload_once(&hub.snapshot).await;
                    tracing::debug!(?reloaded, "reloaded plugins");
                    // The stamp from before the reload: changes made during it are found in the next round.
                    last = now;
                }
            }
        });
    }

    /// Removes secrets from text that leaves the server.
    pub fn redactor(&self) -> &Redactor {
        &self.inner.config.journal.redactor
    }

    /// Starts a task that prunes the journal. It ends with the hub.
    fn spawn_pruning(&self) {
        let hub = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            loop {
                let Some((journal, retention)) = hub
                    .upgrade()
                    .map(|hub| (hub.journal.clone(), hub.config.retention))
                else {
                    return;
                };
                match journal.prune(retention).await {
                    Ok(pruned) => tracing::debug!(?pruned, "pruned the journal"),
                    Err(error) => tracing::warn!(%error, "failed to prune the journal"),
                }
                let (growth, step) = (journal.growth(), growth_step(retention.max_bytes));
                drop(journal);
                // An error is the timeout: prune again after the interval in any case.
                let _ = tokio::time::timeout(PRUNE_INTERVAL, growth.reached(step)).await;
            }
        });
    }
}

/// Growth of the journal, in bytes, after which it is pruned. A sixteenth of the limit, so that the
/// journal exceeds the limit by at most that; at least 64 KiB, because below that measuring the size costs
/// more than writing.
fn growth_step(max_bytes: u64) -> u64 {
    (max_bytes / 16).clamp(64 << 10, 64 << 20)
}

/// The plugins that are part of the hub.
fn own_plugins(hub: &Weak<HubInner>) -> Vec<Arc<dyn Plugin>> {
    vec![
        Arc::new(HubPlugin::new(hub.clone())),
        Arc::new(PluginsPlugin::new(hub.clone())),
    ]
}

/// Rejects invalid and duplicate plugin names. The names of the hub's own plugins are reserved.
fn check_names(modules: Vec<Module>) -> Result<Vec<Module>, StartError> {
    let mut taken = vec![methods::name(), plugins::name()];
    for export in modules.iter().flat_map(|module| &module.exports) {
        let name = PluginName::new(export.plugin.name())?;
        if taken.contains(&name) {
            return Err(StartError::DuplicateName(name));
        }
        taken.push(name);
    }
    Ok(modules)
}

impl HubInner {
    pub(crate) fn check_not_stopping(&self) -> Result<(), CallError> {
        if self.stopping.load(Ordering::Acquire) {
            let error = CallError::new(ErrorCode::PluginNotActive, "the server is stopping");
            return Err(error.hint("retry when the server has restarted"));
        }
        Ok(())
    }

    pub(crate) fn methods(
        &self,
        caller: &Principal,
        project: Option<&ProjectId>,
    ) -> Vec<Arc<MethodDescriptor>> {
        let snapshot = self.snapshot.load();
        let available = snapshot
            .routes
            .values()
            .filter(|route| route.is_available_in(project));
        let routes = available.map(|route| route.method.descriptor());
        let mut methods: Vec<_> = routes
            .filter(|method| {
                method
                    .scope
                    .as_ref()
                    .is_some_and(|scope| caller.scopes.allow(scope))
            })
            .cloned()
            .collect();
        methods.sort_by(|a, b| a.name.cmp(&b.name));
        methods
    }

    pub(crate) fn running_calls(&self, caller: &Principal) -> Vec<CallSummary> {
        let trees = self
            .call_trees
            .all()
            .into_iter()
            .filter(|tree| self.may_see(caller, &tree.user));
        let mut calls: Vec<CallSummary> = trees
            .flat_map(|tree| tree.running_calls())
            .map(|call| call.summary())
            .collect();
        calls.sort_by_key(|call| call.call_id);
        calls
    }

    pub(crate) fn health(&self) -> Health {
        let snapshot = self.snapshot.load();
        let active = snapshot
            .plugins
            .values()
            .filter(|status| status.state == PluginState::Active)
            .count();
        Health {
            stopping: self.stopping.load(Ordering::Acquire),
            uptime: self.started.elapsed(),
            calls: (self.call_trees.all().iter())
                .map(|tree| tree.running_calls().len())
                .sum(),
            plugins: (active, snapshot.plugins.len() - active),
            journal_backlog: self.journal.backlog(),
            recovered: self.journal.recovered(),
        }
    }
}
