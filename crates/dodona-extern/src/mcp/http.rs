//! Streamable HTTP, with a bound on everything that comes back.
//!
//! The protocol is rmcp's; this is the client below it, because rmcp's own reads answers of any
//! length into memory.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, stream};
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const BOTH: &str = "text/event-stream, application/json";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

/// How long it may take until a connection stands.
const CONNECT: Duration = Duration::from_secs(10);

/// Headers that the protocol sets by itself.
const OWN: &[&str] = &[
    "accept",
    "content-type",
    "content-length",
    "host",
    "connection",
    "transfer-encoding",
    SESSION,
    LAST_EVENT,
    "mcp-protocol-version",
];

type Failure = StreamableHttpError<HttpError>;

/// What goes wrong below the protocol. An address or a header is never part of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// The request did not come through.
    #[error("{0}")]
    Request(String),
    /// The answer is too large.
    #[error("the server sent a message of more than {0} bytes")]
    TooLarge(usize),
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        let what = match &error {
            error if error.is_connect() => "no connection to the server",
            error if error.is_timeout() => "the server did not answer in time",
            error if error.is_redirect() => "the server leads elsewhere, which is not followed",
            _ => "the request failed",
        };
        let mut source: Option<&(dyn std::error::Error + 'static)> =
            std::error::Error::source(&error);
        let mut last = None;
        while let Some(inner) = source {
            last = Some(inner.to_string());
            source = inner.source();
        }
        Self::Request(match last {
            Some(last) => format!("{what}: {last}"),
            None => what.to_owned(),
        })
    }
}

/// A client that reads no answer beyond a bound and goes nowhere it is sent.
#[derive(Debug, Clone)]
pub(crate) struct BoundedHttp {
    client: Client,
    most: usize,
}

impl BoundedHttp {
    pub(crate) fn new(most: usize) -> Result<Self, String> {
        // Whoever comes first; all of the program use the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            // Headers may carry secrets: they go to the address that was written, and no other.
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .build()
            .map_err(|error| HttpError::from(error).to_string())?;
        Ok(Self { client, most })
    }

    async fn send(&self, request: RequestBuilder, headers: Headers) -> Result<Response, Failure> {
        let request = headers.add_to(request);
        let response = request.send().await.map_err(client)?;
        match response.status() {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(unauthorized(&response)),
            status if status.is_redirection() => Err(unexpected(format!(
                "HTTP {status}: the server leads elsewhere, which is not followed"
            ))),
            _ => Ok(response),
        }
    }

    /// Reads an answer whole.
    async fn body(&self, response: Response) -> Result<Bytes, Failure> {
        let mut body = BytesMut::new();
        let mut chunks = response.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk.map_err(client)?);
            if body.len() > self.most {
                return Err(StreamableHttpError::Client(HttpError::TooLarge(self.most)));
            }
        }
        Ok(body.freeze())
    }

    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let bounded = bounded(
            response.bytes_stream().map(|c| c.map_err(HttpError::from)),
            self.most,
        );
        SseStream::from_bytes_stream(bounded).boxed()
    }

    async fn failed(&self, message: &ClientJsonRpcMessage, response: Response) -> Posted {
        let status = response.status();
        let body = self.body(response).await?;
        let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        // A server of an older protocol refuses what it does not know in many ways. As an answer
        // to the question whether it knows the new one, each of them is a plain no.
        if let ClientJsonRpcMessage::Request(request) = message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
            && status.is_client_error()
        {
            let told = error.map_or_else(
                || ErrorData::invalid_request(format!("HTTP {status}"), None),
                |error| error.error,
            );
            let answer = ServerJsonRpcMessage::error(told, Some(request.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(answer, None));
        }
        match error {
            Some(error) => Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::Error(error),
                None,
            )),
            None => Err(unexpected(format!("HTTP {status}"))),
        }
    }
}

type Posted = Result<StreamableHttpPostResponse, Failure>;

/// The headers of a request.
struct Headers {
    auth: Option<String>,
    custom: HashMap<HeaderName, HeaderValue>,
    session: Option<Arc<str>>,
}

impl Headers {
    fn add_to(self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(token) = self.auth {
            request = request.bearer_auth(token);
        }
        for (name, value) in self.custom {
            request = request.header(name, value);
        }
        match self.session {
            Some(session) => request.header(SESSION, session.as_ref()),
            None => request,
        }
    }
}

impl StreamableHttpClient for BoundedHttp {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Posted {
        let in_session = session.is_some();
        let headers = Headers {
            auth,
            custom,
            session,
        };
        let request = self.client.post(uri.as_ref()).header(ACCEPT, BOTH);
        let response = self.send(request.json(&message), headers).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return self.failed(&message, response).await;
        }
        let session = header(&response, SESSION);
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        match header(&response, CONTENT_TYPE.as_str()) {
            Some(kind) if kind.starts_with(EVENTS) => Ok(StreamableHttpPostResponse::Sse(
                self.events(response),
                session,
            )),
            Some(kind) if kind.starts_with(JSON) => {
                let body = self.body(response).await?;
                match serde_json::from_slice(&body) {
                    Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, session)),
                    Err(_) if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
                    Err(error) => Err(unexpected(format!("the answer is no message: {error}"))),
                }
            }
            _ if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
            kind => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let headers = Headers {
            auth,
            custom,
            session: Some(session),
        };
        // A server that keeps no sessions says so; either way there is none afterwards.
        self.send(self.client.delete(uri.as_ref()), headers).await?;
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let headers = Headers {
            auth,
            custom,
            session,
        };
        let mut request = self.client.get(uri.as_ref()).header(ACCEPT, BOTH);
        if let Some(id) = last_event_id {
            request = request.header(LAST_EVENT, id);
        }
        let response = self.send(request, headers).await?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            return Err(unexpected(format!("HTTP {status}")));
        }
        match header(&response, CONTENT_TYPE.as_str()) {
            Some(kind) if kind.starts_with(EVENTS) => Ok(self.events(response)),
            kind => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }
}

/// Headers that a user set, made ready. What is wrong is named without its value.
pub(crate) fn custom_headers(
    given: Vec<(String, String)>,
) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut headers = HashMap::new();
    for (name, value) in given {
        let key: HeaderName = name
            .to_ascii_lowercase()
            .parse()
            .map_err(|_| format!("`{name}` is no name of a header"))?;
        if OWN.contains(&key.as_str()) {
            return Err(format!("the header `{name}` is set by the protocol"));
        }
        let mut value: HeaderValue = value
            .parse()
            .map_err(|_| format!("the value of the header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok(headers)
}

fn client(error: reqwest::Error) -> Failure {
    StreamableHttpError::Client(error.into())
}

fn unexpected(what: String) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(what))
}

fn unauthorized(response: &Response) -> Failure {
    let challenge = header(response, WWW_AUTHENTICATE.as_str());
    match (challenge, response.status()) {
        (None, StatusCode::FORBIDDEN) => unexpected(format!("HTTP {}", response.status())),
        // Many do not say how they want it, and all the same they want it.
        (challenge, _) => {
            let challenge = challenge.unwrap_or_default();
            StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))
        }
    }
}

fn header(response: &Response, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    Some(value.to_str().ok()?.to_owned())
}

/// A stream of bytes that ends with an error where one event becomes too large.
fn bounded(
    chunks: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static,
    most: usize,
) -> BoxStream<'static, Result<Bytes, HttpError>> {
    let state = (chunks.boxed(), EventSize::default(), false);
    stream::unfold(state, move |(mut chunks, mut size, is_over)| async move {
        if is_over {
            return None;
        }
        let chunk = chunks.next().await?;
        let is_too_large = chunk.as_ref().is_ok_and(|chunk| size.after(chunk) > most);
        let item = match is_too_large {
            true => Err(HttpError::TooLarge(most)),
            false => chunk,
        };
        let is_over = item.is_err();
        Some((item, (chunks, size, is_over)))
    })
    .boxed()
}

/// How much of an event was read: an empty line ends it.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    at_line_start: bool,
}

impl EventSize {
    /// The most that the event had in the course of a chunk.
    fn after(&mut self, chunk: &[u8]) -> usize {
        let mut most = self.bytes;
        for byte in chunk {
            match byte {
                b'\n' if self.at_line_start => self.bytes = 0,
                b'\n' => self.at_line_start = true,
                b'\r' => {}
                _ => {
                    self.at_line_start = false;
                    self.bytes += 1;
                    most = most.max(self.bytes);
                }
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_measured_across_chunks_and_the_next_begins_anew() {
        let mut size = EventSize::default();
        assert_eq!(size.after(b"data: 1234"), 10);
        assert_eq!(size.after(b"5678\n"), 14);
        assert_eq!(size.after(b"data: x\n\n"), 21);
        assert_eq!(size.after(b"data: y\r\n\r\n"), 7);
        assert_eq!(size.after(b"z"), 1);
    }

    #[test]
    fn headers_of_the_protocol_cannot_be_set_and_values_are_not_told() {
        let one = |name: &str, value: &str| custom_headers(vec![(name.into(), value.into())]);
        let headers = one("Authorization", "Bearer x").unwrap();
        assert!(headers[&HeaderName::from_static("authorization")].is_sensitive());
        for (name, value) in [
            ("Host", "x"),
            ("a b", "x"),
            ("x-a", "se\ncret"),
            ("Mcp-Session-Id", "1"),
        ] {
            let why = one(name, value).unwrap_err();
            assert!(why.contains(name) && !why.contains("cret"), "{why}");
        }
    }
}
