//! The hub as its surfaces see it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use dodona_hooks::Hooks;
use dodona_plugin::{CallInfo, EventBus, Plugin};
use dodona_proto::{
    CallError, CallSummary, ErrorCode, MethodDescriptor, MethodKind, NameError, PluginName,
    PluginState, PluginStatus, Principal, Project, ProjectId, Scope, StreamId, Surface,
};
use dodona_store::journal::{Journal, JournalError, Recovered};
use dodona_store::{DatabaseReport, DbError, Durability, MigrateError, OpenError, Redactor, Store};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::accounts::Accounts;
use crate::admit::Reach;
use crate::approvals::Approvals;
use crate::bus::Bus;
use crate::cancel::CancelTarget;
use crate::config::{HubConfig, Places};
use crate::history::History;
use crate::host::Host;
use crate::limits::UserLimits;
use crate::manager::{Handles, Module, PluginManager, Services, Sources};
use crate::methods::HubPlugin;
use crate::node::Node;
use crate::overrides::UserOverrides;
use crate::plugins::PluginsPlugin;
use crate::projects::{AllowedRoots, Projects};
use crate::request::Request;
use crate::router::{Route, Snapshot};
use crate::run;
use crate::state::PluginStates;
use crate::tree::{Calls, Root};
use crate::trust::Trust;
use crate::{database, methods, plugins};

/// How often the journal is pruned at least; it is pruned earlier where it grows.
const PRUNE_EVERY: Duration = Duration::from_secs(3600);

/// Why a hub could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error("could not open the data directory")]
    Store(#[from] OpenError),
    /// The hub's own database cannot be used.
    #[error("could not open the hub's database")]
    Migrate(#[from] MigrateError),
    /// The hub's own database cannot be read.
    #[error("could not read the hub's database")]
    Database(#[from] DbError),
    /// The journal cannot be used.
    #[error("could not open the journal")]
    Journal(#[from] JournalError),
    /// A built-in plugin has no proper name.
    #[error("a plugin's name is not one")]
    Name(#[from] NameError),
    /// Two built-in plugins have one name.
    #[error("two plugins are named `{0}`")]
    Twice(PluginName),
}

/// How a hub is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Whether it takes calls.
    pub stopping: bool,
    /// How long it has run.
    pub uptime: Duration,
    /// Calls running now, nested ones included.
    pub calls: usize,
    /// Plugins that are active, and those that are not.
    pub plugins: (usize, usize),
    /// Bytes of journal entries that wait for their commit.
    pub journal_backlog: usize,
    /// What was found interrupted when it started.
    pub recovered: Recovered,
}

/// The host of all plugins. Cheap to clone.
#[doc(alias = "PluginHub")]
#[derive(Clone)]
pub struct Hub {
    pub(crate) core: Arc<Core>,
}

/// What every call can reach.
pub(crate) struct Core {
    pub(crate) config: HubConfig,
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) calls: Calls,
    pub(crate) user_limits: UserLimits,
    pub(crate) journal: Journal,
    pub(crate) accounts: Accounts,
    pub(crate) approvals: Approvals,
    pub(crate) projects: Arc<Projects>,
    pub(crate) trust: Arc<Trust>,
    /// The scope that shows everybody's calls and streams.
    pub(crate) admin: Scope,
    /// Counts journaled items.
    pub(crate) items: metrics::Counter,
    store: Store,
    pub(crate) bus: Arc<dyn EventBus>,
    /// Whether every plugin has been activated.
    pub(crate) activated: watch::Sender<bool>,
    pub(crate) manager: PluginManager,
    pub(crate) overrides: Arc<UserOverrides>,
    started: Instant,
    stopping: AtomicBool,
}

impl Hub {
    /// Opens the data directory and activates the plugins: those of the program, and those that
    /// the roster and the directories in the configuration name. The caller makes sure that no
    /// other process uses the directory.
    pub async fn start<M: Into<Module>>(
        places: impl Into<Places>,
        config: HubConfig,
        modules: impl IntoIterator<Item = M>,
    ) -> Result<Self, StartError> {
        let places = places.into();
        let modules = checked(modules.into_iter().map(Into::into).collect())?;
        let store = Store::open(&places.data, config.store.clone())?;
        let journal = Journal::open(&store, config.journal.clone()).await?;
        let db = store.database(database::FILE, Durability::Full);
        db.migrate(database::MIGRATIONS).await?;
        let accounts = Accounts::load(db.clone()).await?;
        let allowed = AllowedRoots::new(&config, &places);
        let projects = Arc::new(Projects::load(db.clone(), allowed).await?);
        let trust = Arc::new(Trust::load(db.clone()).await?);
        let approvals = Approvals::load(db.clone(), journal.clone()).await?;
        let overrides = Arc::new(UserOverrides::load(db.clone()).await?);
        let bus: Arc<dyn EventBus> = Arc::new(Bus::new(journal.clone()));
        let services = Services {
            data_dir: places.data,
            store: store.clone(),
            bus: Arc::clone(&bus),
            history: Arc::new(History::new(journal.clone())),
            state: Arc::new(PluginStates::new(db)),
            overrides: Arc::clone(&overrides),
            global_config: Arc::new(config.global.clone()),
            config: config.clone(),
        };
        let core = Arc::new_cyclic(|core: &Weak<Core>| {
            let host = Arc::new(Host(core.clone()));
            let handles = Handles {
                hooks: Arc::clone(&host) as _,
                rules: Arc::clone(&host) as _,
                trust: host,
                core: core.clone(),
            };
            let sources = Sources {
                modules,
                own: own_plugins(core),
                loaders: config.loaders.clone(),
                projects: Arc::clone(&projects),
                trust: Arc::clone(&trust),
                config_dir: places.config,
            };
            Core {
                snapshot: ArcSwap::default(),
                calls: Calls::default(),
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
        core.manager.start(&core.snapshot).await;
        core.activated.send_replace(true);
        let hub = Self { core };
        hub.keep_pruning();
        hub.keep_watching();
        Ok(hub)
    }

    /// Calls a method and waits for its result: the value of a unary method, the last data of a
    /// streaming one. Dropping the future cancels the call.
    pub async fn call(&self, request: Request) -> Result<Value, CallError> {
        let core = &self.core;
        let project = core
            .projects
            .get(&request.principal, request.project.as_ref())?;
        let admitted = core.admit(
            &request.principal,
            Reach::Outside,
            project.as_deref(),
            &request.method,
            request.params,
        )?;
        let root = Arc::new(Root::unwatched(
            StreamId::random(),
            request.principal.user.clone(),
        ));
        let node = core.root_node(
            &root,
            &admitted.route,
            request.principal,
            project,
            request.timeout,
        );
        run::admitted(node, admitted).await
    }

    /// The principal a token stands for. The one place where that is decided; a transport only
    /// finds the token in its request.
    pub fn authenticate(&self, token: &str, surface: Surface) -> Result<Principal, CallError> {
        self.core.accounts.authenticate(token, surface)
    }

    /// Makes sure that `file` holds a valid token of the machine's owner, readable by nobody
    /// else, and answers with it.
    pub async fn local_token(&self, file: &Path) -> Result<String, CallError> {
        self.core.accounts.local_token(file).await
    }

    /// Trades the code of a one-time link for the token of a page's session and its lifetime.
    pub async fn redeem_login(&self, code: &str) -> Result<(String, Duration), CallError> {
        self.core.accounts.redeem(code).await
    }

    /// What there is to know about a method that can be reached from outside.
    pub fn method(&self, name: &str) -> Option<Arc<MethodDescriptor>> {
        let snapshot = self.core.snapshot.load();
        let route = snapshot.routes.get(name)?;
        route
            .descriptor()
            .scope
            .is_some()
            .then(|| Arc::clone(route.method.descriptor()))
    }

    /// What a principal may call, wherever it is: without what belongs to a project.
    pub fn methods(&self, who: &Principal) -> Vec<Arc<MethodDescriptor>> {
        self.core.methods(who, None)
    }

    /// What a principal may call in a project, with what the project brings; wherever it is
    /// without one.
    pub fn methods_in(
        &self,
        who: &Principal,
        project: Option<&ProjectId>,
    ) -> Vec<Arc<MethodDescriptor>> {
        self.core.methods(who, project)
    }

    /// Where every plugin is in its life.
    pub fn plugins(&self) -> Vec<PluginStatus> {
        self.core
            .snapshot
            .load()
            .plugins
            .values()
            .cloned()
            .collect()
    }

    /// The callbacks of the active plugins. Another set after each reload.
    pub fn hooks(&self) -> Arc<Hooks> {
        Arc::clone(&self.core.snapshot.load().hooks)
    }

    /// An active plugin.
    pub fn plugin(&self, name: &str) -> Option<Arc<dyn Plugin>> {
        self.core.manager.get(name)
    }

    /// Whether a plugin is active.
    pub fn is_active(&self, name: &str) -> bool {
        self.core.manager.is_active(name)
    }

    /// The calls a principal may see that are running now, parents first.
    pub fn calls(&self, who: &Principal) -> Vec<CallSummary> {
        self.core.running(who)
    }

    /// Stops calls and tells which they were.
    pub async fn cancel(
        &self,
        who: &Principal,
        target: &CancelTarget,
    ) -> Result<Vec<CallSummary>, CallError> {
        self.core
            .cancel(who, target, StreamId::random().root_call())
            .await
    }

    /// How the hub is.
    pub fn health(&self) -> Health {
        self.core.health()
    }

    /// The event bus.
    pub fn bus(&self) -> &Arc<dyn EventBus> {
        &self.core.bus
    }

    /// The journal.
    pub fn journal(&self) -> &Journal {
        &self.core.journal
    }

    /// Checks every database.
    pub async fn check(&self) -> Vec<DatabaseReport> {
        self.core.store.check().await
    }

    /// Looks for damage in every database and logs what is found. Meant for the background of a
    /// server: it reads all files.
    pub async fn report_damage(&self) {
        for report in self.core.store.quick_check().await {
            for problem in &report.problems {
                tracing::error!(
                    file = report.file,
                    problem,
                    "a database is damaged; run `dodona doctor`"
                );
            }
        }
    }

    /// Takes no more calls, lets those that run finish until the deadline, cancels the rest,
    /// deactivates the plugins and closes the databases.
    pub async fn stop(&self, deadline: Duration) {
        let core = &self.core;
        core.stopping.store(true, Ordering::Release);
        core.approvals.close();
        let until = Instant::now() + deadline;
        while !core.calls.is_empty() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for root in core.calls.all() {
            root.stop("the server is stopping");
        }
        let until = Instant::now() + Duration::from_millis(200);
        while !core.calls.is_empty() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        core.manager.before_stop().await;
        core.manager.deactivate_all().await;
        if let Err(error) = core.journal.flush().await {
            tracing::warn!(%error, "the journal's last entries could not be stored");
        }
        core.store.close().await;
    }

    /// Loads plugins anew when their files change, for as long as the hub lives.
    fn keep_watching(&self) {
        let Some(every) = self.core.config.watch else {
            return;
        };
        let core = Arc::downgrade(&self.core);
        tokio::spawn(async move {
            // The first round looks at everything: what changed since the start is among it.
            let mut last = None;
            loop {
                tokio::time::sleep(every).await;
                let Some(core) = core.upgrade() else { return };
                if core.stopping.load(Ordering::Acquire) {
                    return;
                }
                let now = core.manager.stamp().await;
                if now != last {
                    let reloaded = core.manager.reload_once(&core.snapshot).await;
                    tracing::debug!(?reloaded, "the files of plugins were read anew");
                    // What changed while they were read is found in the next round.
                    last = now;
                }
            }
        });
    }

    /// Removes secrets from texts that leave the server.
    pub fn redactor(&self) -> &Redactor {
        &self.core.config.journal.redactor
    }

    /// Prunes the journal now and then, for as long as the hub lives.
    fn keep_pruning(&self) {
        let core = Arc::downgrade(&self.core);
        tokio::spawn(async move {
            loop {
                let Some((journal, retention)) = core
                    .upgrade()
                    .map(|core| (core.journal.clone(), core.config.retention))
                else {
                    return;
                };
                match journal.prune(retention).await {
                    Ok(pruned) => tracing::debug!(?pruned, "the journal was pruned"),
                    Err(error) => tracing::warn!(%error, "the journal could not be pruned"),
                }
                let (growth, step) = (journal.growth(), growth_step(retention.max_bytes));
                drop(journal);
                // An error means that the time is over.
                let _ = tokio::time::timeout(PRUNE_EVERY, growth.reached(step)).await;
            }
        });
    }
}

/// After how much growth the journal is pruned: a sixteenth of its bound, so that it exceeds the
/// bound by no more than that, and not so little that measuring it costs more than writing.
fn growth_step(max_bytes: u64) -> u64 {
    (max_bytes / 16).clamp(64 << 10, 64 << 20)
}

/// The plugins that are part of the hub.
fn own_plugins(core: &Weak<Core>) -> Vec<Arc<dyn Plugin>> {
    let hub = Arc::new(HubPlugin::new(core.clone()));
    let plugins = Arc::new(PluginsPlugin::new(core.clone()));
    vec![hub, plugins]
}

/// Modules whose plugins have names, each its own; the hub's are taken.
fn checked(modules: Vec<Module>) -> Result<Vec<Module>, StartError> {
    let mut taken = vec![methods::name(), plugins::name()];
    for export in modules.iter().flat_map(|module| &module.exports) {
        let name = PluginName::new(export.plugin.name())?;
        if taken.contains(&name) {
            return Err(StartError::Twice(name));
        }
        taken.push(name);
    }
    Ok(modules)
}

impl Core {
    pub(crate) fn refuse_when_stopping(&self, reach: Reach) -> Result<(), CallError> {
        if reach == Reach::Outside && self.stopping.load(Ordering::Acquire) {
            let error = CallError::new(ErrorCode::PluginNotActive, "the server is stopping");
            return Err(error.hint("try again when it is back"));
        }
        Ok(())
    }

    /// The node of a call from outside, with the shortest of the time bounds that apply.
    pub(crate) fn root_node(
        self: &Arc<Self>,
        root: &Arc<Root>,
        route: &Route,
        principal: Arc<Principal>,
        project: Option<Arc<Project>>,
        timeout: Option<Duration>,
    ) -> Arc<Node> {
        let descriptor = route.descriptor();
        let usual = match descriptor.kind {
            MethodKind::Unary => self.config.unary_timeout,
            MethodKind::Streaming => self.config.stream_timeout,
        };
        let bound = descriptor.timeout.unwrap_or(usual);
        let since = Instant::now();
        let deadline = since + timeout.map_or(bound, |asked| asked.min(bound));
        let info = CallInfo {
            call_id: root.stream.root_call(),
            path: dodona_proto::PluginPath::root(&route.plugin),
            method: Some(descriptor.name.clone()),
            principal,
            project,
            deadline: Some(deadline),
            snapshot: None,
            cancel: root.cancel.clone(),
        };
        let keep_last = root.writer.is_none() && descriptor.kind == MethodKind::Streaming;
        let (core, callable) = (Arc::clone(self), route.callable.clone());
        Node::root(core, Arc::clone(root), info, since, keep_last, callable)
    }

    pub(crate) fn methods(
        &self,
        who: &Principal,
        project: Option<&ProjectId>,
    ) -> Vec<Arc<MethodDescriptor>> {
        let snapshot = self.snapshot.load();
        let here = snapshot
            .routes
            .values()
            .filter(|route| route.is_in(project));
        let routes = here.map(|route| route.method.descriptor());
        let mut methods: Vec<_> = routes
            .filter(|method| {
                method
                    .scope
                    .as_ref()
                    .is_some_and(|scope| who.scopes.allow(scope))
            })
            .cloned()
            .collect();
        methods.sort_by(|a, b| a.name.cmp(&b.name));
        methods
    }

    pub(crate) fn running(&self, who: &Principal) -> Vec<CallSummary> {
        let roots = self
            .calls
            .all()
            .into_iter()
            .filter(|root| self.may_see(who, &root.user));
        let mut calls: Vec<CallSummary> = roots
            .flat_map(|root| root.nodes())
            .map(|node| node.summary())
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
            calls: self.calls.all().iter().map(|root| root.nodes().len()).sum(),
            plugins: (active, snapshot.plugins.len() - active),
            journal_backlog: self.journal.backlog(),
            recovered: self.journal.recovered(),
        }
    }
}
