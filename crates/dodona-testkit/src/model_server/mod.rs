//! A model server that says what a test wants: both providers' streaming protocols over a real
//! socket, and every fault they are known for.
//!
//! ```
//! use dodona_testkit::model_server::{ModelServer, Reply};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let server = ModelServer::start().await;
//! server.reply(Reply::stream().add_text("Hel").add_text("lo"));
//! server.reply(Reply::status(429).header("retry-after", "1"));
//! // … let a model at `server.url()` answer twice …
//! assert!(server.requests().is_empty());
//! # }
//! ```

mod bomb;
mod chat;
mod gate;
mod messages;
mod play;
mod reply;
mod responses;
mod strict;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use axum::serve::ListenerExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use gate::Gate;
pub use reply::{Reply, Step};

/// The largest request that is read.
const REQUEST_BYTES: usize = 64 << 20;

/// A server on a port of its own; it ends when it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    inner: Arc<Inner>,
    serving: tokio::task::JoinHandle<()>,
}

/// What a client sent.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    /// The method.
    pub method: Method,
    /// The path, such as `/v1/chat/completions`.
    pub path: String,
    /// The headers, the key included.
    pub headers: HeaderMap,
    /// The body as it came.
    pub bytes: Bytes,
    /// The body as JSON; null where it is none.
    pub body: Value,
}

impl SeenRequest {
    /// A header as text; empty where it is absent.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// What a provider speaks, by the path it was asked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Chat,
    Responses,
    Messages,
}

/// Makes a reply for a request that has none waiting.
type Responder = Arc<dyn Fn(&SeenRequest) -> Reply + Send + Sync>;

struct Inner {
    state: Mutex<Settings>,
    /// How many requests have come, how many answers were abandoned by their reader.
    counts: watch::Sender<Counts>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    requests: usize,
    abandoned: usize,
}

struct Settings {
    replies: VecDeque<Reply>,
    responder: Option<Responder>,
    requests: Vec<SeenRequest>,
    models: Vec<String>,
    key: Option<String>,
    strictness: Strictness,
}

/// Whether a conversation is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    Lenient,
    Strict,
}

impl ModelServer {
    /// A server that takes any conversation.
    pub async fn start() -> Self {
        Self::with(Strictness::Lenient).await
    }

    /// A server that looks at conversations as strict providers do, and answers 400 to one that
    /// is not well formed: every tool call answered exactly once and right after, roles in turn,
    /// nothing empty.
    pub async fn strict() -> Self {
        Self::with(Strictness::Strict).await
    }

    async fn with(strictness: Strictness) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("the loopback interface has a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let inner = Arc::new(Inner {
            state: Mutex::new(Settings {
                replies: VecDeque::new(),
                responder: None,
                requests: Vec::new(),
                models: Vec::new(),
                key: None,
                strictness,
            }),
            counts: watch::Sender::new(Counts::default()),
        });
        let app = Router::new()
            .fallback(handle)
            .with_state(Arc::clone(&inner));
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let serving = tokio::spawn(async move {
            axum::serve(listener, app)
                .await
                .expect("axum serves until it is dropped");
        });
        Self {
            address,
            inner,
            serving,
        }
    }

    /// The base URL, for both protocols.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The next request that has no reply yet gets this one.
    pub fn reply(&self, reply: Reply) {
        self.lock().replies.push_back(reply);
    }

    /// Requests that find no reply waiting are answered by this. Without it they get a 500.
    pub fn respond_with(&self, responder: impl Fn(&SeenRequest) -> Reply + Send + Sync + 'static) {
        self.lock().responder = Some(Arc::new(responder));
    }

    /// The list of models.
    pub fn models(&self, names: &[&str]) {
        self.lock().models = names.iter().map(|name| (*name).to_owned()).collect();
    }

    /// From now on only this key is let in; others get a 401.
    pub fn require_key(&self, key: &str) {
        self.lock().key = Some(key.to_owned());
    }

    /// Every request so far, in order.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.lock().requests.clone()
    }

    /// The newest request.
    ///
    /// # Panics
    ///
    /// If there was none.
    pub fn last_request(&self) -> SeenRequest {
        let last = self.lock().requests.last().cloned();
        last.expect("a request has come")
    }

    /// Forgets the requests so far, for whoever sends more than there is memory for.
    pub fn forget(&self) {
        self.lock().requests.clear();
    }

    /// How many replies wait for a request.
    pub fn waiting(&self) -> usize {
        self.lock().replies.len()
    }

    /// Waits until so many requests have come.
    pub async fn until_requests(&self, number: usize) {
        self.until(|counts| counts.requests >= number).await;
    }

    /// Waits until so many answers were abandoned: the client went away before their end.
    pub async fn until_abandoned(&self, number: usize) {
        self.until(|counts| counts.abandoned >= number).await;
    }

    async fn until(&self, reached: impl Fn(&Counts) -> bool) {
        let mut counts = self.inner.counts.subscribe();
        counts
            .wait_for(reached)
            .await
            .expect("the server holds the sender");
    }

    fn lock(&self) -> MutexGuard<'_, Settings> {
        self.inner.lock()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Settings> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn abandoned(&self) {
        self.counts.send_modify(|counts| counts.abandoned += 1);
    }
}

async fn handle(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, REQUEST_BYTES)
        .await
        .unwrap_or_default();
    let seen = SeenRequest {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body: serde_json::from_slice(&bytes).unwrap_or_default(),
        bytes,
    };
    let answer = inner.decide(&seen);
    inner.counts.send_modify(|counts| counts.requests += 1);
    match answer {
        Decided::Json(status, body) => json_response(status, &body),
        Decided::Play(dialect, reply) => play::play(inner, dialect, reply, &seen.body).await,
    }
}

enum Decided {
    Json(StatusCode, Value),
    Play(Dialect, Reply),
}

impl Inner {
    fn decide(&self, seen: &SeenRequest) -> Decided {
        let mut state = self.lock();
        state.requests.push(seen.clone());
        if let Some(error) = state.unauthorised(seen) {
            return Decided::Json(StatusCode::UNAUTHORIZED, error);
        }
        let dialect = match seen.path.as_str() {
            "/v1/chat/completions" => Dialect::Chat,
            "/v1/responses" => Dialect::Responses,
            "/v1/messages" => Dialect::Messages,
            "/v1/models" if state.replies.is_empty() => {
                return Decided::Json(StatusCode::OK, state.list());
            }
            "/v1/embeddings" if state.replies.is_empty() => {
                return Decided::Json(StatusCode::OK, embeddings(&seen.body));
            }
            "/v1/models" | "/v1/embeddings" => Dialect::Chat,
            path => {
                let error = json!({ "error": { "message": format!("no route {path}") } });
                return Decided::Json(StatusCode::NOT_FOUND, error);
            }
        };
        let is_conversation = seen.body.get("messages").is_some() || dialect == Dialect::Responses;
        if state.strictness == Strictness::Strict && is_conversation {
            let checked = strict::check(dialect, seen);
            if let Err(message) = checked {
                let error = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": message } });
                return Decided::Json(StatusCode::BAD_REQUEST, error);
            }
        }
        let waiting = state.replies.pop_front();
        let responder = state.responder.clone();
        // A responder may look at the server.
        drop(state);
        let reply = waiting.or_else(|| responder.map(|responder| responder(seen)));
        Decided::Play(
            dialect,
            reply.unwrap_or_else(|| Reply::status(500).message("the test has no reply for this")),
        )
    }
}

impl Settings {
    fn unauthorised(&self, seen: &SeenRequest) -> Option<Value> {
        let key = self.key.as_ref()?;
        let sent = [seen.header("authorization"), seen.header("x-api-key")];
        let right = [format!("Bearer {key}"), key.clone()];
        let is_right = sent.iter().any(|sent| right.iter().any(|key| key == sent));
        let error = json!({ "error": { "type": "authentication_error", "message": format!("wrong key `{}`", sent.concat()) } });
        (!is_right).then_some(error)
    }

    fn list(&self) -> Value {
        let models = self.models.iter();
        let data: Vec<Value> = models
            .map(|id| json!({ "id": id, "object": "model" }))
            .collect();
        json!({ "object": "list", "data": data })
    }
}

/// A vector for each text, always the same for the same text: how often each letter comes.
fn embeddings(body: &Value) -> Value {
    let texts = body["input"].as_array().cloned().unwrap_or_default();
    let vector = |text: &Value| {
        let mut counts = [0.0_f32; 8];
        for byte in text.as_str().unwrap_or_default().bytes() {
            counts[usize::from(byte % 8)] += 1.0;
        }
        counts
    };
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            json!({ "object": "embedding", "index": index, "embedding": vector(text) })
        })
        .collect();
    json!({ "object": "list", "data": data })
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .expect("status and header are valid")
}
