//! Why nothing came from the web.

use dodona_plugin::{CallError, ErrorCode};

/// Why nothing came from the web.
#[derive(Debug, thiserror::Error)]
pub(super) enum WebError {
    #[error("`{}` cannot be fetched: {why}", shown(url))]
    Url { url: String, why: &'static str },
    #[error("`{host}` is not on the public network")]
    Private { host: String },
    #[error("`{host}` has no address")]
    NoAddress { host: String },
    #[error("`{host}` could not be reached")]
    Unreachable {
        host: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("`{host}` took longer than {seconds} s")]
    Late { host: String, seconds: u64 },
    #[error("`{host}` answered with status {status}")]
    Status { host: String, status: u16 },
    #[error("`{host}` led from one address to another {count} times, and then further")]
    Redirects { host: String, count: usize },
    #[error("`{host}` sent more than {limit} bytes")]
    TooLarge { host: String, limit: usize },
    #[error("`{host}` sent {what}, which is no text")]
    NotText { host: String, what: String },
    #[error("`{host}` sends compressed answers, unasked")]
    Compressed { host: String },
    #[error("encrypted connections cannot be made")]
    Client(#[source] reqwest::Error),
    #[error("no search on the web is configured")]
    NoSearch,
    #[error("the search at `{host}` did not answer as SearXNG does")]
    NoResults { host: String },
    #[error("that page is not kept any more")]
    Forgotten,
}

/// The beginning of a URL, harmless.
fn shown(url: &str) -> String {
    let start: String = url.chars().take(120).collect();
    start.escape_debug().to_string()
}

impl From<WebError> for CallError {
    fn from(error: WebError) -> Self {
        let message = error.to_string();
        let plugin = |code| Self::plugin(code, message.clone());
        match error {
            WebError::Url { .. } => Self::new(ErrorCode::InvalidParams, message)
                .hint("write a whole URL, as in `https://example.org/page`"),
            WebError::Private { .. } => plugin("web.private_address").hint(
                "addresses of this machine and its networks are refused; your own settings may name \
                 such a host in `web.allow_hosts`",
            ),
            WebError::NoAddress { .. } => plugin("web.no_address").hint("is the name spelled right?"),
            WebError::Unreachable { source, .. } => {
                plugin("web.unreachable").retry(true).log(source)
            }
            WebError::Late { .. } => Self::new(ErrorCode::DeadlineExceeded, message),
            WebError::Status { status, .. } => {
                plugin("web.status").retry(status >= 500 || status == 429)
            }
            WebError::Redirects { .. } => plugin("web.redirects"),
            WebError::TooLarge { .. } => Self::new(ErrorCode::TooLarge, message),
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
