//! Requests and responses as text.

use dodona_proto::{CallError, ErrorCode};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// What one message holds.
pub(crate) enum Frame<'a> {
    One(Incoming<'a>),
    Batch(Vec<Incoming<'a>>),
}

/// One entry: how to answer it, and what it asks, or what is wrong with it.
pub(crate) struct Incoming<'a> {
    pub(crate) id: Id<'a>,
    pub(crate) request: Result<Call<'a>, CallError>,
}

/// What is to be called.
pub(crate) struct Call<'a> {
    pub(crate) method: std::borrow::Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
}

/// How an entry is to be answered. An id is given back exactly as it came.
#[derive(Clone, Copy)]
pub(crate) enum Id<'a> {
    /// A notification: run, and never answered.
    Absent,
    /// An id to give back.
    Given(&'a RawValue),
    /// No request at all: answered with a null id.
    Unknown,
}

impl<'a> Id<'a> {
    /// The id of the answer; `None` when there is to be none.
    pub(crate) fn to_answer(self) -> Option<&'a str> {
        match self {
            Self::Absent => None,
            Self::Given(id) => Some(id.get()),
            Self::Unknown => Some("null"),
        }
    }
}

/// A request as it comes: every part may be anything.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    // A null id is an id; only a missing one makes a notification.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&'a RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Frame<'a> {
    pub(crate) fn parse(bytes: &'a [u8], most: usize) -> Result<Self, CallError> {
        let text = utf8(bytes)?;
        let is_batch = text.trim_ascii_start().starts_with('[');
        if !is_batch {
            // What is right is read once; what is not, again, to tell how it is wrong.
            if let Ok(envelope) = serde_json::from_str::<Envelope<'a>>(text) {
                return Ok(Self::One(Incoming::from_envelope(&envelope)));
            }
            let raw: &RawValue = serde_json::from_str(text).map_err(|error| not_json(&error))?;
            return Ok(Self::One(Incoming::read(raw)));
        }
        let entries: Vec<&RawValue> =
            serde_json::from_str(text).map_err(|error| not_json(&error))?;
        match entries.len() {
            0 => Err(CallError::new(
                ErrorCode::InvalidRequest,
                "a batch cannot be empty",
            )),
            n if n > most => Err(CallError::new(
                ErrorCode::TooLarge,
                format!("a batch has at most {most} calls, this one has {n}"),
            )),
            _ => Ok(Self::Batch(
                entries.into_iter().map(Incoming::read).collect(),
            )),
        }
    }
}

fn not_json(error: &serde_json::Error) -> CallError {
    let (line, column) = (error.line(), error.column());
    CallError::new(
        ErrorCode::ParseError,
        format!("not JSON, at line {line}, column {column}"),
    )
}

impl<'a> Incoming<'a> {
    fn read(raw: &'a RawValue) -> Self {
        match serde_json::from_str::<Envelope<'a>>(raw.get()) {
            // The members of an array would be taken in the order of the fields.
            Ok(envelope) if raw.get().starts_with('{') => Self::from_envelope(&envelope),
            _ => Self {
                id: Id::Unknown,
                request: Err(CallError::new(
                    ErrorCode::InvalidRequest,
                    "a request is an object with each member once",
                )),
            },
        }
    }

    fn from_envelope(envelope: &Envelope<'a>) -> Self {
        let invalid = |message: &str| {
            Err(CallError::new(
                ErrorCode::InvalidRequest,
                message.to_owned(),
            ))
        };
        let id = match envelope.id {
            None => Id::Absent,
            Some(id)
                if matches!(
                    id.get().as_bytes().first(),
                    Some(b'"' | b'-' | b'0'..=b'9' | b'n')
                ) =>
            {
                Id::Given(id)
            }
            Some(_) => {
                return Self {
                    id: Id::Unknown,
                    request: invalid("an id is a string, a number or null"),
                };
            }
        };
        match envelope.call() {
            Ok(call) => Self {
                id,
                request: Ok(call),
            },
            // Nothing that is wrong is a notification: its sender should hear of it.
            Err(message) => Self {
                id: if let Id::Absent = id { Id::Unknown } else { id },
                request: invalid(message),
            },
        }
    }
}

impl<'a> Envelope<'a> {
    fn call(&self) -> Result<Call<'a>, &'static str> {
        if self.jsonrpc.map(RawValue::get) != Some(r#""2.0""#) {
            return Err("`jsonrpc` must be \"2.0\"");
        }
        let method = self.method.ok_or("`method` is missing")?;
        let method = text(method).ok_or("`method` must be a string")?;
        match self.params.map(|params| params.get().as_bytes()[0]) {
            None | Some(b'{' | b'[') => Ok(Call {
                method,
                params: self.params,
            }),
            Some(_) => Err("`params` must be an object or an array"),
        }
    }
}

/// A JSON string, borrowed where nothing in it is escaped.
fn text(raw: &RawValue) -> Option<std::borrow::Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        false => Some(inner.into()),
        true => serde_json::from_str::<String>(raw.get())
            .ok()
            .map(Into::into),
    }
}

impl Call<'_> {
    /// The parameters as a value. They are JSON already; what can still be wrong is that they
    /// nest deeper than a value can, or hold a number or a character that none can.
    pub(crate) fn value(&self) -> Result<Value, CallError> {
        let Some(params) = self.params else {
            return Ok(Value::Null);
        };
        decode(params)
    }
}

/// A value, from text that may be anything.
pub(crate) fn value(bytes: &[u8]) -> Result<Value, CallError> {
    let text = utf8(bytes)?;
    decode(serde_json::from_str(text).map_err(|error| not_json(&error))?)
}

fn decode(raw: &RawValue) -> Result<Value, CallError> {
    serde_json::from_str(raw.get()).map_err(|error| match error.to_string().contains("recursion") {
        true => CallError::new(ErrorCode::TooDeep, "the parameters nest too deep"),
        false => CallError::new(
            ErrorCode::InvalidParams,
            "the parameters hold a number or a character that is out of range",
        ),
    })
}

fn utf8(bytes: &[u8]) -> Result<&str, CallError> {
    std::str::from_utf8(bytes)
        .map_err(|_| CallError::new(ErrorCode::ParseError, "not JSON, because not UTF-8"))
}

/// The text of a response that carries a result.
pub(crate) fn success(id: &str, result: &str) -> String {
    let mut text = String::with_capacity(id.len() + result.len() + 40);
    text.push_str(r#"{"jsonrpc":"2.0","id":"#);
    text.push_str(id);
    text.push_str(r#","result":"#);
    text.push_str(result);
    text.push('}');
    text
}

/// The text of a response that carries an error: the one translation of our errors to the wire.
pub(crate) fn failure(id: Option<&str>, error: &CallError) -> String {
    #[derive(Serialize)]
    struct Failure<'a> {
        code: i32,
        message: &'a str,
        data: Particulars<'a>,
    }
    #[derive(Serialize)]
    struct Particulars<'a> {
        code: &'a str,
        retryable: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        hint: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<&'a Value>,
    }
    let data = Particulars {
        code: error.code.as_str(),
        retryable: error.retryable,
        hint: error.hint_text(),
        data: error.data_value(),
    };
    let failure = Failure {
        code: error.code.rpc(),
        message: &error.message,
        data,
    };
    let failure = serde_json::to_string(&failure)
        .expect("strings and JSON values can always be written as JSON");
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{failure}}}"#,
        id.unwrap_or("null")
    )
}
