//! Faults: kind, words, line.

use dodona_script::ErrorKind::{self, Runtime, Syntax};
use dodona_script::Script;
use serde_json::json;

use super::run;

/// Script, kind, line, and a part of the message.
const FAULTS: &[(&str, ErrorKind, Option<usize>, &str)] = &[
    ("return 1 +", Syntax, Some(1), "Expected"),
    ("local x = 1\nif x then\nreturn", Syntax, Some(3), "end"),
    ("goto done", Syntax, Some(1), ""),
    ("error('no')", Runtime, Some(1), "no"),
    ("\n\nerror('no')", Runtime, Some(3), "no"),
    ("error('no', 0)", Runtime, None, "no"),
    ("error({ code = 1 })", Runtime, None, "table"),
    ("error()", Runtime, None, "nil"),
    ("\nlocal x = nil\nreturn x.y", Runtime, Some(3), "index nil"),
    ("return 1 + {}", Runtime, Some(1), "arithmetic"),
    ("return missing()", Runtime, Some(1), "call a nil value"),
    ("\ncontext.x = 1", Runtime, Some(2), "context is read-only"),
    ("string.rep()", Runtime, Some(1), "missing argument"),
    (
        "local function f()\n  error('deep')\nend\n\nf()",
        Runtime,
        Some(2),
        "deep",
    ),
    (
        "\nstring.find('x', '[')",
        Runtime,
        Some(2),
        "malformed pattern",
    ),
    (
        "\nlocal s = string.rep('a', 1000000)\ns:find(s .. 'b', 1, true)",
        Runtime,
        Some(3),
        "too long",
    ),
    ("string.format = 1", Runtime, Some(1), "readonly"),
    ("coroutine.yield()", Runtime, None, "yield"),
    (
        "local function f() return f() + 1 end f()",
        Runtime,
        Some(1),
        "stack overflow",
    ),
];

#[test]
fn faults_have_kind_line_and_words() {
    let mut wrong = Vec::new();
    for (source, kind, line, words) in FAULTS {
        let error = run(source, json!({})).expect_err(source);
        if error.kind != *kind || error.line != *line || !error.message.contains(words) {
            wrong.push(format!(
                "{source}: {:?} {:?} {}",
                error.kind, error.line, error.message
            ));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn a_long_source_is_refused() {
    let source = "-".repeat(Script::SOURCE_BYTES + 1);
    let error = Script::compile(&source, "long.lua").expect_err("it is too long");
    assert_eq!(error.kind, Syntax);
}

#[test]
fn deep_sources_are_refused_and_not_followed() {
    let deep = |open: &str, close: &str, times: usize| {
        format!("return {}1{}", open.repeat(times), close.repeat(times))
    };
    let sources = [
        deep("(", ")", 30_000),
        deep("{", "}", 30_000),
        deep("-", "", 60_000),
        deep("not ", "", 15_000),
        deep("f(", ")", 20_000),
        deep("function() return ", " end", 2_500),
        format!("return 1{}", "+1".repeat(30_000)),
        format!("return ''{}", "..''".repeat(15_000)),
        format!("return a{}", ".a".repeat(30_000)),
        format!("return a{}", "()".repeat(30_000)),
        "if 1 then ".repeat(6_000),
        "do ".repeat(20_000),
        "while 1 do ".repeat(5_000),
        format!("if 1 then {} end", "elseif 1 then ".repeat(4_000)),
        "local a".to_owned() + &",a".repeat(30_000),
        "return '\\u{110000}'".to_owned(),
        "return [[".to_owned() + &"x".repeat(60_000),
    ];
    for source in sources {
        if let Ok(script) = Script::compile(&source, "deep.lua") {
            // Whether it may be that deep is Luau's affair; that nothing overflows is ours.
            let context = std::sync::Arc::new(json!({}));
            let _ = dodona_script::Engine::new(0).run(&script, context, &super::generous());
        }
    }
}
