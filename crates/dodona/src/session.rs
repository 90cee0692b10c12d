//! What commands talk to: a hub, wherever it runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::{CallStream, CancelTarget, Hub, Request};
use dodona_proto::{
    CallError, CallSummary, MethodDescriptor, Principal, Project, ProjectId, Scopes, StreamId,
    Surface, UserId,
};
use dodona_store::journal::StoredItem;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config;
use crate::failure::Failure;
use crate::home::Home;
use crate::owner::Ownership;
use crate::plugins;

/// How long calls that still run may take when the session is closed.
const DRAIN: Duration = Duration::from_secs(2);

/// What to call.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    /// The method.
    pub(crate) method: String,
    /// Its parameters, not yet checked.
    pub(crate) params: Value,
    /// How long it may take, if shorter than the method's own bound.
    pub(crate) timeout: Option<Duration>,
}

/// A connection to the hub that owns the home. Close it: dropping it cuts short what is still
/// being stored.
pub(crate) struct Session {
    hub: Backend,
    project: Option<ProjectId>,
}

/// Where the hub runs.
enum Backend {
    /// In this process, which owns the home as long as the session lasts.
    Owner(Box<Owner>),
}

struct Owner {
    hub: Hub,
    local: Arc<Principal>,
    _ownership: Ownership,
}

impl Session {
    /// Becomes the owner of the home, about the project at this root if it is a registered one.
    pub(crate) async fn start(home: &Home, project: Option<&Path>) -> Result<Self, Failure> {
        let hub = Backend::Owner(Box::new(Owner::start(home).await?));
        let mut session = Self { hub, project: None };
        match session.registered(project).await {
            Ok(project) => session.project = project,
            Err(error) => {
                session.close().await;
                return Err(error.into());
            }
        }
        Ok(session)
    }

    /// The id of a project, if it is a registered one.
    async fn registered(&self, root: Option<&Path>) -> Result<Option<ProjectId>, CallError> {
        let Some(root) = root else { return Ok(None) };
        let projects = self.projects().await?;
        let found = projects.into_iter().find(|project| project.root == root);
        Ok(found.map(|project| project.id))
    }

    async fn projects(&self) -> Result<Vec<Project>, CallError> {
        #[derive(Deserialize)]
        struct Projects {
            projects: Vec<Project>,
        }
        let answer = self.call(Ask::new("hub.projects", json!({}))).await?;
        let unreadable = |error| {
            CallError::new(
                dodona_proto::ErrorCode::Internal,
                "could not read the list of projects",
            )
            .log(error)
        };
        let Projects { projects } = serde_json::from_value(answer).map_err(unreadable)?;
        Ok(projects)
    }

    /// Everything that can be called, by name.
    pub(crate) async fn methods(&self) -> Result<Vec<Arc<MethodDescriptor>>, CallError> {
        match &self.hub {
            Backend::Owner(owner) => Ok(owner.hub.methods(&owner.local)),
        }
    }

    /// Calls a method and waits for its result. Dropping the future cancels the call.
    pub(crate) async fn call(&self, ask: Ask) -> Result<Value, CallError> {
        match &self.hub {
            Backend::Owner(owner) => owner.hub.call(owner.request(ask, &self.project)).await,
        }
    }

    /// Calls a method and hands out its items.
    pub(crate) async fn open(&self, ask: Ask) -> Result<Items, CallError> {
        match &self.hub {
            Backend::Owner(owner) => {
                let request = owner.request(ask, &self.project);
                Ok(Items::Owner(owner.hub.open(request).await?))
            }
        }
    }

    /// Stops calls and tells which they were.
    pub(crate) async fn cancel(
        &self,
        target: &CancelTarget,
    ) -> Result<Vec<CallSummary>, CallError> {
        match &self.hub {
            Backend::Owner(owner) => owner.hub.cancel(&owner.local, target).await,
        }
    }

    /// Ends what still runs and stores what there is to store.
    pub(crate) async fn close(self) {
        match self.hub {
            Backend::Owner(owner) => owner.hub.stop(DRAIN).await,
        }
    }
}

impl Owner {
    async fn start(home: &Home) -> Result<Self, Failure> {
        home.create()?;
        let config = config::load(&home.config_file())?;
        let ownership = Ownership::take(&home.data)?;
        let hub = Hub::start(&home.data, config, plugins::all()).await?;
        Ok(Self {
            hub,
            local: Arc::new(local()),
            _ownership: ownership,
        })
    }

    fn request(&self, ask: Ask, project: &Option<ProjectId>) -> Request {
        Request {
            project: project.clone(),
            timeout: ask.timeout,
            ..Request::new(Arc::clone(&self.local), ask.method, ask.params)
        }
    }
}

/// Whoever can use the home may do everything.
fn local() -> Principal {
    Principal {
        user: UserId::new("local").expect("a constant id"),
        scopes: Scopes::all(),
        surface: Surface::Cli,
    }
}

impl Ask {
    /// A call without a time bound of its own.
    pub(crate) fn new(method: impl Into<String>, params: Value) -> Self {
        Self {
            method: method.into(),
            params,
            timeout: None,
        }
    }
}

/// The items of a call. Dropping them cancels it.
pub(crate) enum Items {
    /// Of a hub in this process.
    Owner(CallStream),
}

impl Items {
    /// Which stream.
    pub(crate) fn stream(&self) -> StreamId {
        match self {
            Self::Owner(stream) => stream.stream(),
        }
    }

    /// The next items, at least one; `None` after the terminal. Safe to drop and call again.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Arc<StoredItem>>>, CallError> {
        match self {
            Self::Owner(stream) => stream.next().await,
        }
    }
}
