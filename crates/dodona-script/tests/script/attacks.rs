//! Scripts that try to hang, to flood or to abort.
//!
//! The limits are those of a rule. Whatever a script does, its thread has to come back; a script that
//! did not would be found by the clock in [`finishes`], which is far beyond every limit.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use dodona_script::{Engine, ErrorKind, Limits, Outcome, Script, ScriptError};
use proptest::prelude::*;
use serde_json::json;

/// What has to become of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// A limit stops it.
    Limited,
    /// It fails, at a limit or by itself.
    Fails,
    /// It ends, one way or another.
    Ends,
}

use End::{Ends, Fails, Limited};

const ATTACKS: &[(End, &str)] = &[
    // Endless loops.
    (Limited, "while true do end"),
    (Limited, "repeat until false"),
    (Limited, "for i = 1, math.huge do end"),
    (Limited, "for i = 1, 1e15 do end"),
    (Limited, "for i = 1, 0, -1e-300 do end"),
    (Limited, "local i = 0 while i < 1 do i = i * 1 end"),
    (Fails, "local function f() return f() end f()"),
    (
        Ends,
        "local f f = function() f() while true do end end pcall(f)",
    ),
    (
        Limited,
        "local t = setmetatable({}, { __iter = function() return function() return 1 end end }) for _ in t do end",
    ),
    (Limited, "for _ in function() return 1 end do end"),
    (Limited, "local a = 1 while a ~= 0 do a = -a end"),
    (Limited, "while true do local x = { 1, 2, 3 } end"),
    (Limited, "while true do local f = function() end end"),
    (Limited, "while true do local s = 'a' .. tostring({}) end"),
    // Catching what stops them.
    (
        Limited,
        "while true do pcall(function() while true do end end) end",
    ),
    (
        Limited,
        "pcall(function() while true do end end) return true",
    ),
    (
        Limited,
        "xpcall(function() while true do end end, function() while true do end end) return true",
    ),
    (
        Limited,
        "while true do xpcall(error, function() while true do end end) end",
    ),
    (
        Limited,
        "local function f() pcall(f) pcall(f) pcall(f) end f()",
    ),
    (
        Limited,
        "local function f() xpcall(f, f) xpcall(f, f) end f()",
    ),
    (
        Limited,
        "local function f() while true do pcall(f) end end f()",
    ),
    (Limited, "while true do pcall(error) end"),
    (Limited, "while true do pcall(string.rep, 'x', 1e9) end"),
    (
        Limited,
        "local ok repeat ok = pcall(function() repeat until false end) until not ok while true do end",
    ),
    (
        Limited,
        "local function g() error(setmetatable({}, { __tostring = function() while true do end end })) end while true do pcall(g) end",
    ),
    (
        Limited,
        "local function deep(n) if n > 0 then pcall(deep, n - 1) end while true do end end deep(100)",
    ),
    (
        Limited,
        "error(setmetatable({}, { __tostring = function() while true do end end })) ",
    ),
    // Coroutines.
    (
        Limited,
        "coroutine.wrap(function() while true do end end)()",
    ),
    (
        Limited,
        "local co = coroutine.create(function() while true do end end) while true do coroutine.resume(co) end",
    ),
    (
        Limited,
        "local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end",
    ),
    (
        Limited,
        "while true do coroutine.wrap(function() pcall(function() while true do end end) end)() end",
    ),
    (
        Limited,
        "while true do coroutine.create(function() end) end",
    ),
    (
        Fails,
        "local function f() return coroutine.wrap(f)() end f()",
    ),
    (
        Fails,
        "local function f() coroutine.resume(coroutine.create(f)) return f() end f()",
    ),
    (
        Limited,
        "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
    ),
    (
        Limited,
        "local t = {} while true do local co = coroutine.create(function() local a = table.create(100, 1) coroutine.yield(a) end) coroutine.resume(co) t[#t + 1] = co end",
    ),
    (Fails, "coroutine.yield()"),
    (Fails, "coroutine.wrap(function() error('x') end)()"),
    (
        Limited,
        "local co co = coroutine.create(function() while true do coroutine.resume(co) end end) coroutine.resume(co) while true do end",
    ),
    (
        Ends,
        "local co = coroutine.create(function() coroutine.yield() end) coroutine.resume(co) coroutine.close(co) return true",
    ),
    (
        Limited,
        "coroutine.close(coroutine.create(function() end)) while true do coroutine.isyieldable() end",
    ),
    // Metatables.
    (
        Fails,
        "local t = {} t.__index = t setmetatable(t, t) return t.x.y",
    ),
    (
        Fails,
        "local a, b = {}, {} setmetatable(a, { __index = b }) setmetatable(b, { __index = a }) return a.x + 1",
    ),
    (
        Fails,
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(s, k) return s[k] end return t.x",
    ),
    (
        Limited,
        "local t = setmetatable({}, { __index = function(s, k) return 1 end }) local i = 0 while t[i] do i += 1 end",
    ),
    (
        Fails,
        "local t = {} setmetatable(t, { __newindex = t }) t.x = 1",
    ),
    (
        Fails,
        "local t t = setmetatable({}, { __newindex = function(s, k, v) s[k] = v end }) t.x = 1",
    ),
    (
        Fails,
        "local t = setmetatable({}, { __add = function(a, b) return a + b end }) return t + t",
    ),
    (
        Fails,
        "local m = {} m.__eq = function(a, b) return a == b end return setmetatable({}, m) == setmetatable({}, m)",
    ),
    (
        Fails,
        "local m = {} m.__lt = function(a, b) return a < b end return setmetatable({}, m) < setmetatable({}, m)",
    ),
    (
        Fails,
        "local t = setmetatable({}, { __concat = function(a, b) return a .. b end }) return t .. t",
    ),
    (
        Fails,
        "local t = setmetatable({}, { __len = function(s) return #s end }) return #t",
    ),
    (
        Fails,
        "local t = setmetatable({}, { __call = function(s) return s() end }) return t() + 1",
    ),
    (
        Fails,
        "local t = setmetatable({}, { __tostring = function(s) return tostring(s) end }) return tostring(t)",
    ),
    (
        Limited,
        "return tostring(setmetatable({}, { __tostring = function() while true do end end }))",
    ),
    (
        Limited,
        "local t = setmetatable({}, { __index = function() while true do end end }) return pcall(function() return t.x end)",
    ),
    (
        Limited,
        "local n = 0 while true do setmetatable({}, { __gc = function() n += 1 end, __mode = 'k' }) end",
    ),
    (
        Limited,
        "local t = setmetatable({}, { __mode = 'kv' }) while true do t[{}] = {} end",
    ),
    (Fails, "setmetatable(context, { __index = error })"),
    (
        Fails,
        "local t = setmetatable({}, { __metatable = false }) setmetatable(t, nil)",
    ),
    (
        Fails,
        "local t = {} for i = 1, 100000 do t = setmetatable({}, { __index = t }) end return t.x + 1",
    ),
    // Patterns and searches.
    (
        Fails,
        "return string.find(string.rep('a', 10000), string.rep('a?', 10000) .. string.rep('a', 10000) .. 'b')",
    ),
    (
        Limited,
        "return string.find(string.rep('a', 50), string.rep('a?', 25) .. string.rep('a', 51))",
    ),
    (
        Limited,
        "return string.match(string.rep('a', 30000), '.-.-.-.-b')",
    ),
    (
        Limited,
        "return string.match(string.rep('a', 30000), '.*.*.*.*b')",
    ),
    (
        Limited,
        "return string.gsub(string.rep('a', 100000), '.-b', 'x')",
    ),
    (
        Limited,
        "for w in string.gmatch(string.rep('a', 100000), '(.-)(.-)(.-)b') do end",
    ),
    (
        Limited,
        "return pcall(string.find, string.rep('x', 30000), '.-.-.-y')",
    ),
    (Fails, "return string.find('a', string.rep('(', 1000))"),
    (Ends, "return string.find('a', string.rep('%b', 1000))"),
    (
        Fails,
        "return string.rep('(a)', 1000):gsub(string.rep('(.)', 100), '')",
    ),
    (
        Fails,
        "return string.find(string.rep('a', 4000000), string.rep('a', 2000000) .. 'b', 1, true) + 1",
    ),
    (
        Fails,
        "return string.find(string.rep('a', 4000000), string.rep('a', 2000000) .. 'b') + 1",
    ),
    (
        Fails,
        "return (string.rep('a', 4000000)):split(string.rep('a', 2000000) .. 'b')",
    ),
    (
        Limited,
        "while true do string.find(string.rep('a', 10000), string.rep('a', 5000) .. 'b', 1, true) end",
    ),
    (Limited, "return string.rep('(', 200000):gsub('%b()', '')"),
    (
        Limited,
        "return string.gsub(string.rep('a', 1000), 'a', function() while true do end end)",
    ),
    (
        Fails,
        "local function f() return (string.gsub('a', 'a', f)) end f()",
    ),
    (
        Limited,
        "return string.gsub(string.rep('a', 10000), '', string.rep('x', 10000))",
    ),
    (
        Limited,
        "return string.gsub(string.rep('a', 10000), 'a', setmetatable({}, { __index = function() return string.rep('x', 10000) end }))",
    ),
    (
        Ends,
        "return string.match(string.rep('a', 200000), '^(a*)a*a*$') ~= nil",
    ),
    // Strings that grow.
    (Limited, "return string.rep('x', 1e9)"),
    (Fails, "return string.rep('x', 1e300)"),
    (Fails, "return string.rep('x', 2^31)"),
    (Limited, "return ('x'):rep(1e8):rep(1e8)"),
    (Limited, "local s = 'x' while true do s = s .. s end"),
    (Limited, "local s = 'x' for i = 1, 100 do s = s:rep(10) end"),
    (Limited, "local s = 'x' while true do s = `{s}{s}` end"),
    (
        Limited,
        "local t = {} while true do t[#t + 1] = string.rep('x', 100000) .. #t end",
    ),
    (Fails, "return string.format('%1000d', 1)"),
    (Fails, "return string.format('%.1000f', 1)"),
    (Fails, "return string.format(string.rep('%s', 10000))"),
    (
        Ends,
        "return string.format(string.rep('%99.99f', 7000), unpack(table.create(7000, 1)))",
    ),
    (Limited, "while true do string.format('%99.99f', 1e300) end"),
    (
        Limited,
        "return table.concat(table.create(1000000, string.rep('x', 1000)))",
    ),
    (
        Limited,
        "return table.concat(table.create(1000, 'a'), string.rep('x', 1000000))",
    ),
    (Fails, "return table.concat({}, '', 1, 1e9)"),
    (
        Limited,
        "local s = string.rep('x', 8000000) return s:upper() .. s:lower() .. s:reverse()",
    ),
    (
        Limited,
        "local s = string.rep('x', 5000000) while true do local t = s:upper() end",
    ),
    (
        Fails,
        "return string.char(unpack(table.create(100000, 65)))",
    ),
    (Fails, "return string.byte(string.rep('x', 1000000), 1, -1)"),
    (Fails, "return utf8.char(1e10)"),
    (Fails, "return string.pack('i17', 1)"),
    (Limited, "return string.pack('c1000000000', 'x')"),
    (
        Ends,
        "return string.unpack(string.rep('i16', 1000), string.rep('x', 100)) ~= nil",
    ),
    // Tables that grow.
    (Limited, "local t = {} while true do t[#t + 1] = 1 end"),
    (Limited, "local t = {} while true do t = { t } end"),
    (
        Limited,
        "local t = {} local i = 0 while true do i += 1 t[i * 1000003] = i end",
    ),
    (
        Limited,
        "local t = {} local i = 0 while true do i += 1 t['k' .. i] = i end",
    ),
    (Fails, "return table.create(100000000, 1)"),
    (Fails, "return table.create(1e18, 1)"),
    (Fails, "return table.create(-1)"),
    (
        Fails,
        "local t = {} t[1] = 1 return table.move(t, 1, 1e9, 2)",
    ),
    (Ends, "return #table.move({}, 1, 1e9, 1) == 0"),
    (Fails, "return table.move({ 1 }, 1, 2^53, 5)"),
    (
        Ends,
        "local t = table.create(100000, 1) for i = 1, 20 do table.move(t, 1, #t, 2) end return true",
    ),
    (
        Limited,
        "local t = table.create(500000, 1) while true do table.move(t, 1, #t, 2) end",
    ),
    (Fails, "return table.unpack({}, 1, 1e8)"),
    (Fails, "return table.unpack({}, -1e9, 1e9)"),
    (
        Fails,
        "return select('#', table.unpack(table.create(9000000, 1)))",
    ),
    (
        Limited,
        "local t = table.create(100000, 1) while true do table.insert(t, 1, 2) table.remove(t, 1) end",
    ),
    (
        Limited,
        "local t = table.create(500000, 1) while true do table.clone(t) end",
    ),
    (
        Limited,
        "local t = table.create(500000, 1) while true do table.find(t, 2) end",
    ),
    (
        Limited,
        "while true do table.pack(table.unpack(table.create(5000, 1))) end",
    ),
    (
        Limited,
        "local b = {} while true do b[#b + 1] = buffer.create(1000000) end",
    ),
    (Limited, "return buffer.create(1000000000)"),
    (Fails, "return buffer.create(-1)"),
    (
        Fails,
        "local b = buffer.create(8) buffer.writei32(b, 1e9, 1)",
    ),
    (
        Limited,
        "local b = buffer.create(8000000) while true do buffer.fill(b, 0, 1) end",
    ),
    (
        Limited,
        "local b = buffer.create(8000000) while true do buffer.tostring(b) end",
    ),
    // Sorting.
    (
        Ends,
        "local t = {} for i = 1, 1000 do t[i] = i end table.sort(t, function() return true end) return true",
    ),
    (
        Ends,
        "local t = {} for i = 1, 1000 do t[i] = i % 7 end table.sort(t, function(a, b) return a <= b end) return true",
    ),
    (
        Ends,
        "local n = 0 local t = table.create(1000, 0) table.sort(t, function() n += 1 return n % 3 == 0 end) return true",
    ),
    (
        Limited,
        "local t = table.create(1000, 0) table.sort(t, function() while true do end end)",
    ),
    (
        Limited,
        "local t = {} for i = 1, 100000 do t[i] = (i * 7919) % 100003 end while true do table.sort(t, function(a, b) return a > b end) end",
    ),
    (
        Limited,
        "local t = {} for i = 1, 300000 do t[i] = (i * 7919) % 100003 end while true do table.sort(t) end",
    ),
    (Fails, "table.sort({ 3, 'x', {} })"),
    (
        Ends,
        "local t = {} for i = 1, 100 do t[i] = i end pcall(table.sort, t, function() table.clear(t) return true end) return true",
    ),
    (
        Ends,
        "local t = {} for i = 1, 100 do t[i] = 0/0 end table.sort(t) return true",
    ),
    (
        Fails,
        "local t = { 3, 2, 1 } local function f() table.sort(t, f) end f()",
    ),
    // Recursion.
    (Fails, "local function f() return 1 + f() end f()"),
    (
        Limited,
        "local function f(n) if n == 0 then return 0 end return f(n - 1) + f(n - 1) end f(60)",
    ),
    (Fails, "local function f(...) return f(1, ...) end f()"),
    (Fails, "local function f() local t = {} t[1] = f() end f()"),
    (
        Limited,
        "local function f() pcall(f) while true do end end f()",
    ),
    (
        Fails,
        "local t = {} for i = 1, 20000 do t = { t } end return t",
    ),
    (
        Fails,
        "local function f(s) return (s:gsub('.', f)) end f('x')",
    ),
    // Flooding the program around.
    (Fails, "return table.create(100000, { type = 'log' })"),
    (
        Fails,
        "local a = { type = 'log', message = string.rep('x', 1000000) } return { a, a, a }",
    ),
    (Fails, "error(string.rep('x', 1000000))"),
    (Limited, "while true do local x = context.a.b.c end"),
    (
        Limited,
        "local t = {} while true do t[#t + 1] = context.a end",
    ),
    (Limited, "while true do for k, v in context.a do end end"),
    (
        Limited,
        "while true do for k, v in pairs(context.a) do end end",
    ),
    (
        Limited,
        "local t = {} while true do t[#t + 1] = context.list end",
    ),
];

const LIMITS: Limits = Limits {
    steps: 2_000_000,
    time: Duration::from_millis(300),
    memory_bytes: 16 * 1024 * 1024,
    result_bytes: 64 * 1024,
};

fn context() -> serde_json::Value {
    json!({"a": {"b": {"c": 1}}, "list": vec![1; 100]})
}

/// Runs it on a thread of its own, and fails if that does not come back.
fn finishes(source: &str, limits: Limits) -> Result<Outcome, ScriptError> {
    let script = Script::compile(source, "attack.lua")?;
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let outcome = Engine::new(0).run(&script, Arc::new(context()), &limits);
        let _ = send.send(outcome);
    });
    match receive.recv_timeout(Duration::from_secs(120)) {
        Ok(outcome) => outcome,
        Err(_) => panic!("the thread does not come back: {source}"),
    }
}

#[test]
fn attacks_end_as_they_have_to() {
    let mut wrong = Vec::new();
    for (end, source) in ATTACKS {
        let result = finishes(source, LIMITS);
        let as_expected = match (end, &result) {
            (Limited, Err(error)) => error.kind.is_limit(),
            (Fails, Err(error)) => error.kind != ErrorKind::Syntax,
            (Limited | Fails, Ok(_)) => false,
            (Ends, Err(error)) => error.kind != ErrorKind::Syntax,
            (Ends, Ok(_)) => true,
        };
        if !as_expected {
            wrong.push(format!("{end:?}: {source}: {result:?}"));
        }
        if let Err(error) = result {
            assert!(
                error.message.len() < 10_000,
                "{source}: a message of {}",
                error.message.len()
            );
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn time_alone_stops_a_script_that_may_do_any_number_of_steps() {
    let limits = Limits {
        steps: u64::MAX,
        time: Duration::from_millis(50),
        ..LIMITS
    };
    for source in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "return string.match(string.rep('a', 30000), '.-.-.-.-b')",
        "coroutine.wrap(function() while true do end end)()",
    ] {
        let error = finishes(source, limits).expect_err(source);
        assert_eq!(error.kind, ErrorKind::Time, "{source}: {error}");
    }
}

#[test]
fn steps_alone_stop_a_script_that_has_all_the_time() {
    let limits = Limits {
        steps: 1_000,
        time: Duration::from_secs(3600),
        ..LIMITS
    };
    for source in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "return string.match(string.rep('a', 30000), '.-.-.-.-b')",
        "coroutine.wrap(function() while true do end end)()",
    ] {
        let error = finishes(source, limits).expect_err(source);
        assert_eq!(
            (error.kind, error.line),
            (ErrorKind::Steps, Some(1)),
            "{source}: {error}"
        );
    }
}

/// Statements and expressions from a small grammar.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("-1".to_owned()),
        Just("1e9".to_owned()),
        Just("nil".to_owned()),
        Just("true".to_owned()),
        Just("'a'".to_owned()),
        Just("x".to_owned()),
        Just("t".to_owned()),
        Just("f".to_owned()),
        Just("context".to_owned()),
        Just("context.a".to_owned()),
        Just("context.list".to_owned()),
        Just("math.huge".to_owned()),
        Just("{}".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (
                two.clone(),
                prop::sample::select(
                    &[
                        "+", "-", "*", "/", "//", "%", "^", "..", "==", "<", "and", "or"
                    ][..]
                )
            )
                .prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            (inner.clone(), prop::sample::select(&["#", "-", "not "][..]))
                .prop_map(|(a, op)| format!("{op}({a})")),
            (two.clone(), prop::sample::select(CALLS))
                .prop_map(|((a, b), call)| format!("{call}({a}, {b})")),
            two.clone().prop_map(|(a, b)| format!("({a})[{b}]")),
            two.prop_map(|(a, b)| format!("{{ {a}, k = {b} }}")),
            inner
                .clone()
                .prop_map(|a| format!("(function() return {a} end)()")),
            inner.prop_map(|a| format!(
                "setmetatable({{}}, {{ __index = {a}, __call = {a}, __add = {a} }})"
            )),
        ]
    })
}

const CALLS: &[&str] = &[
    "f",
    "pcall",
    "xpcall",
    "select",
    "rawget",
    "rawequal",
    "tostring",
    "tonumber",
    "type",
    "next",
    "pairs",
    "ipairs",
    "setmetatable",
    "string.rep",
    "string.find",
    "string.match",
    "string.gsub",
    "string.format",
    "string.split",
    "table.concat",
    "table.insert",
    "table.create",
    "table.move",
    "table.sort",
    "table.unpack",
    "table.clone",
    "coroutine.wrap",
    "coroutine.resume",
    "math.max",
    "bit32.lshift",
    "buffer.create",
    "utf8.char",
];

fn statement() -> impl Strategy<Value = String> {
    let simple = prop_oneof![
        expression().prop_map(|e| format!("x = {e}")),
        expression().prop_map(|e| format!("local y = {e}")),
        (expression(), expression()).prop_map(|(k, v)| format!("t[{k}] = {v}")),
        expression()
            .prop_map(|e| format!("return {e}"))
            .prop_map(|s| format!("do {s} end")),
    ];
    simple.prop_recursive(3, 16, 3, |inner| {
        let block = prop::collection::vec(inner, 1..3).prop_map(|all| all.join("\n"));
        prop_oneof![
            (expression(), block.clone()).prop_map(|(e, b)| format!("while {e} do {b} end")),
            (expression(), block.clone()).prop_map(|(e, b)| format!("for i = 1, {e} do {b} end")),
            (expression(), block.clone()).prop_map(|(e, b)| format!("for k, v in {e} do {b} end")),
            (expression(), block.clone()).prop_map(|(e, b)| format!("if {e} then {b} end")),
            block
                .clone()
                .prop_map(|b| format!("pcall(function() {b} end)")),
            block
                .clone()
                .prop_map(|b| format!("coroutine.wrap(function() {b} end)()")),
            block.prop_map(|b| format!("f = function(...) {b} end")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn any_program_ends(statements in prop::collection::vec(statement(), 1..6)) {
        let source = format!("local x, t, f = 1, {{}}, nil\n{}", statements.join("\n"));
        let limits = Limits {
            steps: 50_000,
            time: Duration::from_millis(100),
            ..LIMITS
        };
        let _ = finishes(&source, limits);
    }
}
