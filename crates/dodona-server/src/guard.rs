//! Host and Origin: a page of somebody else's must not talk to us through a browser.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::app::App;
use crate::http;

/// Refuses requests that name another host (DNS rebinding) or come from another origin.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match refusal(&app, request.uri(), request.headers()) {
        None => next.run(request).await,
        Some(refusal) => refusal,
    }
}

/// The same, for a request that does not pass the router.
pub(crate) fn refusal(app: &App, target: &Uri, headers: &HeaderMap) -> Option<Response> {
    // `POST http://elsewhere/rpc`: the target counts more than the Host header then.
    if target
        .authority()
        .is_some_and(|authority| !is_ours(app, authority.as_str()))
    {
        let message = "the request target does not name this server";
        return Some(refuse(StatusCode::FORBIDDEN, message));
    }
    match one(headers, &header::HOST) {
        Some(host) if is_ours(app, host) => {}
        Some(_) => {
            let message = "the Host header does not name this server";
            return Some(refuse(StatusCode::FORBIDDEN, message));
        }
        None => {
            let message = "there must be one Host header";
            return Some(refuse(StatusCode::BAD_REQUEST, message));
        }
    }
    if headers.contains_key(header::ORIGIN) && !has_own_origin(app, headers) {
        let message = "requests from other origins are not taken";
        return Some(refuse(StatusCode::FORBIDDEN, message));
    }
    None
}

/// Whether the request says that it comes from a page of this server.
pub(crate) fn has_own_origin(app: &App, headers: &HeaderMap) -> bool {
    let origin = one(headers, &header::ORIGIN);
    origin
        .and_then(|origin| {
            origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"))
        })
        .is_some_and(|host| is_ours(app, host))
}

/// The value of a header that must not stand there twice.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Loopback names with our port, and the names the operator gave, with or without a port.
fn is_ours(app: &App, host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => {
            (name, port.parse::<u16>().ok())
        }
        _ => (host, Some(80)),
    };
    let loopback = ["127.0.0.1", "localhost", "[::1]"]
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own));
    (loopback && port == Some(app.port))
        || app
            .options
            .allowed_hosts
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own) || host.eq_ignore_ascii_case(own))
}

fn refuse(status: StatusCode, message: &str) -> Response {
    http::json(status, serde_json::json!({ "error": message }).to_string())
}
