//! `/mcp`: the protocol over streamable HTTP.
//!
//! Host and Origin were checked before. Here the hub says who asks, the body is read with the
//! bounds of every other route, and rmcp is handed a request that is known to be somebody's.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use dodona_hub::PluginHub;
use dodona_proto::{CallError, ErrorCode, ProjectId, Surface};
use futures_util::stream;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;
use tokio_util::sync::CancellationToken;

use super::desk::Here;
use super::endpoint::Endpoint;
use super::groups::Groups;
use super::sessions::Sessions;
use crate::app::App;
use crate::auth::Caller;
use crate::http;
use crate::options::ServerOptions;

const SESSION: &str = "mcp-session-id";

/// The MCP side of a server.
pub(crate) struct Mcp {
    service: StreamableHttpService<Endpoint, Sessions>,
    sessions: Arc<Sessions>,
}

/// Who makes a request, and which tools they want.
#[derive(Clone)]
pub(super) struct Visit {
    pub(super) caller: Caller,
    pub(super) groups: Groups,
}

impl Mcp {
    pub(crate) fn new(
        hub: PluginHub,
        options: &ServerOptions,
        shutdown: &CancellationToken,
    ) -> Self {
        let here = Arc::new(Here::new(hub));
        let sessions = Arc::new(Sessions::new());
        let config = StreamableHttpServerConfig::default()
            // Ours have been asked already.
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(options.body_bytes)
            .with_sse_keep_alive(Some(options.keep_alive))
            .with_json_response(true)
            .with_cancellation_token(shutdown.child_token());
        // What is kept of a client is kept for its session.
        let make = move || Ok(Endpoint::http(Arc::clone(&here)));
        let service = StreamableHttpService::new(make, Arc::clone(&sessions), config);
        Self { service, sessions }
    }
}

/// Answers a request to `/mcp`.
pub(crate) async fn answer(State(app): State<Arc<App>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let visit = match visit(&app, &parts) {
        Ok(visit) => visit,
        Err(error) => return http::refusal(&error),
    };
    let session = session(&parts.headers).map(str::to_owned);
    if let Some(id) = &session
        && !app.mcp.sessions.is_of(id, &visit.caller.principal.user)
        && !is_stateless(&parts.headers)
    {
        let error = CallError::new(ErrorCode::NotFound, "there is no such session")
            .hint("begin one with `initialize`");
        return http::refusal(&error);
    }
    let body = match parts.method {
        Method::POST => match read(&app, &parts, body).await {
            Ok(body) => body,
            Err(refusal) => return refusal,
        },
        _ => Bytes::new(),
    };
    let (hub, caller) = (app.hub.clone(), visit.caller.clone());
    let user = caller.principal.user.clone();
    parts.extensions.insert(visit);
    let request = Request::from_parts(parts, Full::new(body));
    let answer = app.mcp.service.handle(request).await;
    if let (None, Some(id)) = (session, self::session(answer.headers())) {
        app.mcp.sessions.add(id.to_owned().into(), &user).await;
    }
    until_refused(hub, caller, answer)
}

fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION)?.to_str().ok()
}

/// From 2026-07-28 on there are no sessions, and whoever names one means nothing by it.
fn is_stateless(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version");
    version.is_some_and(|version| version.as_bytes() >= b"2026-07-28".as_slice())
}

/// Who asks, about what, and for which tools.
fn visit(app: &App, parts: &Parts) -> Result<Visit, CallError> {
    let mut caller = Caller::find_at(app, parts, Surface::Mcp)?;
    let bad = |message: String| CallError::new(ErrorCode::InvalidParams, message);
    let mut groups = Groups::default();
    for (name, value) in pairs(parts.uri.query().unwrap_or_default()) {
        match name {
            "tools" => groups = value.parse().map_err(|error| bad(format!("{error}")))?,
            // A header says it too, and counts more.
            "project" if caller.project.is_some() => {}
            "project" => {
                let unknown = |_| CallError::new(ErrorCode::NotFound, "there is no such project");
                caller.project = Some(ProjectId::new(&value).map_err(unknown)?);
            }
            other => {
                return Err(bad(format!("`/mcp` has no parameter `{other}`"))
                    .hint("it has `tools` and `project`"));
            }
        }
    }
    Ok(Visit { caller, groups })
}

/// The parameters of an address. Names of plugins and projects need no escapes but for the comma.
fn pairs(query: &str) -> impl Iterator<Item = (&str, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name, value.replace("%2C", ",").replace("%2c", ","))
        })
}

/// The body, which is JSON.
async fn read(app: &App, parts: &Parts, body: Body) -> Result<Bytes, Response> {
    let body = http::json_body(app, parts, body).await?;
    match serde_json::from_slice::<IgnoredAny>(&body) {
        Ok(_) => Ok(body),
        Err(_) => Err(http::refusal(&CallError::new(
            ErrorCode::ParseError,
            "not JSON",
        ))),
    }
}

/// What rmcp answers; a stream ends when the hub does not know its reader any more.
fn until_refused(
    hub: PluginHub,
    caller: Caller,
    answer: axum::http::Response<BoxBody<Bytes, Infallible>>,
) -> Response {
    let (parts, body) = answer.into_parts();
    let is_stream = parts.headers.get(header::CONTENT_TYPE);
    if is_stream.is_none_or(|kind| kind != "text/event-stream") || parts.status != StatusCode::OK {
        return Response::from_parts(parts, Body::new(body));
    }
    let frames = stream::unfold((hub, caller, body), async |(hub, mut caller, mut body)| {
        loop {
            let frame = body.frame().await?;
            caller.renew_if_old(&hub).ok()?;
            let Ok(frame) = frame;
            if let Ok(data) = frame.into_data() {
                return Some((Ok::<_, Infallible>(data), (hub, caller, body)));
            }
        }
    });
    Response::from_parts(parts, Body::from_stream(frames))
}
