//! `GET /login`: the code of a one-time link for a cookie.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};
use dodona_proto::{CallError, ErrorCode, ProjectId};
use serde::Deserialize;

use crate::app::App;
use crate::{auth, http};

#[derive(Deserialize)]
pub(crate) struct LoginQuery {
    code: String,
    /// What the page shows first.
    project: Option<ProjectId>,
}

/// Trades the code for a cookie. Somebody whose link is no good comes to the page all the same,
/// which says how to get another one; a program gets the error.
pub(crate) async fn login(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    query: Result<Query<LoginQuery>, QueryRejection>,
) -> Response {
    let refused = |error: &CallError| match wants_a_page(&headers) {
        true => no_store(Redirect::to("/#/signed-out?why=link")),
        false => http::refusal(error),
    };
    let Ok(query) = query else {
        let error = CallError::new(ErrorCode::InvalidParams, "the link has no `code`");
        return refused(&error);
    };
    match app.hub.redeem_login(&query.code).await {
        Ok((token, lifetime)) => {
            let cookie = auth::cookie(&token, lifetime);
            let place = match &query.project {
                Some(project) => format!("/#/?project={project}"),
                None => "/".to_owned(),
            };
            no_store(([(header::SET_COOKIE, cookie)], Redirect::to(&place)))
        }
        Err(error) => refused(&error),
    }
}

fn wants_a_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT);
    accepted
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accepted| accepted.contains("text/html"))
}

fn no_store(response: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], response).into_response()
}
