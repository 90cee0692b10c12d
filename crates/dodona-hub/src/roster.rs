//! Bringing plugins to life.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use dodona_hooks::{Gate, Hook, HookRegistry};
use dodona_plugin::activation::EventDraft;
use dodona_plugin::{Contribution, EventBus, HookHost, Method, Plugin, PluginContext};
use dodona_proto::{MethodDescriptor, MethodKind, PluginName, PluginState, PluginStatus, Severity};
use dodona_store::{Durability, Store};
use futures_util::FutureExt;
use serde_json::json;

use crate::config::HubConfig;
use crate::limits::PluginLimits;
use crate::meter::Meter;
use crate::router::{Route, Snapshot};

/// Activates plugins, in the order of their names.
pub(crate) struct Roster<'a> {
    pub(crate) config: &'a HubConfig,
    pub(crate) store: &'a Store,
    pub(crate) data_dir: PathBuf,
    pub(crate) bus: Arc<dyn EventBus>,
    pub(crate) hooks: Arc<dyn HookHost>,
}

/// A plugin's contribution, checked and ready to be installed as a whole.
struct Ready {
    routes: Vec<Arc<Route>>,
    gates: Vec<Gate>,
    hooks: Vec<Hook>,
}

impl Roster<'_> {
    /// One failing plugin fails alone: it has a status that says why, and nothing of it is
    /// installed.
    pub(crate) async fn activate(
        &self,
        plugins: &BTreeMap<PluginName, Arc<dyn Plugin>>,
    ) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let mut registry = HookRegistry::default();
        for (name, plugin) in plugins {
            let (state, reason) = match self.ready(name, plugin.as_ref()).await {
                Ok(ready) => {
                    for hook in ready
                        .hooks
                        .into_iter()
                        .chain(ready.gates.into_iter().map(Hook::from))
                    {
                        registry.register(name, hook);
                    }
                    snapshot.routes.extend(
                        ready
                            .routes
                            .into_iter()
                            .map(|route| (route.descriptor().name.clone(), route)),
                    );
                    (PluginState::Active, None)
                }
                Err(reason) => {
                    self.report(name, &reason).await;
                    (PluginState::Failed, Some(reason))
                }
            };
            let version = Some(plugin.version().to_owned());
            snapshot.plugins.insert(
                name.clone(),
                PluginStatus {
                    name: name.clone(),
                    state,
                    reason,
                    version,
                },
            );
        }
        snapshot.hooks = Arc::new(registry.freeze());
        snapshot
    }

    async fn ready(&self, name: &PluginName, plugin: &dyn Plugin) -> Result<Ready, String> {
        let db = self
            .store
            .database(&format!("plugins/{name}/{name}.db"), Durability::Full);
        let data_dir = self.data_dir.join("plugins").join(name.as_str());
        let context = PluginContext {
            name: name.clone(),
            data_dir,
            db: db.clone(),
            bus: Arc::clone(&self.bus),
            hooks: Arc::clone(&self.hooks),
        };
        let activating = AssertUnwindSafe(async { plugin.activate(context).await }).catch_unwind();
        let timeout = self.config.activation_timeout;
        let contribution = match tokio::time::timeout(timeout, activating).await {
            Ok(Ok(Ok(contribution))) => contribution,
            Ok(Ok(Err(error))) => return Err(error.to_string()),
            Ok(Err(_)) => return Err("it panicked while it was being activated".to_owned()),
            Err(_) => {
                return Err(format!("it took longer than {timeout:?} to activate"));
            }
        };
        let Contribution {
            methods,
            gates,
            hooks,
            migrations,
        } = contribution;
        let routes = self.routes(name, methods)?;
        if !migrations.is_empty() {
            db.migrate(migrations)
                .await
                .map_err(|error| with_source(&error))?;
        }
        Ok(Ready {
            routes,
            gates,
            hooks,
        })
    }

    fn routes(&self, plugin: &PluginName, methods: Vec<Method>) -> Result<Vec<Arc<Route>>, String> {
        let limits = Arc::new(PluginLimits::new(plugin, &self.config.limits));
        let mut routes: Vec<Arc<Route>> = Vec::new();
        for method in methods {
            let descriptor = Arc::clone(method.descriptor());
            if descriptor.name.plugin() != plugin.as_str() {
                return Err(format!(
                    "it brings `{}`, which belongs to another plugin",
                    descriptor.name
                ));
            }
            if routes
                .iter()
                .any(|route| route.descriptor().name == descriptor.name)
            {
                return Err(format!("it brings `{}` twice", descriptor.name));
            }
            objects(&descriptor)?;
            let validator = jsonschema::validator_for(&descriptor.params).map_err(|error| {
                format!("the schema of `{}` is not one: {error}", descriptor.name)
            })?;
            let result_type = descriptor.result["title"]
                .as_str()
                .unwrap_or("Result")
                .into();
            let (plugin, limits) = (plugin.clone(), Arc::clone(&limits));
            let meter = Meter::new(&descriptor.name);
            routes.push(Arc::new(Route {
                method,
                plugin,
                validator,
                result_type,
                limits,
                meter,
            }));
        }
        Ok(routes)
    }

    async fn report(&self, name: &PluginName, reason: &str) {
        tracing::error!(plugin = %name, reason, "a plugin could not be activated");
        let draft = EventDraft {
            kind: "plugin.failed",
            source: "hub",
            severity: Severity::Error,
            payload: json!({ "plugin": name, "reason": reason }),
            call: None,
            id: None,
        };
        if let Err(error) = self.bus.publish(draft).await {
            tracing::warn!(%error, "an event could not be journaled");
        }
    }
}

/// Parameters and results are objects; a method that was described elsewhere may not know.
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

/// An error and what caused it, for the status line.
fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", with_source(source)),
        None => error.to_string(),
    }
}
