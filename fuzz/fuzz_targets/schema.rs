//! Any text as a vocabulary, and any JSON as a context of it.

#![no_main]

use dodona_expr::{Expr, JsonScope, Schema};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|given: &str| {
    let (text, context) = given.split_once("\n----\n").unwrap_or((given, "{}"));
    let Ok(schema) = Schema::parse(text) else {
        return;
    };
    let given = serde_json::from_str(context).unwrap_or(Value::Null);
    let document = schema.fill(&given);
    let scope = JsonScope::new(&schema, &document);
    if let Ok(expr) = Expr::compile("context", &schema) {
        let _ = expr.eval(&scope).map(|value| value.to_string());
    }
});
