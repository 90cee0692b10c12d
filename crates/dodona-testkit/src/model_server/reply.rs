//! What a test wants the server to say.

use std::time::Duration;

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::bomb;
use super::gate::Gate;

/// The answer to one request.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: ReplyBody,
}

#[derive(Debug, Clone)]
pub(super) enum ReplyBody {
    /// Not even headers.
    Hang,
    Whole(Vec<u8>),
    Stream(Vec<Step>),
}

/// One step of a streamed answer, in either protocol.
#[derive(Debug, Clone)]
pub enum Step {
    /// A piece of text.
    Text(String),
    /// A piece of reasoning.
    Reasoning(String),
    /// A tool call, its arguments in pieces.
    ToolCall {
        /// Its id.
        id: String,
        /// Which tool.
        name: String,
        /// Its arguments, JSON when joined.
        fragments: Vec<String>,
    },
    /// What the answer is said to have taken.
    Usage {
        /// What was read.
        input: u64,
        /// What was written.
        output: u64,
        /// How much of the input came from a cache.
        cached: u64,
    },
    /// Why it ends, in the protocol's own word; without this the usual one.
    StopReason(String),
    /// Nothing more until the gate opens.
    Wait(Gate),
    /// Nothing more for a while.
    Delay(Duration),
    /// From here on each byte is sent by itself.
    ByteByByte,
    /// The last event once more.
    Repeat,
    /// An error event.
    Error {
        /// Its type.
        kind: String,
        /// What it says.
        message: String,
    },
    /// These bytes, whatever they are.
    Raw(Vec<u8>),
    /// The connection breaks.
    Cut,
    /// The answer ends cleanly, without the mark that ends an answer.
    End,
    /// Nothing more, ever.
    Hang,
}

impl Reply {
    fn new(status: StatusCode, body: ReplyBody) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
        }
    }

    /// A streamed answer, empty so far. What comes at its end is added by itself, unless it ends
    /// otherwise.
    pub fn stream() -> Self {
        Self::new(StatusCode::OK, ReplyBody::Stream(Vec::new()))
    }

    /// A streamed answer of one text.
    pub fn text(text: &str) -> Self {
        Self::stream().add_text(text)
    }

    /// No answer at all.
    pub fn hang() -> Self {
        Self::new(StatusCode::OK, ReplyBody::Hang)
    }

    /// A status with an error that names it.
    ///
    /// # Panics
    ///
    /// If it is no status.
    pub fn status(status: u16) -> Self {
        let status = StatusCode::from_u16(status).expect("a status has three digits");
        let name = status.canonical_reason().unwrap_or("error");
        Self::new(status, ReplyBody::Whole(Vec::new())).message(name)
    }

    /// A redirection.
    pub fn redirect(to: &str) -> Self {
        Self::status(307).header("location", to)
    }

    /// A compressed body of a few hundred kilobytes that unpacks to so many bytes of zero.
    pub fn gzip_bomb(bytes: usize) -> Self {
        let packed = bomb::gzip_of_zeros(bytes);
        Self::new(StatusCode::OK, ReplyBody::Whole(packed))
            .header("content-type", "text/event-stream")
            .header("content-encoding", "gzip")
    }

    /// With this error message, in the shape that both providers use.
    #[must_use]
    pub fn message(self, message: &str) -> Self {
        self.json(&json!({ "error": { "message": message } }))
    }

    /// With this body.
    #[must_use]
    pub fn json(mut self, body: &Value) -> Self {
        self.body = ReplyBody::Whole(body.to_string().into_bytes());
        self.header("content-type", "application/json")
    }

    /// With this header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// And then this step.
    ///
    /// # Panics
    ///
    /// If the reply is not streamed.
    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        let ReplyBody::Stream(steps) = &mut self.body else {
            panic!("only `Reply::stream()` has steps");
        };
        steps.push(step);
        self
    }

    /// And then a piece of text.
    #[must_use]
    pub fn add_text(self, text: &str) -> Self {
        self.step(Step::Text(text.to_owned()))
    }

    /// And then a piece of reasoning.
    #[must_use]
    pub fn reasoning(self, text: &str) -> Self {
        self.step(Step::Reasoning(text.to_owned()))
    }

    /// And then a tool call, its arguments in these pieces.
    #[must_use]
    pub fn tool_call(self, id: &str, name: &str, fragments: &[&str]) -> Self {
        self.step(Step::ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            fragments: fragments.iter().map(|part| (*part).to_owned()).collect(),
        })
    }

    /// With these numbers.
    #[must_use]
    pub fn usage(self, input: u64, output: u64, cached: u64) -> Self {
        self.step(Step::Usage {
            input,
            output,
            cached,
        })
    }

    /// And then nothing until the gate opens.
    #[must_use]
    pub fn wait(self, gate: &Gate) -> Self {
        self.step(Step::Wait(gate.clone()))
    }

    /// And then these bytes.
    #[must_use]
    pub fn raw(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(Step::Raw(bytes.into()))
    }

    /// And then an error event.
    #[must_use]
    pub fn error(self, kind: &str, message: &str) -> Self {
        self.step(Step::Error {
            kind: kind.to_owned(),
            message: message.to_owned(),
        })
    }
}
