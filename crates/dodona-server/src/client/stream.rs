//! A stream that outlives its connections.

use std::time::Duration;

use dodona_proto::{
    ApprovalAnswer, ApprovalRequest, CallError, DoneStatus, ErrorCode, HubStreamItem, ItemBody,
    StreamId,
};
use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::Client;
use super::socket::Subscription;

/// How long to wait before each new try to reach the server, the last one for ever after.
const PAUSES: &[u64] = &[0, 50, 200, 500, 1_000];

/// How long a server may be away before the stream is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The items of a call on a server. A lost connection is made again and the stream goes on after
/// the last item seen.
pub struct RemoteStream {
    client: Client,
    stream: StreamId,
    items: Option<Subscription>,
    seen: u64,
    ended: bool,
}

impl RemoteStream {
    pub(super) async fn open(
        client: Client,
        method: &str,
        params: Value,
        timeout: Option<Duration>,
    ) -> Result<Self, CallError> {
        let timeout_ms =
            timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        // A slow reader loses its subscription; `leave` keeps that from ending the call.
        let params =
            json!({ "method": method, "params": params, "timeout_ms": timeout_ms, "leave": true });
        let items = subscribe(&client, params).await?;
        let stream = stream_of(&items)?;
        Ok(Self {
            client,
            stream,
            items: Some(items),
            seen: 0,
            ended: false,
        })
    }

    /// Which stream.
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// The next item; `None` after the terminal.
    pub async fn next(&mut self) -> Result<Option<HubStreamItem>, CallError> {
        while !self.ended {
            let Some(items) = &mut self.items else {
                self.resume().await?;
                continue;
            };
            match items.items.recv().await {
                Some(Ok(item)) if item.seq <= self.seen => {}
                Some(Ok(item)) => return Ok(Some(self.take(item))),
                Some(Err(error)) => {
                    return Err(CallError::new(
                        ErrorCode::Internal,
                        "the server sent an item that cannot be read",
                    )
                    .log(error));
                }
                // The connection was lost, or this reader was too slow.
                None => self.items = None,
            }
        }
        Ok(None)
    }

    /// Reads to the end: the last data of the root call, or its error.
    pub async fn result(mut self) -> Result<Value, CallError> {
        let (mut result, mut failure) = (Value::Null, None);
        while let Some(item) = self.next().await? {
            match item.body {
                _ if item.call_id.depth() > 0 => {}
                ItemBody::Data { content_type, .. } if is_about_approval(&content_type) => {}
                ItemBody::Data { data, .. } => result = data,
                ItemBody::Error {
                    error,
                    code,
                    recoverable: false,
                    hint,
                } => {
                    let error = CallError::new(code, error);
                    failure = Some(match hint {
                        Some(hint) => error.hint(hint),
                        None => error,
                    });
                }
                ItemBody::Done { status, reason } if status != DoneStatus::Complete => {
                    let reason = reason.unwrap_or_else(|| status.as_str().to_owned());
                    return Err(
                        failure.unwrap_or_else(|| CallError::new(ErrorCode::Cancelled, reason))
                    );
                }
                _ => {}
            }
        }
        Ok(result)
    }

    fn take(&mut self, item: HubStreamItem) -> HubStreamItem {
        self.seen = item.seq;
        self.ended = item.call_id.depth() == 0 && matches!(item.body, ItemBody::Done { .. });
        item
    }

    /// Subscribes again, after the last item seen.
    async fn resume(&mut self) -> Result<(), CallError> {
        let started = tokio::time::Instant::now();
        for pause in PAUSES
            .iter()
            .chain(std::iter::repeat(PAUSES.last().unwrap_or(&1_000)))
        {
            tokio::time::sleep(Duration::from_millis(*pause)).await;
            let params = json!({ "stream_id": self.stream, "after": self.seen });
            match subscribe(&self.client, params).await {
                Ok(items) => {
                    self.items = Some(items);
                    return Ok(());
                }
                Err(error)
                    if error.code == ErrorCode::Interrupted && started.elapsed() < PATIENCE => {}
                Err(error) => return Err(error),
            }
        }
        unreachable!("the pauses have no end")
    }

    /// Stops the call and waits until the server has answered. What was emitted until then can
    /// still be read.
    pub async fn cancel(&self) -> Result<(), CallError> {
        self.client
            .call("hub.cancel", json!({ "stream_id": self.stream }))
            .await
            .map(drop)
    }
}

impl Drop for RemoteStream {
    /// Nobody waits for the result any more. Where that cannot be told, the server finds out
    /// after the grace time.
    fn drop(&mut self) {
        if let (false, Ok(runtime)) = (self.ended, Handle::try_current()) {
            let (client, stream) = (self.client.clone(), self.stream);
            runtime.spawn(async move {
                let params = json!({ "stream_id": stream });
                let _ = client.call("hub.cancel", params).await;
            });
        }
    }
}

async fn subscribe(client: &Client, params: Value) -> Result<Subscription, CallError> {
    let socket = client.socket().await?;
    let subscribed = socket.subscribe("hub.subscribe", params).await;
    subscribed.map_err(|error| client.explain(error))
}

fn stream_of(items: &Subscription) -> Result<StreamId, CallError> {
    items.id.parse().map_err(|error| {
        CallError::new(
            ErrorCode::Internal,
            format!("the server sent an invalid stream id `{}`", items.id),
        )
        .log(error)
    })
}

/// Whether data says that a call waits, or waited, and is no part of its result.
fn is_about_approval(content_type: &str) -> bool {
    [ApprovalRequest::CONTENT_TYPE, ApprovalAnswer::CONTENT_TYPE].contains(&content_type)
}
