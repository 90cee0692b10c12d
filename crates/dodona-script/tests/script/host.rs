//! Functions of the program around.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dodona_script::{Engine, ErrorKind, Host, Limits, Script, ScriptError};
use serde_json::{Value, json};

use super::generous;

fn run(source: &str, host: Host) -> Result<Value, ScriptError> {
    let script = Script::compile(source, "test.lua")?;
    let context = Arc::new(json!({}));
    Engine::new(1).evaluate(&script, context, Arc::new(host), &generous())
}

#[test]
fn a_function_takes_and_returns_json() {
    let host = Host::new().function("call", |call| Ok(json!({"got": call.arguments})));
    let value = run("return call('vault.read', { path = 'a.md' }, nil, 2)", host);
    assert_eq!(
        value,
        Ok(json!({"got": ["vault.read", {"path": "a.md"}, null, 2]}))
    );
}

#[test]
fn a_name_with_a_dot_is_a_function_in_a_table() {
    let kept = Arc::new(Mutex::new(json!({})));
    let (writer, reader) = (kept.clone(), kept);
    let host = Host::new()
        .function("state.set", move |call| {
            let key = call.arguments[0].as_str().ok_or("a key is a text")?;
            writer.lock().expect("nobody panics")[key] = call.arguments[1].clone();
            Ok(Value::Null)
        })
        .function("state.get", move |call| {
            let key = call.arguments[0].as_str().ok_or("a key is a text")?;
            Ok(reader.lock().expect("nobody panics")[key].clone())
        });
    let source = "state.set('n', 4) state.set('n', state.get('n') + 1) return state.get('n')";
    assert_eq!(run(source, host), Ok(json!(5)));
}

#[test]
fn what_it_returns_belongs_to_the_script() {
    let host = Host::new().function("list", |_| Ok(json!([1, {"a": 1}])));
    let value = run("local l = list() l[1] = 7 l[2].b = 2 return l", host);
    assert_eq!(value, Ok(json!([7, {"a": 1, "b": 2}])));
}

#[test]
fn an_error_can_be_caught_and_has_a_line_if_it_is_not() {
    let host = || Host::new().function("fail", |_| Err("not today".into()));
    let error = run("local x = 1\nfail()", host()).expect_err("it fails");
    assert_eq!((error.line, &*error.message), (Some(2), "not today"));
    let value = run(
        "local ok, why = pcall(fail) return { ok = ok, why = tostring(why) }",
        host(),
    );
    let value = value.expect("it was caught");
    assert_eq!(value["ok"], false);
    assert!(
        value["why"]
            .as_str()
            .is_some_and(|why| why.contains("not today")),
        "{value}"
    );
}

#[test]
fn a_panic_fails_the_run_and_no_other() {
    let engine = Engine::new(1);
    let script = Script::compile("return boom()", "test.lua").expect("it compiles");
    let context: Arc<Value> = Arc::new(json!({}));
    let boom = Arc::new(Host::new().function("boom", |_| panic!("boom")));
    let error = engine.evaluate(&script, context.clone(), boom, &generous());
    assert_eq!(error.expect_err("it panics").kind, ErrorKind::Runtime);
    let fine = Arc::new(Host::new().function("boom", |_| Ok(json!(1))));
    assert_eq!(
        engine.evaluate(&script, context, fine, &generous()),
        Ok(json!(1))
    );
}

#[test]
fn a_function_of_an_earlier_run_is_gone() {
    let engine = Engine::new(1);
    let script = Script::compile(
        "return { has = call ~= nil, got = call and call() }",
        "test.lua",
    );
    let script = script.expect("it compiles");
    let context: Arc<Value> = Arc::new(json!({}));
    for name in ["one", "two"] {
        let host = Arc::new(Host::new().function("call", move |_| Ok(json!(name))));
        let value = engine.evaluate(&script, context.clone(), host, &generous());
        assert_eq!(value, Ok(json!({"has": true, "got": name})));
    }
    let none = engine.evaluate(&script, context, Arc::new(Host::new()), &generous());
    // The script keeps the function that it was loaded with, which no longer leads anywhere.
    match none {
        Ok(value) => assert_eq!(value, json!({"has": false})),
        Err(error) => assert!(error.message.contains("no function `call` here"), "{error}"),
    }
}

#[test]
fn a_function_knows_how_long_it_may_wait() {
    let saw = Arc::new(AtomicBool::new(false));
    let flag = saw.clone();
    let host = Host::new().function("wait", move |call| {
        flag.store(
            call.time_left() <= Duration::from_millis(50),
            Ordering::Relaxed,
        );
        std::thread::sleep(call.time_left() + Duration::from_millis(1));
        Ok(Value::Null)
    });
    let limits = Limits {
        time: Duration::from_millis(50),
        ..Limits::default()
    };
    let script = Script::compile(
        "pcall(wait) local x = 0 for i = 1, 10 do x += i end return true",
        "test.lua",
    );
    let script = script.expect("it compiles");
    let result = Engine::new(1).evaluate(&script, Arc::new(json!({})), Arc::new(host), &limits);
    assert_eq!(result.expect_err("its time is over").kind, ErrorKind::Time);
    assert!(saw.load(Ordering::Relaxed));
}

#[test]
fn large_arguments_are_refused() {
    let host = Host::new().function("call", |_| Ok(Value::Null));
    let error = run("call(string.rep('x', 2000000))", host).expect_err("too large");
    assert!(error.message.contains("too large"), "{error}");
}
