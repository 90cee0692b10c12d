//! What a try that failed means.

use std::error::Error as _;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use serde_json::Value;

use super::retry_after;
use crate::error::ModelError;

/// How one try ended that brought no answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// Another try may bring one.
    Passing {
        reason: String,
        retry_after: Option<Duration>,
    },
    /// No other try will.
    Final(ModelError),
}

/// The longest text of a provider that is shown.
const SHOWN: usize = 500;

/// How providers say that a conversation is too long, in lower case: a code or a part of the
/// message, for want of a status of its own.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "context window",
    "context size",
    "context length",
    "prompt is too long",
    "exceed context limit",
    "maximum number of tokens",
    "input is too long",
    "request_too_large",
];

/// How providers say that nobody pays for it: a limit that waiting does not lift.
const UNPAID: &[&str] = &["insufficient_quota", "billing_hard_limit", "credit balance"];

impl Failure {
    /// Without a hint of when to come back.
    pub(crate) fn passing(reason: impl Into<String>) -> Self {
        Self::Passing {
            reason: reason.into(),
            retry_after: None,
        }
    }

    /// What there is to say about it.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Passing { reason, .. } => reason.clone(),
            Self::Final(error) => error.to_string(),
        }
    }

    /// The end, once there is no other try.
    pub(crate) fn into_error(self) -> ModelError {
        match self {
            Self::Passing {
                reason,
                retry_after,
            } => ModelError::Unavailable {
                reason,
                retry_after,
            },
            Self::Final(error) => error,
        }
    }

    /// The end, once part of an answer was seen.
    pub(crate) fn into_broken_off(self) -> ModelError {
        match self {
            Self::Passing { reason, .. } => ModelError::BrokenOff { reason },
            Self::Final(error) => error,
        }
    }

    /// What a connection that failed means.
    pub(crate) fn of_transport(error: &reqwest::Error, host: &str) -> Self {
        let reason = if error.is_dns() {
            let (name, _) = host.split_once(':').unwrap_or((host, ""));
            format!("the name `{name}` is not found; is the network up, and `base_url` right?")
        } else if error.is_timeout() {
            format!("`{host}` does not accept a connection in time")
        } else if error.is_connect() {
            format!("no connection to `{host}`: {}", innermost(error))
        } else {
            format!("the connection to `{host}` broke: {}", innermost(error))
        };
        Self::passing(reason)
    }

    /// What an answer that is none means.
    pub(crate) fn of_answer(
        status: StatusCode,
        headers: &HeaderMap,
        body: &[u8],
        host: &str,
    ) -> Self {
        let said = said(body);
        let with = |what: &str| match said.as_str() {
            "" => format!("`{host}` {what} ({})", status.as_u16()),
            said => format!("`{host}` {what} ({}): {said}", status.as_u16()),
        };
        let settings = |reason: String, hint: &str| {
            Self::Final(ModelError::Settings {
                reason,
                hint: hint.to_owned(),
            })
        };
        let rejected = |reason: String| {
            Self::Final(ModelError::Rejected {
                status: status.as_u16(),
                reason,
            })
        };
        let body_says = |marks: &[&str]| {
            let text = String::from_utf8_lossy(body).to_lowercase();
            marks.iter().any(|mark| text.contains(mark))
        };
        match status.as_u16() {
            300..=399 => settings(
                redirection(headers, host),
                "nothing was sent there; if it is the right place, set `base_url` to it",
            ),
            401 => Self::key(with("does not accept the key")),
            403 => Self::key(with("does not allow this with the key")),
            404 => Self::Final(ModelError::NotFound {
                reason: with("does not know the model, or the address is wrong"),
                hint:
                    "check `model` and `base_url`; `dodona models test` names the models there are"
                        .to_owned(),
            }),
            413 => Self::Final(ModelError::TooLong {
                reason: with("does not take a request of this size"),
            }),
            429 if body_says(UNPAID) => rejected(with("wants to be paid first")),
            429 => Self::Passing {
                reason: with("has had too many requests"),
                retry_after: retry_after::of(headers, Timestamp::now()),
            },
            408 | 409 | 425 | 500.. => Self::Passing {
                reason: with("cannot answer now"),
                retry_after: retry_after::of(headers, Timestamp::now()),
            },
            402 => rejected(with("wants to be paid first")),
            _ if body_says(TOO_LONG) => Self::Final(ModelError::TooLong {
                reason: with("does not take it"),
            }),
            _ => rejected(with("does not take the request")),
        }
    }

    fn key(reason: String) -> Self {
        Self::Final(ModelError::Key {
            reason,
            hint: String::new(),
        })
    }

    /// What an error within a stream means: it comes after the status, and says by a type or a
    /// code what the status would have.
    pub(crate) fn of_event(error: &Value, host: &str) -> Self {
        let code = ["type", "code", "status"].into_iter().find_map(|field| {
            let value = error.get(field)?;
            value
                .as_u64()
                .or_else(|| status_of(value.as_str()?))
                .and_then(|code| u16::try_from(code).ok())
        });
        let status = code
            .and_then(|code| StatusCode::from_u16(code).ok())
            .filter(|status| status.as_u16() >= 400);
        let body = serde_json::json!({ "error": error }).to_string();
        match status {
            Some(status) => Self::of_answer(status, &HeaderMap::new(), body.as_bytes(), host),
            None => Self::passing(format!(
                "`{host}` broke off its answer: {}",
                said(body.as_bytes())
            )),
        }
    }
}

/// The statuses behind the error types that both protocols use within streams.
fn status_of(kind: &str) -> Option<u64> {
    Some(match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" => 429,
        "api_error" | "server_error" => 500,
        "overloaded_error" => 529,
        _ => return kind.parse().ok(),
    })
}

fn redirection(headers: &HeaderMap, host: &str) -> String {
    match headers.get("location").and_then(|to| to.to_str().ok()) {
        Some(to) => format!("`{host}` redirects to `{}`", shown(to)),
        None => format!("`{host}` redirects to nowhere"),
    }
}

/// What the body of an error says, in the shapes that providers use.
fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        // A page of a proxy says nothing that fits on a line.
        let is_page = text.trim_start().starts_with('<');
        return if is_page { String::new() } else { shown(&text) };
    };
    let value = value.get(0).unwrap_or(&value);
    let candidates = [
        "/error/message",
        "/error/metadata/raw",
        "/error",
        "/message",
        "/detail",
    ];
    let message = candidates
        .iter()
        .find_map(|path| value.pointer(path)?.as_str());
    shown(message.unwrap_or(&value.to_string()))
}

/// A foreign text on one line, bounded and without control characters.
fn shown(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    let line = words.join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The cause at the bottom, which is the one that says something.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    match error.source() {
        Some(_) => shown(&cause.to_string()),
        None => "no reason given".to_owned(),
    }
}
