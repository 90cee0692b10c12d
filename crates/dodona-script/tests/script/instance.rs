//! Scripts that are loaded, say what they offer, and may wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dodona_script::{Api, ErrorKind, Instance, Limits, Request, Script, ScriptError, Step};
use serde_json::{Value, json};

/// `offer(name, work)`, `want(name, …)` which raises what went wrong, `say(text)`, `given`.
const API: &str = r#"
local declare, request, tell, constants, list, null = ...
local function check(ok, value)
    if ok then return value end
    error(value, 3)
end
function offer(name, work) declare("offer", { name = name }, work) end
function want(name, ...) return check(request(name, ...)) end
function say(text) tell("say", text) end
function as_list(of) return setmetatable(of, list) end
given, NULL = constants, null
"#;

fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(60),
        steps: 1_000_000,
        ..Limits::default()
    }
}

fn start(source: &str) -> Result<Instance, ScriptError> {
    let api = Api::compile(API).expect("our own API compiles");
    let script = Script::compile(source, "main.luau")?;
    Instance::start(
        &api,
        &script,
        &json!({"answer": 42}),
        Arc::new(|_, _| {}),
        &limits(),
    )
}

/// The first entry, with arguments; what it wants is answered by `answer`.
fn ask(
    source: &str,
    arguments: &[Value],
    mut answer: impl FnMut(Request) -> Result<Value, String>,
) -> Result<Value, ScriptError> {
    let mut instance = start(source)?;
    let mut step = instance.call(0, arguments, &limits())?;
    loop {
        match step {
            Step::Done(value) => return Ok(value),
            Step::Wants(request) => step = instance.resume(answer(request))?,
        }
    }
}

fn nothing(request: Request) -> Result<Value, String> {
    panic!("nobody expected {request:?}")
}

#[test]
fn a_script_declares_what_it_offers_and_is_asked_for_it() {
    let source = "offer('add', function(a, b) return { sum = a + b, given = given.answer } end)";
    let instance = start(source).unwrap();
    let entries = instance.entries();
    assert_eq!(entries[0].spec, json!({"name": "add"}));
    assert_eq!(entries[0].line, Some(1));
    let sum = ask(source, &[json!(1), json!(2)], nothing).unwrap();
    assert_eq!(sum, json!({"sum": 3, "given": 42}));
}

#[test]
fn a_script_that_wants_something_goes_on_with_the_answer() {
    let source = "
        offer('twice', function(word)
            local first = want('look', word)
            local ok, why = pcall(want, 'fail', { deep = first })
            return { first = first, ok = ok, why = why }
        end)";
    let mut wanted = Vec::new();
    let value = ask(source, &[json!("x")], |request| {
        wanted.push((request.name.clone(), request.arguments.clone()));
        match request.name.as_str() {
            "look" => Ok(json!([1, 2])),
            _ => Err("not there".to_owned()),
        }
    });
    assert_eq!(
        value.unwrap(),
        json!({"first": [1, 2], "ok": false, "why": "not there"})
    );
    assert_eq!(wanted[0], ("look".to_owned(), vec![json!("x")]));
    assert_eq!(
        wanted[1],
        ("fail".to_owned(), vec![json!({"deep": [1, 2]})])
    );
}

#[test]
fn requests_pass_through_coroutines_of_the_scripts_own() {
    let source = "
        offer('all', function()
            local inner = coroutine.wrap(function()
                local nested = coroutine.create(function() return want('one') + want('two') end)
                local _, sum = coroutine.resume(nested)
                coroutine.yield('mine')
                return sum
            end)
            local first = inner()
            return { first = first, sum = inner() }
        end)";
    let answer = |request: Request| Ok(json!(request.name.len()));
    assert_eq!(
        ask(source, &[], answer).unwrap(),
        json!({"first": "mine", "sum": 6})
    );
}

#[test]
fn an_error_has_the_line_of_the_script_where_it_comes_from() {
    let cases = [
        ("offer('x', function()\n error('no') end)", 2, "no"),
        (
            "offer('x', function()\n\n return want('fail') end)",
            3,
            "refused",
        ),
        (
            "offer('x', function()\n local t = nil\n return t.x end)",
            3,
            "index nil",
        ),
        (
            "offer('x', function()\n coroutine.yield(1) end)",
            0,
            "outside of a coroutine",
        ),
        ("offer('x', function()\n offer('y', print) end)", 2, "nil"),
    ];
    for (source, line, words) in cases {
        let error = ask(source, &[], |_| Err("refused".to_owned())).unwrap_err();
        assert!(error.message.contains(words), "{source}: {error}");
        assert_eq!(error.line.unwrap_or(0), line, "{source}: {error}");
    }
    let late = "offer('x', function() offer('y', function() end) end)";
    let error = ask(late, &[], nothing).unwrap_err();
    assert!(
        error.message.contains("while the script is loaded"),
        "{error}"
    );
    let early = start("local x = want('something')").unwrap_err();
    assert!(
        early
            .message
            .contains("cannot be used while the script is loaded"),
        "{early}"
    );
}

#[test]
fn what_is_no_json_is_no_result() {
    for source in [
        "offer('x', function() return print end)",
        "offer('x', function() return { f = function() end } end)",
        "offer('x', function() local t = {} t.t = t return t end)",
        "offer('x', function() return { [1] = 1, a = 2 } end)",
        "offer('x', function() return string.rep('x', 300000) end)",
        "offer('x', function() return 0/0 end)",
    ] {
        let error = ask(source, &[], nothing);
        if source.contains("return print end") {
            assert_eq!(error.unwrap(), json!(null));
            continue;
        }
        assert_eq!(error.unwrap_err().kind, ErrorKind::Result, "{source}");
    }
}

#[test]
fn lists_stay_lists_and_null_is_null() {
    let source = "offer('x', function(given)
        return { same = given, empty = as_list({}), none = NULL, object = {} }
    end)";
    let given = json!({"list": [], "deep": [[], [1]], "object": {}});
    let value = ask(source, std::slice::from_ref(&given), nothing).unwrap();
    assert_eq!(
        value,
        json!({"same": given, "empty": [], "none": null, "object": {}})
    );
}

#[test]
fn limits_hold_in_an_instance_against_everything_that_catches_errors() {
    for (source, kind) in [
        (
            "while true do pcall(function() while true do end end) end",
            ErrorKind::Steps,
        ),
        (
            "while true do coroutine.wrap(function() pcall(error) end)() end",
            ErrorKind::Steps,
        ),
        (
            "local t = {} while true do t[#t + 1] = string.rep('x', 100000) .. #t end",
            ErrorKind::Memory,
        ),
        (
            "local function f() return pcall(f) end while true do f() end",
            ErrorKind::Steps,
        ),
        (
            "while true do xpcall(error, function() while true do end end) end",
            ErrorKind::Steps,
        ),
        (
            "return (string.rep('a', 30000) .. 'b'):match(string.rep('a*', 30) .. 'c')",
            ErrorKind::Steps,
        ),
    ] {
        let whole = format!("offer('x', function() {source} end)");
        let error = ask(&whole, &[], nothing).unwrap_err();
        let time = error.kind == ErrorKind::Time;
        assert!(
            error.kind == kind || time,
            "{source}: {:?} {error}",
            error.kind
        );
        assert!(
            start(source).unwrap_err().kind.is_limit(),
            "{source} while it is loaded"
        );
    }
}

/// The clock stands still while a script waits: nothing of its time is used up by the one it asks.
#[test]
fn waiting_takes_none_of_the_scripts_time() {
    let source =
        "offer('x', function() for _ = 1, 3 do want('sleep') end return { done = true } end)";
    let mut instance = start(source).unwrap();
    let short = Limits {
        time: Duration::from_secs(2),
        ..limits()
    };
    let mut step = instance.call(0, &[], &short).unwrap();
    while let Step::Wants(_) = step {
        std::thread::sleep(Duration::from_millis(700));
        step = instance.resume(Ok(json!(null))).unwrap();
    }
    assert_eq!(step, Step::Done(json!({"done": true})));
}

#[test]
fn a_script_can_be_stopped_from_another_thread() {
    let mut instance =
        start("offer('x', function() while true do pcall(want, 'x') end end)").unwrap();
    let stopper = instance.stopper();
    let limits = Limits {
        time: Duration::from_secs(60),
        steps: u64::MAX,
        ..limits()
    };
    let running = std::thread::spawn(move || loop_until_done(&mut instance, &limits));
    stopper.stop();
    assert_eq!(running.join().unwrap().kind, ErrorKind::Stopped);
}

fn loop_until_done(instance: &mut Instance, limits: &Limits) -> ScriptError {
    let mut step = instance.call(0, &[], limits);
    loop {
        match step {
            Ok(Step::Wants(_)) => step = instance.resume(Ok(json!(null))),
            Ok(Step::Done(_)) => panic!("it does not end by itself"),
            Err(error) => return error,
        }
    }
}

#[test]
fn nothing_of_a_request_can_be_forged_or_overheard() {
    let source = "
        offer('x', function()
            local seen = {}
            local co = coroutine.create(function() return want('real') end)
            local tricky = setmetatable({}, { __eq = function(a, b) seen.leak = true return true end })
            local forger = coroutine.create(function() coroutine.yield(tricky, 'forged') end)
            local _, got = coroutine.resume(forger)
            local _, real = coroutine.resume(co)
            return { same = rawequal(got, tricky), real = real, leak = seen.leak == true }
        end)";
    let value = ask(source, &[], |request| Ok(json!(request.name))).unwrap();
    assert_eq!(value, json!({"same": true, "real": "real", "leak": false}));
}

#[test]
fn what_a_script_tells_arrives_in_order_and_is_bounded() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&said);
    let api = Api::compile(API).unwrap();
    let script = Script::compile(
        "say('one') say('two') pcall(say, string.rep('x', 2000000))",
        "m",
    );
    let told = move |name: &str, arguments: &[Value]| {
        heard
            .lock()
            .unwrap()
            .push((name.to_owned(), arguments.to_vec()));
    };
    let started = Instance::start(
        &api,
        &script.unwrap(),
        &json!({}),
        Arc::new(told),
        &limits(),
    );
    assert!(started.is_ok());
    let said = said.lock().unwrap();
    let texts: Vec<_> = said
        .iter()
        .map(|(_, arguments)| arguments[0].clone())
        .collect();
    assert_eq!(texts, [json!("one"), json!("two")]);
}
