//! Templates from the outside.

mod errors;
mod generate;
mod jinja;
mod limits;
mod meaning;
mod object;

use dodona_template::{Limits, Template, TemplateError};
use serde_json::Value;

/// Compiles and renders under the limits of a message.
fn render(source: &str, context: &Value) -> Result<String, TemplateError> {
    let limits = Limits::message();
    Template::compile(source, &limits)?.render(context, &limits)
}

/// Compiles and evaluates under the limits of a message.
fn evaluate(source: &str, context: &Value) -> Result<Value, TemplateError> {
    let limits = Limits::message();
    Template::compile(source, &limits)?.evaluate(context, &limits)
}
