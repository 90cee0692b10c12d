//! Why nothing came from the web.

use dodona_plugin::http::HttpError;
use dodona_plugin::{CallError, ErrorCode};

/// Why nothing came from the web.
#[derive(Debug, thiserror::Error)]
pub(super) enum WebError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("`{host}` could not be reached")]
    Unreachable {
        host: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("`{host}` answered with status {status}")]
    Status { host: String, status: u16 },
    #[error("`{host}` sent {what}, which is no text")]
    NotText { host: String, what: String },
    #[error("`{host}` sends compressed answers, unasked")]
    Compressed { host: String },
    #[error("could not set up encrypted connections")]
    Client(#[source] reqwest::Error),
    #[error("no search on the web is configured")]
    NoSearch,
    #[error("the search at `{host}` did not answer as SearXNG does")]
    NoResults { host: String },
    #[error("that page is not kept any more")]
    Forgotten,
}

impl From<WebError> for CallError {
    fn from(error: WebError) -> Self {
        let message = error.to_string();
        let plugin = |code| Self::plugin(code, message.clone());
        match error {
            WebError::Http(error) => of_http(error, message),
            WebError::Unreachable { source, .. } => {
                plugin("web.unreachable").retry(true).log(source)
            }
            WebError::Status { status, .. } => {
                plugin("web.status").retry(status >= 500 || status == 429)
            }
            WebError::NotText { .. } | WebError::Compressed { .. } => plugin("web.not_text"),
            WebError::Client(source) => plugin("web.unreachable")
                .hint("are the system's certificates installed (`ca-certificates`)?")
                .log(source),
            WebError::NoSearch => plugin("web.search_off").hint(
                "set `web.search_url` in your own `config.toml` to a SearXNG server's search, as in \
                 `http://127.0.0.1:8888/search`",
            ),
            WebError::NoResults { .. } => plugin("web.search_failed")
                .hint("does that server allow `format=json`? (`search.formats` in its settings)"),
            WebError::Forgotten => Self::new(ErrorCode::NotFound, message)
                .hint("fetch it again with `web.fetch`"),
        }
    }
}

fn of_http(error: HttpError, message: String) -> CallError {
    let plugin = |code| CallError::plugin(code, message.clone());
    match error {
        HttpError::Url { .. } | HttpError::Request { .. } => {
            CallError::new(ErrorCode::InvalidParams, message)
                .hint("write a whole URL, as in `https://example.org/page`")
        }
        HttpError::Private { .. } => plugin("web.private_address").hint(
            "addresses of this machine and its networks are refused; your own settings may name \
             such a host in `web.allow_hosts`",
        ),
        HttpError::NoAddress { .. } => plugin("web.no_address").hint("is the name spelled right?"),
        HttpError::Timeout { .. } => CallError::new(ErrorCode::DeadlineExceeded, message),
        HttpError::Redirects { .. } => plugin("web.redirects"),
        HttpError::TooLarge { .. } => CallError::new(ErrorCode::TooLarge, message),
        HttpError::NotGranted { .. } => CallError::new(ErrorCode::Forbidden, message),
        HttpError::Unreachable { source, .. } => plugin("web.unreachable").retry(true).log(source),
        HttpError::Client(source) => plugin("web.unreachable")
            .hint("are the system's certificates installed (`ca-certificates`)?")
            .log(source),
        other => plugin("web.unreachable").log(other),
    }
}
