//! What a script's value means.

use dodona_script::{ErrorKind, Outcome};
use serde_json::{Value, json};

use super::run;

fn outcome(source: &str) -> Outcome {
    run(source, json!({})).unwrap_or_else(|error| panic!("{source}: {error}"))
}

#[test]
fn nothing_and_false_do_not_match() {
    for source in [
        "",
        "return",
        "return nil",
        "return false",
        "return {}",
        "return nil, true",
    ] {
        let outcome = outcome(source);
        assert_eq!(
            (outcome.matched, outcome.actions),
            (false, vec![]),
            "{source}"
        );
    }
}

#[test]
fn true_matches_and_leaves_the_action_to_the_rule() {
    let outcome = outcome("return true");
    assert_eq!(
        (outcome.matched, outcome.actions, outcome.value),
        (true, vec![], json!(true))
    );
}

#[test]
fn a_table_is_an_action_and_a_list_are_several() {
    let one = outcome(
        "return { type = 'log', message = 'm', n = 1.5, list = { 1, 2 }, sub = { a = {} } }",
    );
    let action = json!({"type": "log", "message": "m", "n": 1.5, "list": [1, 2], "sub": {"a": {}}});
    assert_eq!((one.matched, one.actions), (true, vec![action]));
    let two = outcome("return { { type = 'log' }, { type = 'deny' } }");
    assert_eq!(
        two.actions,
        [json!({"type": "log"}), json!({"type": "deny"})]
    );
}

#[test]
fn names_are_in_order_whatever_the_table_does() {
    let outcome = outcome("return { z = 1, b = 2, a = 3, m = 4 }");
    assert_eq!(outcome.value.to_string(), r#"{"a":3,"b":2,"m":4,"z":1}"#);
}

#[test]
fn whole_numbers_are_whole() {
    let outcome = outcome("return { a = 2^53, b = -0.0, c = 1e300, d = 10 / 4 }");
    assert_eq!(
        outcome.value,
        json!({"a": 9_007_199_254_740_992_i64, "b": 0, "c": 1e300, "d": 2.5})
    );
}

/// Scripts whose value is no result, with a part of the message.
const NO_RESULTS: &[(&str, &str)] = &[
    ("return 1", "a number"),
    ("return 'x'", "a text"),
    ("return { 1 }", "something else than tables"),
    ("return { {}, 'x' }", "something else than tables"),
    ("return print", ""),
    ("return { f = function() end }", "function"),
    ("return { c = coroutine.create(function() end) }", "thread"),
    ("return { n = 0/0 }", "infinite or none"),
    ("return { n = math.huge }", "infinite or none"),
    ("return { s = '\\255' }", "UTF-8"),
    ("return { [1] = {}, a = 1 }", "either a list or has names"),
    ("return { [true] = 1 }", "neither"),
    ("return { [1.5] = 1 }", "neither"),
    ("return { b = buffer.create(4) }", "buffer"),
    ("local t = {} t.t = t return t", "in itself"),
    (
        "local t = {} for i = 1, 200 do t = { t } end return t",
        "nested too deeply",
    ),
    ("return { s = string.rep('x', 300000) }", "too large"),
    (
        "local t = {} for i = 1, 50000 do t[i] = {} end return t",
        "too large",
    ),
    (
        "local t = {} for i = 1, 60 do t = { a = t, b = t } end return t",
        "too large",
    ),
    (
        "local t = {} for i = 1, 50000 do t['k' .. i] = true end return { t }",
        "too large",
    ),
];

#[test]
fn what_is_no_result_is_said() {
    for (source, words) in NO_RESULTS {
        match run(source, json!({})) {
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Result, "{source}: {error}");
                assert!(error.message.contains(words), "{source}: {error}");
            }
            // `print` is not there, so it is nil.
            Ok(outcome) => assert_eq!((*source, outcome.value), ("return print", Value::Null)),
        }
    }
}

#[test]
fn metamethods_of_a_result_are_not_called() {
    let source = "
        local calls = 0
        local meta = { __index = function() error('called') end, __len = function() return 1e9 end,
            __iter = function() error('called') end, __tostring = function() error('called') end }
        return setmetatable({ a = 1 }, meta)";
    assert_eq!(outcome(source).value, json!({"a": 1}));
}
