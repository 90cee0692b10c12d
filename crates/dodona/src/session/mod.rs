//! What commands talk to: a hub, wherever it runs.

mod local;
mod remote;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::{Approvers, CallStream, CancelTarget, StartError, StoredItem};
use dodona_proto::{
    CallError, CallSummary, ErrorCode, MethodDescriptor, Project, ProjectId, StreamId,
};
use dodona_server::client::RemoteStream;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::config::Settings;
use crate::failure::Failure;
use crate::home::Home;
use crate::owner::{OwnerError, OwnerNote, Ownership};
use crate::quantity;
pub(crate) use local::{Local, StartFailure, accept_data_loss};
use remote::Remote;

/// How long to wait for another command that uses the home and does not serve.
const PATIENCE: Duration = Duration::from_secs(10);

/// After how long the user is told what is being waited for.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// How long to wait between two looks at whether it has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

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
    Local(Box<Local>),
    /// In another process, which serves.
    Remote(Remote),
}

impl Session {
    /// Connects to the process that owns the home, or becomes the owner; about the project at
    /// this root if it is a registered one. `approvers` says whether somebody can be asked where
    /// this process is the owner.
    pub(crate) async fn start(
        home: &Home,
        project: Option<&Path>,
        approvers: Approvers,
    ) -> Result<Self, Failure> {
        Self::start_within(home, project, approvers, None).await
    }

    /// The same, but gives up after `patience` where another process owns the home and does not
    /// respond.
    pub(crate) async fn start_within(
        home: &Home,
        project: Option<&Path>,
        approvers: Approvers,
        patience: Option<Duration>,
    ) -> Result<Self, Failure> {
        let started = Instant::now();
        let session = Self {
            hub: backend(home, approvers, patience.unwrap_or(PATIENCE)).await?,
            project: None,
        };
        let (Some(patience), Backend::Remote(remote)) = (patience, &session.hub) else {
            return session.about(project).await;
        };
        let error = unresponsive(remote.owner(), patience);
        match timeout_at(started + patience, session.about(project)).await {
            Ok(session) => session,
            Err(_) => Err(error.into()),
        }
    }

    /// The error for a server that has not responded in this time; nothing where the hub is in this
    /// process.
    pub(crate) fn unresponsive(&self, patience: Duration) -> Option<CallError> {
        match &self.hub {
            Backend::Local(_) => None,
            Backend::Remote(remote) => Some(unresponsive(remote.owner(), patience)),
        }
    }

    /// The session about the project at this root, if it is a registered one.
    async fn about(self, project: Option<&Path>) -> Result<Self, Failure> {
        let mut session = self;
        match session.registered(project).await {
            Ok(project) => session.project = project,
            Err(error) => {
                session.close().await;
                return Err(error.into());
            }
        }
        if let (Backend::Remote(remote), Some(project)) = (&mut session.hub, &session.project) {
            remote.about(project).await?;
        }
        Ok(session)
    }

    /// A session on a home that this process owns already.
    pub(crate) async fn own(
        home: &Home,
        settings: Settings,
        ownership: Ownership,
    ) -> Result<Self, StartError> {
        let local = Local::on(home, settings, ownership).await?;
        Ok(Self {
            hub: Backend::Local(Box::new(local)),
            project: None,
        })
    }

    /// Where the server is that this session talks to, if it is another process.
    pub(crate) fn url(&self) -> Option<&str> {
        match &self.hub {
            Backend::Local(_) => None,
            Backend::Remote(remote) => Some(remote.url()),
        }
    }

    /// What it is about, where that is a project.
    pub(crate) fn project(&self) -> Option<&ProjectId> {
        self.project.as_ref()
    }

    /// Makes everything from now on be about the project at this root, and registers it if it is
    /// not yet.
    pub(crate) async fn enter(&mut self, root: &Path) -> Result<(), CallError> {
        if self.project.is_some() {
            return Ok(());
        }
        let project: Project = self
            .ask("hub.register_project", json!({ "root": root }))
            .await?;
        if let Backend::Remote(remote) = &mut self.hub {
            remote.about(&project.id).await?;
        }
        self.project = Some(project.id);
        Ok(())
    }

    /// The id of a project, if it is a registered one.
    async fn registered(&self, root: Option<&Path>) -> Result<Option<ProjectId>, CallError> {
        let Some(root) = root else { return Ok(None) };
        let projects = self.projects().await?;
        let found = projects.into_iter().find(|project| project.root == root);
        Ok(found.map(|project| project.id))
    }

    /// Makes everything from now on be about a registered project.
    pub(crate) async fn turn_to(&mut self, project: &ProjectId) -> Result<(), CallError> {
        if let Backend::Remote(remote) = &mut self.hub {
            remote.about(project).await?;
        }
        self.project = Some(project.clone());
        Ok(())
    }

    /// The user's projects.
    pub(crate) async fn projects(&self) -> Result<Vec<Project>, CallError> {
        #[derive(Deserialize)]
        struct Projects {
            projects: Vec<Project>,
        }
        let Projects { projects } = self.ask("hub.projects", json!({})).await?;
        Ok(projects)
    }

    /// Everything that can be called, by name.
    pub(crate) async fn methods(&self) -> Result<Vec<Arc<MethodDescriptor>>, CallError> {
        #[derive(Deserialize)]
        struct Methods {
            methods: Vec<Arc<MethodDescriptor>>,
        }
        let Methods { methods } = self.ask("hub.methods", json!({})).await?;
        Ok(methods)
    }

    /// Calls a method of the hub whose answer has a known form.
    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, CallError> {
        let answer = self.call(Ask::new(method, params)).await?;
        serde_json::from_value(answer).map_err(|error| {
            CallError::new(
                ErrorCode::Internal,
                format!("could not read what `{method}` answered"),
            )
            .log(error)
        })
    }

    /// Calls a method and waits for its result. Dropping the future cancels the call, at the
    /// latest when the session is closed.
    pub(crate) async fn call(&self, ask: Ask) -> Result<Value, CallError> {
        match &self.hub {
            Backend::Local(local) => local.call(ask, self.project.as_ref()).await,
            Backend::Remote(remote) => remote.call(ask).await,
        }
    }

    /// Calls a method and hands out its items.
    pub(crate) async fn open(&self, ask: Ask) -> Result<Items, CallError> {
        match &self.hub {
            Backend::Local(local) => local
                .open(ask, self.project.as_ref())
                .await
                .map(Items::Local),
            Backend::Remote(remote) => remote.open(ask).await.map(Items::Remote),
        }
    }

    /// Stops calls and tells which they were.
    pub(crate) async fn cancel(
        &self,
        target: &CancelTarget,
    ) -> Result<Vec<CallSummary>, CallError> {
        #[derive(Deserialize)]
        struct Cancelled {
            stopped: Vec<CallSummary>,
        }
        let params = match target {
            CancelTarget::Call(call) => json!({ "call_id": call }),
            CancelTarget::Stream(stream) => json!({ "stream_id": stream }),
            CancelTarget::Path { prefix, within } => json!({ "path": prefix, "stream_id": within }),
        };
        let Cancelled { stopped } = self.ask("hub.cancel", params).await?;
        Ok(stopped)
    }

    /// Ends what still runs and stores what there is to store.
    pub(crate) async fn close(self) {
        match self.hub {
            Backend::Local(local) => local.close().await,
            Backend::Remote(_) => {}
        }
    }
}

/// The hub of the home: another process's if it serves, this one's if nobody has it. Another
/// command that has it for its own call is waited for.
async fn backend(
    home: &Home,
    approvers: Approvers,
    patience: Duration,
) -> Result<Backend, Failure> {
    let started = Instant::now();
    let mut told = false;
    loop {
        let held = match Local::start(home, approvers).await {
            Ok(local) => return Ok(Backend::Local(Box::new(local))),
            Err(StartFailure::Held(note)) => note,
            Err(StartFailure::Other(failure)) => return Err(failure),
        };
        let serving = held.as_ref().filter(|note: &&OwnerNote| note.url.is_some());
        let unreachable = match serving {
            Some(owner) => {
                let connecting = Remote::connect(home, owner);
                match timeout_at(started + patience, connecting).await {
                    Ok(Ok(remote)) => return Ok(Backend::Remote(remote)),
                    // It may be ending, or starting.
                    Ok(Err(error)) if error.code == ErrorCode::Interrupted => Some(error),
                    Ok(Err(error)) => return Err(error.into()),
                    Err(_) => Some(unresponsive(owner, patience)),
                }
            }
            None => None,
        };
        if !told && started.elapsed() > TELL_AFTER {
            told = true;
            tell_waiting(held.as_ref());
        }
        if started.elapsed() >= patience {
            return Err(
                unreachable.map_or_else(|| OwnerError::Held { note: held }.into(), Into::into)
            );
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The server accepts connections and answers none.
fn unresponsive(owner: &OwnerNote, patience: Duration) -> CallError {
    let (pid, time) = (owner.pid, quantity::show_elapsed(patience));
    let message = format!("the server (process {pid}) did not respond within {time}");
    CallError::new(ErrorCode::DeadlineExceeded, message).hint(format!(
        "check whether process {pid} is stopped or overloaded; if it is stopped, run `kill -CONT {pid}`"
    ))
}

fn tell_waiting(owner: Option<&OwnerNote>) {
    let who = owner.map_or_else(
        || "another process".to_owned(),
        |note| format!("process {}", note.pid),
    );
    // If it cannot be told, it is still being waited for.
    let _ = writeln!(
        io::stderr(),
        "waiting for {who}, which is using the home directory"
    );
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

/// The items of a call. Dropping those of a hub in this process cancels the call.
pub(crate) enum Items {
    /// Of a hub in this process.
    Local(CallStream),
    /// Of a server.
    Remote(RemoteStream),
}

impl Items {
    /// Which stream.
    pub(crate) fn stream(&self) -> StreamId {
        match self {
            Self::Local(stream) => stream.stream(),
            Self::Remote(stream) => stream.stream(),
        }
    }

    /// The next items, at least one; `None` after the terminal. Safe to drop and call again.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Arc<StoredItem>>>, CallError> {
        match self {
            Self::Local(stream) => stream.next().await,
            Self::Remote(stream) => {
                let item = stream.next().await?;
                Ok(item.map(|item| vec![Arc::new(StoredItem::from(item))]))
            }
        }
    }
}
