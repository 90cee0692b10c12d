//! A hub in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dodona_hub::{Approvers, CallStream, HubConfig, LOCAL_USER, PluginHub, Request, StartError};
use dodona_plugin::http::HttpClient;
use dodona_proto::{CallError, ExitKind, Principal, ProjectId, Scopes, Surface, UserId};
use dodona_store::{DataLoss, Redactor, backup};
use serde_json::Value;

use super::Ask;
use crate::config::{self, ServerSettings, Settings};
use crate::failure::Failure;
use crate::home::Home;
use crate::logs;
use crate::owner::{OwnerError, OwnerNote, Ownership};
use crate::plugins;
use crate::schema;

/// How long calls that still run may take when the session is closed.
const DRAIN: Duration = Duration::from_secs(2);

/// How often the files of plugins are looked at: what is saved is in use within a second.
const WATCH: Duration = Duration::from_millis(400);

/// Whether the command line says so; it is the same for the whole process.
static DATA_LOSS_ACCEPTED: AtomicBool = AtomicBool::new(false);

/// Lets databases be created again that were lost.
pub(crate) fn accept_data_loss() {
    DATA_LOSS_ACCEPTED.store(true, Ordering::Relaxed);
}

/// A hub in this process, which owns the home as long as this lives.
pub(crate) struct Local {
    pub(crate) hub: PluginHub,
    pub(crate) ownership: Ownership,
    pub(crate) server: ServerSettings,
    user: Arc<Principal>,
}

/// Why there is none.
pub(crate) enum StartFailure {
    /// Another process owns the home.
    Held(Option<OwnerNote>),
    /// Something is wrong.
    Other(Failure),
}

impl<E: Into<Failure>> From<E> for StartFailure {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl Local {
    /// Takes the home, if nobody has it, and starts a hub on it.
    pub(crate) async fn start(home: &Home, approvers: Approvers) -> Result<Self, StartFailure> {
        Self::start_with(home, |hub| hub.approvals.approvers = approvers).await
    }

    /// The same for a server: it is ready before MCP servers that are not known yet have started.
    pub(crate) async fn start_server(home: &Home) -> Result<Self, StartFailure> {
        let change = |hub: &mut HubConfig| {
            hub.approvals.approvers = Approvers::Available;
            hub.wait_for_plugins = false;
        };
        Self::start_with(home, change).await
    }

    async fn start_with(
        home: &Home,
        change: impl FnOnce(&mut HubConfig),
    ) -> Result<Self, StartFailure> {
        home.create()?;
        let mut settings = config::load(&home.config_file())?;
        change(&mut settings.hub);
        let ownership = match Ownership::take(&home.data) {
            Ok(ownership) => ownership,
            Err(OwnerError::Held { note }) => return Err(StartFailure::Held(note)),
            Err(error) => return Err(error.into()),
        };
        schema::check(&home.data)?;
        if backup::is_half_restored(&home.data) {
            let message = "a restore was interrupted, so the databases do not belong together";
            let failure = Failure::new(ExitKind::Storage, message);
            return Err(failure
                .hint("run `dodona restore` again with the same backup")
                .into());
        }
        Ok(Self::on(home, settings, ownership).await?)
    }

    /// Starts a hub on a home that this process owns already.
    pub(super) async fn on(
        home: &Home,
        mut settings: Settings,
        ownership: Ownership,
    ) -> Result<Self, StartError> {
        let plugins = plugins::all(home, &settings);
        let server = settings.server.clone();
        settings.hub.loaders = plugins::loaders();
        settings.hub.watch = Some(WATCH);
        settings.hub.private = home.private();
        settings.hub.http = HttpClient::new(&settings.allow_hosts);
        settings.hub.journal.redactor = Redactor::new(known_keys(&settings));
        logs::redact_with(&settings.hub.journal.redactor);
        if DATA_LOSS_ACCEPTED.load(Ordering::Relaxed) {
            settings.hub.store.data_loss = DataLoss::Accepted;
        }
        let hub = PluginHub::start(home.paths(), settings.hub, plugins).await?;
        Ok(Self {
            hub,
            ownership,
            server,
            user: Arc::new(local_user()),
        })
    }

    pub(super) async fn call(
        &self,
        ask: Ask,
        project: Option<&ProjectId>,
    ) -> Result<Value, CallError> {
        self.hub.call(self.request(ask, project)).await
    }

    pub(super) async fn open(
        &self,
        ask: Ask,
        project: Option<&ProjectId>,
    ) -> Result<CallStream, CallError> {
        self.hub.open(self.request(ask, project)).await
    }

    fn request(&self, ask: Ask, project: Option<&ProjectId>) -> Request {
        let request = Request::new(Arc::clone(&self.user), ask.method, ask.params);
        Request {
            project: project.cloned(),
            timeout: ask.timeout,
            ..request
        }
    }

    pub(super) async fn close(self) {
        self.hub.stop(DRAIN).await;
    }
}

/// The keys of models, which are redacted wherever they appear.
fn known_keys(settings: &Settings) -> Vec<String> {
    let mut keys = Vec::new();
    for model in settings.models.values() {
        let variable = model.key_env.as_deref().or(model.provider.key_env());
        keys.extend(variable.and_then(|name| std::env::var(name).ok()));
        let file = model.key_file.as_deref();
        let text = file.and_then(|file| std::fs::read_to_string(file).ok());
        keys.extend(text.map(|text| text.trim().to_owned()));
    }
    keys
}

/// Whoever can use the home may do everything.
fn local_user() -> Principal {
    let user = UserId::new(LOCAL_USER).expect("a constant id");
    Principal {
        user,
        scopes: Scopes::all(),
        surface: Surface::Cli,
    }
}
