//! The hub's implementation of the host traits for plugins.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use dodona_hooks::Hooks;
use dodona_plugin::activation::EventDraft;
use dodona_plugin::{
    Behalf, BoxFuture, CallError, DroppedNotification, ErrorCode, HookHost, ProjectInstructions,
    RuleHost, RuleRefresh, RuleSource, RuleTrust, StateOwner, StateSnapshot, TrustHost,
    TrustedFolder, TrustedTexts, WrittenFiles,
};
use dodona_proto::{Effect, Notification, PluginEffect, PluginName, ProjectId, Severity, UserId};
use serde_json::{Map, Value};

use crate::hub::HubInner;

/// Prefix of the types of events that plugins publish.
const CUSTOM: &str = "custom.";

/// Handle for plugins that fire hook points or evaluate rules. Holds the hub weakly, because the hub holds the
/// plugins.
pub(crate) struct Host(pub(crate) Weak<HubInner>);

impl HookHost for Host {
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(hub) = self.0.upgrade() {
                let mut activated = hub.activated.subscribe();
                drop(hub);
                // An error means that the hub was dropped; there is nothing left to wait for.
                let _ = activated.wait_for(|done| *done).await;
            }
        })
    }

    fn hooks(&self) -> Arc<Hooks> {
        match self.0.upgrade() {
            Some(hub) => Arc::clone(&hub.snapshot.load().hooks),
            None => Arc::default(),
        }
    }

    fn apply_effects<'a>(
        &'a self,
        behalf: Behalf<'a>,
        effects: Vec<PluginEffect>,
    ) -> BoxFuture<'a, Vec<(PluginName, Notification)>> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(hub) => hub.apply_effects(behalf, effects).await,
                None => Vec::new(),
            }
        })
    }

    fn notification_dropped(&self, dropped: DroppedNotification) {
        if let Some(hub) = self.0.upgrade() {
            hub.manager.notification_dropped(dropped);
        }
    }
}

impl RuleHost for Host {
    fn sources(&self) -> Vec<RuleSource> {
        let hub = self.0.upgrade();
        hub.map(|hub| hub.manager.rule_sources())
            .unwrap_or_default()
    }

    fn settings(&self, plugin: &PluginName, user: &UserId) -> Option<Map<String, Value>> {
        let hub = self.0.upgrade()?;
        if !hub.manager.is_active(plugin.as_str()) {
            return None;
        }
        let view = hub.manager.view();
        let candidate = view.candidates.get(plugin)?;
        Some(hub.manager.settings_of(candidate).of(user))
    }

    fn choices(&self, user: &UserId) -> Map<String, Value> {
        let hub = self.0.upgrade();
        hub.map(|hub| hub.overrides.choices(user))
            .unwrap_or_default()
    }

    fn state<'a>(
        &'a self,
        owner: &'a StateOwner,
    ) -> BoxFuture<'a, Result<StateSnapshot, CallError>> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(hub) => hub.manager.state().snapshot(owner).await,
                None => Err(gone()),
            }
        })
    }

    fn set_state<'a>(
        &'a self,
        owner: &'a StateOwner,
        key: &'a str,
        value: Value,
    ) -> BoxFuture<'a, Result<u64, CallError>> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(hub) => hub.manager.state().set(owner, key, value).await,
                None => Err(gone()),
            }
        })
    }

    fn project_root(&self, project: &ProjectId) -> Option<PathBuf> {
        self.0.upgrade()?.projects.root(project)
    }

    fn rule_trust(&self, root: &Path) -> RuleTrust {
        let hub = self.0.upgrade();
        hub.map(|hub| hub.trust.of_rules(root)).unwrap_or_default()
    }

    fn trust_written<'a>(
        &'a self,
        root: &'a Path,
        user: &'a UserId,
        files: WrittenFiles,
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(hub) => hub.trust.accept_written(root, user, files).await,
                None => Err(gone()),
            }
        })
    }

    fn register(&self, engine: Weak<dyn RuleRefresh>) {
        if let Some(hub) = self.0.upgrade() {
            hub.manager.set_rule_engine(engine);
        }
    }

    fn disabled(&self, user: &UserId) -> Arc<BTreeSet<String>> {
        let hub = self.0.upgrade();
        hub.map(|hub| hub.overrides.disabled(user))
            .unwrap_or_default()
    }

    fn set_disabled<'a>(
        &'a self,
        user: &'a UserId,
        rule: &'a str,
        disabled: bool,
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(hub) => hub.overrides.disable(user, rule, disabled).await,
                None => Err(gone()),
            }
        })
    }
}

impl TrustHost for Host {
    fn texts<'a>(
        &'a self,
        project: &'a ProjectId,
        folder: TrustedFolder,
    ) -> BoxFuture<'a, Result<TrustedTexts, String>> {
        Box::pin(async move {
            let Some(hub) = self.0.upgrade() else {
                return Ok(TrustedTexts::new());
            };
            match hub.projects.root(project) {
                Some(root) => hub.trust.texts(&root, folder).await,
                None => Ok(TrustedTexts::new()),
            }
        })
    }

    fn instructions<'a>(
        &'a self,
        project: &'a ProjectId,
    ) -> BoxFuture<'a, Option<ProjectInstructions>> {
        Box::pin(async move {
            let core = self.0.upgrade()?;
            let root = core.projects.root(project)?;
            core.trust.instructions(&root).await
        })
    }
}

fn gone() -> CallError {
    CallError::new(ErrorCode::PluginNotActive, "the server is stopping")
}

impl HubInner {
    /// Applies effects in order. Notifications are returned for delivery.
    pub(crate) async fn apply_effects(
        &self,
        behalf: Behalf<'_>,
        effects: Vec<PluginEffect>,
    ) -> Vec<(PluginName, Notification)> {
        let mut notifications = Vec::new();
        for PluginEffect { plugin, effect } in effects {
            match effect {
                Effect::NotifySelf(notification) => notifications.push((plugin, notification)),
                Effect::Log { level, message } => log(&plugin, level, &message),
                Effect::EmitEvent {
                    event_type,
                    payload,
                } => self.emit_event(behalf, &plugin, &event_type, payload).await,
                Effect::SetState { key, value } => {
                    self.set_state(behalf, &plugin, &key, value).await;
                }
            }
        }
        notifications
    }

    async fn set_state(&self, behalf: Behalf<'_>, plugin: &PluginName, key: &str, value: Value) {
        let owner = StateOwner {
            user: behalf.user.clone(),
            project: behalf.project.cloned(),
            plugin: plugin.clone(),
        };
        if let Err(error) = self.manager.state().set(&owner, key, value).await {
            tracing::warn!(%plugin, key, %error, "failed to store a state value");
        }
    }

    async fn emit_event(
        &self,
        behalf: Behalf<'_>,
        plugin: &PluginName,
        kind: &str,
        payload: Value,
    ) {
        if !kind.starts_with(CUSTOM) || !(payload.is_object() || payload.is_null()) {
            tracing::warn!(%plugin, event = kind, "ignored an event of a plugin: its type must start with `{CUSTOM}` and its payload must be an object");
            return;
        }
        let draft = EventDraft {
            kind,
            source: plugin.as_str(),
            severity: Severity::Info,
            payload,
            behalf: Some(behalf),
            id: None,
        };
        if let Err(error) = self.bus.publish(draft).await {
            tracing::warn!(%plugin, event = kind, %error, "failed to journal an event");
        }
    }
}

fn log(plugin: &PluginName, level: Severity, message: &str) {
    match level {
        Severity::Debug => tracing::debug!(target: "dodona::plugin", %plugin, "{message}"),
        Severity::Info => tracing::info!(target: "dodona::plugin", %plugin, "{message}"),
        Severity::Warning => tracing::warn!(target: "dodona::plugin", %plugin, "{message}"),
        Severity::Error => tracing::error!(target: "dodona::plugin", %plugin, "{message}"),
    }
}
