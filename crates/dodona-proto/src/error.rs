//! Every error code there is, in one table.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::DoneStatus;

/// What went wrong, for programs: a stable dotted text.
///
/// The hub's own codes are variants; a plugin names its own (`echo.failed`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ErrorCode {
    /// The frame is not JSON.
    ParseError,
    /// The JSON is not a request.
    InvalidRequest,
    /// There is no such method.
    MethodNotFound,
    /// The parameters do not fit the method's schema.
    InvalidParams,
    /// A fault of ours.
    Internal,
    /// A plugin panicked.
    Panicked,
    /// Nobody said who is asking.
    Unauthenticated,
    /// The asker lacks the scope.
    Forbidden,
    /// There is no such thing, or it is somebody else's.
    NotFound,
    /// Too many calls in a time.
    RateLimited,
    /// Too many calls at once.
    TooManyCalls,
    /// A model has not answered within its number of turns.
    TooManyTurns,
    /// A value is too large.
    TooLarge,
    /// Calls or values nest too deep.
    TooDeep,
    /// The time for the call is over.
    DeadlineExceeded,
    /// The plugin exists and is not active.
    PluginNotActive,
    /// Somebody stopped the call.
    Cancelled,
    /// The call was open when the process ended.
    Interrupted,
    /// A gate said no.
    Denied,
    /// A person must agree first, and none can.
    ApprovalRequired,
    /// The disk or a database does not do its part.
    Storage,
    /// A code of a plugin's own.
    Plugin(Cow<'static, str>),
}

/// What a process that ends with this error tells its shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// 1: the call failed.
    Failed = 1,
    /// 2: the request was wrong; the caller can mend it.
    Usage = 2,
    /// 3: not allowed.
    Refused = 3,
    /// 4: a limit; trying later may help.
    Limited = 4,
    /// 5: disk or database.
    Storage = 5,
    /// 130: stopped, as after Ctrl-C.
    Cancelled = 130,
}

/// One line of the table.
struct Row {
    code: ErrorCode,
    name: &'static str,
    rpc: i32,
    status: DoneStatus,
    retryable: bool,
    exit: ExitKind,
}

const fn row(
    code: ErrorCode,
    name: &'static str,
    rpc: i32,
    status: DoneStatus,
    retryable: bool,
    exit: ExitKind,
) -> Row {
    Row {
        code,
        name,
        rpc,
        status,
        retryable,
        exit,
    }
}

/// The table: code, name, JSON-RPC number, how a call that met it ends, whether the same call
/// may do better later, exit code.
#[rustfmt::skip]
const TABLE: &[Row] = {
    use DoneStatus::{Cancelled as Stopped, Failed, Limited, Refused};
    use ErrorCode::*;
    &[
        row(ParseError,       "rpc.parse_error",       -32700, Failed,  false, ExitKind::Usage),
        row(InvalidRequest,   "rpc.invalid_request",   -32600, Failed,  false, ExitKind::Usage),
        row(MethodNotFound,   "rpc.method_not_found",  -32601, Failed,  false, ExitKind::Usage),
        row(InvalidParams,    "rpc.invalid_params",    -32602, Failed,  false, ExitKind::Usage),
        row(Internal,         "rpc.internal_error",    -32603, Failed,  false, ExitKind::Failed),
        row(Panicked,         "call.panicked",         -32603, Failed,  false, ExitKind::Failed),
        row(Unauthenticated,  "auth.unauthenticated",  -32001, Refused, false, ExitKind::Refused),
        row(Forbidden,        "auth.forbidden",        -32002, Refused, false, ExitKind::Refused),
        row(NotFound,         "hub.not_found",         -32004, Failed,  false, ExitKind::Usage),
        row(RateLimited,      "limit.rate",            -32005, Limited, true,  ExitKind::Limited),
        row(TooManyCalls,     "limit.concurrency",     -32005, Limited, true,  ExitKind::Limited),
        row(TooManyTurns,     "limit.turns",           -32005, Limited, false, ExitKind::Limited),
        row(TooLarge,         "limit.size",            -32005, Limited, false, ExitKind::Limited),
        row(TooDeep,          "limit.depth",           -32005, Limited, false, ExitKind::Limited),
        row(DeadlineExceeded, "limit.deadline",        -32005, Limited, true,  ExitKind::Limited),
        row(PluginNotActive,  "plugin.not_active",     -32006, Failed,  true,  ExitKind::Failed),
        row(Cancelled,        "call.cancelled",        -32007, Stopped, false, ExitKind::Cancelled),
        row(Interrupted,      "call.interrupted",      -32007, Failed,  true,  ExitKind::Failed),
        row(ApprovalRequired, "policy.approval_required", -32008, Refused, false, ExitKind::Refused),
        row(Denied,           "policy.denied",         -32009, Refused, false, ExitKind::Refused),
        row(Storage,          "store.unavailable",     -32010, Failed,  true,  ExitKind::Storage),
    ]
};

/// What a plugin's own code gets.
const PLUGIN_RPC: i32 = -32000;

impl ErrorCode {
    fn row(&self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.code == *self)
    }

    /// The dotted text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Plugin(name) => name,
            known => known.row().map_or("rpc.internal_error", |row| row.name),
        }
    }

    /// The number of the JSON-RPC error object.
    pub fn rpc(&self) -> i32 {
        self.row().map_or(PLUGIN_RPC, |row| row.rpc)
    }

    /// How a call ends that met this error and did not handle it.
    pub fn status(&self) -> DoneStatus {
        self.row().map_or(DoneStatus::Failed, |row| row.status)
    }

    /// Whether the same call may do better later.
    pub fn retryable(&self) -> bool {
        self.row().is_some_and(|row| row.retryable)
    }

    /// What the process tells its shell.
    pub fn exit(&self) -> ExitKind {
        self.row().map_or(ExitKind::Failed, |row| row.exit)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<String> for ErrorCode {
    fn from(text: String) -> Self {
        match TABLE.iter().find(|row| row.name == text) {
            Some(row) => row.code.clone(),
            None => Self::Plugin(text.into()),
        }
    }
}

impl From<ErrorCode> for String {
    fn from(code: ErrorCode) -> String {
        code.as_str().to_owned()
    }
}

/// How a call went wrong: one text for the client, another for the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallError {
    /// What went wrong, for programs.
    pub code: ErrorCode,
    /// What went wrong, for the person who asked. Never an inner error's text.
    pub message: String,
    /// Whether the same call may do better later.
    pub retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Box<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<Box<str>>,
    #[serde(skip)]
    log: Option<Box<str>>,
}

impl CallError {
    /// An error with a message for the client.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            retryable: code.retryable(),
            code,
            message: message.into(),
            data: None,
            hint: None,
            log: None,
        }
    }

    /// A plugin's own error, such as `echo.failed`.
    pub fn plugin(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Plugin(Cow::Borrowed(code)), message)
    }

    /// Adds the next thing to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into().into());
        self
    }

    /// Adds particulars for programs.
    #[must_use]
    pub fn data(mut self, data: Value) -> Self {
        self.data = Some(Box::new(data));
        self
    }

    /// Adds what only the log may know, such as the text of an inner error.
    #[must_use]
    pub fn log(mut self, text: impl fmt::Display) -> Self {
        self.log = Some(text.to_string().into());
        self
    }

    /// Says whether the same call may do better later, where the code's usual answer is wrong.
    #[must_use]
    pub fn retry(mut self, retryable: bool) -> Self {
        self.retryable = retryable;
        self
    }

    /// The next thing to try.
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Particulars for programs.
    pub fn data_value(&self) -> Option<&Value> {
        self.data.as_deref()
    }

    /// What only the log may know.
    pub fn log_text(&self) -> Option<&str> {
        self.log.as_deref()
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CallError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_maps_every_code_both_ways() {
        for row in TABLE {
            assert_eq!(ErrorCode::from(row.name.to_owned()), row.code);
            assert_eq!(row.code.as_str(), row.name);
            assert!(
                (-32768..=-32000).contains(&row.rpc),
                "{} is outside the reserved range",
                row.name
            );
        }
        let mut names: Vec<_> = TABLE.iter().map(|row| row.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len(), "two codes share a name");
    }

    #[test]
    fn standard_numbers_are_the_standard_ones() {
        let numbers = [
            (ErrorCode::ParseError, -32700),
            (ErrorCode::InvalidRequest, -32600),
            (ErrorCode::MethodNotFound, -32601),
            (ErrorCode::InvalidParams, -32602),
            (ErrorCode::Internal, -32603),
        ];
        for (code, number) in numbers {
            assert_eq!(code.rpc(), number);
        }
    }

    #[test]
    fn the_log_text_never_reaches_the_wire() {
        let error = CallError::new(ErrorCode::Storage, "the database is busy")
            .log("SQLITE_BUSY in t.rs")
            .hint("try again");
        let wire = serde_json::to_string(&error).expect("serialises");
        assert_eq!(
            wire,
            r#"{"code":"store.unavailable","message":"the database is busy","retryable":true,"hint":"try again"}"#
        );
        assert!(
            size_of::<CallError>() <= 104,
            "a Result in every frame should stay small"
        );
    }

    #[test]
    fn a_plugins_code_survives_the_wire() {
        let error = CallError::plugin("echo.failed", "as asked");
        let back: CallError =
            serde_json::from_str(&serde_json::to_string(&error).expect("serialises"))
                .expect("parses");
        assert_eq!(back, error);
        assert_eq!(back.code.rpc(), -32000);
    }

    #[test]
    fn the_reference_lists_exactly_this_table() {
        let text = include_str!("../../../docs/reference/wire.md");
        let listed = text
            .split("<!-- errors -->")
            .nth(1)
            .and_then(|rest| rest.split("<!-- /errors -->").next());
        let listed: Vec<&str> = listed
            .expect("the markers")
            .lines()
            .filter(|line| line.starts_with("| -"))
            .collect();
        let table: Vec<String> = TABLE
            .iter()
            .map(|row| format!("| {} | `{}` | {} |", row.rpc, row.name, row.status.as_str()))
            .collect();
        assert_eq!(listed, table);
    }
}
