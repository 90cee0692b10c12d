//! The host's side of an evaluation.

use crate::schema::{FunctionId, Slot};
use crate::value::Value;

/// Where an evaluation reads fields and calls functions. It names both by their numbers in the
/// schema with which the expression was compiled.
pub trait Scope: Send + Sync {
    /// The value of a field; nothing if what it belongs to is `None`.
    fn field(&self, slot: Slot) -> Option<Value<'_>>;

    /// Calls a function or method. It must not change what fields say, and must not wait.
    ///
    /// # Errors
    ///
    /// With a sentence for the author of the expression.
    fn call<'a>(
        &'a self,
        function: FunctionId,
        arguments: &[Value<'a>],
    ) -> Result<Value<'a>, CallError>;
}

/// Why a function of the host has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    message: String,
}

impl CallError {
    /// With a sentence for the author of the expression.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl std::fmt::Display for CallError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CallError {}

/// A scope without fields and functions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Empty;

impl Scope for Empty {
    fn field(&self, _: Slot) -> Option<Value<'_>> {
        None
    }

    fn call<'a>(&'a self, _: FunctionId, _: &[Value<'a>]) -> Result<Value<'a>, CallError> {
        Err(CallError::new("there are no functions here"))
    }
}
