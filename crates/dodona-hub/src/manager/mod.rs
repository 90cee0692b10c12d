//! The life of plugins: from the roster to an immutable snapshot of what can be called.
//!
//! `load_roster` → `discover` → `activate_all` → `freeze`; `deactivate_all` in reverse. A reload
//! walks the same way and keeps what did not change.

mod activate;
mod configure;
mod data;
mod dependency;
mod directory;
mod discover;
mod edit;
mod entries;
mod files;
mod last_good;
mod listen;
mod logs;
mod module;
mod needs;
mod of_projects;
mod prepare;
mod renew;
mod roster;
mod rules;
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
pub(crate) use edit::Change;
use last_good::{Came, Refusal};
use listen::Listening;
use logs::Logs;
pub use module::Module;
use prepare::Preparations;
pub(crate) use roster::FILE as ROSTER;
use rules::RulesInForce;

/// How long the hub waits at its end for plugins that were replaced shortly before.
const RETIREMENT: Duration = Duration::from_secs(5);

/// What plugins are given.
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

/// Ways to the hub that plugins are given.
pub(crate) struct Handles {
    /// For those that fire hook points.
    pub(crate) hooks: Arc<dyn HookHost>,
    /// For the one that evaluates rules.
    pub(crate) rules: Arc<dyn RuleHost>,
    /// For the one that projects may steer.
    pub(crate) trust: Arc<dyn TrustHost>,
    /// For those whose methods come and go.
    pub(crate) hub: Weak<HubInner>,
}

/// Who decides which plugins live.
pub(crate) struct PluginManager {
    sources: Arc<Sources>,
    services: Services,
    /// What plugins get of the hub itself.
    host: Handles,
    /// Held while it changes. Shared with whoever lets plugins go.
    living: Arc<Mutex<Living>>,
    /// Held while the roster is being changed.
    editing: Mutex<()>,
    view: ArcSwap<View>,
    retiring: TaskTracker,
    logs: Logs,
    rules: RulesInForce,
    preparations: Preparations,
}

/// What is active.
#[derive(Default)]
pub(crate) struct Living {
    /// In the order of their activation.
    active: Vec<Active>,
    /// Their hooks. The same for all snapshots, because it knows what hooks did.
    registry: HookRegistry,
}

impl Living {
    /// Whether an instance is active, in whichever of its lives.
    fn has(&self, plugin: &Arc<dyn Plugin>) -> bool {
        let mut active = self.active.iter();
        active.any(|active| Arc::ptr_eq(&active.plugin, plugin))
    }
}

/// What is known about plugins, active or not.
#[derive(Default)]
pub(crate) struct View {
    pub(crate) candidates: BTreeMap<PluginName, Candidate>,
    pub(crate) statuses: BTreeMap<PluginName, PluginStatus>,
    /// The order of activation, of those too that were not activated.
    pub(crate) order: Vec<PluginName>,
    pub(crate) problems: Vec<Problem>,
    /// What active plugins did beyond their capabilities.
    pub(crate) warnings: BTreeMap<PluginName, Vec<String>>,
    plugins: BTreeMap<PluginName, Arc<dyn Plugin>>,
}

/// What a reload came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reloaded {
    /// New ones, and those that changed.
    pub(crate) activated: Vec<PluginName>,
    /// Those that were active and are not.
    pub(crate) deactivated: Vec<PluginName>,
    /// Those that did not change.
    pub(crate) kept: Vec<PluginName>,
    /// Why nothing was done.
    pub(crate) refused: Option<String>,
}

/// Who is active now, who was, and how everybody is.
struct Outcome {
    active: Vec<Active>,
    gone: Vec<Active>,
    statuses: BTreeMap<PluginName, PluginStatus>,
    order: Vec<PluginName>,
    /// Those whose files are broken now, and that are as they were before.
    outlived: Vec<PluginName>,
    reloaded: Reloaded,
}

impl PluginManager {
    pub(crate) fn new(sources: Sources, services: Services, host: Handles) -> Self {
        Self {
            sources: Arc::new(sources),
            services,
            host,
            living: Arc::default(),
            editing: Mutex::default(),
            view: ArcSwap::default(),
            retiring: TaskTracker::new(),
            logs: Logs::default(),
            rules: RulesInForce::default(),
            preparations: Preparations::default(),
        }
    }

    /// Everything that there is, found anew. Reads files, and so not on a thread of the runtime.
    pub(crate) async fn plan(&self) -> Plan {
        let sources = Arc::clone(&self.sources);
        let work = move || sources.discover(sources.load_roster());
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| {
            tracing::error!("looking for plugins panicked");
            let fault = Problem::of_file("plugins", "looking for plugins failed");
            Plan {
                problems: vec![fault],
                unreadable: true,
                ..Plan::default()
            }
        })
    }

    /// Brings everything to life for the first time.
    pub(crate) async fn start(&self, snapshot: &ArcSwap<RouterSnapshot>) {
        let plan = self.plan().await;
        let mut living = self.living.lock().await;
        let outcome = self.activate_all(&plan, Vec::new()).await;
        self.install(plan, outcome, &mut living, snapshot).await;
        drop(living);
        if self.services.config.wait_for_plugins && self.preparations.wait(None).await {
            self.reload_once(snapshot).await;
        }
    }

    /// Looks again, and activates what is new or changed; what is not stays as it is. Calls that
    /// run end on what they began with. Plugins that must be prepared are, all at the same time, and
    /// this waits for them.
    pub(crate) async fn reload(&self, snapshot: &ArcSwap<RouterSnapshot>) -> Reloaded {
        self.reload_and_wait(snapshot, None).await
    }

    /// The same, and of the plugins that are being prepared only one is tried again and waited for.
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

    /// The same without waiting for plugins that are being prepared: their status is `starting`.
    pub(crate) async fn reload_once(&self, snapshot: &ArcSwap<RouterSnapshot>) -> Reloaded {
        let mut living = self.living.lock().await;
        let plan = self.plan().await;
        if plan.unreadable {
            // Trust may have changed all the same.
            self.rules.refresh().await;
            return self.keep_all(plan, &living.active);
        }
        let old = std::mem::take(&mut living.active);
        let outcome = self.activate_all(&plan, old).await;
        self.install(plan, outcome, &mut living, snapshot).await
    }

    /// A roster that cannot be read changes nothing but what is said about it.
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

    /// Activates what is to be active, in order, and keeps what is the same. One that fails
    /// fails alone: it has a status that says why, and nothing of it is installed.
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
                Some(way) if candidate.refused.is_none() => Err(needs::circle(way)),
                _ => needs::check(candidate, plan, &outcome),
            };
            let came = match verdict {
                Ok(()) => self.keep_or_bring(candidate, &was).await,
                Err(refusal) => Err(refusal.into()),
            };
            let came = last_good::or_what_was(candidate, &was, came);
            self.settle(candidate, was, came, &mut outcome).await;
        }
        outcome.gone.extend(old.into_iter().flatten());
        outcome
    }

    /// The plugin anew, or nothing if it can stay as it is.
    async fn keep_or_bring(
        &self,
        candidate: &Candidate,
        was: &Option<Active>,
    ) -> Result<Came, Refusal> {
        if let Some(was) = was
            && was.fingerprint == candidate.fingerprint
        {
            return Ok(Came::Same);
        }
        let Some(plugin) = &candidate.plugin else {
            return Err(Refusal::failed("there is nothing to activate".to_owned()));
        };
        let plugin = match self.prepared(candidate, plugin) {
            Ok(plugin) => plugin,
            // The version that is active stays so until the new one can take its place.
            Err(refusal) if refusal.state == PluginState::Starting && was.is_some() => {
                return Ok(Came::Kept("a changed version is being started".to_owned()));
            }
            Err(refusal) => return Err(refusal),
        };
        let brought = self.bring(candidate, &plugin, was.as_ref()).await;
        brought.map(Came::New).map_err(Refusal::failed)
    }

    /// Notes how it went with one plugin.
    async fn settle(
        &self,
        candidate: &Candidate,
        was: Option<Active>,
        came: Result<Came, Refusal>,
        outcome: &mut Outcome,
    ) {
        let name = candidate.name.clone();
        let (state, reason) = match came {
            Ok(Came::Same) => {
                outcome.reloaded.kept.push(name.clone());
                outcome.active.extend(was);
                (PluginState::Active, None)
            }
            Ok(Came::Kept(reason)) => {
                self.report(&name, &reason).await;
                outcome.reloaded.kept.push(name.clone());
                outcome.outlived.push(name.clone());
                outcome.active.extend(was);
                (PluginState::Active, Some(reason))
            }
            Ok(Came::New(active)) => {
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

    /// Swaps the new picture in, and deactivates the plugins that are not in it. New rules are in
    /// force before the methods of their plugins can be called, and before a status says `active`.
    async fn install(
        &self,
        plan: Plan,
        outcome: Outcome,
        living: &mut Living,
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
            living.registry.unregister_all(&gone.name);
            if !statuses.contains_key(&gone.name) {
                reloaded.deactivated.push(gone.name.clone());
            }
        }
        for active in &mut now {
            for hook in std::mem::take(&mut active.hooks) {
                living.registry.register(&active.name, hook);
            }
            let project = plan.candidates.get(&active.name);
            let project = project.and_then(|candidate| candidate.project.clone());
            for handler in std::mem::take(&mut active.event_handlers) {
                active.listeners.start(Listening {
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
            ..freeze(&now, &living.registry, &statuses)
        }));
        let mut problems = plan.problems;
        for candidate in plan.candidates.values() {
            problems.extend(candidate.problems.iter().cloned());
        }
        for problem in &problems {
            tracing::warn!(%problem, "something is wrong in the files of plugins");
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
        living.active = now;
        self.retire(gone);
        self.rules.replace(sources).await;
        reloaded
    }

    /// Lets plugins go, the last one first, once nothing of them runs.
    fn retire(&self, gone: Vec<Active>) {
        let leaving: Vec<Retired> = gone.into_iter().map(Retired::from).rev().collect();
        if leaving.is_empty() {
            return;
        }
        let living = Arc::clone(&self.living);
        self.retiring.spawn(async move {
            for retired in leaving {
                retired.unused().await;
                // Held meanwhile, so that an instance is not activated while it is let go. One
                // that was activated again lives on.
                let living = living.lock().await;
                if !living.has(retired.plugin()) {
                    retired.deactivate().await;
                }
            }
        });
    }

    /// Tells everybody that the end is near, the last one first. One that panics or hangs is
    /// passed over.
    pub(crate) async fn before_stop(&self) {
        let living = self.living.lock().await;
        for active in living.active.iter().rev() {
            active.before_stop().await;
        }
    }

    /// Lets go of everything, the last one first. One that panics or hangs is left behind.
    pub(crate) async fn deactivate_all(&self) {
        self.preparations.stop();
        self.retiring.close();
        if tokio::time::timeout(RETIREMENT, self.retiring.wait())
            .await
            .is_err()
        {
            tracing::warn!("a plugin that was replaced is still in use");
        }
        let all = std::mem::take(&mut self.living.lock().await.active);
        for active in all.into_iter().rev() {
            Retired::from(active).deactivate().await;
        }
    }

    /// An active plugin.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Plugin>> {
        self.view.load().plugins.get(name).cloned()
    }

    /// Whether a plugin is active.
    pub(crate) fn is_active(&self, name: &str) -> bool {
        self.view.load().plugins.contains_key(name)
    }

    /// What is known about plugins.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.load_full()
    }

    /// What a plugin says, over all its lives.
    pub(crate) fn log(&self, name: &PluginName) -> PluginLog {
        self.logs.of(name)
    }

    /// What plugins remember.
    pub(crate) fn state(&self) -> &Arc<dyn StateBackend> {
        &self.services.state
    }

    /// Where the user's configuration is.
    pub(crate) fn config_dir(&self) -> Option<&PathBuf> {
        self.sources.config_dir.as_ref()
    }

    /// What is set for a plugin.
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

    /// A failure is news once.
    async fn report(&self, name: &PluginName, reason: &str) {
        let known = self.view.load();
        let told = known
            .statuses
            .get(name)
            .and_then(|old| old.reason.as_deref());
        if told == Some(reason) {
            return;
        }
        tracing::error!(plugin = %name, reason, "a plugin could not be activated");
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
            tracing::warn!(%error, "an event could not be journaled");
        }
    }
}

/// What became active, inactive or stayed between two views.
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

/// Who needs whom, the owners of required tools included.
fn graph(plan: &Plan) -> Graph {
    let edges = plan.candidates.iter().map(|(name, candidate)| {
        let declared = candidate.dependencies.iter().map(|need| &need.plugin);
        let required = candidate
            .manifest
            .iter()
            .flat_map(|manifest| &manifest.requires);
        let owners = required.filter_map(|tool| needs::owner(tool, plan));
        let needs = declared.chain(owners).filter(|need| *need != name);
        (name.clone(), needs.cloned().collect())
    });
    edges.collect()
}

/// An immutable picture of what is active.
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
