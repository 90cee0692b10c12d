//! Scripts from the outside.

mod attacks;
mod context;
mod errors;
mod host;
mod instance;
mod results;
mod sandbox;

use std::sync::Arc;
use std::time::Duration;

use dodona_script::{Engine, Limits, Outcome, Script, ScriptError};
use serde_json::Value;

/// Compiles and runs on a fresh engine.
fn run(source: &str, context: Value) -> Result<Outcome, ScriptError> {
    let script = Script::compile(source, "test.lua")?;
    Engine::new(1).run(&script, Arc::new(context), &generous())
}

/// Limits that only a script which means harm reaches, also on a busy machine.
fn generous() -> Limits {
    Limits {
        time: Duration::from_secs(60),
        ..Limits::default()
    }
}

/// The value of an expression.
fn value(expression: &str, context: Value) -> Value {
    let source = format!("return {{ value = {expression} }}");
    let outcome = run(&source, context).unwrap_or_else(|error| panic!("{expression}: {error}"));
    outcome.value["value"].clone()
}
