//! One WebSocket connection to a server: requests, their responses, and subscriptions.
//!
//! A writer task sends what callers queue, a reader task routes what arrives. They are separate so
//! that a server that is busy sending can never block a request behind its own output.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dodona_proto::HubStreamItem;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::{HeaderMap, Uri};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tungstenite::Message;
use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::WebSocketConfig;

/// Maximum time for the TCP connection and the handshake together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time for a response. The hub has its own, shorter limits; this one is for a server that
/// disappeared without closing the connection.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3700);

/// Time between two pings, and the silence after which the connection counts as lost.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const MAX_SILENCE: Duration = Duration::from_secs(75);

/// Items buffered per subscription. A reader that falls further behind loses the subscription and
/// resumes from the journal.
const MAX_BUFFERED_ITEMS: usize = 16 * 1024;

const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Messages queued for the writer. A full queue makes callers wait.
const OUTGOING_QUEUE: usize = 64;

type Connection = WebSocketStream<TcpStream>;

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum SocketError {
    #[error("the server rejected the request: {}", .0.message)]
    Rejected(ErrorObject),
    #[error("no response within {} s", RESPONSE_TIMEOUT.as_secs())]
    Timeout,
    #[error("no connection within {} s", CONNECT_TIMEOUT.as_secs())]
    Unresponsive,
    #[error("the connection is closed")]
    Closed,
    #[error("the handshake failed with HTTP status {0}")]
    Handshake(u16),
    #[error("cannot connect")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The error object of a JSON-RPC response.
#[derive(Debug, Deserialize)]
pub(super) struct ErrorObject {
    pub(super) message: String,
    #[serde(default)]
    pub(super) data: Value,
}

/// An open connection. Dropping it closes the connection.
pub(super) struct Socket {
    outgoing: mpsc::Sender<Message>,
    state: Arc<Mutex<State>>,
}

/// A running subscription.
pub(super) struct Subscription {
    pub(super) id: String,
    pub(super) items: mpsc::Receiver<Result<HubStreamItem, serde_json::Error>>,
}

/// Who waits for what. Shared by callers and the reader task.
#[derive(Default)]
struct State {
    closed: bool,
    last_id: u64,
    pending: HashMap<u64, Pending>,
    subscriptions: HashMap<String, mpsc::Sender<Result<HubStreamItem, serde_json::Error>>>,
}

enum Pending {
    Request(oneshot::Sender<Result<Value, SocketError>>),
    Subscribe(oneshot::Sender<Result<Subscription, SocketError>>),
}

impl Pending {
    fn reject(self, error: SocketError) {
        // A receiver that is gone gave up waiting.
        match self {
            Self::Request(reply) => drop(reply.send(Err(error))),
            Self::Subscribe(reply) => drop(reply.send(Err(error))),
        }
    }
}

impl Socket {
    /// Connects to `ws://host:port/path`.
    pub(super) async fn connect(url: &str, headers: &HeaderMap) -> Result<Self, SocketError> {
        let connection = tokio::time::timeout(CONNECT_TIMEOUT, handshake(url, headers));
        let connection = connection.await.map_err(|_| SocketError::Unresponsive)??;
        let (sink, stream) = connection.split();
        let (outgoing, queue) = mpsc::channel(OUTGOING_QUEUE);
        let state = Arc::new(Mutex::new(State::default()));
        let unsubscribe = outgoing.downgrade();
        tokio::spawn(write(sink, queue));
        tokio::spawn(read(stream, Arc::clone(&state), unsubscribe));
        Ok(Self { outgoing, state })
    }

    pub(super) fn is_open(&self) -> bool {
        !lock(&self.state).closed
    }

    pub(super) async fn request(&self, method: &str, params: Value) -> Result<Value, SocketError> {
        self.send(method, params, Pending::Request).await
    }

    /// Starts a subscription. Items are buffered from the response on, so none is missed.
    pub(super) async fn subscribe(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Subscription, SocketError> {
        self.send(method, params, Pending::Subscribe).await
    }

    async fn send<T>(
        &self,
        method: &str,
        params: Value,
        pending: fn(oneshot::Sender<Result<T, SocketError>>) -> Pending,
    ) -> Result<T, SocketError> {
        let (reply, response) = oneshot::channel();
        let id = self.register(pending(reply))?;
        // Removes the entry also when the caller stops waiting and drops this future.
        let _entry = PendingEntry {
            state: &self.state,
            id,
        };
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let message = Message::text(request.to_string());
        let closed = |_| SocketError::Closed;
        self.outgoing.send(message).await.map_err(closed)?;
        match tokio::time::timeout(RESPONSE_TIMEOUT, response).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(SocketError::Closed),
            Err(_) => Err(SocketError::Timeout),
        }
    }

    fn register(&self, pending: Pending) -> Result<u64, SocketError> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(SocketError::Closed);
        }
        state.last_id += 1;
        let id = state.last_id;
        state.pending.insert(id, pending);
        Ok(id)
    }
}

struct PendingEntry<'a> {
    state: &'a Mutex<State>,
    id: u64,
}

impl Drop for PendingEntry<'_> {
    fn drop(&mut self) {
        lock(self.state).pending.remove(&self.id);
    }
}

async fn handshake(url: &str, headers: &HeaderMap) -> Result<Connection, SocketError> {
    let connect = |error| SocketError::Connect(error);
    let mut request = url
        .into_client_request()
        .map_err(|error| connect(error.into()))?;
    request.headers_mut().extend(headers.clone());
    let address = address(request.uri()).ok_or_else(|| connect("the URL has no host".into()))?;
    let stream = TcpStream::connect(address)
        .await
        .map_err(|error| connect(error.into()))?;
    // Requests are small and each waits for its response; Nagle's algorithm would delay them.
    stream
        .set_nodelay(true)
        .map_err(|error| connect(error.into()))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let shaken = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
    match shaken {
        Ok((connection, _)) => Ok(connection),
        Err(tungstenite::Error::Http(response)) => {
            Err(SocketError::Handshake(response.status().as_u16()))
        }
        Err(error) => Err(connect(error.into())),
    }
}

/// Host and port; IPv6 addresses lose the brackets of the URL.
fn address(uri: &Uri) -> Option<(String, u16)> {
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), uri.port_u16().unwrap_or(80)))
}

async fn write(mut sink: SplitSink<Connection, Message>, mut queue: mpsc::Receiver<Message>) {
    let mut ping = tokio::time::interval(PING_INTERVAL);
    ping.tick().await; // the first tick is immediate
    loop {
        let message = tokio::select! {
            message = queue.recv() => message,
            _ = ping.tick() => Some(Message::Ping(bytes::Bytes::new())),
        };
        // The queue ends when the socket is dropped.
        let Some(message) = message else { break };
        if sink.send(message).await.is_err() {
            return; // the reader notices too, and ends every request
        }
    }
    // The peer may be gone already.
    let _ = sink.close().await;
}

async fn read(
    mut stream: SplitStream<Connection>,
    state: Arc<Mutex<State>>,
    outgoing: mpsc::WeakSender<Message>,
) {
    while let Ok(Some(Ok(message))) = tokio::time::timeout(MAX_SILENCE, stream.next()).await {
        let Message::Text(text) = message else {
            continue; // the library answers pings by itself
        };
        if let Some(lagging) = route(&mut lock(&state), &text)
            && let Some(outgoing) = outgoing.upgrade()
        {
            // Best effort: if the queue is full, the server keeps sending items that are ignored.
            let params = json!({ "subscription": lagging });
            let request =
                json!({ "jsonrpc": "2.0", "id": 0, "method": "hub.unsubscribe", "params": params });
            drop(outgoing.try_send(Message::text(request.to_string())));
        }
    }
    let mut state = lock(&state);
    state.closed = true;
    state.subscriptions.clear();
    for (_, pending) in state.pending.drain() {
        pending.reject(SocketError::Closed);
    }
}

/// A response or a notification.
#[derive(Deserialize)]
struct Incoming<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ErrorObject>,
    #[serde(borrow)]
    params: Option<Notification<'a>>,
}

#[derive(Deserialize)]
struct Notification<'a> {
    subscription: String,
    #[serde(borrow)]
    result: &'a RawValue,
}

/// Routes a message to the waiting caller. Returns a subscription whose reader is too slow, which
/// is removed.
fn route(state: &mut State, text: &str) -> Option<String> {
    let Ok(incoming) = serde_json::from_str::<Incoming<'_>>(text) else {
        return None; // neither a response nor a notification of ours
    };
    if let Some(id) = incoming.id {
        if let Some(pending) = state.pending.remove(&id) {
            respond(state, pending, &incoming);
        }
        return None;
    }
    let notification = incoming.params?;
    let reader = state.subscriptions.get(&notification.subscription)?;
    let item = serde_json::from_str(notification.result.get());
    if reader.try_send(item).is_ok() {
        return None;
    }
    state.subscriptions.remove(&notification.subscription);
    Some(notification.subscription)
}

fn respond(state: &mut State, pending: Pending, incoming: &Incoming<'_>) {
    if let Some(error) = &incoming.error {
        let error = ErrorObject {
            message: error.message.clone(),
            data: error.data.clone(),
        };
        return pending.reject(SocketError::Rejected(error));
    }
    let result = incoming.result.map_or("null", RawValue::get);
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    match pending {
        Pending::Request(reply) => drop(reply.send(Ok(result))),
        Pending::Subscribe(reply) => {
            let id = result.as_str().unwrap_or_default().to_owned();
            let (sender, items) = mpsc::channel(MAX_BUFFERED_ITEMS);
            // Registered here, before the next message is read: the first item may follow at once.
            state.subscriptions.insert(id.clone(), sender);
            drop(reply.send(Ok(Subscription { id, items })));
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
