//! A small language of conditions: Python expressions over a host's fields, compiled once and
//! evaluated under limits.
//!
//! Start from [`Schema`], which says what can be named, [`Expr`], which is compiled against one,
//! and [`Scope`], through which an evaluation reads the host. [`JsonScope`] is one over a JSON
//! document.
//!
//! ```
//! use dodona_expr::{Expr, JsonScope, Schema};
//! use serde_json::json;
//!
//! let schema = Schema::parse("context: { turn: { number: int, token_usage: float } }")?;
//! let expr = Expr::compile("context.turn.token_usage > 0.8", &schema)?;
//!
//! let document = schema.fill(&json!({"context": {"turn": {"token_usage": 0.9}}}));
//! assert!(expr.test(&JsonScope::new(&schema, &document))?);
//!
//! let error = Expr::compile("context.turn.tokens > 0.8", &schema).unwrap_err();
//! assert_eq!(error.message(), "`context.turn` has no field `tokens`");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The semantics are Python's, as simpleeval's `EvalWithCompoundTypes` gives them; the differences
//! are listed in `docs/reference/compatibility.md`, and a test compares the two.
//!
//! In the order of a compilation: `parse` (source to syntax tree), `lower` (names to slots, and a
//! refusal of what the language lacks), `check` (types and `None`), `optimise` (constants, order of
//! terms), `eval` (nodes to values).
//!
//! # What it does not do
//!
//! It knows no rule, no agent and no other crate of Dodona: what can be named is the host's, as a
//! [`Schema`]. It changes nothing, does no I/O and never waits. It keeps no state between two
//! evaluations.

mod builtins;
mod check;
mod error;
mod eval;
mod explain;
mod expr;
mod guard;
mod ir;
mod json;
mod limits;
mod lower;
mod optimise;
mod parse;
mod plain;
pub mod schema;
mod scope;
mod set;
mod suggest;
mod value;

pub use error::{Error, ErrorKind, Span, Warning};
pub use explain::{Explanation, Term, TermOutcome};
pub use expr::{Expr, KeyRead};
pub use json::{Functions, JsonScope};
pub use limits::{Limits, MAX_NESTING, MAX_SOURCE};
pub use schema::{FunctionId, Kind, Schema, SchemaError, Slot, Type};
pub use scope::{CallError, Empty, Scope};
pub use set::{ExprSet, Run};
pub use value::{Dict, List, Map, Mapping, Sequence, Set, Text, Value};
