//! The client side of the wire.

mod socket;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{CallError, ErrorCode, ProjectId, Surface};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::sync::Mutex;

use socket::{ErrorObject, Socket, SocketError};
pub use stream::RemoteStream;

/// A connection to a running server. Made again by itself when it is lost. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    url: String,
    headers: HeaderMap,
    socket: Mutex<Option<Arc<Socket>>>,
}

impl Client {
    /// Connects to a server (`http://host:port`) as the holder of a token.
    pub async fn connect(
        url: &str,
        token: &str,
        project: Option<&ProjectId>,
    ) -> Result<Self, CallError> {
        Self::connect_for(Surface::Cli, url, token, project).await
    }

    /// The same on behalf of whoever is at another surface. The server takes the word of a client
    /// for the command line and for MCP, neither of which may do more than others.
    pub async fn connect_for(
        surface: Surface,
        url: &str,
        token: &str,
        project: Option<&ProjectId>,
    ) -> Result<Self, CallError> {
        let unusable = |_| {
            CallError::new(
                ErrorCode::Unauthenticated,
                "the token has characters that no token has",
            )
        };
        let mut headers = HeaderMap::new();
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}")).map_err(unusable)?;
        bearer.set_sensitive(true);
        headers.insert(http::header::AUTHORIZATION, bearer);
        let surface = match surface {
            Surface::Mcp => "mcp",
            Surface::Cli => "cli",
            Surface::Rpc | Surface::Web | Surface::Internal => "rpc",
        };
        headers.insert("x-dodona-surface", HeaderValue::from_static(surface));
        if let Some(project) = project {
            headers.insert(
                "x-dodona-project",
                HeaderValue::from_str(project.as_str()).map_err(unusable)?,
            );
        }
        let url = format!(
            "{}/rpc",
            url.replacen("http", "ws", 1).trim_end_matches('/')
        );
        let client = Self {
            shared: Arc::new(Shared {
                url,
                headers,
                socket: Mutex::default(),
            }),
        };
        client.socket().await?;
        Ok(client)
    }

    /// Calls a method and waits for its answer.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let socket = self.socket().await?;
        socket
            .request(method, params)
            .await
            .map_err(|error| self.explain(error))
    }

    /// Makes sure that there is a connection: the one there is, or another to the same server.
    pub async fn ready(&self) -> Result<(), CallError> {
        self.socket().await.map(drop)
    }

    /// Calls a method and hands out its items, over as many connections as it takes. It may
    /// take `timeout`, if that is less than the method's own bound.
    pub async fn open(
        &self,
        method: &str,
        params: Value,
        timeout: Option<Duration>,
    ) -> Result<RemoteStream, CallError> {
        RemoteStream::open(self.clone(), method, params, timeout).await
    }

    /// Returns the open connection, or a new one if it was lost.
    async fn socket(&self) -> Result<Arc<Socket>, CallError> {
        let mut socket = self.shared.socket.lock().await;
        if let Some(open) = socket.as_ref().filter(|open| open.is_open()) {
            return Ok(Arc::clone(open));
        }
        let connected = Socket::connect(&self.shared.url, &self.shared.headers).await;
        let connected = connected.map_err(|error| self.explain(error))?;
        Ok(Arc::clone(socket.insert(Arc::new(connected))))
    }

    /// Turns a failed request into the error that the user sees.
    fn explain(&self, error: SocketError) -> CallError {
        let url = &self.shared.url;
        match error {
            SocketError::Rejected(object) => remote_error(object),
            SocketError::Timeout => CallError::new(
                ErrorCode::DeadlineExceeded,
                format!("the server at {url} did not respond"),
            ),
            SocketError::Unresponsive => CallError::new(
                ErrorCode::Interrupted,
                format!("the server at {url} does not respond"),
            )
            .hint("check whether its process is stopped or overloaded"),
            SocketError::Handshake(401) => CallError::new(
                ErrorCode::Unauthenticated,
                format!("the server at {url} rejected the token"),
            )
            .hint("create a token with `dodona token create`"),
            SocketError::Handshake(403) => CallError::new(
                ErrorCode::Forbidden,
                format!("the server at {url} does not accept this host name"),
            )
            .hint("add the name to its setting `allowed_hosts`"),
            error => CallError::new(
                ErrorCode::Interrupted,
                format!("cannot reach the server at {url}"),
            )
            .hint("is `dodona serve` running?")
            .log(error),
        }
    }
}

/// Rebuilds the hub's error from a JSON-RPC error object.
fn remote_error(object: ErrorObject) -> CallError {
    let ErrorObject { message, data } = object;
    let code = data["code"]
        .as_str()
        .map_or(ErrorCode::Internal, |code| ErrorCode::from(code.to_owned()));
    let mut error =
        CallError::new(code, message).retry(data["retryable"].as_bool().unwrap_or(false));
    if let Some(hint) = data["hint"].as_str() {
        error = error.hint(hint);
    }
    match data.get("data") {
        Some(particulars) => error.data(particulars.clone()),
        None => error,
    }
}
