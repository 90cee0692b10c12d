//! Sending requests.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue,
    LOCATION, USER_AGENT,
};
use reqwest::{Client, Method, Response, StatusCode, Url, redirect};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::HttpError;
use crate::guard::{self, Allowed, Guard};
use crate::request::{HttpMethod, HttpRequest, HttpResponse};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// Requests at the same time: of all handles together, and of one that is limited to hosts. Further
/// ones wait within their time.
const ALL_REQUESTS: usize = 64;
const REQUESTS: usize = 8;

/// The largest request body in bytes, and the largest set of headers.
const BODY: usize = 4 << 20;
const HEADERS: usize = 32 * 1024;

/// Headers that belong to the connection, which the client sets by itself.
const OURS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A client whose requests reach hosts of the public network only, and those that the user allows.
/// Cheap to clone; all clones share one bound on requests at the same time.
#[derive(Clone)]
pub struct HttpClient {
    shared: Arc<Shared>,
    /// What it is limited to; nothing for every host.
    granted: Option<Granted>,
}

struct Shared {
    /// Hosts that may be private.
    private: Allowed,
    /// Created by the first request: reading the system's certificates takes a while.
    client: OnceLock<Client>,
    slots: Arc<Semaphore>,
}

/// The hosts that one caller may reach, and its own bound on requests.
#[derive(Clone)]
struct Granted {
    hosts: Allowed,
    slots: Arc<Semaphore>,
}

impl HttpClient {
    /// A client that reaches every public host. `allow_hosts` names hosts that may be reached
    /// although they are not public, as `host` or `host:port`.
    pub fn new(allow_hosts: &[String]) -> Self {
        Self {
            shared: Arc::new(Shared {
                private: Allowed::new(allow_hosts.to_vec()),
                client: OnceLock::new(),
                slots: Arc::new(Semaphore::new(ALL_REQUESTS)),
            }),
            granted: None,
        }
    }

    /// The same client for a caller that may reach these hosts only, as `host` or `host:port`. A
    /// host that is not public still has to be allowed by the user.
    #[must_use]
    pub fn limited_to(&self, hosts: Vec<String>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            granted: Some(Granted {
                hosts: Allowed::new(hosts),
                slots: Arc::new(Semaphore::new(REQUESTS)),
            }),
        }
    }

    /// Parses a URL and checks whether this client may request it, as far as that can be decided
    /// without resolving its name.
    pub fn check(&self, url: &str) -> Result<Url, HttpError> {
        let url = guard::parse(url, None)?;
        self.may_reach(&url)?;
        Ok(url)
    }

    /// Sends a request and reads the whole response. A status such as 404 is a response, not an
    /// error.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (time, limit) = (request.timeout, request.max_bytes);
        let url = self.check(&request.url)?;
        let host = guard::host(&url).to_owned();
        let sending = async {
            let answer = self.open(request).await?;
            let (url, status) = (answer.url.to_string(), answer.status());
            let headers = answer.headers();
            let body = answer.bytes(limit).await?;
            Ok(HttpResponse {
                url,
                status,
                headers,
                body,
            })
        };
        let seconds = time.as_secs();
        let late = Err(HttpError::Timeout { host, seconds });
        tokio::time::timeout(time, sending).await.unwrap_or(late)
    }

    /// Sends a request and returns once the headers are there. The caller bounds the time.
    pub async fn open(&self, request: HttpRequest) -> Result<HttpAnswer, HttpError> {
        let first = self.check(&request.url)?;
        let mut hop = Hop::new(&request)?;
        let slots = self.slots().await;
        let client = self.client()?;
        let mut url = first.clone();
        for _ in 0..=request.max_redirects {
            self.may_reach(&url)?;
            let response = hop.send(client, &url).await?;
            match leads_to(&response).filter(|_| request.max_redirects > 0) {
                Some(next) => {
                    let next = guard::parse(&next, Some(&url))?;
                    hop.redirect(response.status(), url.origin() == next.origin());
                    url = next;
                }
                None => {
                    return Ok(HttpAnswer {
                        url,
                        response,
                        _slots: slots,
                    });
                }
            }
        }
        Err(HttpError::Redirects {
            host: guard::host(&first).to_owned(),
            count: request.max_redirects,
        })
    }

    fn may_reach(&self, url: &Url) -> Result<(), HttpError> {
        let host = guard::host(url);
        if let Some(granted) = &self.granted
            && !granted.hosts.has(host, url.port_or_known_default())
        {
            let port = url.port().map(|port| format!(":{port}"));
            let host = format!("{host}{}", port.unwrap_or_default());
            return Err(HttpError::NotGranted { host });
        }
        guard::check(url, &self.shared.private)
    }

    /// Its own slot first: one caller with many requests must not hold the slots of all.
    async fn slots(&self) -> Vec<OwnedSemaphorePermit> {
        let own = self.granted.as_ref().map(|granted| &granted.slots);
        let mut slots = Vec::new();
        for semaphore in own.into_iter().chain([&self.shared.slots]) {
            // An error means that the semaphore was closed, which never happens.
            slots.extend(Arc::clone(semaphore).acquire_owned().await.ok());
        }
        slots
    }

    fn client(&self) -> Result<&Client, HttpError> {
        if let Some(client) = self.shared.client.get() {
            return Ok(client);
        }
        let client = client(&self.shared.private)?;
        Ok(self.shared.client.get_or_init(|| client))
    }
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpClient")
            .field(
                "hosts",
                &self.granted.as_ref().map(|granted| &granted.hosts),
            )
            .finish_non_exhaustive()
    }
}

/// A client that goes where it is sent and nowhere else: it follows no redirect, uses no proxy, keeps
/// no connection and no cookie, and asks for no compression.
fn client(private: &Allowed) -> Result<Client, HttpError> {
    // An error means that a provider of cryptography is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let guard = Guard {
        allowed: private.clone(),
    };
    Client::builder()
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .no_proxy()
        .pool_max_idle_per_host(0)
        .connect_timeout(CONNECT)
        .dns_resolver(Arc::new(guard))
        .build()
        .map_err(HttpError::Client)
}

/// Where a response redirects to.
fn leads_to(response: &Response) -> Option<String> {
    let is_redirect = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(LOCATION).filter(|_| is_redirect)?;
    Some(location.to_str().ok()?.to_owned())
}

/// What is sent to one address.
struct Hop {
    method: Method,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl Hop {
    fn new(request: &HttpRequest) -> Result<Self, HttpError> {
        let wrong = |why: String| HttpError::Request { why };
        let mut headers = HeaderMap::new();
        let mut size = 0;
        for (name, value) in &request.headers {
            size += name.len() + value.len();
            let lower = name.to_ascii_lowercase();
            if OURS.contains(&lower.as_str()) || lower.starts_with("proxy-") {
                return Err(wrong(format!("the header `{name}` is set by the client")));
            }
            let invalid = || wrong(format!("invalid header `{}`", name.escape_debug()));
            let name = HeaderName::from_bytes(lower.as_bytes()).map_err(|_| invalid())?;
            let value = HeaderValue::from_str(value).map_err(|_| invalid())?;
            headers.append(name, value);
        }
        if size > HEADERS {
            return Err(wrong(format!("more than {HEADERS} bytes of headers")));
        }
        let body = request.body.clone();
        if body.as_ref().is_some_and(|body| body.len() > BODY) {
            return Err(wrong(format!("a body of more than {BODY} bytes")));
        }
        let name = concat!("dodona/", env!("CARGO_PKG_VERSION"));
        let agent = headers.entry(USER_AGENT);
        agent.or_insert(HeaderValue::from_static(name));
        let method = match request.method {
            HttpMethod::Get => Method::GET,
            HttpMethod::Head => Method::HEAD,
            HttpMethod::Post => Method::POST,
            HttpMethod::Put => Method::PUT,
            HttpMethod::Patch => Method::PATCH,
            HttpMethod::Delete => Method::DELETE,
        };
        Ok(Self {
            method,
            headers,
            body,
        })
    }

    async fn send(&self, client: &Client, url: &Url) -> Result<Response, HttpError> {
        let mut request = client
            .request(self.method.clone(), url.clone())
            .headers(self.headers.clone());
        if let Some(body) = &self.body {
            request = request.body(body.clone());
        }
        let sent = request.send().await;
        sent.map_err(|error| unreachable(error, url))
    }

    /// What browsers do: after 303, and after 301 and 302 of a POST, the next request is a GET without
    /// a body. Credentials do not follow to another origin.
    fn redirect(&mut self, status: StatusCode, same_origin: bool) {
        let is_post = self.method == Method::POST;
        let to_get = match status.as_u16() {
            303 => self.method != Method::HEAD,
            301 | 302 => is_post,
            _ => false,
        };
        if to_get {
            self.method = Method::GET;
            self.body = None;
            self.headers.remove(CONTENT_TYPE);
            self.headers.remove(CONTENT_LENGTH);
        }
        if !same_origin {
            self.headers.remove(AUTHORIZATION);
            self.headers.remove(COOKIE);
            // Whatever else holds a key is named by the service; a body may hold one as well.
            let private: Vec<HeaderName> = self
                .headers
                .keys()
                .filter(|name| {
                    let name = name.as_str();
                    ["key", "token", "secret", "auth"]
                        .iter()
                        .any(|word| name.contains(word))
                })
                .cloned()
                .collect();
            for name in private {
                self.headers.remove(name);
            }
        }
    }
}

fn unreachable(error: reqwest::Error, url: &Url) -> HttpError {
    let error = error.without_url();
    guard::refusal(&error).unwrap_or_else(|| HttpError::Unreachable {
        host: guard::host(url).to_owned(),
        source: error,
    })
}

/// A response whose body was not read yet. It holds a slot of its client until it is dropped.
pub struct HttpAnswer {
    url: Url,
    response: Response,
    _slots: Vec<OwnedSemaphorePermit>,
}

impl HttpAnswer {
    /// The URL that answered: after redirects the last one.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The first value of a header, by its lower-case name; none if it is not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// All headers, in order. Values that are not text are left out.
    pub fn headers(&self) -> Vec<(String, String)> {
        let headers = self.response.headers().iter();
        let headers = headers.filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        headers.collect()
    }

    /// Reads the body, if it has at most this many bytes.
    pub async fn bytes(mut self, limit: usize) -> Result<Vec<u8>, HttpError> {
        let mut bytes = Vec::new();
        loop {
            let chunk = self.response.chunk().await;
            match chunk.map_err(|error| unreachable(error, &self.url))? {
                None => return Ok(bytes),
                Some(chunk) if bytes.len() + chunk.len() > limit => {
                    let host = guard::host(&self.url).to_owned();
                    return Err(HttpError::TooLarge { host, limit });
                }
                Some(chunk) => bytes.extend_from_slice(&chunk),
            }
        }
    }
}
