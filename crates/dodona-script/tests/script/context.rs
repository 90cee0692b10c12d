//! What a script sees of its context.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dodona_script::{Engine, Field, Object, Script};
use serde_json::{Value, json};

use super::{generous, run, value};

fn context() -> Value {
    json!({
        "turn": {"number": 3, "usage": 0.5, "nothing": null},
        "tools": ["read", "write"],
        "calls": [{"tool": "read", "args": {"path": "a.md"}}, {"tool": "write"}],
        "matrix": [[1, 2], [3]],
        "ok": true,
    })
}

#[test]
fn fields_have_the_types_of_scripts() {
    let cases = [
        ("context.turn.number + 1", json!(4)),
        ("context.turn.usage", json!(0.5)),
        (
            "context.turn.nothing == nil and context.missing == nil",
            json!(true),
        ),
        ("context.ok", json!(true)),
        ("#context.tools", json!(2)),
        ("table.concat(context.tools, ',')", json!("read,write")),
        ("context.calls[1].args.path", json!("a.md")),
        ("context.matrix[1][2] + context.matrix[2][1]", json!(5)),
        ("context.calls[2].args == nil", json!(true)),
        (
            "type(context.turn) .. type(context.tools)",
            json!("userdatatable"),
        ),
        (
            "tostring(context.calls[1].args)",
            json!("context.calls[1].args"),
        ),
        ("#context.turn", json!(3)),
        (
            "context.turn",
            json!({"number": 3, "usage": 0.5, "nothing": null}),
        ),
        ("context.calls", context()["calls"].clone()),
    ];
    for (expression, expected) in cases {
        assert_eq!(value(expression, context()), expected, "{expression}");
    }
}

#[test]
fn objects_can_be_gone_through_in_order() {
    for iteration in ["context.turn", "pairs(context.turn)"] {
        let source = format!(
            "local names = {{}}
             for name, value in {iteration} do table.insert(names, name .. '=' .. tostring(value)) end
             return {{ names = table.concat(names, ' ') }}"
        );
        let outcome = run(&source, context()).expect("it runs");
        assert_eq!(
            outcome.value["names"], "number=3 usage=0.5 nothing=false",
            "{iteration}"
        );
    }
}

#[test]
fn nothing_of_the_context_can_be_changed() {
    let writes = [
        "context.turn = 1",
        "context.turn.number = 1",
        "context.new = 1",
        "context.tools[1] = 'x'",
        "table.insert(context.tools, 'x')",
        "table.sort(context.tools)",
        "table.clear(context.tools)",
        "context.calls[1].tool = 'x'",
        "rawset(context.tools, 1, 'x')",
        "rawset(context, 'turn', 1)",
        "setmetatable(context.tools, {})",
        "setmetatable(context, {})",
        "getmetatable(context).__index = nil",
        "table.freeze(context.tools)[1] = 2",
        "table.move({1}, 1, 1, 1, context.tools)",
    ];
    for write in writes {
        run(write, context()).expect_err(write);
        // Whether it failed or not, the next look shows what was there.
        let source = format!("pcall(function() {write} end) return {{ context }}");
        let outcome = run(&source, context()).expect("it runs");
        assert_eq!(outcome.value, json!([context()]), "{write}");
    }
}

#[test]
fn a_copy_of_a_list_can_be_changed() {
    let source = "local copy = table.clone(context.tools) copy[1] = 'x' return { list = copy }";
    let outcome = run(source, context()).expect("it runs");
    assert_eq!(outcome.value["list"], json!(["x", "write"]));
}

/// A history that counts how often it is looked at.
struct History(AtomicU32);

impl Object for History {
    fn field(&self, name: &str) -> Option<Field<'_>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        match name {
            "total" => Some(Field::Int(7)),
            "ratio" => Some(Field::Float(0.5)),
            "last" => Some(Field::Str("read")),
            "done" => Some(Field::Bool(true)),
            "error" => Some(Field::Null),
            "self" => Some(Field::Object(self)),
            _ => None,
        }
    }

    fn names(&self) -> Vec<String> {
        ["total", "ratio", "last", "done", "error"]
            .map(str::to_owned)
            .to_vec()
    }

    fn methods(&self) -> &[&'static str] {
        &["failures", "broken"]
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, String> {
        match name {
            "failures" => Ok(json!([arguments, 2])),
            _ => Err("the history is gone".into()),
        }
    }
}

fn with_history(source: &str) -> (Result<Value, String>, u32) {
    let history = Arc::new(History(AtomicU32::new(0)));
    let script = Script::compile(source, "test.lua").expect("it compiles");
    let outcome = Engine::new(1).run(&script, history.clone(), &generous());
    let value = outcome
        .map(|outcome| outcome.value)
        .map_err(|error| error.to_string());
    (value, history.0.load(Ordering::Relaxed))
}

#[test]
fn only_what_a_script_touches_is_asked_for() {
    assert_eq!(with_history("return true"), (Ok(json!(true)), 0));
    assert_eq!(
        with_history("return context.total > 3"),
        (Ok(json!(true)), 1)
    );
    let (value, _) = with_history(
        "return { context.self.last .. context.ratio .. tostring(context.done) .. tostring(context.error) }",
    );
    assert_eq!(value, Err("a script returns nil, a truth value, a table or a list, and not a list of something else than tables".into()));
}

#[test]
fn methods_can_be_called_with_dot_and_colon() {
    let source = "return { a = context.failures('x', 1), b = context.self:failures({ k = true }) }";
    let (value, _) = with_history(source);
    assert_eq!(
        value,
        Ok(json!({"a": [["x", 1], 2], "b": [[{"k": true}], 2]}))
    );
    let (value, _) = with_history("return context.broken()");
    assert_eq!(value, Err("line 1: the history is gone".into()));
}

#[test]
fn a_context_is_let_go_when_its_run_ends() {
    let engine = Engine::new(1);
    let keep =
        Script::compile("kept = context.turn; return { kept }", "test.lua").expect("it compiles");
    let context = Arc::new(context());
    engine
        .run(&keep, context.clone(), &generous())
        .expect("it runs");
    assert_eq!(Arc::strong_count(&context), 1);
}
