//! Loading plugins: from the roster to an immutable snapshot of installed methods and hooks.
//!
//! `load_roster` → `discover` → `activate_all` → `freeze`; `deactivate_all` in reverse order. A reload takes
//! the same steps and keeps unchanged plugins.

mod activate;
mod data;
mod dependency;
mod dependency_check;
mod directory;
mod discover;
mod event_listeners;
mod files;
mod last_good;
mod logs;
mod module;
mod prepare;
mod project_plugins;
mod replace_methods;
mod roster;
mod roster_changes;
mod roster_edit;
mod rules;
mod settings_file;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use dodona_hooks::HookRegistry;
use dodona_plugin::activation::EventDraft;
use dodona_plugin::reading::Problem;
use dodona_plugin::{
    EventBus, EventHistory, HookHost, LogLevel, Manifest, Plugin, PluginLog, PluginSettings,
    RuleHost, StateBackend, TrustHost,
};
use dodona_proto::{PluginName, PluginState, PluginStatus, Severity};
use dodona_store::Store;
use semver::Version;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use tokio_util::task::TaskTracker;

use crate::config::HubConfig;
use crate::hub::HubInner;
use crate::overrides::UserOverrides;
use crate::router::RouterSnapshot;
pub(crate) use activate::Active;
use activate::Retired;
use dependency::{Graph, Order};
pub use directory::Directory;
pub(crate) use discover::{Candidate, Plan, Sources};
use event_listeners::ActiveListener;
use last_good::{Refusal, ReloadOutcome};
use logs::Logs;
pub use module::Module;
use prepare::Preparations;
pub(crate) use roster::FILE as ROSTER;
pub(crate) use roster_edit::Change;
use rules::RulesInForce;

/// How long the hub waits at its stop for plugins that were replaced shortly before.
const RETIREMENT: Duration = Duration::from_secs(5);

/// Services that plugins get.
pub(crate) struct Services {
    pub(crate) config: HubConfig,
    pub(crate) data_dir: PathBuf,
    pub(crate) store: Store,
    pub(crate) bus: Arc<dyn EventBus>,
    pub(crate) history: Arc<dyn EventHistory>,
    pub(crate) state: Arc<dyn StateBackend>,
    pub(crate) overrides: Arc<UserOverrides>,
    pub(crate) global_config: Arc<Map<String, Value>>,
}

/// Handles to the hub that plugins get.
pub(crate) struct Handles {
    /// For plugins that fire hook points.
    pub(crate) hooks: Arc<dyn HookHost>,
    /// For the plugin that evaluates rules.
    pub(crate) rules: Arc<dyn RuleHost>,
    /// For the plugin that reads prompts and agents of projects.
    pub(crate) trust: Arc<dyn TrustHost>,
    /// For plugins that change their methods while active.
    pub(crate) hub: Weak<HubInner>,
}

/// Loads, activates, reloads and deactivates plugins.
pub(crate) struct PluginManager {
    sources: Arc<Sources>,
    services: Services,
    /// Handles to the hub for plugins.
    host: Handles,
    /// Locked while plugins are activated or deactivated.
    running: Arc<Mutex<RunningPlugins>>,
    /// Locked while the roster is changed.
    editing: Mutex<()>,
    view: ArcSwap<View>,
    retiring: TaskTracker,
    logs: Logs,
    rules: RulesInForce,
    preparations: Preparations,
}

#[derive(Default)]
pub(crate) struct RunningPlugins {
    /// In order of activation.
    active: Vec<Active>,
    /// Their hooks. The registry is kept over reloads, because it holds the trace of hook runs.
    registry: HookRegistry,
}

impl RunningPlugins {
    /// Whether an instance is active, in any of its activations.
    fn has(&self, plugin: &Arc<dyn Plugin>) -> bool {
        let mut active = self.active.iter();
        active.any(|active| Arc::ptr_eq(&active.plugin, plugin))
    }
}

/// All known plugins, active or not.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) candidates: BTreeMap<PluginName, Candidate>,
    pub(crate) statuses: BTreeMap<PluginName, PluginStatus>,
    /// The order of activation, including plugins that were not activated.
    pub(crate) order: Vec<PluginName>,
    pub(crate) problems: Vec<Problem>,
    /// Uses of active plugins that exceed their capabilities.
    pub(crate) warnings: BTreeMap<PluginName, Vec<String>>,
    plugins: BTreeMap<PluginName, Arc<dyn Plugin>>,
}

/// The result of a reload.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reloaded {
    /// New and changed plugins.
    pub(crate) activated: Vec<PluginName>,
    /// Plugins that were deactivated.
    pub(crate) deactivated: Vec<PluginName>,
    pub(crate) kept: Vec<PluginName>,
    /// Why the reload was rejected.
    pub(crate) refused: Option<String>,
}

/// The outcome of an activation round: active plugins, previous plugins, status of all.
struct Outcome {
    active: Vec<Active>,
    gone: Vec<Active>,
    statuses: BTreeMap<PluginName, PluginStatus>,
    order: Vec<PluginName>,
    /// Plugins with broken files, of which the previous version stays active.
    outlived: Vec<PluginName>,
    reloaded: Reloaded,
}

impl PluginManager {
    pub(crate) fn new(sources: Sources, services: Services, host: Handles) -> Self {
        Self {
            sources: Arc::new(sources),
            services,
            host,
            running: Arc::default(),
            editing: Mutex::default(),
            view: ArcSwap::default(),
            retiring: TaskTracker::new(),
            logs: Logs::default(),
            rules: RulesInForce::default(),
            preparations: Preparations::default(),
        }
    }

    /// Discovers all plugins again. Reads files, so it runs on a blocking thread.
    pub(crate) async fn plan(&self) -> Plan {
        let sources = Arc::clone(&self.sources);
        let work = move || sources.discover(sources.load_roster());
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
            tracing::error!("discovering plugins panicked");
            let fault = Problem::of_file("plugins", "discovering plugins failed");
            Plan {
                problems: vec![fault],
                unreadable: true,
                ..Plan::default()
            }
        })
    }

    /// Activates all plugins at the start of the hub.
    pub(crate) async fn start(&self, snapshot: &ArcSwap<RouterSnapshot>) {
        let plan = self.plan().await;
        let mut running = self.running.lock().await;
        let outcome = self.activate_all(&plan, Vec::new()).await;
        self.install(plan, outcome, &mut running, snapshot).await;
        drop(running);
        if self.services.config.wait_for_plugins && self.preparations.wait(None).await {
            self.reload_once(snapshot).await;
        }
    }

    /// Discovers plugins again and activates new and changed ones. Running calls finish with the version they
    /// started with. Plugins that need preparation are prepared in parallel, and this waits for them.
    pub(crate) async fn reload(&self, snapshot: &ArcSwap<RouterSnapshot>) -> Reloaded {
        self.reload_and_wait(snapshot, None).await
    }

    /// Like [`PluginManager::reload`], but retries and waits for the preparation of one plugin only.
    pub(crate) async fn reload_for(
        &self,
        plugin: &PluginName,
        snapshot: &ArcSwap<RouterSnapshot>,
    ) -> Reloaded {
        self.reload_and_wait(snapshot, Some(plugin)).await
    }

    async fn reload_and_wait(
        &self,
        snapshot: &ArcSwap<RouterSnapshot>,
        only: Option<&PluginName>,
    ) -> Reloaded {
        self.preparations.forget_failures(only);
        let before = self.view();
        let reloaded = self.reload_once(snapshot).await;
        if reloaded.refused.is_some() || !self.preparations.wait(only).await {
            return reloaded;
        }
        let Reloaded { refused, .. } = self.reload_once(snapshot).await;
        Reloaded {
            refused,
            ..difference(&before, &self.view())
        }
    }

    /// Like [`PluginManager::reload`], but does not wait for preparation: such plugins are `starting`.
    pub(crate) async fn reload_once(&self, snapshot: &ArcSwap<RouterSnapshot>) -> Reloaded {
        let mut running = self.running.lock().await;
        let plan = self.plan().await;
        if plan.unreadable {
            // Trust may have changed anyway.
            self.rules.refresh().await;
            return self.keep_all(plan, &running.active);
        }
        let old = std::mem::take(&mut running.active);
        let outcome = self.activate_all(&plan, old).await;
        self.install(plan, outcome, &mut running, snapshot).await
    }

    /// A roster that cannot be read changes nothing except its reported problems.
    fn keep_all(&self, plan: Plan, active: &[Active]) -> Reloaded {
        let old = self.view.load();
        let problems = plan.problems;
        let refused = problems.first().map(Problem::to_string);
        self.view.store(Arc::new(View {
            candidates: old.candidates.clone(),
            statuses: old.statuses.clone(),
            order: old.order.clone(),
            problems,
            warnings: old.warnings.clone(),
            plugins: old.plugins.clone(),
        }));
        Reloaded {
            kept: active.iter().map(|active| active.name.clone()).collect(),
            refused,
            ..Reloaded::default()
        }
    }

    /// Activates plugins in order and keeps unchanged ones. A plugin that fails gets a status with the reason, and
    /// nothing of it is installed; the others are not affected.
    async fn activate_all(&self, plan: &Plan, old: Vec<Active>) -> Outcome {
        let mut old: Vec<Option<Active>> = old.into_iter().map(Some).collect();
        let Order { names, circles } = Order::of(&graph(plan));
        let mut outcome = Outcome {
            active: Vec::new(),
            gone: Vec::new(),
            statuses: BTreeMap::new(),
            order: names.clone(),
            outlived: Vec::new(),
            reloaded: Reloaded::default(),
        };
        for name in &names {
            let candidate = &plan.candidates[name];
            let was = old
                .iter_mut()
                .find(|slot| slot.as_ref().is_some_and(|active| active.name == *name))
                .and_then(Option::take);
            let verdict = match circles.get(name) {
                Some(way) if candidate.refused.is_none() => Err(dependency_check::circle(way)),
                _ => dependency_check::check(candidate, plan, &outcome),
            };
            let result = match verdict {
                Ok(()) => self.keep_or_bring(candidate, &was).await,
                Err(refusal) => Err(refusal.into()),
            };
            let result = last_good::or_last_good(candidate, &was, result);
            self.record_result(candidate, was, result, &mut outcome)
                .await;
        }
        outcome.gone.extend(old.into_iter().flatten());
        outcome
    }

    /// Activates a plugin, or returns that it can stay unchanged.
    async fn keep_or_bring(
        &self,
        candidate: &Candidate,
        was: &Option<Active>,
    ) -> Result<ReloadOutcome, Refusal> {
        if let Some(was) = was
            && was.fingerprint == candidate.fingerprint
        {
            return Ok(ReloadOutcome::Same);
        }
        let Some(plugin) = &candidate.plugin else {
            return Err(Refusal::failed("there is nothing to activate".to_owned()));
        };
        let plugin = match self.prepared(candidate, plugin) {
            Ok(plugin) => plugin,
            // The active version stays until the new one is ready.
            Err(refusal) if refusal.state == PluginState::Starting && was.is_some() => {
                return Ok(ReloadOutcome::Kept(
                    "a changed version is being started".to_owned(),
                ));
            }
            Err(refusal) => return Err(refusal),
        };
        let brought = self.bring(candidate, &plugin, was.as_ref()).await;
        brought.map(ReloadOutcome::New).map_err(Refusal::failed)
    }

    /// Records the result for one plugin.
    async fn record_result(
        &self,
        candidate: &Candidate,
        was: Option<Active>,
        result: Result<ReloadOutcome, Refusal>,
        outcome: &mut Outcome,
    ) {
        let name = candidate.name.clone();
        let (state, reason) = match result {
            Ok(ReloadOutcome::Same) => {
                outcome.reloaded.kept.push(name.clone());
                outcome.active.extend(was);
                (PluginState::Active, None)
            }
            Ok(ReloadOutcome::Kept(reason)) => {
                self.report(&name, &reason).await;
                outcome.reloaded.kept.push(name.clone());
                outcome.outlived.push(name.clone());
                outcome.active.extend(was);
                (PluginState::Active, Some(reason))
            }
            Ok(ReloadOutcome::New(active)) => {
                outcome.reloaded.activated.push(name.clone());
                outcome.active.push(active);
                outcome.gone.extend(was);
                (PluginState::Active, None)
            }
            Err(Refusal { state, reason, .. }) => {
                if was.is_some() {
                    outcome.reloaded.deactivated.push(name.clone());
                }
                outcome.gone.extend(was);
                if state == PluginState::Failed {
                    self.report(&name, &reason).await;
                }
                (state, Some(reason))
            }
        };
        let version = candidate.version();
        let status = PluginStatus {
            name: name.clone(),
            state,
            reason,
            version,
        };
        outcome.statuses.insert(name, status);
    }

    /// Installs the new snapshot and deactivates plugins that are not in it. New rules are in force before the
    /// methods of their plugins can be called, and before a status is `active`.
    async fn install(
        &self,
        plan: Plan,
        outcome: Outcome,
        running: &mut RunningPlugins,
        snapshot: &ArcSwap<RouterSnapshot>,
    ) -> Reloaded {
        let Outcome {
            active: mut now,
            gone,
            statuses,
            order,
            outlived,
            mut reloaded,
        } = outcome;
        let plan = last_good::with_outlived(plan, &outlived, &self.view.load());
        for gone in &gone {
            running.registry.unregister_all(&gone.name);
            if !statuses.contains_key(&gone.name) {
                reloaded.deactivated.push(gone.name.clone());
            }
        }
        for active in &mut now {
            for hook in std::mem::take(&mut active.hooks) {
                running.registry.register(&active.name, hook);
            }
            let project = plan.candidates.get(&active.name);
            let project = project.and_then(|candidate| candidate.project.clone());
            for handler in std::mem::take(&mut active.event_handlers) {
                active.listeners.start(ActiveListener {
                    plugin: active.name.clone(),
                    project: project.clone(),
                    subscription: self.services.bus.subscribe(handler.prefix()),
                    log: self.log(&active.name),
                    handler,
                });
            }
        }
        let sources = self.sources.rule_sources(&plan, &statuses);
        self.rules.add(&sources).await;
        let tools_disabled_reason = self.sources.tools_disabled_reason(&statuses);
        snapshot.store(Arc::new(RouterSnapshot {
            tools_disabled_reason,
            ..freeze(&now, &running.registry, &statuses)
        }));
        let mut problems = plan.problems;
        for candidate in plan.candidates.values() {
            problems.extend(candidate.problems.iter().cloned());
        }
        for problem in &problems {
            tracing::warn!(%problem, "problem in plugin files");
        }
        let warnings = now
            .iter()
            .map(|active| (active.name.clone(), active.warnings.clone()));
        let plugins = now
            .iter()
            .map(|active| (active.name.clone(), Arc::clone(&active.plugin)));
        self.view.store(Arc::new(View {
            warnings: warnings.collect(),
            plugins: plugins.collect(),
            candidates: plan.candidates,
            statuses,
            order,
            problems,
        }));
        running.active = now;
        self.retire(gone);
        self.rules.replace(sources).await;
        reloaded
    }

    /// Deactivates plugins in reverse order, once no call runs in them.
    fn retire(&self, gone: Vec<Active>) {
        let leaving: Vec<Retired> = gone.into_iter().map(Retired::from).rev().collect();
        if leaving.is_empty() {
            return;
        }
        let running = Arc::clone(&self.running);
        self.retiring.spawn(async move {
            for retired in leaving {
                retired.unused().await;
                // Locked meanwhile, so that an instance is not activated while it is deactivated. An instance that was
                // activated again is kept.
                let running = running.lock().await;
                if !running.has(retired.plugin()) {
                    retired.deactivate().await;
                }
            }
        });
    }

    /// Calls `before_stop` of all plugins in reverse order. A plugin that panics or hangs is skipped.
    pub(crate) async fn before_stop(&self) {
        let running = self.running.lock().await;
        for active in running.active.iter().rev() {
            active.before_stop().await;
        }
    }

    /// Deactivates all plugins in reverse order. A plugin that panics or hangs is skipped.
    pub(crate) async fn deactivate_all(&self) {
        self.preparations.stop();
        self.retiring.close();
        if tokio::time::timeout(RETIREMENT, self.retiring.wait())
            .await
            .is_err()
        {
            tracing::warn!("a replaced plugin is still in use");
        }
        let all = std::mem::take(&mut self.running.lock().await.active);
        for active in all.into_iter().rev() {
            Retired::from(active).deactivate().await;
        }
    }

    /// Returns a plugin if it is active.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Plugin>> {
        self.view.load().plugins.get(name).cloned()
    }

    pub(crate) fn is_active(&self, name: &str) -> bool {
        self.view.load().plugins.contains_key(name)
    }

    pub(crate) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// The log of a plugin, over all its activations.
    pub(crate) fn log(&self, name: &PluginName) -> PluginLog {
        self.logs.of(name)
    }

    pub(crate) fn state(&self) -> &Arc<dyn StateBackend> {
        &self.services.state
    }

    pub(crate) fn config_dir(&self) -> Option<&PathBuf> {
        self.sources.config_dir.as_ref()
    }

    /// The effective settings of a plugin.
    pub(crate) fn settings_of(&self, candidate: &Candidate) -> PluginSettings {
        let manifest = self.manifest(candidate);
        PluginSettings::new(
            candidate.name.clone(),
            Arc::new(manifest.settings.clone()),
            &candidate.configured.values,
            Arc::clone(&self.services.overrides) as _,
        )
    }

    fn manifest(&self, candidate: &Candidate) -> Arc<Manifest> {
        let bare = || {
            Arc::new(Manifest::bare(
                candidate.name.clone(),
                Version::new(0, 0, 0),
            ))
        };
        candidate.manifest.clone().unwrap_or_else(bare)
    }

    /// A failure is logged once.
    async fn report(&self, name: &PluginName, reason: &str) {
        let known = self.view.load();
        let told = known
            .statuses
            .get(name)
            .and_then(|old| old.reason.as_deref());
        if told == Some(reason) {
            return;
        }
        tracing::error!(plugin = %name, reason, "failed to activate plugin");
        self.log(name).write(LogLevel::Error, "hub", reason);
        let draft = EventDraft {
            kind: "plugin.failed",
            source: "hub",
            severity: Severity::Error,
            payload: json!({ "plugin": name, "reason": reason }),
            behalf: None,
            id: None,
        };
        if let Err(error) = self.services.bus.publish(draft).await {
            tracing::warn!(%error, "failed to journal an event");
        }
    }
}

/// Compares two views: activated, deactivated and unchanged plugins.
fn difference(before: &View, now: &View) -> Reloaded {
    let is_same = |name: &PluginName| {
        let (old, new) = (before.plugins.get(name), now.plugins.get(name));
        old.zip(new).is_some_and(|(old, new)| Arc::ptr_eq(old, new))
    };
    let (kept, activated) = now.plugins.keys().cloned().partition(is_same);
    let gone = before.plugins.keys();
    let gone = gone.filter(|name| !now.plugins.contains_key(*name));
    Reloaded {
        activated,
        deactivated: gone.cloned().collect(),
        kept,
        refused: None,
    }
}

/// The dependencies of all plugins, including the owners of required tools.
fn graph(plan: &Plan) -> Graph {
    let edges = plan.candidates.iter().map(|(name, candidate)| {
        let declared = candidate.dependencies.iter().map(|need| &need.plugin);
        let required = candidate
            .manifest
            .iter()
            .flat_map(|manifest| &manifest.requires);
        let owners = required.filter_map(|tool| dependency_check::owner(tool, plan));
        let needs = declared.chain(owners).filter(|need| *need != name);
        (name.clone(), needs.cloned().collect())
    });
    edges.collect()
}

/// An immutable snapshot of the active plugins.
fn freeze(
    active: &[Active],
    registry: &HookRegistry,
    statuses: &BTreeMap<PluginName, PluginStatus>,
) -> RouterSnapshot {
    let routes = active.iter().flat_map(|active| &active.routes);
    RouterSnapshot {
        routes: routes
            .map(|route| (route.descriptor().name.clone(), Arc::clone(route)))
            .collect(),
        hooks: Arc::new(registry.freeze()),
        plugins: statuses.clone(),
        tools_disabled_reason: None,
    }
}
