//! A place in a value that does not fit the schema.

use std::fmt;

/// One reason why a value does not fit a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Violation {
    /// JSON Pointer to the offending part; empty for the whole value.
    pub path: String,
    /// The offending part as JSON, where the message shows it.
    pub(crate) value: Option<String>,
    pub(crate) detail: String,
}

impl Violation {
    /// Returns the message without the offending value, which may be long.
    pub fn without_value(&self) -> String {
        match self.value {
            Some(_) => format!("value {}", self.detail),
            None => self.detail.clone(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{value} {}", self.detail),
            None => f.write_str(&self.detail),
        }
    }
}
