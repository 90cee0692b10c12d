//! Any text as a condition: it ends, it does not panic, and every way of asking answers the same.

#![no_main]

use dodona_expr::{CallError, Expr, ExprSet, JsonScope, Value};
use dodona_fuzz::{DOCUMENT, SCHEMA};
use libfuzzer_sys::fuzz_target;
use serde_json::Value as Json;

/// Every function of the host answers the same.
fn answer<'a>(_: &'a Json, _: &str, _: &[Value<'a>]) -> Result<Value<'a>, CallError> {
    Ok(Value::Int(1))
}

fuzz_target!(|source: &str| {
    let scope = JsonScope::new(&SCHEMA, &DOCUMENT).with_functions(&answer);
    let Ok(expr) = Expr::compile(source, &SCHEMA) else {
        return;
    };
    let tested = expr.test(&scope);
    let evaluated = expr.eval(&scope).map(|value| value.to_string());
    assert_eq!(tested.is_ok(), evaluated.is_ok(), "{source:?}");
    expr.explain(&scope).root.to_json();
    let twice = [source, source].map(|source| Expr::compile(source, &SCHEMA));
    let set = ExprSet::new(twice.into_iter().flatten().collect());
    let mut run = set.run(&scope);
    assert_eq!(run.test(0), tested, "{source:?}");
    assert_eq!(run.test(1), tested, "{source:?}");
});
