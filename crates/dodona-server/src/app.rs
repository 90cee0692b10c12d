//! The routes of the one port.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, Request, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use dodona_hub::PluginHub;
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::auth::Caller;
use crate::options::ServerOptions;
use crate::plugins::{self, Mounts};
use crate::{guard, http, login, mcp, page, sse, ws};

/// What every request can reach.
pub(crate) struct App {
    pub(crate) hub: PluginHub,
    pub(crate) options: ServerOptions,
    pub(crate) mounts: Mounts,
    pub(crate) mcp: mcp::Mcp,
    pub(crate) port: u16,
    pub(crate) shutdown: CancellationToken,
}

impl App {
    pub(crate) fn new(
        hub: PluginHub,
        options: ServerOptions,
        mounts: Mounts,
        port: u16,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            mcp: mcp::Mcp::new(hub.clone(), &options, &shutdown),
            hub,
            options,
            mounts,
            port,
            shutdown,
        }
    }
}

/// Answers a request. A call takes the short way: the router would cost as much as the call.
pub(crate) async fn dispatch(
    app: Arc<App>,
    router: &Router,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    // Boxed, so that a connection holds the state of a request only while it is being answered: a
    // connection that waits for the items of a stream lives long, and there are thousands of them.
    if request.method() != Method::POST || request.uri().path() != "/rpc" {
        return Box::pin(router.clone().oneshot(request)).await;
    }
    Ok(
        match guard::refusal(&app, request.uri(), request.headers()) {
            None => Box::pin(http::answer(&app, request)).await,
            Some(refusal) => refusal,
        },
    )
}

/// Every route but `POST /rpc`.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/rpc", get(ws::upgrade).fallback(only_get_and_post))
        .route("/streams/{id}", get(sse::stream))
        .route("/mcp", any(mcp::answer))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .route("/login", get(login::login))
        .route("/plugins/{*path}", any(plugins::answer))
        .route("/", get(page::index))
        .fallback(page::file)
        // Before everything else, upgrades included.
        .layer(from_fn_with_state(Arc::clone(&app), guard::check))
        .layer(from_fn(page::protect))
        .with_state(app)
}

async fn only_get_and_post() -> Response {
    (
        StatusCode::METHOD_NOT_ALLOWED,
        [(header::ALLOW, "GET, POST")],
    )
        .into_response()
}

async fn health(State(app): State<Arc<App>>) -> Response {
    let health = app.hub.health();
    let (status, word) = match health.stopping {
        false => (StatusCode::OK, "ok"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "stopping"),
    };
    http::json(status, format!(r#"{{"status":"{word}"}}"#))
}

async fn metrics(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let Some(metrics) = &app.options.metrics else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if let Err(refused) = caller.require("hub:read") {
        return http::refusal(&refused);
    }
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        metrics.render(&app.hub),
    )
        .into_response()
}
