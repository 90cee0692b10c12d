//! A hub in this process.

use std::sync::Arc;
use std::time::Duration;

use dodona_hub::{Answerers, CallStream, Hub, LOCAL_USER, Request, StartError};
use dodona_proto::{CallError, Principal, ProjectId, Scopes, Surface, UserId};
use serde_json::Value;

use super::Ask;
use crate::config::{self, Settings};
use crate::failure::Failure;
use crate::home::Home;
use crate::owner::{OwnerError, OwnerNote, Ownership};
use crate::plugins;

/// How long calls that still run may take when the session is closed.
const DRAIN: Duration = Duration::from_secs(2);

/// How often the files of plugins are looked at: what is saved is in use within a second.
const WATCH: Duration = Duration::from_millis(400);

/// A hub in this process, which owns the home as long as this lives.
pub(crate) struct Local {
    pub(crate) hub: Hub,
    pub(crate) ownership: Ownership,
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
    pub(crate) async fn start(home: &Home, answerers: Answerers) -> Result<Self, StartFailure> {
        home.create()?;
        let mut settings = config::load(&home.config_file())?;
        settings.hub.approvals.answerers = answerers;
        let ownership = match Ownership::take(&home.data) {
            Ok(ownership) => ownership,
            Err(OwnerError::Held { note }) => return Err(StartFailure::Held(note)),
            Err(error) => return Err(error.into()),
        };
        Ok(Self::on(home, settings, ownership).await?)
    }

    /// Starts a hub on a home that this process owns already.
    pub(super) async fn on(
        home: &Home,
        mut settings: Settings,
        ownership: Ownership,
    ) -> Result<Self, StartError> {
        let plugins = plugins::all(home, &settings);
        settings.hub.loaders = plugins::loaders();
        settings.hub.watch = Some(WATCH);
        let hub = Hub::start(home.places(), settings.hub, plugins).await?;
        Ok(Self {
            hub,
            ownership,
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

/// Whoever can use the home may do everything.
fn local_user() -> Principal {
    let user = UserId::new(LOCAL_USER).expect("a constant id");
    Principal {
        user,
        scopes: Scopes::all(),
        surface: Surface::Cli,
    }
}
