//! The other end of the wire.

mod stream;

use std::sync::Arc;
use std::time::Duration;

use dodona_proto::{CallError, ErrorCode, ProjectId, Surface};
use http::{HeaderMap, HeaderValue};
use jsonrpsee_client_transport::ws::WsHandshakeError;
use jsonrpsee_core::client::ClientT;
use jsonrpsee_core::traits::ToRpcParams;
use jsonrpsee_ws_client::{PingConfig, WsClient, WsClientBuilder};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Mutex;

pub use stream::RemoteStream;

/// How long a call may stay unanswered. The hub has bounds of its own; this one is for a server
/// that is gone without a word.
const ANSWER: Duration = Duration::from_secs(3700);

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How many items wait for a reader that is slower than the server.
const BUFFERED: usize = 16 * 1024;

/// A connection to a running server. Made again by itself when it is lost. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    url: String,
    headers: HeaderMap,
    socket: Mutex<Option<Arc<WsClient>>>,
}

/// Parameters that are JSON already.
struct Json(Value);

impl ToRpcParams for Json {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        serde_json::value::to_raw_value(&self.0).map(Some)
    }
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
            .request(method, Json(params))
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

    /// The connection, made again if it was lost.
    async fn socket(&self) -> Result<Arc<WsClient>, CallError> {
        let mut socket = self.shared.socket.lock().await;
        if let Some(open) = socket.as_ref().filter(|open| open.is_connected()) {
            return Ok(Arc::clone(open));
        }
        let made = WsClientBuilder::default()
            .set_headers(self.shared.headers.clone())
            .connection_timeout(CONNECT)
            .request_timeout(ANSWER)
            .max_response_size(64 << 20)
            .max_buffer_capacity_per_subscription(BUFFERED)
            .enable_ws_ping(PingConfig::default())
            .build(&self.shared.url)
            .await
            .map_err(|error| self.explain(error))?;
        Ok(Arc::clone(socket.insert(Arc::new(made))))
    }

    /// An error of the connection, or of the hub behind it, as the hub would have told it.
    fn explain(&self, error: jsonrpsee_core::client::Error) -> CallError {
        use jsonrpsee_core::client::Error;
        match error {
            Error::Call(object) => remote_error(object.message(), object.data()),
            Error::RequestTimeout => {
                CallError::new(ErrorCode::DeadlineExceeded, "the server did not answer")
            }
            other => {
                let url = &self.shared.url;
                match refusal(&other) {
                    Some(401) => CallError::new(
                        ErrorCode::Unauthenticated,
                        format!("the server at {url} does not take the token"),
                    )
                    .hint("`dodona token create` makes one"),
                    Some(403) => CallError::new(
                        ErrorCode::Forbidden,
                        format!("the server at {url} does not go by that name"),
                    )
                    .hint("its setting `allowed_hosts` names those it goes by"),
                    _ => CallError::new(
                        ErrorCode::Interrupted,
                        format!("the server at {url} cannot be reached"),
                    )
                    .hint("is `dodona serve` running?"),
                }
                .log(other)
            }
        }
    }
}

/// The status with which a server refused to open a connection.
fn refusal(error: &jsonrpsee_core::client::Error) -> Option<u16> {
    let jsonrpsee_core::client::Error::Transport(error) = error else {
        return None;
    };
    match error.downcast_ref()? {
        WsHandshakeError::Rejected { status_code } => Some(*status_code),
        _ => None,
    }
}

/// The hub's error, read back from the wire.
fn remote_error(message: &str, data: Option<&RawValue>) -> CallError {
    let data: Value = data
        .and_then(|data| serde_json::from_str(data.get()).ok())
        .unwrap_or_default();
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
