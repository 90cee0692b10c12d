//! What can go wrong, and where.

use mlua::Error as LuaError;

use crate::budget::Limit;

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The source is no script.
    Syntax,
    /// The script failed.
    Runtime,
    /// It wanted more memory than it may have.
    Memory,
    /// It did more steps than it may.
    Steps,
    /// It took longer than it may.
    Time,
    /// Somebody stopped it.
    Stopped,
    /// What it returned is no result.
    Result,
}

impl ErrorKind {
    /// The name for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Runtime => "runtime",
            Self::Memory => "memory",
            Self::Steps => "steps",
            Self::Time => "time",
            Self::Stopped => "stopped",
            Self::Result => "result",
        }
    }

    /// Whether a limit was reached; the virtual machine is thrown away then.
    pub const fn is_limit(self) -> bool {
        matches!(
            self,
            Self::Memory | Self::Steps | Self::Time | Self::Stopped
        )
    }
}

/// Why a script could not be compiled or has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", self.prefix())]
pub struct ScriptError {
    /// What sort of fault it is.
    pub kind: ErrorKind,
    /// What is wrong, for the author of the script.
    pub message: String,
    /// The line of the script, from 1, where it is known.
    pub line: Option<usize>,
}

const MESSAGE_BYTES: usize = 2_000;

/// The name under which chunks are loaded; places in messages begin with it.
pub(crate) const CHUNK: &str = "script";
/// The name of our own code in the sandbox.
pub(crate) const PRELUDE: &str = "prelude";

impl ScriptError {
    fn prefix(&self) -> String {
        self.line
            .map_or(String::new(), |line| format!("line {line}: "))
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: shortened(message.into()),
            line: None,
        }
    }

    /// A fault of a script that ran, or was to run.
    pub(crate) fn from_lua(error: &LuaError) -> Self {
        match error {
            LuaError::CallbackError { traceback, cause } => {
                let mut fault = Self::from_lua(cause);
                fault.line = fault.line.or_else(|| first_line(traceback));
                fault
            }
            LuaError::WithContext { cause, .. } => Self::from_lua(cause),
            LuaError::MemoryError(_) => Self::new(ErrorKind::Memory, "not enough memory"),
            LuaError::ExternalError(cause) => match cause.downcast_ref::<Limit>() {
                Some(limit) => limit.error(),
                None => Self::new(ErrorKind::Runtime, cause.to_string()),
            },
            LuaError::SyntaxError { message, .. } => Self::placed(ErrorKind::Syntax, message),
            LuaError::RuntimeError(message) => Self::placed(ErrorKind::Runtime, message),
            other => Self::placed(ErrorKind::Runtime, &other.to_string()),
        }
    }

    /// Takes `script:3:` apart, and drops the traceback.
    fn placed(kind: ErrorKind, message: &str) -> Self {
        let (message, traceback) = message
            .split_once("\nstack traceback")
            .unwrap_or((message, ""));
        // The compiler knows no name and begins with the line.
        let name = if kind == ErrorKind::Syntax { "" } else { CHUNK };
        if let Some((line, text)) = place(message, name) {
            return Self {
                line: Some(line),
                ..Self::new(kind, text)
            };
        }
        // In a function that the prelude wraps: what called it is meant.
        let (line, text) = match place(message, PRELUDE) {
            Some((_, text)) => (first_line(traceback), text),
            None => (None, message),
        };
        Self {
            line,
            ..Self::new(kind, text)
        }
    }
}

/// Line and text of `name:3: text`.
fn place<'m>(message: &'m str, name: &str) -> Option<(usize, &'m str)> {
    let rest = message.strip_prefix(name)?;
    let rest = rest.strip_prefix(':').or(name.is_empty().then_some(rest))?;
    let (line, text) = rest.split_once(':')?;
    Some((line.parse().ok()?, text.trim()))
}

/// A message goes to people and to logs; a script may make one of any length.
fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE_BYTES {
        let end = message.floor_char_boundary(MESSAGE_BYTES);
        message.truncate(end);
        message.push('…');
    }
    message
}

/// The innermost line of the script in a traceback.
fn first_line(traceback: &str) -> Option<usize> {
    let place = format!("{CHUNK}:");
    let line = traceback
        .lines()
        .find_map(|line| line.trim().strip_prefix(&*place))?;
    let digits = line
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(line.len());
    line[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_taken_from_messages() {
        let message = "script:12: attempt to call a nil value\nstack traceback:\nscript:12";
        let fault = ScriptError::from_lua(&LuaError::RuntimeError(message.into()));
        assert_eq!(fault.to_string(), "line 12: attempt to call a nil value");
        let message = "no place: here";
        let fault = ScriptError::from_lua(&LuaError::RuntimeError(message.into()));
        assert_eq!((fault.line, &*fault.message), (None, message));
    }
}
