//! The hub as its surfaces see it.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use dodona_hooks::Hooks;
use dodona_plugin::{BoxFuture, CallInfo, EventBus, Plugin};
use dodona_proto::{
    CallError, CallSummary, ErrorCode, MethodDescriptor, MethodKind, NameError, PluginName,
    PluginState, PluginStatus, Principal, Project, Scope, StreamId, Surface,
};
use dodona_store::journal::{Journal, JournalError, Recovered};
use dodona_store::{DatabaseReport, DbError, Durability, MigrateError, OpenError, Store};
use futures_util::FutureExt;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::accounts::Accounts;
use crate::admit::Reach;
use crate::approvals::Approvals;
use crate::bus::Bus;
use crate::cancel::CancelTarget;
use crate::config::HubConfig;
use crate::host::Host;
use crate::limits::UserLimits;
use crate::methods::HubPlugin;
use crate::node::Node;
use crate::projects::Projects;
use crate::request::Request;
use crate::roster::Roster;
use crate::router::{Route, Snapshot};
use crate::run;
use crate::tree::{Calls, Root};
use crate::{database, methods};

/// How often the journal is pruned.
const PRUNE_EVERY: Duration = Duration::from_secs(3600);

/// How long a plugin may take to let go.
const DEACTIVATION: Duration = Duration::from_secs(2);

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
    pub(crate) projects: Projects,
    /// The scope that shows everybody's calls and streams.
    pub(crate) admin: Scope,
    /// Counts journaled items.
    pub(crate) items: metrics::Counter,
    store: Store,
    pub(crate) bus: Arc<dyn EventBus>,
    /// Whether every plugin has been activated.
    pub(crate) activated: watch::Sender<bool>,
    plugins: BTreeMap<PluginName, Arc<dyn Plugin>>,
    started: Instant,
    stopping: AtomicBool,
}

impl Hub {
    /// Opens the data directory and activates the plugins. The caller makes sure that no other
    /// process uses the directory.
    pub async fn start(
        data_dir: &Path,
        config: HubConfig,
        plugins: Vec<Arc<dyn Plugin>>,
    ) -> Result<Self, StartError> {
        let store = Store::open(data_dir, config.store.clone())?;
        let journal = Journal::open(&store, config.journal.clone()).await?;
        let db = store.database(database::FILE, Durability::Full);
        db.migrate(database::MIGRATIONS).await?;
        let accounts = Accounts::load(db.clone()).await?;
        let projects = Projects::load(db.clone()).await?;
        let approvals = Approvals::load(db, journal.clone()).await?;
        let bus: Arc<dyn EventBus> = Arc::new(Bus::new(journal.clone()));
        let mut plugins = by_name(plugins)?;
        let core = Arc::new_cyclic(|core| {
            plugins.insert(methods::name(), Arc::new(HubPlugin::new(core.clone())));
            Core {
                snapshot: ArcSwap::default(),
                calls: Calls::default(),
                user_limits: UserLimits::new(&config.limits),
                journal,
                accounts,
                approvals,
                projects,
                admin: methods::admin_scope(),
                items: metrics::counter!("dodona_items_total"),
                store,
                bus,
                activated: watch::Sender::new(false),
                plugins,
                started: Instant::now(),
                stopping: AtomicBool::new(false),
                config,
            }
        });
        let hub = Self { core };
        hub.activate(data_dir).await;
        hub.keep_pruning();
        Ok(hub)
    }

    async fn activate(&self, data_dir: &Path) {
        let core = &self.core;
        let (data_dir, bus) = (data_dir.to_owned(), Arc::clone(&core.bus));
        let roster = Roster {
            config: &core.config,
            store: &core.store,
            data_dir,
            bus,
            hooks: Arc::new(Host(Arc::downgrade(core))),
        };
        core.snapshot
            .store(Arc::new(roster.activate(&core.plugins).await));
        core.activated.send_replace(true);
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

    /// What a principal may call.
    pub fn methods(&self, who: &Principal) -> Vec<Arc<MethodDescriptor>> {
        self.core.methods(who)
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
        core.each_active("before the stop", |plugin| plugin.before_stop())
            .await;
        core.each_active("in its deactivation", |plugin| plugin.deactivate())
            .await;
        if let Err(error) = core.journal.flush().await {
            tracing::warn!(%error, "the journal's last entries could not be stored");
        }
        core.store.close().await;
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
                drop(journal);
                tokio::time::sleep(PRUNE_EVERY).await;
            }
        });
    }
}

/// The plugins by name; the hub's own name is taken.
fn by_name(
    plugins: Vec<Arc<dyn Plugin>>,
) -> Result<BTreeMap<PluginName, Arc<dyn Plugin>>, StartError> {
    let mut named: BTreeMap<PluginName, Arc<dyn Plugin>> = BTreeMap::new();
    for plugin in plugins {
        let name = PluginName::new(plugin.name())?;
        if name == methods::name() || named.contains_key(&name) {
            return Err(StartError::Twice(name));
        }
        named.insert(name, plugin);
    }
    Ok(named)
}

impl Core {
    /// Has every active plugin do something, the last one first. One that panics or hangs is left
    /// behind.
    async fn each_active(
        &self,
        when: &str,
        work: impl for<'p> Fn(&'p dyn Plugin) -> BoxFuture<'p, ()>,
    ) {
        let snapshot = self.snapshot.load_full();
        for (name, plugin) in self.plugins.iter().rev() {
            let state = snapshot.plugins.get(name).map(|status| status.state);
            if state != Some(PluginState::Active) {
                continue;
            }
            let work = AssertUnwindSafe(async { work(plugin.as_ref()).await }).catch_unwind();
            match tokio::time::timeout(DEACTIVATION, work).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => tracing::error!(plugin = %name, "a plugin panicked {when}"),
                Err(_) => tracing::error!(plugin = %name, "a plugin hangs {when}"),
            }
        }
    }

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
        Node::root(Arc::clone(self), Arc::clone(root), info, since, keep_last)
    }

    pub(crate) fn methods(&self, who: &Principal) -> Vec<Arc<MethodDescriptor>> {
        let snapshot = self.snapshot.load();
        let routes = snapshot
            .routes
            .values()
            .map(|route| route.method.descriptor());
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
