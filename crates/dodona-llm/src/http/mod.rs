//! Requests to a provider: where they may go, with which key, and how much may come back.

mod address;
mod failure;
mod key;
mod retry_after;

use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::{Client, Response, redirect};

pub(crate) use address::{Address, PlainHttp};
pub(crate) use failure::Failure;
pub use key::{ApiKey, ApiKeyError};

use crate::error::ModelError;

/// The largest error text that is read.
const ERROR_BYTES: u64 = 64 * 1024;

/// How long an error text may take.
const ERROR_TIME: Duration = Duration::from_secs(5);

/// A provider, and the way to it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: Address,
    /// What goes with every request, the key excepted.
    pub(crate) headers: HeaderMap,
    pub(crate) connect_timeout: Duration,
    /// Made by the first request: reading the system's certificates takes a while.
    client: OnceLock<Client>,
}

/// How a provider takes its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyHeader {
    Bearer,
    XApiKey,
}

/// One request.
pub(crate) struct Sending<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) body: Option<Bytes>,
    pub(crate) key: Option<&'a ApiKey>,
    pub(crate) key_header: KeyHeader,
}

impl Endpoint {
    pub(crate) fn new(address: Address, headers: HeaderMap, connect_timeout: Duration) -> Self {
        Self {
            address,
            headers,
            connect_timeout,
            client: OnceLock::new(),
        }
    }

    /// Sends a request, and gives back an answer that is one: status 200, not compressed.
    pub(crate) async fn send(&self, sending: Sending<'_>) -> Result<Response, Failure> {
        let key = sending.key.cloned();
        let hide = |failure: Failure| hidden(failure, key.as_ref());
        let host = self.address.host();
        let request = self.request(sending).map_err(Failure::Final)?;
        let response = request
            .send()
            .await
            .map_err(|error| hide(Failure::of_transport(&error.without_url(), host)))?;
        if response.status() != StatusCode::OK {
            return Err(hide(failed(response, host).await));
        }
        match response.headers().get(CONTENT_ENCODING) {
            None => Ok(response),
            Some(encoding) if encoding == "identity" => Ok(response),
            // It was not asked for, and unpacking it could fill the memory.
            Some(encoding) => Err(Failure::Final(ModelError::Settings {
                reason: format!(
                    "`{host}` sent a compressed answer (`{}`), which was not requested",
                    encoding.to_str().unwrap_or("unknown")
                ),
                hint: "configure the server, or the proxy before it, to send answers uncompressed"
                    .to_owned(),
            })),
        }
    }

    fn request(&self, sending: Sending<'_>) -> Result<reqwest::RequestBuilder, ModelError> {
        let url = self.address.join(sending.path);
        let mut request = self
            .client()?
            .request(sending.method, url)
            .headers(self.headers.clone());
        if let Some(key) = sending.key {
            let (name, value) = match sending.key_header {
                KeyHeader::Bearer => (http::header::AUTHORIZATION, key.header("Bearer ")),
                KeyHeader::XApiKey => (HeaderName::from_static("x-api-key"), key.header("")),
            };
            request = request.header(name, value);
        }
        if let Some(body) = sending.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        Ok(request)
    }

    fn client(&self) -> Result<&Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client =
            build(&self.address, self.connect_timeout).map_err(|error| ModelError::Settings {
                reason: format!("encrypted connections cannot be made: {error}"),
                hint: "are the system's certificates installed (`ca-certificates`)?".to_owned(),
            })?;
        Ok(self.client.get_or_init(|| client))
    }
}

/// A client that goes where it is sent and nowhere else: it follows no redirect, repeats nothing
/// by itself and asks for no compression.
fn build(address: &Address, connect_timeout: Duration) -> Result<Client, reqwest::Error> {
    // An error says that somebody else has chosen a provider of cryptography, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut headers = HeaderMap::new();
    let agent = concat!("dodona/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    let mut client = Client::builder()
        .default_headers(headers)
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(reqwest::retry::never())
        .connect_timeout(connect_timeout)
        .tcp_nodelay(true);
    if address.is_loopback() {
        // A proxy on the way to this machine would be a third who reads along.
        client = client.no_proxy();
    }
    if address.is_plain() {
        client = client.tls_certs_only([]);
    }
    client.build()
}

/// What an answer that is none says.
async fn failed(response: Response, host: &str) -> Failure {
    let (status, headers) = (response.status(), response.headers().clone());
    let reading = tokio::time::timeout(ERROR_TIME, body(response, ERROR_BYTES));
    let body = match reading.await {
        Ok(Ok(body)) => body,
        // The status says enough.
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    Failure::of_answer(status, &headers, &body, host)
}

/// Reads a whole body, up to a size.
pub(crate) async fn body(mut response: Response, limit: u64) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = next_chunk(&mut response).await? {
        if (body.len() + chunk.len()) as u64 > limit {
            return Err(Failure::Final(ModelError::TooLarge { limit }));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The next piece of a body as it arrives; none at its end.
pub(crate) async fn next_chunk(response: &mut Response) -> Result<Option<Bytes>, Failure> {
    response.chunk().await.map_err(|error| {
        let host = address::host(response.url());
        Failure::of_transport(&error.without_url(), &host)
    })
}

pub(crate) fn hidden(failure: Failure, key: Option<&ApiKey>) -> Failure {
    let Some(key) = key else {
        return failure;
    };
    let hide = |text: String| key.hidden_in(&text);
    match failure {
        Failure::Passing {
            reason,
            retry_after,
        } => Failure::Passing {
            reason: hide(reason),
            retry_after,
        },
        Failure::Final(error) => Failure::Final(error.with_texts(hide)),
    }
}
