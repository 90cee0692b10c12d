//! From a request to the hub's answer.

use std::sync::Arc;

use dodona_hub::{PluginHub, Request};
use dodona_proto::{CallError, ErrorCode, MethodKind, Mutation};
use serde_json::{Value, json};

use super::envelope::Call;
use super::subscribe::{self, Opened, Room};
use crate::app::App;
use crate::auth::Caller;
use crate::openrpc;

/// What a call gives.
pub(crate) enum Answer {
    /// The result, as JSON text.
    Result(String),
    /// A stream to read from.
    Stream(Opened),
}

impl Answer {
    /// Over HTTP a stream is named, not sent: it goes on for the grace time, in which the client
    /// comes to read it.
    pub(crate) fn over_http(self) -> String {
        match self {
            Self::Result(text) => text,
            Self::Stream(opened) => {
                let stream_id = opened.reader.stream();
                json!({ "stream_id": stream_id, "sse_url": format!("/streams/{stream_id}") })
                    .to_string()
            }
        }
    }
}

/// Runs a call. The wire's own methods are few and listed here; everything else is the hub's.
pub(crate) async fn execute(
    app: &Arc<App>,
    caller: &Caller,
    call: Call<'_>,
    room: Option<&Room>,
) -> Result<Answer, CallError> {
    let params = call.value()?;
    let methods = || {
        app.hub
            .methods_in(&caller.principal, caller.project.as_ref())
    };
    match &*call.method {
        "rpc.discover" => Ok(Answer::Result(openrpc::document(&methods()).to_string())),
        "tools/list" => Ok(Answer::Result(openrpc::tools(&methods()).to_string())),
        "hub.subscribe" => subscribe::subscribe(&app.hub, caller, params, room)
            .await
            .map(Answer::Stream),
        method => run(&app.hub, caller, method, params, room).await,
    }
}

/// Runs a method of the hub.
pub(crate) async fn run(
    hub: &PluginHub,
    caller: &Caller,
    method: &str,
    params: Value,
    room: Option<&Room>,
) -> Result<Answer, CallError> {
    // The method is looked up once: the prepared call says how to run it.
    let prepared = hub.prepare(request(caller, method, params))?;
    if prepared.descriptor().kind == MethodKind::Streaming {
        let place = subscribe::enter(room)?;
        let reader = prepared.open().await?.into_reader();
        let own = true;
        return Ok(Answer::Stream(Opened { reader, own, place }));
    }
    let result = if prepared.descriptor().mutation == Mutation::Mutates {
        // A client that disconnects must not leave half of a change behind.
        let task = tokio::spawn(prepared.call());
        task.await.map_err(|error| {
            CallError::new(ErrorCode::Internal, "the task of the call failed").log(error)
        })??
    } else {
        prepared.call().await?
    };
    Ok(Answer::Result(result.to_string()))
}

/// A call from outside: its parameters are not to be trusted.
pub(crate) fn request(caller: &Caller, method: &str, params: Value) -> Request {
    let mut request = Request::new(Arc::clone(&caller.principal), method, params);
    request.project = caller.project.clone();
    request
}
