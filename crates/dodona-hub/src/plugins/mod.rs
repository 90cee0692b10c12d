//! The plugin `plugins`: methods that manage plugins.

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

pub(crate) fn name() -> PluginName {
    PluginName::new("plugins").expect("a constant name")
}

/// The plugin `plugins`. Holds the hub weakly, because the hub holds the plugin.
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
            .ok_or_else(|| CallError::new(ErrorCode::Internal, "the server is stopping"))
    }

    /// Changes the roster, reloads the plugins, and returns the new status.
    async fn change(&self, name: &PluginName, change: Change) -> Result<PluginStatus, CallError> {
        let hub = self.hub()?;
        hub.manager.change(name, change).await?;
        let reloaded = hub.manager.reload_for(name, &hub.snapshot).await;
        if let Some(refused) = reloaded.refused {
            return Err(CallError::new(ErrorCode::InvalidRequest, refused)
                .hint("fix the roster, then run `dodona plugins reload`"));
        }
        let view = hub.manager.view();
        let status = view.statuses.get(name).cloned();
        status.ok_or_else(|| missing(&view, name))
    }
}

#[plugin(name = "plugins")]
impl PluginsMethods {
    /// List plugins with their status and the reason for it, and the problems in the roster and in plugin files.
    #[method(scope = "plugins:read")]
    async fn list(&self, _ctx: &CallCtx) -> Result<ListResult, CallError> {
        let hub = self.hub()?;
        Ok(describe::list(&hub, &hub.manager.view()))
    }

    /// Show a plugin: dependencies, capabilities, methods, hooks, rules and settings.
    #[method(scope = "plugins:read")]
    async fn info(&self, ctx: &CallCtx, p: PluginParams) -> Result<InfoResult, CallError> {
        let hub = self.hub()?;
        let view = hub.manager.view();
        let candidate = known(&view, &p.plugin)?;
        Ok(describe::info(&hub, &view, candidate, &ctx.principal.user))
    }

    /// Check the roster and all plugin files, and report problems and which plugins would be active. Nothing is
    /// changed.
    #[method(scope = "plugins:read")]
    async fn check(&self, _ctx: &CallCtx, _p: NoParams) -> Result<ListResult, CallError> {
        let hub = self.hub()?;
        let plan = hub.manager.plan().await;
        Ok(describe::plan(&hub, plan))
    }

    /// List plugins in order of activation, with their dependencies.
    #[method(scope = "plugins:read")]
    async fn order(&self, _ctx: &CallCtx) -> Result<OrderResult, CallError> {
        Ok(describe::order(&self.hub()?.manager.view()))
    }

    /// Reload the roster and all plugin files, and activate new and changed plugins. Running calls continue. If
    /// the roster cannot be read, nothing is changed.
    #[method(scope = "plugins:admin", mutates, timeout_ms = 180_000)]
    async fn reload(&self, _ctx: &CallCtx) -> Result<ReloadResult, CallError> {
        let hub = self.hub()?;
        let reloaded = hub.manager.reload(&hub.snapshot).await;
        Ok(describe::reloaded(reloaded, &hub.manager.view()))
    }

    /// Enable a plugin in the roster and activate it.
    #[method(scope = "plugins:admin", mutates, timeout_ms = 180_000)]
    async fn enable(&self, _ctx: &CallCtx, p: PluginParams) -> Result<PluginStatus, CallError> {
        self.change(&p.plugin, Change::Enabled(true)).await
    }

    /// Disable a plugin in the roster and deactivate it.
    #[method(scope = "plugins:admin", mutates)]
    async fn disable(&self, _ctx: &CallCtx, p: PluginParams) -> Result<PluginStatus, CallError> {
        self.change(&p.plugin, Change::Enabled(false)).await
    }

    /// Add a plugin to the roster and activate it: an MCP server (`mcp:`) or a directory (`dir:`). If it cannot be
    /// activated, it is removed again.
    #[method(scope = "plugins:admin", mutates, timeout_ms = 180_000)]
    async fn add(&self, _ctx: &CallCtx, p: AddParams) -> Result<AddResult, CallError> {
        let hub = self.hub()?;
        add::add(&hub, p).await
    }

    /// Remove a plugin from the roster and deactivate it. Its settings and data are kept. With `delete_data`, its
    /// databases, its data directory and its state for all users are deleted too; this also works for a plugin
    /// that was removed before.
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
                        "the plugin is loaded from directory `{}`; delete or move the directory",
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

    /// Grant a plugin capabilities in the roster.
    #[method(scope = "plugins:admin", mutates, timeout_ms = 180_000)]
    async fn grant(&self, _ctx: &CallCtx, p: CapabilityParams) -> Result<PluginStatus, CallError> {
        self.change(&p.plugin, Change::Grant(p.capabilities)).await
    }

    /// Revoke capabilities of a plugin in the roster.
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

    /// Read recent log lines of an external plugin: its own lines, the output of its process, and activation
    /// events. They are kept in memory until the server stops.
    #[method(scope = "plugins:admin")]
    async fn logs(&self, _ctx: &CallCtx, p: LogsParams) -> Result<LogsResult, CallError> {
        let hub = self.hub()?;
        known(&hub.manager.view(), &p.plugin)?;
        let lines = hub.manager.log(&p.plugin).last(p.limit);
        Ok(LogsResult { lines })
    }

    /// List the settings of plugins with their values for you.
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

    /// Set a setting of a plugin for you only.
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

    /// Remove your own value of a setting, so that the server's value applies again.
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

fn missing(view: &View, name: &PluginName) -> CallError {
    let error = CallError::new(ErrorCode::NotFound, format!("plugin `{name}` not found"));
    match nearest(name.as_str(), view.candidates.keys()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("run `dodona plugins list`"),
    }
}
