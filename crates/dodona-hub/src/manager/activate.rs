//! Activating and deactivating one plugin.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};
use std::time::Duration;

use dodona_hooks::Hook;
use dodona_plugin::{
    AuthContext, Capability, Contribution, EventHandler, Method, Plugin, PluginContext, StateStore,
    SystemContext, Telemetry,
};
use dodona_proto::{HookPoint, MethodDescriptor, MethodKind, PluginName};
use dodona_schema::Validator;
use dodona_store::{DatabaseLimits, Db, Durability};
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use super::discover::{Candidate, Kind};
use super::event_listeners::Listeners;
use super::replace_methods::{ActivationId, MethodReplacer};
use super::{PluginManager, Services};
use crate::config::CapabilityMode;
use crate::limits::PluginLimits;
use crate::meter::Meter;
use crate::router::{Lease, Route};

/// Timeout of a deactivation.
const DEACTIVATION: Duration = Duration::from_secs(2);

/// How long calls of a replaced plugin may continue before it is deactivated anyway.
const LAST_CALLS: Duration = Duration::from_secs(30);

/// Limits of the database of an external plugin.
const DATABASE: DatabaseLimits = DatabaseLimits {
    max_bytes: 256 << 20,
    statement_time: Duration::from_secs(5),
    max_value_bytes: 16 << 20,
};

/// An active plugin with its contribution.
pub(crate) struct Active {
    pub(crate) name: PluginName,
    pub(crate) plugin: Arc<dyn Plugin>,
    pub(crate) fingerprint: String,
    pub(crate) routes: Vec<Arc<Route>>,
    /// Its hooks, before they are registered.
    pub(crate) hooks: Vec<Hook>,
    /// Its event handlers, before they are started.
    pub(crate) event_handlers: Vec<EventHandler>,
    /// Running event handlers. They stop when this is dropped.
    pub(crate) listeners: Listeners,
    /// Uses that exceed its capabilities and only cause a warning.
    pub(crate) warnings: Vec<String>,
    /// Cancelled when the last route is dropped.
    pub(crate) unused: CancellationToken,
    /// Distinguishes this activation from others of the plugin.
    pub(super) activation: ActivationId,
    /// Shared by all its routes.
    pub(super) lease: Weak<Lease>,
    pub(super) limits: Arc<PluginLimits>,
}

impl Active {
    /// Calls `before_stop` of the plugin.
    pub(crate) async fn before_stop(&self) {
        let work = async { self.plugin.before_stop().await };
        guarded(&self.name, "before the stop", work).await;
    }
}

/// Runs a future of a plugin. Continues if it panics or times out.
async fn guarded(name: &PluginName, when: &str, work: impl Future<Output = ()>) {
    let work = AssertUnwindSafe(work).catch_unwind();
    match tokio::time::timeout(DEACTIVATION, work).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => tracing::error!(plugin = %name, "plugin panicked {when}"),
        Err(_) => tracing::error!(plugin = %name, "plugin timed out {when}"),
    }
}

impl PluginManager {
    /// Activates a plugin and checks its contribution. On an error nothing of it is installed.
    pub(super) async fn bring(
        &self,
        candidate: &Candidate,
        plugin: &Arc<dyn Plugin>,
        was: Option<&Active>,
    ) -> Result<Active, String> {
        let activation = ActivationId::default();
        let context = self.context(candidate, &activation);
        let db = context.db.clone();
        let contribution = self.contribution(plugin, context).await?;
        let accepted = self
            .accept(candidate, plugin, contribution, &db, activation)
            .await;
        // The plugin is active but its contribution is invalid, so it is deactivated. An instance that was active
        // before is deactivated together with its earlier activation.
        if accepted.is_err() && was.is_none_or(|was| !Arc::ptr_eq(&was.plugin, plugin)) {
            let unused = CancellationToken::new();
            let (name, plugin) = (candidate.name.clone(), Arc::clone(plugin));
            let rejected = Retired {
                name,
                plugin,
                unused,
            };
            rejected.deactivate().await;
        }
        accepted
    }

    /// Checks a contribution completely before anything of it is used.
    async fn accept(
        &self,
        candidate: &Candidate,
        plugin: &Arc<dyn Plugin>,
        contribution: Contribution,
        db: &Db,
        activation: ActivationId,
    ) -> Result<Active, String> {
        let Contribution {
            methods,
            hooks,
            event_handlers,
            migrations,
        } = contribution;
        let mut warnings = self.permitted(candidate, &hooks)?;
        warnings.extend(self.may_listen(candidate, &event_handlers)?);
        let lease = Arc::new(Lease::default());
        let unused = lease.unused.clone();
        let limits = PluginLimits::new(&candidate.name, &self.services.config.limits);
        let limits = Arc::new(limits);
        let routes = self.services.routes(candidate, methods, &lease, &limits)?;
        if !migrations.is_empty() {
            let migrated = db.migrate(migrations).await;
            migrated.map_err(|error| with_source(&error))?;
        }
        plugin.recover().await;
        Ok(Active {
            name: candidate.name.clone(),
            plugin: Arc::clone(plugin),
            fingerprint: candidate.fingerprint.clone(),
            routes,
            hooks,
            event_handlers,
            listeners: Listeners::default(),
            warnings,
            unused,
            activation,
            lease: Arc::downgrade(&lease),
            limits,
        })
    }

    /// Checks the hooks of a plugin against its capabilities. A violation is an error, or for a built-in plugin a
    /// warning if so configured.
    fn permitted(&self, candidate: &Candidate, hooks: &[Hook]) -> Result<Vec<String>, String> {
        let points: BTreeSet<HookPoint> = hooks.iter().map(Hook::point).collect();
        let needed = points
            .into_iter()
            .map(|point| (point, Capability::for_hook(point)));
        let missing = needed.filter(|(_, needed)| !candidate.capabilities.allow(needed));
        let told: Vec<String> = missing
            .map(|(point, needed)| {
                format!("it has a hook at {point} without the capability `{needed}`")
            })
            .collect();
        self.refuse_or_warn(candidate, told)
    }

    /// The same for its event handlers.
    fn may_listen(
        &self,
        candidate: &Candidate,
        handlers: &[EventHandler],
    ) -> Result<Vec<String>, String> {
        let prefixes: BTreeSet<&str> = handlers.iter().map(EventHandler::prefix).collect();
        let missing = prefixes
            .into_iter()
            .filter(|prefix| !candidate.capabilities.allow_events(prefix));
        let told = missing.map(|prefix| match prefix {
            "" => "it listens to every event without the capability `events:*`".to_owned(),
            prefix => format!("it listens to `{prefix}` without the capability `events:{prefix}`"),
        });
        self.refuse_or_warn(candidate, told.collect())
    }

    /// Reports uses that exceed the capabilities, as an error if they are enforced, otherwise as warnings. Each
    /// text ends with the capability in backticks.
    fn refuse_or_warn(
        &self,
        candidate: &Candidate,
        told: Vec<String>,
    ) -> Result<Vec<String>, String> {
        match told.first() {
            Some(first) if self.services.enforces(candidate) => {
                let name = &candidate.name;
                let capability = first.rsplit('`').nth(1).unwrap_or_default();
                Err(format!(
                    "{first}; run `dodona plugins grant {name} {capability}`"
                ))
            }
            _ => {
                for warning in &told {
                    tracing::warn!(plugin = %candidate.name, "{warning}");
                }
                Ok(told)
            }
        }
    }

    pub(super) fn context(
        &self,
        candidate: &Candidate,
        activation: &ActivationId,
    ) -> PluginContext {
        let Services {
            store, data_dir, ..
        } = &self.services;
        let name = candidate.name.clone();
        let file = database_file(candidate);
        let plugin = candidate.plugin.as_ref();
        let durability = plugin.map_or(Durability::Full, |plugin| plugin.durability());
        let db = match candidate.kind {
            Kind::External => store.bounded_database(&file, durability, DATABASE),
            Kind::Own | Kind::Builtin => store.database(&file, durability),
        };
        PluginContext {
            manifest: self.manifest(candidate),
            settings: self.settings_of(candidate),
            config: Arc::new(candidate.configured.raw.clone()),
            state: StateStore::new(name.clone(), Arc::clone(&self.services.state)),
            data_dir: data_dir.join("plugins").join(name.as_str()),
            log: self.log(&name),
            project: candidate.project.clone(),
            db,
            redactor: self.services.config.journal.redactor.clone(),
            system: Arc::new(self.services.system(candidate)),
            history: Arc::clone(&self.services.history),
            methods: Arc::new(MethodReplacer {
                hub: self.host.hub.clone(),
                name: name.clone(),
                activation: activation.clone(),
            }),
            hooks: Arc::clone(&self.host.hooks),
            rules: Arc::clone(&self.host.rules),
            trust: Arc::clone(&self.host.trust),
            name,
        }
    }

    async fn contribution(
        &self,
        plugin: &Arc<dyn Plugin>,
        context: PluginContext,
    ) -> Result<Contribution, String> {
        let activating = AssertUnwindSafe(async { plugin.activate(context).await }).catch_unwind();
        let timeout = self.services.config.activation_timeout;
        match tokio::time::timeout(timeout, activating).await {
            Ok(Ok(Ok(contribution))) => Ok(contribution),
            Ok(Ok(Err(error))) => Err(error.to_string()),
            Ok(Err(_)) => Err("it panicked during activation".to_owned()),
            Err(_) => Err(format!("activation timed out after {timeout:?}")),
        }
    }
}

/// The database of a plugin. A plugin of a project has its own, so that a plugin of the same name in another
/// project does not see its data.
pub(crate) fn database_file(candidate: &Candidate) -> String {
    let name = &candidate.name;
    match &candidate.project {
        None => format!("plugins/{name}/{name}.db"),
        Some(project) => format!("plugins/{name}/project-{project}.db"),
    }
}

impl Services {
    /// The shared services for one plugin.
    fn system(&self, candidate: &Candidate) -> SystemContext {
        let http_client = match candidate.capabilities.hosts() {
            Some(hosts) if self.enforces(candidate) => self.config.http.limited_to(hosts),
            _ => self.config.http.clone(),
        };
        SystemContext {
            config: Arc::clone(&self.global_config),
            event_bus: Arc::clone(&self.bus),
            http_client,
            telemetry: Telemetry::new(candidate.name.clone()),
            auth: AuthContext::new(candidate.capabilities.clone()),
        }
    }

    /// Whether the capabilities of a plugin are enforced.
    fn enforces(&self, candidate: &Candidate) -> bool {
        let mode = self.config.capability_mode;
        candidate.kind == Kind::External || mode == CapabilityMode::Enforce
    }

    pub(super) fn routes(
        &self,
        candidate: &Candidate,
        methods: Vec<Method>,
        lease: &Arc<Lease>,
        limits: &Arc<PluginLimits>,
    ) -> Result<Vec<Arc<Route>>, String> {
        let plugin = &candidate.name;
        let callable = match self.enforces(candidate) {
            true => candidate.capabilities.callable().map(|mut plugins| {
                plugins.insert(plugin.clone());
                Arc::new(plugins)
            }),
            false => None,
        };
        let mut routes: Vec<Arc<Route>> = Vec::new();
        for method in methods {
            let descriptor = Arc::clone(method.descriptor());
            if descriptor.name.plugin() != plugin.as_str() {
                return Err(format!(
                    "it provides `{}`, which belongs to another plugin",
                    descriptor.name
                ));
            }
            if routes
                .iter()
                .any(|route| route.descriptor().name == descriptor.name)
            {
                return Err(format!("it provides `{}` twice", descriptor.name));
            }
            objects(&descriptor)?;
            let validator = Validator::new(&descriptor.params)
                .map_err(|error| format!("invalid schema of `{}`: {error}", descriptor.name))?;
            let result_type = descriptor.result["title"]
                .as_str()
                .unwrap_or("Result")
                .into();
            routes.push(Arc::new(Route {
                method,
                plugin: plugin.clone(),
                validator,
                result_type,
                limits: Arc::clone(limits),
                meter: Meter::new(&descriptor.name),
                project: candidate.project.clone(),
                callable: callable.clone(),
                _lease: Arc::clone(lease),
            }));
        }
        Ok(routes)
    }
}

/// Parameters and results must be objects. External plugins may not follow this.
fn objects(descriptor: &MethodDescriptor) -> Result<(), String> {
    let result = match descriptor.kind {
        MethodKind::Unary => "result",
        MethodKind::Streaming => "items",
    };
    for (schema, part) in [
        (&descriptor.params, "parameters"),
        (&descriptor.result, result),
    ] {
        if schema["type"] != "object" {
            return Err(format!(
                "the {part} of `{}` must be an object",
                descriptor.name
            ));
        }
    }
    Ok(())
}

/// An error with its causes, for the status.
fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_source(source)),
        None => error.to_string(),
    }
}

/// A plugin whose methods can no longer be called.
pub(crate) struct Retired {
    name: PluginName,
    plugin: Arc<dyn Plugin>,
    unused: CancellationToken,
}

impl From<Active> for Retired {
    /// Drops its routes, so that only running calls keep it alive.
    fn from(active: Active) -> Self {
        Self {
            name: active.name,
            plugin: active.plugin,
            unused: active.unused,
        }
    }
}

impl Retired {
    pub(crate) fn plugin(&self) -> &Arc<dyn Plugin> {
        &self.plugin
    }

    /// Waits until its last call has ended, up to a timeout.
    pub(crate) async fn unused(&self) {
        let ended = tokio::time::timeout(LAST_CALLS, self.unused.cancelled()).await;
        if ended.is_err() {
            tracing::warn!(plugin = %self.name, "calls of a replaced plugin are still running");
        }
    }

    /// Deactivates it. A plugin that panics or hangs is abandoned.
    pub(crate) async fn deactivate(self) {
        let Self { name, plugin, .. } = self;
        let work = async { plugin.deactivate().await };
        guarded(&name, "in its deactivation", work).await;
    }
}
