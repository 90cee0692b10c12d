//! Why there is no response.

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The URL cannot be used.
    #[error("`{}` cannot be fetched: {why}", shown(url))]
    Url {
        /// The URL as given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A part of the request is invalid.
    #[error("invalid request: {why}")]
    Request {
        /// What is wrong with it.
        why: String,
    },
    /// The host is not among those that this client is limited to.
    #[error("access to `{host}` is not granted")]
    NotGranted {
        /// The host, with its port where the URL names one.
        host: String,
    },
    /// The host is this machine, or in one of its networks.
    #[error("`{host}` is not on the public network")]
    Private {
        /// The host.
        host: String,
    },
    /// The name cannot be resolved.
    #[error("`{host}` has no address")]
    NoAddress {
        /// The host.
        host: String,
    },
    /// The connection failed.
    #[error("`{host}` could not be reached")]
    Unreachable {
        /// The host.
        host: String,
        /// What the HTTP library reported, without the URL.
        #[source]
        source: reqwest::Error,
    },
    /// The time for the request is over.
    #[error("`{host}` took longer than {seconds} s")]
    Timeout {
        /// The host.
        host: String,
        /// The bound.
        seconds: u64,
    },
    /// Too many redirects.
    #[error("`{host}`: too many redirects (more than {count})")]
    Redirects {
        /// The host of the first URL.
        host: String,
        /// The bound.
        count: usize,
    },
    /// The response is too large.
    #[error("`{host}` sent more than {limit} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// The bound.
        limit: usize,
    },
    /// TLS could not be set up.
    #[error("could not set up encrypted connections")]
    Client(#[source] reqwest::Error),
}

/// The start of a URL, without control characters.
fn shown(url: &str) -> String {
    let start: String = url.chars().take(120).collect();
    start.escape_debug().to_string()
}
