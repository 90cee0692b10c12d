//! How a plugin comes to life.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use dodona_hooks::{Hook, Hooks};
use dodona_proto::{Event, Notification, PluginEffect, PluginName, ProjectId, Severity, UserId};
use dodona_store::{Db, Durability, Migration, Redactor};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::event_handler::EventHandler;
use crate::history::EventHistory;
use crate::log::PluginLog;
use crate::manifest::Manifest;
use crate::rules::{DroppedNotification, RuleHost};
use crate::settings::{PluginSettings, Settings};
use crate::state::StateStore;
use crate::system::SystemContext;
use crate::trusted::TrustHost;
use crate::{ContractError, Method};

/// What [`Plugin::activate`] returns.
pub type Activating<'a> = BoxFuture<'a, Result<Contribution, ActivationError>>;

/// The one unit of extension.
#[doc(alias = "AskyPlugin")]
pub trait Plugin: Send + Sync + 'static {
    /// Its name, the first part of its methods' names.
    fn name(&self) -> &str;

    /// Its version, semantic.
    fn version(&self) -> &str;

    /// What it is for, in a sentence.
    fn description(&self) -> &str {
        ""
    }

    /// Plugins that must be active before it, each with or without a version, as in
    /// `vault >= 1.2`. The roster may name more.
    fn dependencies(&self) -> &[&str] {
        &[]
    }

    /// What a user may set for it, in `plugins/<name>.toml` or alone.
    fn settings(&self) -> Settings {
        Settings::new()
    }

    /// Whether it stays active whatever the roster says of it: for what nobody shall be able to
    /// switch off.
    fn is_essential(&self) -> bool {
        false
    }

    /// What its database promises. [`Durability::Rebuildable`] is for data that the plugin builds
    /// from files or other databases: when it is damaged or missing, it is created again, empty.
    fn durability(&self) -> Durability {
        Durability::Full
    }

    /// Whether [`prepare`](Self::prepare) has to run before [`activate`](Self::activate): because
    /// something outside of the program must be started, which may take long or never end.
    fn needs_preparation(&self, _ctx: &PluginContext) -> bool {
        false
    }

    /// Does what takes long before activation. Several plugins are prepared at the same time, while
    /// calls are served; the plugin's status is `starting` until this returns. Then the same
    /// instance is activated, or has failed with the error's text.
    fn prepare(&self, _ctx: PluginContext) -> BoxFuture<'_, Result<(), ActivationError>> {
        Box::pin(async { Ok(()) })
    }

    /// Says what the plugin brings. Nothing takes effect before the hub has the whole answer,
    /// so a plugin that fails leaves nothing behind. The database is migrated after this
    /// returns and before the first call.
    fn activate(&self, ctx: PluginContext) -> Activating<'_>;

    /// Called once the database is migrated and before the first call: for bringing in order what an
    /// earlier process left behind.
    fn recover(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Called when the server is about to stop, while everything still works.
    fn before_stop(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Called once its methods can no longer be reached and no call of them is running. A plugin
    /// whose calls do not end is called after a while all the same. It may be activated again
    /// afterwards.
    fn deactivate(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Why a plugin could not be activated. The text is for the operator who reads the status.
#[derive(Debug, thiserror::Error)]
pub enum ActivationError {
    /// A method does not keep the contract.
    #[error("{0}")]
    Contract(#[from] ContractError),
    /// The plugin says so itself.
    #[error("{0}")]
    Refused(String),
}

/// Everything a plugin brings, as a value.
#[derive(Default)]
pub struct Contribution {
    /// What can be called.
    pub methods: Vec<Method>,
    /// A say at hook points.
    pub hooks: Vec<Hook>,
    /// Callbacks for events.
    pub event_handlers: Vec<EventHandler>,
    /// The schema of its database.
    pub migrations: Cow<'static, [Migration]>,
}

impl Contribution {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds methods, usually those that [`plugin`](macro@crate::plugin) made.
    #[must_use]
    pub fn methods(mut self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.methods.extend(methods);
        self
    }

    /// Adds a callback for a hook point.
    #[must_use]
    pub fn hook(mut self, hook: Hook) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Adds a callback for events. It runs from the moment the plugin is active until it is
    /// deactivated.
    #[must_use]
    pub fn on_event(mut self, handler: EventHandler) -> Self {
        self.event_handlers.push(handler);
        self
    }

    /// Gives the plugin's database its schema.
    #[must_use]
    pub fn migrations(mut self, migrations: impl Into<Cow<'static, [Migration]>>) -> Self {
        self.migrations = migrations.into();
        self
    }
}

/// What a plugin gets at activation.
#[derive(Clone)]
pub struct PluginContext {
    /// The plugin's name.
    pub name: PluginName,
    /// What it says about itself.
    pub manifest: Arc<Manifest>,
    /// What is set for it.
    pub settings: PluginSettings,
    /// Its own file, `plugins/<name>.toml`, as it is; empty without one.
    pub config: Arc<Map<String, Value>>,
    /// What it remembers for each user and project.
    pub state: StateStore,
    /// A directory of its own; made when first used.
    pub data_dir: PathBuf,
    /// A database of its own; opened when first used.
    pub db: Db,
    /// The project that it belongs to, if it does: it concerns no other.
    pub project: Option<ProjectId>,
    /// Where it says what it does; kept over reloads, and bounded.
    pub log: PluginLog,
    /// Removes secrets from texts that leave the plugin's own database.
    pub redactor: Redactor,
    /// Services that all plugins share: configuration, events, HTTP, telemetry, authorisation.
    pub system: Arc<SystemContext>,
    /// The events that were journaled, for a plugin that reads them again.
    pub history: Arc<dyn EventHistory>,
    /// The way to other methods than those of its activation.
    pub methods: Arc<dyn MethodHost>,
    /// The hooks, for a plugin that has points of its own to fire.
    pub hooks: Arc<dyn HookHost>,
    /// What rules need, for the plugin that evaluates them.
    pub rules: Arc<dyn RuleHost>,
    /// What projects bring that somebody trusts, for the plugin that it steers.
    pub trust: Arc<dyn TrustHost>,
}

/// The way to other methods, for a plugin whose methods are not its own to decide: a server's tools
/// come and go.
pub trait MethodHost: Send + Sync {
    /// Puts methods in the place of all that the plugin has, whole or not at all. Calls that run
    /// end on what they began with. The text says why it could not be done: what is wrong with a
    /// method, or that the plugin is not active any more.
    ///
    /// Not to be waited for in [`Plugin::activate`], which says itself what there is.
    fn replace(&self, methods: Vec<Method>) -> BoxFuture<'_, Result<(), String>>;
}

/// The way to the hooks that are installed, and to having done what they ask for.
pub trait HookHost: Send + Sync {
    /// Completes when every plugin has been activated: before that there are no hooks.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// The hooks there are now. Who fires several points of one piece of work keeps them, so that
    /// the same callbacks see its beginning and its end.
    fn hooks(&self) -> Arc<Hooks>;

    /// Does what effects ask for, but for notifications: those come back, with the name of whoever
    /// wants them. One that cannot be done is logged and keeps nothing else from being done.
    fn apply_effects<'a>(
        &'a self,
        behalf: Behalf<'a>,
        effects: Vec<PluginEffect>,
    ) -> BoxFuture<'a, Vec<(PluginName, Notification)>>;

    /// Reports that a notification of a rule is not delivered, so that the rule log shows it.
    fn notification_dropped(&self, dropped: DroppedNotification);
}

/// For whom, and where.
#[derive(Debug, Clone, Copy)]
pub struct Behalf<'a> {
    /// Whose query or session it is.
    pub user: &'a UserId,
    /// About which project.
    pub project: Option<&'a ProjectId>,
    /// In which call, where there is one.
    pub call: Option<&'a crate::CallInfo>,
}

impl<'a> Behalf<'a> {
    /// For the one who makes a call.
    pub fn of(call: &'a crate::CallInfo) -> Self {
        Self {
            user: &call.principal.user,
            project: call.project.as_ref().map(|project| &project.id),
            call: Some(call),
        }
    }
}

/// The way to the event bus.
pub trait EventBus: Send + Sync {
    /// Journals an event, then tells the subscribers. Returns once it is queued; it waits while
    /// the journal is behind.
    ///
    /// An event that is published by the task that took another from its
    /// [`subscription`](Self::subscribe), before it takes the next, counts as caused by that one.
    /// A chain of more than [`LONGEST_CHAIN`] events ends with an error that names it: two plugins
    /// that answer each other's events stop.
    fn publish<'a>(&'a self, draft: EventDraft<'a>) -> BoxFuture<'a, Result<(), crate::CallError>>;

    /// As [`publish`](Self::publish), for a plugin that answers an event elsewhere than in the task
    /// that took it.
    fn publish_after<'a>(
        &'a self,
        cause: &'a Event,
        draft: EventDraft<'a>,
    ) -> BoxFuture<'a, Result<(), crate::CallError>>;

    /// Everything from now on whose type is `prefix` or begins with `prefix` and a dot; an empty
    /// prefix is everything.
    fn subscribe(&self, prefix: &str) -> Box<dyn Subscription>;
}

/// How many events may lead to each other: with this many there is no next one.
pub const LONGEST_CHAIN: usize = 8;

/// An event before the bus stamps it.
#[derive(Debug, Clone)]
pub struct EventDraft<'a> {
    /// What happened, dotted.
    pub kind: &'a str,
    /// Who says so.
    pub source: &'a str,
    /// How much it matters.
    pub severity: Severity,
    /// Particulars.
    pub payload: Value,
    /// For whom it happened and in which call, where it was for somebody.
    pub behalf: Option<Behalf<'a>>,
    /// Its id, where whoever publishes it may have done so before: it is stored once, and has
    /// been when [`EventBus::publish`] returns. Without one it is a new event each time.
    pub id: Option<Uuid>,
}

/// Events a subscriber did not take in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} events were missed; they are in the journal")]
pub struct Lagged(pub u64);

/// A place on the bus. Bounded: who does not keep up is told how much was missed.
pub trait Subscription: Send {
    /// The next event; `None` when the bus is closed.
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Arc<Event>, Lagged>>>;
}
