//! `GET /streams/{id}`: items as server-sent events.

use std::fmt::Write;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use dodona_hub::{Reader, StoredItem};
use dodona_proto::{CallError, ErrorCode, StreamId};
use futures_util::{StreamExt, stream};
use serde::Deserialize;

use crate::app::App;
use crate::auth::Caller;
use crate::http;

/// How soon a browser comes back after a lost connection.
const RETRY: &str = "retry: 1000\n\n";

#[derive(Deserialize)]
pub(crate) struct After {
    after: Option<u64>,
}

/// Sends the items after the one the client saw last, what is stored first, then what comes.
/// With nothing left to send, 204 tells a browser not to come back.
pub(crate) async fn stream(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    query: Result<Query<After>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let attached = async {
        let after = position(query, &headers)?;
        let id: StreamId = id
            .parse()
            .map_err(|_| CallError::new(ErrorCode::NotFound, "there is no such stream"))?;
        app.hub.attach(&caller.principal, id, after).await
    };
    let mut reader = match attached.await {
        Ok(reader) => reader,
        Err(error) => return http::refusal(&error),
    };
    if reader.is_live() {
        return events(app, caller, reader, RETRY.into());
    }
    // Of a stream that is over, everything there is can be asked for at once.
    match reader.next().await {
        Ok(Some(items)) => events(app, caller, reader, chunk(&items)),
        Ok(None) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => http::refusal(&error),
    }
}

/// `Last-Event-ID` is newer than the address it came with, so it counts more.
fn position(
    query: Result<Query<After>, axum::extract::rejection::QueryRejection>,
    headers: &HeaderMap,
) -> Result<u64, CallError> {
    let bad = |what: &str| {
        CallError::new(
            ErrorCode::InvalidParams,
            format!("{what} must be the number of an item"),
        )
    };
    if let Some(last) = headers.get("last-event-id") {
        return last
            .to_str()
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| bad("Last-Event-ID"));
    }
    Ok(query.map_err(|_| bad("`after`"))?.after.unwrap_or(0))
}

fn events(app: Arc<App>, caller: Caller, reader: Reader, first: Bytes) -> Response {
    let reading = Reading {
        app,
        caller,
        reader,
    };
    let rest = stream::unfold(Some(reading), async |reading| {
        let mut reading = reading?;
        match reading.next().await {
            Ok(None) => None,
            Ok(Some(bytes)) => Some((Ok(bytes), Some(reading))),
            Err(error) => {
                tracing::warn!(stream = %reading.reader.stream(), %error, "a stream could not be read on");
                Some((Err(error), None))
            }
        }
    });
    let first = stream::once(std::future::ready(Ok::<_, CallError>(first)));
    let mut response = Response::new(Body::from_stream(first.chain(rest)));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A client that reads a stream.
struct Reading {
    app: Arc<App>,
    caller: Caller,
    reader: Reader,
}

impl Reading {
    /// What to send next; `None` at the end, and for those who may not read on.
    async fn next(&mut self) -> Result<Option<Bytes>, CallError> {
        let next = tokio::select! {
            next = tokio::time::timeout(self.app.options.keep_alive, self.reader.next()) => next,
            // The client comes back to the next server and goes on where it was.
            () = self.app.shutdown.cancelled() => return Ok(None),
        };
        if self.caller.renew_if_old(&self.app.hub).is_err() {
            return Ok(None);
        }
        match next {
            Ok(items) => Ok(items?.map(|items| chunk(&items))),
            Err(_) => Ok(Some(Bytes::from_static(b": keep-alive\n\n"))),
        }
    }
}

/// Everything that is ready, as one write.
fn chunk(items: &[Arc<StoredItem>]) -> Bytes {
    let mut text = String::with_capacity(items.iter().map(|item| item.body.len() + 160).sum());
    for item in items {
        let _ = write!(
            text,
            "id: {}\nevent: {}\ndata: ",
            item.seq,
            item.kind.as_str()
        );
        // JSON text has no line break outside of strings, and inside they are escaped.
        item.write_json(&mut text);
        text.push_str("\n\n");
    }
    text.into()
}
