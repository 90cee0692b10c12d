//! A model behind a provider's address: tries, timeouts and bounds, the same for every protocol.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_stream::stream;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt};
use http::header::CONTENT_TYPE;
use reqwest::Response;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use crate::config::Link;
use crate::error::ModelError;
use crate::http::{self as web, Failure};
use crate::model::{Model, ModelEvent, ModelRequest};
use crate::price::Price;
use crate::retry::Retry;
use crate::sse::SseParser;
use crate::surrogates::Surrogates;
use crate::tokens::TokenCounter;
use crate::wire::{Answer, Progress, Wire, garbled};

/// How long the end of a connection is waited for after a complete answer, so that the next
/// request can use it again.
const CLOSING_TIME: Duration = Duration::from_millis(100);

/// A model behind a provider's address.
pub(crate) struct Remote {
    pub(crate) name: String,
    pub(crate) way: Arc<Way>,
    pub(crate) context_window: Option<u32>,
    pub(crate) price: Option<Price>,
    pub(crate) counter: TokenCounter,
}

/// How it is asked.
pub(crate) struct Way {
    pub(crate) link: Link,
    pub(crate) wire: Box<dyn Wire>,
    pub(crate) retry: Retry,
    pub(crate) patience: Patience,
    pub(crate) answer_bytes: u64,
}

/// How long an answer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Patience {
    /// From the request to the first event.
    pub(crate) first: Duration,
    /// Between any two events after that. What only keeps the connection open is none.
    pub(crate) idle: Duration,
}

impl Model for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let body = Bytes::from(self.way.wire.body(&request));
        let (way, name) = (Arc::clone(&self.way), self.name.clone());
        let events = stream! {
            let mut tries = way.retry.tries();
            loop {
                let mut reading = Reading::new(&way);
                let failure = loop {
                    match reading.next(&body).await {
                        Ok(Some(event)) => yield Ok(event),
                        Ok(None) => return,
                        Err(failure) => break way.told(failure),
                    }
                };
                if reading.has_begun {
                    if let Some(usage) = reading.answer.usage() {
                        yield Ok(ModelEvent::Usage(usage));
                    }
                    yield Err(failure.into_broken_off());
                    return;
                }
                drop(reading);
                let Some(after) = tries.after(&failure) else {
                    yield Err(failure.into_error());
                    return;
                };
                let (attempt, attempts) = (tries.number(), way.retry.retries + 1);
                let (reason, model) = (failure.reason(), name.clone());
                yield Ok(ModelEvent::Retrying { attempt, attempts, after, reason, model });
                tokio::time::sleep(after).await;
            }
        };
        events.boxed()
    }

    fn context_window(&self) -> Option<u32> {
        self.context_window
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn counter(&self) -> TokenCounter {
        self.counter
    }
}

impl Way {
    /// A failure in words that may be shown.
    fn told(&self, failure: Failure) -> Failure {
        let key = self.link.load_key().ok().flatten();
        web::hidden(self.link.with_hint(failure), key.as_ref())
    }
}

/// One try.
struct Reading<'a> {
    way: &'a Way,
    answer: Box<dyn Answer>,
    parser: SseParser,
    surrogates: Surrogates,
    response: Option<Response>,
    started: Instant,
    /// When something was last said.
    heard: Instant,
    bytes: u64,
    /// Read and not passed on yet.
    ready: VecDeque<ModelEvent>,
    /// What comes after that.
    end: Option<Result<(), Failure>>,
    /// Something was passed on, so nobody may try again.
    has_begun: bool,
}

impl<'a> Reading<'a> {
    fn new(way: &'a Way) -> Self {
        Self {
            way,
            answer: way.wire.answer(),
            parser: SseParser::default(),
            surrogates: Surrogates::default(),
            response: None,
            started: Instant::now(),
            heard: Instant::now(),
            bytes: 0,
            ready: VecDeque::new(),
            end: None,
            has_begun: false,
        }
    }

    /// The next event; none at the end of a complete answer.
    async fn next(&mut self, body: &Bytes) -> Result<Option<ModelEvent>, Failure> {
        // The time that somebody took for the event before is not the provider's.
        self.heard = Instant::now();
        loop {
            if let Some(event) = self.ready.pop_front() {
                // Arguments that were only shown while they were written can be written again.
                self.has_begun |= !matches!(event, ModelEvent::ToolArguments { .. });
                return Ok(Some(event));
            }
            match self.end.take() {
                Some(Ok(())) => {
                    self.close().await;
                    return Ok(None);
                }
                Some(Err(failure)) => return Err(failure),
                None => self.read(body).await?,
            }
        }
    }

    /// Waits for the next piece and takes it in.
    async fn read(&mut self, body: &Bytes) -> Result<(), Failure> {
        let (way, first) = (self.way, self.started + self.way.patience.first);
        let Some(response) = &mut self.response else {
            match in_time(first, way, open(way, body.clone())).await? {
                Opened::Stream(response) => self.response = Some(response),
                Opened::Whole(events) => {
                    if let Err(failure) = self.take_whole(&events) {
                        self.end = Some(Err(failure));
                    }
                }
            }
            return Ok(());
        };
        let chunk = match self.has_begun {
            false => in_time(first, way, web::next_chunk(response)).await?,
            true => {
                let until = self.heard + way.patience.idle;
                let next = timeout_at(until, web::next_chunk(response));
                next.await.map_err(|_| silent(way))??
            }
        };
        let taken = match chunk {
            Some(chunk) => self.take(&chunk),
            None => self.take_end(),
        };
        // What was said before the fault is passed on first.
        if let Err(failure) = taken {
            self.end = Some(Err(failure));
        }
        Ok(())
    }

    fn take(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        self.bytes += chunk.len() as u64;
        if self.bytes > self.way.answer_bytes {
            let limit = self.way.answer_bytes;
            return Err(Failure::Final(ModelError::TooLarge { limit }));
        }
        let mut events = Vec::new();
        let parsed = self.parser.feed(chunk, &mut events);
        // A server that is stuck may still keep its connection open, with comments or pings.
        let mut heard = self.parser.is_within_event();
        for event in events {
            let mut out = Vec::new();
            let data = self.surrogates.mend(&event);
            let progress = self.answer.take(&data, &mut out);
            self.ready.extend(out);
            let progress = progress?;
            heard |= progress != Progress::Nothing;
            if let Progress::Complete(finish) = progress {
                self.complete(finish);
                return Ok(());
            }
        }
        if heard {
            self.heard = Instant::now();
        }
        parsed.map_err(garbled)
    }

    /// Takes a complete answer.
    fn take_whole(&mut self, events: &[Value]) -> Result<(), Failure> {
        for event in events {
            let data = event
                .as_str()
                .map_or_else(|| event.to_string(), str::to_owned);
            let mut out = Vec::new();
            let progress = self.answer.take(&data, &mut out);
            self.ready.extend(out);
            if let Progress::Complete(finish) = progress? {
                self.complete(finish);
                return Ok(());
            }
        }
        self.take_end()
    }

    fn take_end(&mut self) -> Result<(), Failure> {
        let mut out = Vec::new();
        let finish = self.answer.cut_short(&mut out)?;
        self.ready.extend(out);
        self.complete(finish);
        Ok(())
    }

    fn complete(&mut self, finish: crate::model::Finish) {
        self.ready
            .extend(self.answer.usage().map(ModelEvent::Usage));
        self.ready.push_back(ModelEvent::Finished(finish));
        self.end = Some(Ok(()));
    }

    /// Reads on to the end of the body: a connection that has nothing more to say is kept.
    async fn close(&mut self) {
        let Some(response) = &mut self.response else {
            return;
        };
        let rest = async { while let Ok(Some(_)) = web::next_chunk(response).await {} };
        // A server that goes on loses its connection, and that is all.
        let _ = timeout(CLOSING_TIME, rest).await;
    }
}

/// An answer that has begun.
enum Opened {
    Stream(Response),
    /// The events of an answer that a server sent whole, although a stream was requested.
    Whole(Vec<Value>),
}

/// Sends the request, and waits until the answer begins.
async fn open(way: &Way, body: Bytes) -> Result<Opened, Failure> {
    let response = way.link.post(way.wire.path(), body).await?;
    let kind = response.headers().get(CONTENT_TYPE);
    let is_kind = |wanted: &[u8]| kind.is_some_and(|kind| kind.as_bytes().starts_with(wanted));
    if is_kind(b"text/html") {
        let host = way.link.host();
        return Err(Failure::Final(ModelError::Settings {
            reason: format!("`{host}` sent an HTML page instead of an answer"),
            hint: "check that `base_url` is the address of the API, such as `https://host/v1`"
                .to_owned(),
        }));
    }
    if !is_kind(b"application/json") {
        return Ok(Opened::Stream(response));
    }
    let body = web::body(response, way.answer_bytes).await?;
    let value: Value = serde_json::from_slice(&body).map_err(garbled)?;
    let error = value.get("error").filter(|error| !error.is_null());
    match (error, way.wire.events_of(&value)) {
        (Some(error), _) => Err(Failure::of_event(error, way.link.host())),
        (None, Some(events)) => Ok(Opened::Whole(events)),
        (None, None) => Err(Failure::Final(ModelError::Settings {
            reason: format!("`{}` sent JSON that is not an answer", way.link.host()),
            hint: "check that `base_url` and `provider` belong to the same API".to_owned(),
        })),
    }
}

async fn in_time<T>(
    deadline: Instant,
    way: &Way,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let outcome = timeout_at(deadline, work).await;
    outcome.unwrap_or_else(|_| {
        Err(Failure::passing(format!(
            "`{}` has not begun to answer within {:?}",
            way.link.host(),
            way.patience.first
        )))
    })
}

fn silent(way: &Way) -> Failure {
    Failure::passing(format!(
        "`{}` has been silent for {:?} in the middle of its answer",
        way.link.host(),
        way.patience.idle
    ))
}
