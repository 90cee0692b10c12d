//! `hub.subscribe` and `hub.unsubscribe`.

use std::sync::Arc;
use std::time::Duration;

use dodona_hub::{PluginHub, Reader, UnreadPolicy};
use dodona_proto::{CallError, ErrorCode, StreamId};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::execute::request;
use crate::auth::Caller;

/// A stream that a client reads.
pub(crate) struct Opened {
    pub(crate) reader: Reader,
    /// Whether this client started it, so that unsubscribing cancels it.
    pub(crate) own: bool,
    /// Its place among the subscriptions of a connection.
    pub(crate) place: Option<OwnedSemaphorePermit>,
}

/// Where a connection counts its subscriptions. Over HTTP there are none.
pub(crate) type Room = Arc<Semaphore>;

/// A place for one more subscription, before anything is started for it.
pub(crate) fn enter(room: Option<&Room>) -> Result<Option<OwnedSemaphorePermit>, CallError> {
    let place = room.map(|room| Arc::clone(room).try_acquire_owned());
    place.transpose().map_err(|_| {
        CallError::new(
            ErrorCode::TooManyCalls,
            "the connection has too many subscriptions",
        )
        .hint("unsubscribe from one, or open another connection")
    })
}

/// Either a method to call and watch, or a stream to go on reading.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubscribeParams {
    method: Option<String>,
    #[serde(default)]
    params: Value,
    stream_id: Option<StreamId>,
    #[serde(default)]
    after: u64,
    #[serde(default)]
    detached: bool,
    /// Unsubscribing leaves the call running, for the grace time.
    #[serde(default)]
    leave: bool,
    timeout_ms: Option<u64>,
}

pub(crate) async fn subscribe(
    hub: &PluginHub,
    caller: &Caller,
    params: Value,
    room: Option<&Room>,
) -> Result<Opened, CallError> {
    let bad = |message: String| CallError::new(ErrorCode::InvalidParams, message);
    // Clients that send parameters by position send one object.
    let params = match params {
        Value::Array(mut values) if values.len() == 1 => values.remove(0),
        other => other,
    };
    let p: SubscribeParams = serde_json::from_value(params).map_err(|error| {
        bad(format!("invalid parameters: {error}"))
            .hint("name a `method` (and its `params`), or a `stream_id` (and `after`)")
    })?;
    match (p.method, p.stream_id) {
        (Some(method), None) => {
            let place = enter(room)?;
            let mut request = request(caller, &method, p.params);
            request.timeout = p.timeout_ms.map(Duration::from_millis);
            request.when_unread = if p.detached {
                UnreadPolicy::RunToEnd
            } else {
                UnreadPolicy::CancelAfterGrace
            };
            Ok(Opened {
                reader: hub.open(request).await?.into_reader(),
                own: !p.leave,
                place,
            })
        }
        (None, Some(stream)) => Ok(Opened {
            place: enter(room)?,
            reader: hub.attach(&caller.principal, stream, p.after).await?,
            own: false,
        }),
        _ => Err(bad("name either a `method` or a `stream_id`".to_owned())),
    }
}

/// The subscription that an unsubscribe names, by name or by position.
pub(crate) fn unsubscribe_target(params: &Value) -> Result<StreamId, CallError> {
    let named = match params {
        Value::Array(values) if values.len() == 1 => values.first(),
        Value::Object(fields) if fields.len() == 1 => fields.get("subscription"),
        _ => None,
    };
    named
        .and_then(Value::as_str)
        .and_then(|id| id.parse().ok())
        .ok_or_else(|| {
            CallError::new(
                ErrorCode::InvalidParams,
                "name the subscription: `{\"subscription\": \"…\"}`",
            )
        })
}
