//! The routes of the one port.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{Method, Request, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{any, get};
use dodona_hub::Hub;
use dodona_proto::{CallError, ErrorCode};
use hyper::body::Incoming;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::auth::{self, Caller};
use crate::options::ServerOptions;
use crate::plugins::{self, Mounts};
use crate::{guard, http, sse, ws};

/// What every request can reach.
pub(crate) struct App {
    pub(crate) hub: Hub,
    pub(crate) options: ServerOptions,
    pub(crate) mounts: Mounts,
    pub(crate) port: u16,
    pub(crate) shutdown: CancellationToken,
}

impl App {
    pub(crate) fn new(
        hub: Hub,
        options: ServerOptions,
        mounts: Mounts,
        port: u16,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
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
    if request.method() != Method::POST || request.uri().path() != "/rpc" {
        return router.clone().oneshot(request).await;
    }
    Ok(match guard::refusal(&app, request.headers()) {
        None => http::answer(&app, request).await,
        Some(refusal) => refusal,
    })
}

/// Every route but `POST /rpc`.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/rpc", get(ws::upgrade).fallback(only_get_and_post))
        .route("/streams/{id}", get(sse::stream))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .route("/login", get(login))
        .route("/plugins/{*path}", any(plugins::answer))
        .route("/", get(index))
        // Before everything else, upgrades included.
        .layer(from_fn_with_state(Arc::clone(&app), guard::check))
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

async fn index() -> &'static str {
    concat!(
        "Dodona ",
        env!("CARGO_PKG_VERSION"),
        " is running. Its methods are at POST /rpc; `dodona methods` lists them.\n"
    )
}

#[derive(Deserialize)]
struct LoginQuery {
    code: String,
}

/// Trades the code of a one-time link for a cookie.
async fn login(
    State(app): State<Arc<App>>,
    query: Result<Query<LoginQuery>, QueryRejection>,
) -> Response {
    let Ok(query) = query else {
        let error = CallError::new(ErrorCode::InvalidParams, "the link has no `code`");
        return http::refusal(&error);
    };
    match app.hub.redeem_login(&query.code).await {
        Ok((token, lifetime)) => {
            let cookie = auth::cookie(&token, lifetime);
            (
                [
                    (header::SET_COOKIE, cookie),
                    (header::CACHE_CONTROL, "no-store".to_owned()),
                ],
                Redirect::to("/"),
            )
                .into_response()
        }
        Err(error) => http::refusal(&error),
    }
}
