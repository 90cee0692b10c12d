//! Requests and responses.

use std::time::Duration;

/// The total time of a request where it names none.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The largest response body where a request names no other.
const MAX_BYTES: usize = 2 << 20;

/// The number of redirects that are followed where a request names no other.
const MAX_REDIRECTS: usize = 5;

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl HttpMethod {
    /// Every method, by name.
    pub const ALL: [(&'static str, Self); 6] = [
        ("GET", Self::Get),
        ("HEAD", Self::Head),
        ("POST", Self::Post),
        ("PUT", Self::Put),
        ("PATCH", Self::Patch),
        ("DELETE", Self::Delete),
    ];

    /// The method of a name, in either case.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::ALL
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, method)| *method)
    }
}

/// A request. Everything but method and URL has a default.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// The method.
    pub method: HttpMethod,
    /// The URL, with `http` or `https`.
    pub url: String,
    /// Headers. Those that describe the connection are set by the client and refused here.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// The total time, redirects and body included: 20 s.
    pub timeout: Duration,
    /// The largest body of the response in bytes: 2 MiB.
    pub max_bytes: usize,
    /// How many redirects are followed: 5. With 0 the redirect itself is the response.
    pub max_redirects: usize,
}

impl HttpRequest {
    /// A request without headers and body.
    pub fn new(method: HttpMethod, url: impl Into<String>) -> Self {
        Self {
            method,
            url: url.into(),
            headers: Vec::new(),
            body: None,
            timeout: TIMEOUT,
            max_bytes: MAX_BYTES,
            max_redirects: MAX_REDIRECTS,
        }
    }

    /// A GET request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(HttpMethod::Get, url)
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// A response with its body.
#[derive(Debug, Clone)]
pub struct HttpResponse {
    /// The URL that answered: after redirects the last one.
    pub url: String,
    /// The status.
    pub status: u16,
    /// Headers with lower-case names, in order. Values that are not text are left out.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}
