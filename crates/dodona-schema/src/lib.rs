//! Validates JSON values against JSON Schema, draft 2020-12.
//!
//! A [`Validator`] is compiled once from a schema and then checks any number of values. Schemas
//! come from our own method descriptors and, through MCP servers and Luau plugins, from outside,
//! so compiling and validating are both bounded.
//!
//! ```
//! use dodona_schema::Validator;
//! use serde_json::json;
//!
//! let schema = json!({"type": "object", "properties": {"limit": {"type": "integer", "minimum": 1}}});
//! let validator = Validator::new(&schema)?;
//! assert!(validator.is_valid(&json!({"limit": 5})));
//! let violations = validator.violations(&json!({"limit": 0}), 10);
//! assert_eq!(violations[0].path, "/limit");
//! assert_eq!(violations[0].to_string(), "0 is less than the minimum of 1");
//! # Ok::<(), dodona_schema::SchemaError>(())
//! ```
//!
//! # What it does not do
//!
//! - It fetches nothing: a `$ref` must point into the same document.
//! - `format` and `content*` are annotations, as the specification allows.
//! - A `pattern` with look-around or back-references is not checked, because the regular
//!   expression engine guarantees linear time. [`Validator::unchecked_patterns`] lists them.
//! - `$dynamicRef` is resolved like `$ref`, which is the same within one document.
//!
//! Why this crate exists: docs/decisions/0014.

mod compile;
mod equality;
mod evaluated;
mod pattern;
mod validate;
mod violation;

use serde_json::Value;

use compile::Node;
use validate::Run;

pub use compile::SchemaError;
pub use violation::Violation;

/// A compiled schema.
#[derive(Debug)]
pub struct Validator {
    /// All subschemas; the first is the root. References are indexes, so that recursive schemas
    /// need no cycle of pointers.
    nodes: Vec<Node>,
    unchecked_patterns: Vec<String>,
}

impl Validator {
    /// Compiles a schema. Fails for a keyword with a value of the wrong type, for a reference that
    /// cannot be resolved and for a schema that refers to itself without descending.
    pub fn new(schema: &Value) -> Result<Self, SchemaError> {
        compile::compile(schema)
    }

    /// Returns whether a value fits the schema. Faster than [`Validator::violations`].
    pub fn is_valid(&self, value: &Value) -> bool {
        Run::new(&self.nodes).is_valid(value)
    }

    /// Returns the first violation as an error.
    pub fn validate(&self, value: &Value) -> Result<(), Violation> {
        match self.violations(value, 1).pop() {
            Some(violation) => Err(violation),
            None => Ok(()),
        }
    }

    /// Returns at most `limit` violations, in the order of the schema.
    pub fn violations(&self, value: &Value, limit: usize) -> Vec<Violation> {
        if self.is_valid(value) {
            return Vec::new();
        }
        Run::new(&self.nodes).explain(value, limit)
    }

    /// The patterns that are not checked because the engine does not support them.
    pub fn unchecked_patterns(&self) -> &[String] {
        &self.unchecked_patterns
    }
}
