//! WebSocket connections: calls, and streams as subscriptions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use bytes::Bytes;
use dodona_hub::{CancelTarget, StoredItem};
use dodona_proto::{CallError, ErrorCode, MethodKind, StreamId};
use futures_util::stream::{self, SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::app::App;
use crate::auth::Caller;
use crate::rpc::{self, Answer, Call, Frame, Incoming, Opened};

/// How many messages wait for a peer before those who send do.
const OUTGOING: usize = 64;

/// How long the word of the hub about a token is good for.
const RENEW: Duration = Duration::from_secs(1);

/// Upgrades a request whose host, origin and token have been checked.
pub(crate) async fn upgrade(
    State(app): State<Arc<App>>,
    caller: Caller,
    upgrade: WebSocketUpgrade,
) -> Response {
    let bytes = app.options.body_bytes;
    upgrade
        .max_message_size(bytes)
        .max_frame_size(bytes)
        .on_upgrade(move |socket| connection(app, caller, socket))
}

/// What the calls of one connection share.
struct Connection {
    app: Arc<App>,
    out: mpsc::Sender<Message>,
    subscriptions: Mutex<HashMap<StreamId, Subscription>>,
    /// Cancelled when the connection is over.
    closed: CancellationToken,
}

struct Subscription {
    /// Whether this connection started the stream, so that unsubscribing cancels it.
    own: bool,
    /// Dropped to end the sending.
    _stop: DropGuard,
}

async fn connection(app: Arc<App>, caller: Caller, socket: WebSocket) {
    let (sink, source) = socket.split();
    let (out, outgoing) = mpsc::channel(OUTGOING);
    let closed = CancellationToken::new();
    let writer = tokio::spawn(write(sink, outgoing, closed.clone()));
    let connection = Arc::new(Connection {
        app,
        out,
        subscriptions: Mutex::default(),
        closed: closed.clone(),
    });
    let why = read(&connection, caller, source).await;
    if let Some((code, reason)) = why {
        let frame = CloseFrame {
            code,
            reason: Utf8Bytes::from_static(reason),
        };
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
) -> Option<(u16, &'static str)> {
    let options = &connection.app.options;
    let in_flight = Arc::new(Semaphore::new(options.in_flight));
    let mut ping = tokio::time::interval(options.keep_alive);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut heard, mut renewed) = (Instant::now(), Instant::now());
    loop {
        // A place first: a peer with too many calls running is not read from, and so waits.
        let place = tokio::select! {
            place = Arc::clone(&in_flight).acquire_owned() => place.ok()?,
            () = connection.closed.cancelled() => return None,
            () = connection.app.shutdown.cancelled() => return Some((close_code::AWAY, "the server is stopping")),
        };
        let message = loop {
            tokio::select! {
                message = source.next() => break message,
                _ = ping.tick() => {
                    if heard.elapsed() > options.idle_timeout {
                        return Some((close_code::AWAY, "nothing was heard for too long"));
                    }
                    // A full queue needs no ping to keep the connection busy.
                    let _ = connection.out.try_send(Message::Ping(Bytes::new()));
                }
                () = connection.closed.cancelled() => return None,
                () = connection.app.shutdown.cancelled() => return Some((close_code::AWAY, "the server is stopping")),
            }
        };
        heard = Instant::now();
        let frame = match message? {
            Ok(Message::Text(text)) => Bytes::from(text),
            Ok(Message::Binary(bytes)) => bytes,
            Ok(Message::Ping(_) | Message::Pong(_)) => continue,
            Ok(Message::Close(_)) => return None,
            Err(error) => {
                tracing::debug!(%error, "a WebSocket peer broke the protocol");
                return None;
            }
        };
        if renewed.elapsed() > RENEW {
            renewed = heard;
            if let Err(error) = caller.renew(&connection.app.hub) {
                let _ = connection.out.send(text(rpc::failure(None, &error))).await;
                return Some((close_code::POLICY, "the token is no longer valid"));
            }
        }
        start(Arc::clone(connection), caller.clone(), frame, place).await;
    }
}

/// Runs what a frame asks: at once if that takes no waiting, otherwise in a task of its own. A
/// call that only reads ends with the connection, since nobody is left to hear the answer.
async fn start(
    connection: Arc<Connection>,
    caller: Caller,
    frame: Bytes,
    place: OwnedSemaphorePermit,
) {
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
            Ok(call) => match self.room_for(&call) {
                Ok(()) => rpc::execute(&self.app, caller, call).await,
                Err(error) => Err(error),
            },
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

    /// Refuses a call that would open one subscription too many, before it starts anything.
    fn room_for(&self, call: &Call<'_>) -> Result<(), CallError> {
        let most = self.app.options.subscriptions;
        let streams = || {
            self.app
                .hub
                .method(&call.method)
                .is_some_and(|method| method.kind == MethodKind::Streaming)
        };
        if self.subscriptions().len() >= most && (call.method == "hub.subscribe" || streams()) {
            let message = format!("a connection has at most {most} subscriptions");
            return Err(CallError::new(ErrorCode::TooManyCalls, message));
        }
        Ok(())
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
        let Some(Opened { mut reader, own }) = opened else {
            return;
        };
        let stream = reader.stream();
        let stop = self.closed.child_token();
        let subscription = Subscription {
            own,
            _stop: stop.clone().drop_guard(),
        };
        self.subscriptions().insert(stream, subscription);
        let connection = Arc::clone(self);
        tokio::spawn(async move {
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
                    if connection
                        .out
                        .send(notification(stream, &item))
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            }
            connection.subscriptions().remove(&stream);
        });
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
