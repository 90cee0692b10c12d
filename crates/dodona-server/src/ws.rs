//! WebSocket connections: calls, and streams as subscriptions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use dodona_hub::{CancelTarget, Reader, StoredItem};
use dodona_proto::{CallError, ErrorCode, StreamId};
use futures_util::stream::{self, SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::app::App;
use crate::auth::{Caller, RENEW};
use crate::http;
use crate::rpc::{self, Answer, Call, Frame, Incoming, Opened, Room};

/// How many messages wait for a peer before those who send do.
const OUTGOING: usize = 64;

/// Bytes that are read at once. A larger message grows the buffer, for as long as it is read.
const READ_BUFFER: usize = 4 << 10;

/// Bytes that are collected before they are written.
const WRITE_BUFFER: usize = 4 << 10;

/// Whether the key of a handshake is what RFC 6455 asks for: 16 bytes in base64, exactly once.
fn has_valid_key(headers: &HeaderMap) -> bool {
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
    let (Some(key), None) = (keys.next(), keys.next()) else {
        return false;
    };
    let Some(digits) = key.as_bytes().strip_suffix(b"==") else {
        return false;
    };
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    // The last digit carries two bits; the others of it are zero.
    let ends_clean = matches!(digits.last(), Some(b'A' | b'Q' | b'g' | b'w'));
    digits.len() == 22 && digits.iter().all(is_digit) && ends_clean
}

/// Upgrades a request whose host, origin and token have been checked.
pub(crate) async fn upgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    if upgrade.is_ok() && !has_valid_key(&headers) {
        let message = "`Sec-WebSocket-Key` must be 16 bytes in base64";
        let error = CallError::new(ErrorCode::InvalidRequest, message);
        return http::json(StatusCode::BAD_REQUEST, rpc::failure(None, &error));
    }
    let Ok(upgrade) = upgrade else {
        let error = CallError::new(
            ErrorCode::InvalidRequest,
            "here is a WebSocket (version 13); calls over HTTP are posted",
        );
        let status = StatusCode::UPGRADE_REQUIRED;
        let mut response = http::json(status, rpc::failure(None, &error));
        for (name, value) in [
            (header::UPGRADE, "websocket"),
            (header::SEC_WEBSOCKET_VERSION, "13"),
        ] {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        return response;
    };
    let bytes = app.options.body_bytes;
    upgrade
        .max_message_size(bytes)
        .max_frame_size(bytes)
        // The defaults are 128 KiB each, allocated for every connection however quiet it is.
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
        .on_upgrade(move |socket| connection(app, caller, socket))
}

/// What the calls of one connection share.
struct Connection {
    app: Arc<App>,
    out: mpsc::Sender<Message>,
    subscriptions: Mutex<HashMap<StreamId, Subscription>>,
    /// Places for subscriptions.
    room: Room,
    /// Cancelled when the connection is over.
    closed: CancellationToken,
}

struct Subscription {
    /// Whether this connection started the stream, so that unsubscribing cancels it.
    own: bool,
    /// Which of the tasks that were ever started for this stream.
    task: tokio::task::Id,
    /// Dropped to end the sending.
    _stop: DropGuard,
    _place: Option<OwnedSemaphorePermit>,
}

/// Why a connection ends, as its close frame tells it.
type Ending = (u16, &'static str);

const STOPPING: Ending = (close_code::AWAY, "the server is stopping");
const IDLE: Ending = (close_code::AWAY, "nothing was heard for too long");
const NO_LONGER_VALID: Ending = (close_code::POLICY, "the token is no longer valid");

async fn connection(app: Arc<App>, caller: Caller, socket: WebSocket) {
    let (sink, source) = socket.split();
    let (out, outgoing) = mpsc::channel(OUTGOING);
    let closed = CancellationToken::new();
    let writer = tokio::spawn(write(sink, outgoing, closed.clone()));
    let room = Arc::new(Semaphore::new(app.options.subscriptions));
    let connection = Arc::new(Connection {
        app,
        out,
        subscriptions: Mutex::default(),
        room,
        closed: closed.clone(),
    });
    if let Some((code, reason)) = read(&connection, caller, source).await {
        let reason = Utf8Bytes::from_static(reason);
        let frame = CloseFrame { code, reason };
        let _ = connection.out.send(Message::Close(Some(frame))).await;
    }
    // Subscriptions end with the connection; their streams go on for the grace time.
    connection.subscriptions().clear();
    drop(connection);
    closed.cancel();
    let _ = writer.await;
}

/// Reads until the peer or the server goes; the answer is what to tell the peer then.
async fn read(
    connection: &Arc<Connection>,
    mut caller: Caller,
    mut source: SplitStream<WebSocket>,
) -> Option<Ending> {
    let Connection { app, closed, .. } = connection.as_ref();
    let in_flight = Arc::new(Semaphore::new(app.options.in_flight));
    let mut ping = every(app.options.keep_alive);
    let mut renew = every(RENEW);
    let mut heard = Instant::now();
    let mut gone = std::pin::pin!(closed.cancelled());
    let mut shutdown = std::pin::pin!(app.shutdown.cancelled());
    loop {
        tokio::select! {
            // What there is to read comes first and cheapest; a peer that never pauses is looked
            // after here, where the others have no turn.
            biased;
            (message, place) = next(&mut source, &in_flight), if !app.shutdown.is_cancelled() => {
                heard = Instant::now();
                if let Err(error) = caller.renew_if_old(&app.hub) {
                    connection.say(Some(rpc::failure(None, &error))).await;
                    return Some(NO_LONGER_VALID);
                }
                match message? {
                    Ok(Message::Text(text)) => start(connection, &caller, text.into(), place).await,
                    Ok(Message::Binary(bytes)) => start(connection, &caller, bytes, place).await,
                    Ok(Message::Ping(_) | Message::Pong(_)) => {}
                    Ok(Message::Close(_)) => return None,
                    Err(error) => return breach(error),
                }
            }
            _ = ping.tick() => {
                if in_flight.available_permits() == 0 {
                    // It may well be talking; we are not listening.
                    heard = Instant::now();
                }
                if heard.elapsed() > app.options.idle_timeout {
                    return Some(IDLE);
                }
                // A full queue needs no ping to keep the connection busy.
                let _ = connection.out.try_send(Message::Ping(Bytes::new()));
            }
            _ = renew.tick() => {
                if let Err(error) = caller.renew(&app.hub) {
                    connection.say(Some(rpc::failure(None, &error))).await;
                    return Some(NO_LONGER_VALID);
                }
            }
            () = &mut gone => return None,
            () = &mut shutdown => {
                let all = in_flight.acquire_many(u32::try_from(app.options.in_flight).ok()?);
                let _ = tokio::time::timeout(app.options.drain, all).await;
                return Some(STOPPING);
            }
        }
    }
}

fn every(period: Duration) -> tokio::time::Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval.reset();
    interval
}

/// The next message, and a place for it. The place first: a peer with too many calls running is
/// not read from, and so waits.
async fn next(
    source: &mut SplitStream<WebSocket>,
    in_flight: &Arc<Semaphore>,
) -> (
    Option<Result<Message, axum::Error>>,
    Option<OwnedSemaphorePermit>,
) {
    let place = Arc::clone(in_flight).acquire_owned().await.ok();
    (source.next().await, place)
}

/// What to tell a peer that broke the protocol.
fn breach(error: axum::Error) -> Option<Ending> {
    use tungstenite::Error;
    tracing::debug!(%error, "a WebSocket peer broke the protocol");
    match error.into_inner().downcast_ref()? {
        Error::Capacity(_) => Some((close_code::SIZE, "the message is too large")),
        Error::Utf8(_) => Some((close_code::INVALID, "the text is not UTF-8")),
        Error::Protocol(_) => Some((close_code::PROTOCOL, "that is not WebSocket")),
        _ => None,
    }
}

/// Runs what a frame asks: at once if that takes no waiting, otherwise in a task of its own. A
/// call that only reads ends with the connection, since nobody is left to hear the answer.
async fn start(
    connection: &Arc<Connection>,
    caller: &Caller,
    frame: Bytes,
    place: Option<OwnedSemaphorePermit>,
) {
    let (connection, caller) = (Arc::clone(connection), caller.clone());
    let closed = connection.closed.clone();
    let mut run = Box::pin(async move {
        connection.answer(&caller, &frame).await;
        drop(place);
    });
    let first = std::future::poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx))).await;
    if first.is_pending() {
        tokio::spawn(async move { closed.run_until_cancelled(run).await });
    }
}

impl Connection {
    async fn answer(self: &Arc<Self>, caller: &Caller, frame: &[u8]) {
        let reply = match Frame::parse(frame, self.app.options.batch) {
            Ok(Frame::One(incoming)) => {
                let (reply, opened) = self.one(caller, incoming).await;
                self.say(reply).await;
                return self.send_items(opened);
            }
            Ok(Frame::Batch(all)) => return self.batch(caller, all).await,
            Err(error) => Some(rpc::failure(None, &error)),
        };
        self.say(reply).await;
    }

    async fn batch(self: &Arc<Self>, caller: &Caller, all: Vec<Incoming<'_>>) {
        let parallel = self.app.options.batch_parallel;
        let calls: Vec<_> = all
            .into_iter()
            .map(|incoming| self.one(caller, incoming))
            .collect();
        let mut answers = stream::iter(calls).buffered(parallel);
        let (mut replies, mut streams) = (Vec::new(), Vec::new());
        while let Some((reply, opened)) = answers.next().await {
            replies.push(reply);
            streams.extend(opened);
        }
        self.say(rpc::batch(replies)).await;
        for opened in streams {
            self.send_items(Some(opened));
        }
    }

    /// One call: its answer, and the stream whose items follow the answer.
    async fn one(
        &self,
        caller: &Caller,
        incoming: Incoming<'_>,
    ) -> (Option<String>, Option<Opened>) {
        let Incoming { id, request } = incoming;
        let outcome = match request {
            Ok(call) if call.method == "hub.unsubscribe" => self.unsubscribe(caller, &call).await,
            Ok(call) => rpc::execute(&self.app, caller, call, Some(&self.room)).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(Answer::Result(result)) => (rpc::reply(id, Ok(&result)), None),
            Ok(Answer::Stream(opened)) => {
                let subscription = format!("\"{}\"", opened.reader.stream());
                let reply = rpc::reply(id, Ok(&subscription));
                // Without an answer the peer cannot know what the items belong to.
                let opened = reply.is_some().then_some(opened);
                (reply, opened)
            }
            Err(error) => (rpc::reply(id, Err(&error)), None),
        }
    }

    /// Ends a subscription; a stream that this connection started is cancelled with it.
    async fn unsubscribe(&self, caller: &Caller, call: &Call<'_>) -> Result<Answer, CallError> {
        let stream = rpc::unsubscribe_target(&call.value()?)?;
        let Some(subscription) = self.subscriptions().remove(&stream) else {
            return Ok(Answer::Result("false".to_owned()));
        };
        if subscription.own {
            // One that has just ended is not found, which is as well.
            let _ = self
                .app
                .hub
                .cancel(&caller.principal, &CancelTarget::Stream(stream))
                .await;
        }
        Ok(Answer::Result("true".to_owned()))
    }

    /// Sends the items of a stream from now on.
    fn send_items(self: &Arc<Self>, opened: Option<Opened>) {
        let Some(Opened { reader, own, place }) = opened else {
            return;
        };
        let stream = reader.stream();
        let stop = self.closed.child_token();
        let sending = Arc::clone(self).send_all(reader, stop.clone());
        // Held, so that the task cannot leave before it is entered.
        let mut subscriptions = self.subscriptions();
        let subscription = Subscription {
            own: own || subscriptions.get(&stream).is_some_and(|before| before.own),
            task: tokio::spawn(sending).id(),
            _stop: stop.drop_guard(),
            _place: place,
        };
        subscriptions.insert(stream, subscription);
    }

    async fn send_all(self: Arc<Self>, mut reader: Reader, stop: CancellationToken) {
        let stream = reader.stream();
        loop {
            let items = tokio::select! {
                () = stop.cancelled() => return,
                items = reader.next() => items,
            };
            let items = match items {
                Ok(Some(items)) => items,
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%stream, %error, "a stream could not be read on");
                    break;
                }
            };
            for item in items {
                let message = notification(stream, &item);
                if self.out.send(message).await.is_err() {
                    return;
                }
            }
        }
        // The peer may have subscribed anew since; that is not ours to end.
        let is_this = |known: &Subscription| Some(known.task) == tokio::task::try_id();
        let mut subscriptions = self.subscriptions();
        if subscriptions.get(&stream).is_some_and(is_this) {
            subscriptions.remove(&stream);
        }
    }

    async fn say(&self, reply: Option<String>) {
        if let Some(reply) = reply {
            // An error means that the peer has gone.
            let _ = self.out.send(text(reply)).await;
        }
    }

    fn subscriptions(&self) -> MutexGuard<'_, HashMap<StreamId, Subscription>> {
        self.subscriptions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn text(text: String) -> Message {
    Message::Text(text.into())
}

fn notification(stream: StreamId, item: &StoredItem) -> Message {
    let mut out = String::with_capacity(item.body.len() + 256);
    out.push_str(r#"{"jsonrpc":"2.0","method":"hub.item","params":{"subscription":""#);
    out.push_str(&stream.to_string());
    out.push_str(r#"","result":"#);
    item.write_json(&mut out);
    out.push_str("}}");
    text(out)
}

/// Writes what is queued, everything that is ready with one flush. A peer that takes nothing
/// fails the write after a while; then the connection is over.
async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut outgoing: mpsc::Receiver<Message>,
    closed: CancellationToken,
) {
    'connection: loop {
        let message = tokio::select! {
            biased;
            message = outgoing.recv() => message,
            () = closed.cancelled() => None,
        };
        let Some(mut message) = message else { break };
        loop {
            let last = matches!(message, Message::Close(_));
            if sink.feed(message).await.is_err() || last {
                break 'connection;
            }
            match outgoing.try_recv() {
                Ok(next) => message = next,
                Err(_) => break,
            }
        }
        if sink.flush().await.is_err() {
            break;
        }
    }
    closed.cancel();
    let _ = sink.close().await;
}
