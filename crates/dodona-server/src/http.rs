//! `POST /rpc`, and what every route answers with.

use std::sync::Arc;
use std::task::Poll;

use axum::BoxError;
use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use dodona_proto::{CallError, ErrorCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as HttpBody, Incoming};

use crate::app::App;
use crate::auth::Caller;
use crate::rpc;

/// Answers a JSON-RPC request, notification or batch.
pub(crate) async fn answer(app: &Arc<App>, request: Request<Incoming>) -> Response {
    let (parts, body) = request.into_parts();
    let caller = match Caller::find(app, &parts) {
        Ok(caller) => caller,
        Err(error) => return refusal(&error),
    };
    let body = match json_body(app, &parts, body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    match rpc::answer_http(app, &caller, &body).await {
        Some(text) => json(StatusCode::OK, text),
        None => empty(StatusCode::NO_CONTENT),
    }
}

/// The body of a request that says that it is JSON.
pub(crate) async fn json_body<B>(app: &App, parts: &Parts, body: B) -> Result<Bytes, Response>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    if !is_json(&parts.headers) {
        let error = CallError::new(
            ErrorCode::InvalidRequest,
            "the content type is not `application/json`",
        );
        return Err(json(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            rpc::failure(None, &error),
        ));
    }
    let body = read_body(app, body).await;
    body.map_err(|(status, error)| json(status, rpc::failure(None, &error)))
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    [
        "application/json",
        "application/json-rpc",
        "application/jsonrequest",
    ]
    .iter()
    .any(|known| essence.eq_ignore_ascii_case(known))
}

async fn read_body<B>(app: &App, body: B) -> Result<Bytes, (StatusCode, CallError)>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let limit = app.options.body_bytes;
    let too_large = || {
        let message = format!("the request is larger than {limit} bytes");
        let error = CallError::new(ErrorCode::TooLarge, message);
        Err((StatusCode::PAYLOAD_TOO_LARGE, error))
    };
    if body.size_hint().lower() > limit as u64 {
        return too_large();
    }
    let mut collect = std::pin::pin!(Limited::new(body, limit).collect());
    // Most bodies came with their headers and need no timer.
    let collected = match futures_util::poll!(collect.as_mut()) {
        Poll::Ready(collected) => Ok(collected),
        Poll::Pending => tokio::time::timeout(app.options.body_timeout, collect).await,
    };
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => too_large(),
        Ok(Err(_)) => Err((
            StatusCode::BAD_REQUEST,
            CallError::new(ErrorCode::InvalidRequest, "the body could not be read"),
        )),
        Err(_) => Err((
            StatusCode::REQUEST_TIMEOUT,
            CallError::new(
                ErrorCode::InvalidRequest,
                "the body took too long to arrive",
            ),
        )),
    }
}

/// A response whose body is JSON text.
pub(crate) fn json(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    response
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// An error where the status tells it: everywhere but at `/rpc`.
pub(crate) fn refusal(error: &CallError) -> Response {
    let status = status(&error.code);
    let mut response = json(status, rpc::failure(None, error));
    if status == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// What an error is for those who look at nothing but the status.
fn status(code: &ErrorCode) -> StatusCode {
    match code {
        ErrorCode::ParseError
        | ErrorCode::InvalidRequest
        | ErrorCode::InvalidParams
        | ErrorCode::TooDeep => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden | ErrorCode::Denied | ErrorCode::ApprovalRequired => {
            StatusCode::FORBIDDEN
        }
        ErrorCode::NotFound | ErrorCode::MethodNotFound => StatusCode::NOT_FOUND,
        ErrorCode::Cancelled => StatusCode::CONFLICT,
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::TooManyTurns => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::RateLimited | ErrorCode::TooManyCalls => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Storage | ErrorCode::PluginNotActive | ErrorCode::Interrupted => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        ErrorCode::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        ErrorCode::Internal | ErrorCode::Panicked | ErrorCode::Plugin(_) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}
