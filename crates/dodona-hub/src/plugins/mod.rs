//! The plugin `plugins`: looking after plugins, from any surface.

mod add;
mod describe;
mod types;

use std::sync::{Arc, Weak};

use dodona_plugin::activation::Activating;
use dodona_plugin::reading::nearest;
use dodona_plugin::{
    CallCtx, CallError, Contribution, ErrorCode, NoParams, Plugin, PluginContext, plugin,
};
use dodona_proto::{PluginName, PluginStatus};

use crate::hub::HubInner;
use crate::manager::{Candidate, Change, Reloaded, View};
use types::{
    AddParams, AddResult, CapabilityParams, InfoResult, ListResult, LogsParams, LogsResult,
    OrderResult, PluginParams, ReloadResult, RemoveParams, RemoveResult, SetParams, SetResult,
    SettingsParams, SettingsResult, TraceParams, TraceResult, UnsetParams,
};

/// Its name among the plugins.
pub(crate) fn name() -> PluginName {
    PluginName::new("plugins").expect("a constant name")
}

/// The plugin. It holds the hub weakly: the hub holds it.
pub(crate) struct PluginsPlugin {
    hub: Weak<HubInner>,
}

impl PluginsPlugin {
    pub(crate) fn new(hub: Weak<HubInner>) -> Self {
        Self { hub }
    }
}

impl Plugin for PluginsPlugin {
    fn name(&self) -> &str {
        "plugins"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn description(&self) -> &str {
        "Lists, enables, configures and reloads plugins."
    }

    fn activate(&self, _ctx: PluginContext) -> Activating<'_> {
        let methods = Arc::new(PluginsMethods {
            hub: self.hub.clone(),
        })
        .plugin_methods();
        Box::pin(async { Ok(Contribution::new().methods(methods?)) })
    }
}

struct PluginsMethods {
    hub: Weak<HubInner>,
}

impl PluginsMethods {
    fn hub(&self) -> Result<Arc<HubInner>, CallError> {
        self.hub
            .upgrade()
            .ok_or_else(|| CallError::new(ErrorCode::Internal, "the hub is gone"))
    }

    /// Changes the roster, loads it anew, and tells how the plugin is then.
    async fn change(&self, name: &PluginName, change: Change) -> Result<PluginStatus, CallError> {
        let hub = self.hub()?;
        hub.manager.change(name, change).await?;
        let reloaded = hub.manager.reload_for(name, &hub.snapshot).await;
        if let Some(refused) = reloaded.refused {
            return Err(CallError::new(ErrorCode::InvalidRequest, refused)
                .hint("correct the roster, then run `dodona plugins reload`"));
        }
        let view = hub.manager.view();
        let status = view.statuses.get(name).cloned();
        status.ok_or_else(|| missing(&view, name))
    }
}

#[plugin(name = "plugins")]
impl PluginsMethods {
    /// Lists the plugins: where each is in its life, and why; and what is wrong in the roster and
    /// in plugins' files.
    #[method(scope = "plugins:read")]
    async fn list(&self, _ctx: &CallCtx) -> Result<ListResult, CallError> {
        let hub = self.hub()?;
        Ok(describe::list(&hub, &hub.manager.view()))
    }

    /// Tells everything about a plugin: what it needs, may do, brings and can be set to.
    #[method(scope = "plugins:read")]
    async fn info(&self, ctx: &CallCtx, p: PluginParams) -> Result<InfoResult, CallError> {
        let hub = self.hub()?;
        let view = hub.manager.view();
        let candidate = known(&view, &p.plugin)?;
        Ok(describe::info(&hub, &view, candidate, &ctx.principal.user))
    }

    /// Reads the roster and all plugins' files anew and tells what is wrong with them, and what
    /// would be active. Nothing changes.
    #[method(scope = "plugins:read")]
    async fn check(&self, _ctx: &CallCtx, _p: NoParams) -> Result<ListResult, CallError> {
        let hub = self.hub()?;
        let plan = hub.manager.plan().await;
        Ok(describe::plan(&hub, plan))
    }

    /// Lists the plugins in the order in which they are activated, with what each needs.
    #[method(scope = "plugins:read")]
    async fn order(&self, _ctx: &CallCtx) -> Result<OrderResult, CallError> {
        Ok(describe::order(&self.hub()?.manager.view()))
    }

    /// Reads the roster and all plugins' files anew, and activates what is new or changed while
    /// calls go on. A roster that cannot be read changes nothing.
    #[method(scope = "plugins:admin", mutates, timeout_ms = 180_000)]
    async fn reload(&self, _ctx: &CallCtx) -> Result<ReloadResult, CallError> {
        let hub = self.hub()?;
        let reloaded = hub.manager.reload(&hub.snapshot).await;
        Ok(describe::reloaded(reloaded, &hub.manager.view()))
    }

    /// Writes into the roster that a plugin is to be active, and activates it.
    #[method(scope = "plugins:admin", mutates, timeout_ms = 180_000)]
    async fn enable(&self, _ctx: &CallCtx, p: PluginParams) -> Result<PluginStatus, CallError> {
        self.change(&p.plugin, Change::Enabled(true)).await
    }

    /// Writes into the roster that a plugin is not to be active, and lets it go.
    #[method(scope = "plugins:admin", mutates)]
    async fn disable(&self, _ctx: &CallCtx, p: PluginParams) -> Result<PluginStatus, CallError> {
        self.change(&p.plugin, Change::Enabled(false)).await
    }

    /// Writes a new plugin into the roster and activates it: an MCP server, or a directory. One
    /// that cannot be activated is taken out again.
    #[method(scope = "plugins:admin", mutates, timeout_ms = 180_000)]
    async fn add(&self, _ctx: &CallCtx, p: AddParams) -> Result<AddResult, CallError> {
        let hub = self.hub()?;
        add::add(&hub, p).await
    }

    /// Remove a plugin from the roster and deactivate it. Its settings stay, and so does its data unless
    /// `delete_data` is set: then its databases, its data directory and its state of all users are
    /// deleted. The data of a plugin that is gone already can be deleted in the same way.
    #[method(scope = "plugins:admin", mutates)]
    async fn remove(&self, _ctx: &CallCtx, p: RemoveParams) -> Result<RemoveResult, CallError> {
        let hub = self.hub()?;
        let view = hub.manager.view();
        let candidate = view.candidates.get(&p.plugin);
        let reloaded = match (candidate, p.delete_data) {
            (None, true) => Reloaded::default(),
            (candidate, _) => {
                let changed = hub.manager.change(&p.plugin, Change::Remove).await;
                let directory = candidate.and_then(|candidate| candidate.directory.as_ref());
                changed.map_err(|error| match directory {
                    Some(directory) => error.hint(format!(
                        "it is loaded from its directory `{}`: delete or move that directory",
                        directory.display()
                    )),
                    None => error,
                })?;
                hub.manager.reload(&hub.snapshot).await
            }
        };
        if p.delete_data {
            hub.manager.delete_data(&p.plugin).await?;
        }
        Ok(RemoveResult {
            reload: describe::reloaded(reloaded, &hub.manager.view()),
            data_deleted: p.delete_data,
        })
    }

    /// Writes into the roster what a plugin may do in addition.
    #[method(scope = "plugins:admin", mutates, timeout_ms = 180_000)]
    async fn grant(&self, _ctx: &CallCtx, p: CapabilityParams) -> Result<PluginStatus, CallError> {
        self.change(&p.plugin, Change::Grant(p.capabilities)).await
    }

    /// Writes into the roster what a plugin may no longer do.
    #[method(scope = "plugins:admin", mutates)]
    async fn revoke(&self, _ctx: &CallCtx, p: CapabilityParams) -> Result<PluginStatus, CallError> {
        self.change(&p.plugin, Change::Revoke(p.capabilities)).await
    }

    /// List the hooks in the order in which they run, with how often they ran, and their recent
    /// changes, effects and failures for you. With the scope `hub:admin`, those for all users.
    #[method(scope = "plugins:read")]
    async fn trace(&self, ctx: &CallCtx, p: TraceParams) -> Result<TraceResult, CallError> {
        let hub = self.hub()?;
        if let Some(name) = &p.plugin {
            known(&hub.manager.view(), name)?;
        }
        let redactor = &hub.config.journal.redactor;
        describe::trace(&hub.snapshot.load().hooks, &ctx.principal, redactor, &p)
    }

    /// Reads what a plugin from outside said of late, and how it went with it: its own lines, and
    /// what its process wrote. They are kept while the server runs.
    #[method(scope = "plugins:admin")]
    async fn logs(&self, _ctx: &CallCtx, p: LogsParams) -> Result<LogsResult, CallError> {
        let hub = self.hub()?;
        known(&hub.manager.view(), &p.plugin)?;
        let lines = hub.manager.log(&p.plugin).last(p.limit);
        Ok(LogsResult { lines })
    }

    /// Lists what can be set, with the values that hold for the caller.
    #[method(scope = "plugins:read")]
    async fn settings(
        &self,
        ctx: &CallCtx,
        p: SettingsParams,
    ) -> Result<SettingsResult, CallError> {
        let hub = self.hub()?;
        let view = hub.manager.view();
        if let Some(name) = &p.plugin {
            known(&view, name)?;
        }
        let wanted = |name: &PluginName| p.plugin.as_ref().is_none_or(|wanted| wanted == name);
        let candidates = view.candidates.values().filter(|c| wanted(&c.name));
        let plugins = candidates.filter_map(|candidate| {
            let settings = describe::settings(&hub, candidate, &ctx.principal.user);
            (!settings.is_empty()).then(|| (candidate.name.to_string(), settings))
        });
        Ok(SettingsResult {
            plugins: plugins.collect(),
        })
    }

    /// Sets a plugin's setting for the caller alone.
    #[method(scope = "plugins:settings", mutates)]
    async fn set(&self, ctx: &CallCtx, p: SetParams) -> Result<SetResult, CallError> {
        let hub = self.hub()?;
        let view = hub.manager.view();
        let candidate = known(&view, &p.plugin)?;
        let settings = hub.manager.settings_of(candidate);
        let invalid = |message| CallError::new(ErrorCode::InvalidParams, message);
        let Some(setting) = settings.declared().get(&p.setting) else {
            let message = format!("plugin `{}` has no setting `{}`", p.plugin, p.setting);
            let near = nearest(&p.setting, settings.declared().keys());
            return Err(match near {
                Some(near) => invalid(message).hint(format!("did you mean `{near}`?")),
                None => invalid(message),
            });
        };
        let value = setting
            .check(&p.value)
            .map_err(|why| invalid(format!("`{}` {why}", p.setting)))?;
        let user = &ctx.principal.user;
        hub.overrides
            .put(user, &p.plugin, &p.setting, Some(value))
            .await?;
        Ok(SetResult {
            settings: settings.of(user),
        })
    }

    /// Forgets what the caller set, so that what holds for everybody holds again.
    #[method(scope = "plugins:settings", mutates)]
    async fn unset(&self, ctx: &CallCtx, p: UnsetParams) -> Result<SetResult, CallError> {
        let hub = self.hub()?;
        let view = hub.manager.view();
        let candidate = known(&view, &p.plugin)?;
        let user = &ctx.principal.user;
        hub.overrides.put(user, &p.plugin, &p.setting, None).await?;
        Ok(SetResult {
            settings: hub.manager.settings_of(candidate).of(user),
        })
    }
}

fn known<'v>(view: &'v View, name: &PluginName) -> Result<&'v Candidate, CallError> {
    view.candidates.get(name).ok_or_else(|| missing(view, name))
}

/// There is no such plugin, and perhaps another was meant.
fn missing(view: &View, name: &PluginName) -> CallError {
    let error = CallError::new(ErrorCode::NotFound, format!("there is no plugin `{name}`"));
    match nearest(name.as_str(), view.candidates.keys()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("run `dodona plugins list`"),
    }
}
