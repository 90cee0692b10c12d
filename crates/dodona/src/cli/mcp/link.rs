//! The connection to whoever owns the home, for as long as a client is served.
//!
//! A client stays for hours. Meanwhile a server may be started or ended, and other clients come and
//! go, each with a `dodona mcp` of its own. One of them owns the home, and serves it to the others
//! and to every other command; when it ends, another takes its place.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dodona_hub::Approvers;
use dodona_proto::{CallError, ErrorCode, ExitKind, Project, Surface};
use dodona_server::client::Client;
use dodona_server::mcp::Connect;
use dodona_server::{ServerOptions, serve};
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;
use crate::home::Home;
use crate::owner::OwnerError;
use crate::session::{Local, StartFailure};

/// How long to wait for an owner that does not serve, or does not yet.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait between two looks at that.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

/// The way to the owner of the home, which may be this process.
pub(super) struct Link {
    home: Home,
    root: Option<PathBuf>,
    state: Mutex<State>,
}

/// A connection, and what this process serves if it is its own.
struct State {
    client: Client,
    own: Option<Own>,
}

/// The home in this process.
struct Own {
    local: Local,
    shutdown: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
}

/// A link that is shared with whoever serves the client.
pub(super) struct Line(pub(super) Arc<Link>);

impl Connect for Line {
    fn client(&self) -> BoxFuture<'_, Result<Client, CallError>> {
        Box::pin(self.0.client())
    }
}

impl Link {
    /// Finds the owner of the home, or becomes it.
    pub(super) async fn start(home: Home, root: Option<PathBuf>) -> Result<Self, Failure> {
        let state = reach(&home, root.as_ref()).await?;
        let state = Mutex::new(state);
        Ok(Self { home, root, state })
    }

    async fn client(&self) -> Result<Client, CallError> {
        let mut state = self.state.lock().await;
        match state.client.ready().await {
            Ok(()) => {}
            Err(error) if error.code == ErrorCode::Interrupted && state.own.is_none() => {
                *state = reach(&self.home, self.root.as_ref()).await.map_err(lost)?;
            }
            Err(error) => return Err(error),
        }
        Ok(state.client.clone())
    }

    /// Stops what this process serves, if it does.
    pub(super) async fn close(&self) {
        let Some(own) = self.state.lock().await.own.take() else {
            return;
        };
        own.shutdown.cancel();
        match own.serving.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "serving did not end well"),
            Err(error) => tracing::warn!(%error, "serving did not end well"),
        }
        // The lock goes last.
        drop(own.local);
    }
}

/// A connection to the owner of the home: another process if it serves, this one if nobody is.
async fn reach(home: &Home, root: Option<&PathBuf>) -> Result<State, Failure> {
    let started = Instant::now();
    loop {
        let note = match Local::start(home, Approvers::Available).await {
            Ok(local) => return own(home, root, local).await,
            Err(StartFailure::Held(note)) => note,
            Err(StartFailure::Other(failure)) => return Err(failure),
        };
        let url = note.as_ref().and_then(|note| note.url.clone());
        let unreachable = match &url {
            None => None,
            Some(url) => match connect(home, root, url).await {
                Ok(client) => return Ok(State { client, own: None }),
                // It may be ending, or starting.
                Err(error) if error.code == ErrorCode::Interrupted => Some(error),
                Err(error) => return Err(error.into()),
            },
        };
        if started.elapsed() > PATIENCE {
            return Err(unreachable.map_or_else(|| OwnerError::Held { note }.into(), Into::into));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Serves the home to this process and to every other.
async fn own(home: &Home, root: Option<&PathBuf>, mut local: Local) -> Result<State, Failure> {
    let unserved = |error: std::io::Error| {
        Failure::new(
            ExitKind::Failed,
            format!("could not serve other commands: {error}"),
        )
    };
    local.hub.local_token(&home.token).await?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(unserved)?;
    let url = format!("http://{}", listener.local_addr().map_err(unserved)?);
    let shutdown = CancellationToken::new();
    let serving = serve(
        listener,
        local.hub.clone(),
        ServerOptions::default(),
        shutdown.clone(),
    );
    let serving = tokio::spawn(serving);
    local.ownership.announce(&url).map_err(unserved)?;
    let own = Own {
        local,
        shutdown,
        serving,
    };
    let client = connect(home, root, &url).await?;
    let own = Some(own);
    Ok(State { client, own })
}

/// Connects to a server on behalf of an MCP client, about the project, which is registered if it
/// is not yet.
async fn connect(home: &Home, root: Option<&PathBuf>, url: &str) -> Result<Client, CallError> {
    let token = fs::read_to_string(&home.token).map_err(|error| {
        let message = format!("could not read the token file `{}`", home.token.display());
        CallError::new(ErrorCode::Unauthenticated, message)
            .hint("the server creates it when it starts: restart `dodona serve`")
            .log(error)
    })?;
    let token = token.trim();
    let client = Client::connect_for(Surface::Mcp, url, token, None).await?;
    let Some(root) = root else {
        return Ok(client);
    };
    let answer = client
        .call("hub.register_project", json!({ "root": root }))
        .await?;
    let project: Project = serde_json::from_value(answer).map_err(|error| {
        CallError::new(
            ErrorCode::Internal,
            "the server answered in a form of its own",
        )
        .log(error)
    })?;
    Client::connect_for(Surface::Mcp, url, token, Some(&project.id)).await
}

/// The owner is gone, and this process could not take its place.
fn lost(failure: Failure) -> CallError {
    let (message, hint) = match failure {
        Failure::Said { message, hint, .. } => (message, hint),
        Failure::Drawn { text, .. } => (text, None),
        Failure::Told(_) | Failure::Unread => {
            ("the home directory cannot be used".to_owned(), None)
        }
    };
    let error = CallError::new(ErrorCode::Interrupted, message);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
