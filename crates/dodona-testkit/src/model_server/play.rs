//! A reply, played over the socket.

use std::io;
use std::sync::Arc;

use async_stream::stream;
use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::Stream;
use serde_json::Value;

use super::chat::Chat;
use super::messages::Messages;
use super::reply::{Reply, ReplyBody, Step};
use super::responses::Responses;
use super::{Dialect, Inner};

/// Steps as the events of a protocol.
pub(super) trait Render: Send {
    fn begin(&mut self) -> Vec<String>;
    fn step(&mut self, step: &Step) -> Vec<String>;
    fn end(&mut self) -> Vec<String>;
}

pub(super) async fn play(
    inner: Arc<Inner>,
    dialect: Dialect,
    reply: Reply,
    request: &Value,
) -> Response {
    let watch = Watch::new(inner);
    let mut response = Response::builder().status(reply.status);
    let has_type = reply.headers.iter().any(|(name, _)| name == "content-type");
    for (name, value) in &reply.headers {
        response = response.header(name, value);
    }
    let body = match reply.body {
        ReplyBody::Hang => std::future::pending().await,
        ReplyBody::Whole(bytes) => {
            watch.over();
            Body::from(bytes)
        }
        ReplyBody::Stream(steps) => {
            let render: Box<dyn Render> = match dialect {
                Dialect::Chat => Box::new(Chat::new(request)),
                Dialect::Responses => Box::new(Responses::new(request)),
                Dialect::Messages => Box::new(Messages::new(request, &steps)),
            };
            if !has_type {
                response = response.header("content-type", "text/event-stream");
            }
            Body::from_stream(pieces(render, steps, watch))
        }
    };
    response.body(body).expect("the test gives valid headers")
}

/// Notices when an answer is dropped before its end.
struct Watch {
    inner: Arc<Inner>,
    is_over: bool,
}

impl Watch {
    fn new(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            is_over: false,
        }
    }

    /// The answer has come to its end.
    fn over(mut self) {
        self.is_over = true;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_over {
            self.inner.abandoned();
        }
    }
}

/// How events are cut into pieces of the body.
enum Cutting {
    Whole,
    ByteByByte,
}

impl Cutting {
    fn cut(&self, text: &str) -> Vec<Bytes> {
        match self {
            Self::Whole => vec![Bytes::copy_from_slice(text.as_bytes())],
            Self::ByteByByte => text
                .bytes()
                .map(|byte| Bytes::copy_from_slice(&[byte]))
                .collect(),
        }
    }
}

fn pieces(
    mut render: Box<dyn Render>,
    steps: Vec<Step>,
    watch: Watch,
) -> impl Stream<Item = io::Result<Bytes>> {
    stream! {
        let mut cutting = Cutting::Whole;
        let mut last = String::new();
        for event in render.begin() {
            yield Ok(Bytes::from(event));
        }
        for step in steps {
            match &step {
                Step::Wait(gate) => gate.pass().await,
                Step::Delay(time) => tokio::time::sleep(*time).await,
                Step::ByteByByte => cutting = Cutting::ByteByByte,
                Step::Raw(bytes) => yield Ok(Bytes::from(bytes.clone())),
                Step::Hang => std::future::pending().await,
                Step::End => {
                    watch.over();
                    return;
                }
                Step::Cut => {
                    // The server writes out what it has when it has to wait.
                    tokio::task::yield_now().await;
                    watch.over();
                    yield Err(io::Error::other("the test cuts the connection"));
                    return;
                }
                Step::Repeat => yield Ok(Bytes::from(last.clone())),
                said => {
                    for event in render.step(said) {
                        for piece in cutting.cut(&event) {
                            yield Ok(piece);
                        }
                        last = event;
                    }
                }
            }
        }
        for event in render.end() {
            yield Ok(Bytes::from(event));
        }
        watch.over();
    }
}
