//! What is not there, and what does not leak from one run to the next.

use std::sync::Arc;

use dodona_script::{Engine, ErrorKind, Field, Limits, Object, Script};
use serde_json::{Value, json};

use super::{generous, run, value};

#[test]
fn nothing_leads_out_of_the_sandbox() {
    let missing = [
        "os",
        "io",
        "debug",
        "package",
        "require",
        "load",
        "loadstring",
        "loadfile",
        "dofile",
        "print",
        "getfenv",
        "setfenv",
        "collectgarbage",
        "gcinfo",
        "newproxy",
        "_G",
        "math.random",
        "math.randomseed",
        "string.dump",
        "jit",
        "ffi",
        "vector",
    ];
    for name in missing {
        assert_eq!(value(&format!("{name} == nil"), json!({})), true, "{name}");
    }
}

#[test]
fn what_is_there_works() {
    let cases = [
        ("string.upper('a') .. ('b'):rep(2)", json!("Abb")),
        ("string.find('hello', 'l', 1, true)", json!(3)),
        ("select(2, ('hello world'):find('(w%w+)'))", json!(11)),
        ("table.concat(('a,b'):split(','), '-')", json!("a-b")),
        ("math.floor(3.7) + math.max(1, 2)", json!(5)),
        ("utf8.len('äö')", json!(2)),
        ("bit32.band(6, 3)", json!(2)),
        ("tonumber('0x10')", json!(16)),
        ("select('#', 1, 2)", json!(2)),
        (
            "coroutine.wrap(function() coroutine.yield(7) end)()",
            json!(7),
        ),
        (
            "(function() local n = 0 for _ in pairs({ a = 1, b = 2 }) do n += 1 end return n end)()",
            json!(2),
        ),
        ("next({ a = 1 })", json!("a")),
        ("#buffer.tostring(buffer.create(3))", json!(3)),
        ("`{1 + 1} is two`", json!("2 is two")),
        ("typeof(1)", json!("number")),
    ];
    for (expression, expected) in cases {
        assert_eq!(value(expression, json!({})), expected, "{expression}");
    }
}

#[test]
fn libraries_cannot_be_changed() {
    let writes = [
        "string.upper = nil",
        "math.pi = 3",
        "table.evil = 1",
        "rawset(string, 'x', 1)",
        "getmetatable('').__index = {}",
        "getmetatable('').x = 1",
        "setmetatable(string, {})",
        "setmetatable('', {})",
    ];
    for write in writes {
        let error = run(write, json!({})).expect_err(write);
        assert_eq!(error.kind, ErrorKind::Runtime, "{write}: {error}");
    }
}

#[test]
fn every_run_has_an_environment_of_its_own() {
    let engine = Engine::new(1);
    let count = Script::compile(
        "counter = (counter or 0) + 1 return { n = counter }",
        "a.lua",
    );
    let count = count.expect("it compiles");
    let spy = Script::compile("return { n = counter, f = helper }", "b.lua").expect("it compiles");
    let define = Script::compile(
        "function helper() return 1 end string = nil return { n = helper() }",
        "c.lua",
    );
    let define = define.expect("it compiles");
    let run = |script: &Script| {
        let outcome = engine.run(script, Arc::new(json!({})), &generous());
        outcome.expect("it runs").value
    };
    for _ in 0..3 {
        assert_eq!(run(&count), json!({"n": 1}));
        assert_eq!(run(&define), json!({"n": 1}));
        assert_eq!(run(&spy), json!({}));
    }
}

#[test]
fn a_machine_that_reached_a_limit_is_not_used_again() {
    let engine = Engine::new(1);
    let context: Arc<Value> = Arc::new(json!({}));
    let limits = Limits {
        steps: 100_000,
        ..generous()
    };
    let fine = Script::compile(
        "local t = {} for i = 1, 1000 do t[i] = { i } end return true",
        "fine.lua",
    );
    let fine = fine.expect("it compiles");
    let bad = [
        "while true do end",
        "local t = {} while true do t[#t + 1] = string.rep('x', 100000) .. #t end",
        "while true do pcall(function() while true do end end) end",
    ];
    for source in bad {
        let bad = Script::compile(source, "bad.lua").expect("it compiles");
        let error = engine
            .run(&bad, context.clone(), &limits)
            .expect_err(source);
        assert!(error.kind.is_limit(), "{source}: {error}");
        assert_eq!(
            engine
                .run(&fine, context.clone(), &limits)
                .map(|o| o.matched),
            Ok(true)
        );
    }
}

#[test]
fn garbage_of_earlier_runs_does_not_count() {
    let engine = Engine::new(1);
    let source = "local s = '' for i = 1, 40 do s = string.rep('x', 100000) .. i end return true";
    let script = Script::compile(source, "garbage.lua").expect("it compiles");
    for _ in 0..50 {
        let outcome = engine.run(&script, Arc::new(json!({})), &generous());
        assert_eq!(outcome.map(|outcome| outcome.matched), Ok(true));
    }
}

#[test]
fn many_threads_share_an_engine() {
    let engine = Arc::new(Engine::new(2));
    let script = Script::compile(
        "local n = 0 for i = 1, context.n do n += i end return { n = n }",
        "sum.lua",
    );
    let script = Arc::new(script.expect("it compiles"));
    let threads: Vec<_> = (1..=8_u64)
        .map(|n| {
            let (engine, script) = (engine.clone(), script.clone());
            std::thread::spawn(move || {
                for _ in 0..50 {
                    let outcome = engine.run(&script, Arc::new(json!({"n": n})), &generous());
                    let expected = json!({"n": n * (n + 1) / 2});
                    assert_eq!(outcome.map(|outcome| outcome.value), Ok(expected));
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
}

#[test]
fn the_same_script_gives_the_same_result() {
    let source = "local t = {} for i = 1, 50 do t['k' .. i] = i end
        local keys = {} for k in pairs(t) do table.insert(keys, k) end
        return { keys = table.concat(keys, ' ') }";
    let first = run(source, json!({})).expect("it runs");
    for _ in 0..5 {
        assert_eq!(run(source, json!({})), Ok(first.clone()));
    }
}

#[test]
fn scripts_of_a_session_see_the_same_context_and_nothing_of_each_other() {
    let engine = Engine::new(1);
    let context = Arc::new(json!({ "n": 3, "inner": { "list": [1, 2] } }));
    let mut session = engine.session(context, Arc::default());
    let compile = |source: &str| Script::compile(source, "a").unwrap();
    let writes = compile(
        "local before = count; count = (count or 0) + context.n; function helper() return 1 end; return { before = before, count = count }",
    );
    let looks = compile("return { count == nil and helper == nil, #context.inner.list == 2 }");
    let endless = compile("leak = 1; while true do end");
    let fails = compile("leak = 2; error('no')");
    let limits = Limits {
        steps: 10_000,
        ..generous()
    };
    for _ in 0..3 {
        let wrote = session.evaluate(&writes, &limits).unwrap();
        assert_eq!(wrote, json!({ "count": 3 }));
        let looked = session.evaluate(&looks, &limits).unwrap();
        assert_eq!(looked, json!([true, true]));
        let stopped = session.evaluate(&endless, &limits).unwrap_err();
        assert_eq!(stopped.kind, ErrorKind::Steps);
        session.evaluate(&fails, &limits).unwrap_err();
        let clean = compile("return leak == nil");
        assert_eq!(session.evaluate(&clean, &limits).unwrap(), json!(true));
    }
}

#[test]
fn an_object_of_the_context_is_the_one_of_this_run() {
    let engine = Engine::new(1);
    let script = Script::compile("return context.state.n", "a").unwrap();
    for n in [1, 2, 3] {
        let context = Arc::new(Wrapped(json!({ "n": n })));
        let seen = engine.evaluate(&script, context, Arc::default(), &generous());
        assert_eq!(seen.unwrap(), json!(n));
    }
    let none = Script::compile("return context.state == nil", "a").unwrap();
    let gone = engine.evaluate(&none, Arc::new(json!({})), Arc::default(), &generous());
    assert_eq!(gone.unwrap(), json!(true));
}

#[test]
fn more_scripts_than_a_machine_keeps_loaded_all_run() {
    let engine = Engine::new(1);
    let mut session = engine.session(Arc::new(json!({})), Arc::default());
    let compile = |n: i32| Script::compile(&format!("return {n}"), "a").unwrap();
    let scripts: Vec<Script> = (0..2_100).map(compile).collect();
    for (script, n) in scripts.iter().zip(0..).chain([(&scripts[0], 0)]) {
        let told = session.evaluate(script, &generous());
        assert_eq!(told.unwrap(), json!(n));
    }
}

/// A context with an object of the program around in it.
struct Wrapped(Value);

impl Object for Wrapped {
    fn field(&self, name: &str) -> Option<Field<'_>> {
        (name == "state").then_some(Field::Object(&self.0))
    }

    fn names(&self) -> Vec<String> {
        vec!["state".to_owned()]
    }
}
