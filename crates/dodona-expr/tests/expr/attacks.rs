//! Sources and contexts that were made to hurt: each ends quickly with a value or an error, on a
//! small stack too.

use dodona_expr::{Empty, ErrorKind, Expr, ExprSet, JsonScope, Schema};
use serde_json::{Value as Json, json};

use crate::support::{SCHEMA, document, functions};

/// Everything that can be done with a source, on the stack of an ordinary thread.
fn everything(source: String) -> Option<ErrorKind> {
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let run = move || {
        let expr = match Expr::compile(&source, &SCHEMA) {
            Ok(expr) => expr,
            Err(error) => {
                let _ = format!("{error:#}");
                return Some(error.kind());
            }
        };
        let document = document();
        let scope = JsonScope::new(&SCHEMA, &document).with_functions(&functions);
        let _ = expr.test(&scope);
        let _ = expr.explain(&scope).root.to_json();
        let _ = expr.explain(&scope).root.to_string();
        let set = ExprSet::new(vec![expr.clone(), expr.clone()]);
        let _ = set.run(&scope).eval(1);
        match expr.eval(&scope) {
            Ok(value) => {
                let _ = (value.to_json(), value.short_repr());
                None
            }
            Err(error) => Some(error.kind()),
        }
    };
    thread.spawn(run).unwrap().join().unwrap()
}

fn is_limited(source: String) {
    let shown: String = source.chars().take(60).collect();
    assert_eq!(everything(source), Some(ErrorKind::Limit), "{shown}");
}

#[test]
fn sources_that_are_too_long_are_refused() {
    is_limited("-".repeat(100_000));
    is_limited("(".repeat(50_000));
    is_limited("(".repeat(50_000) + "1" + &")".repeat(50_000));
    is_limited(" ".repeat(8_193));
}

#[test]
fn sources_that_nest_too_deep_are_refused() {
    for (open, inside, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{1: ", "1", "}"),
        ("-", "1", ""),
        ("not ", "1", ""),
        ("~", "1", ""),
        ("len(", "''", ")"),
        ("[x for x in ", "[]", "]"),
        ("1 if 1 else ", "1", ""),
        ("2 ** ", "1", ""),
        ("1 + ", "1", ""),
        ("1 < (", "1", ")"),
        ("lambda: ", "1", ""),
        ("''.join(", "''", ")"),
    ] {
        let times = 8_000 / (open.len() + close.len());
        let times = times.min(2_000);
        is_limited(format!(
            "{}{inside}{}",
            open.repeat(times),
            close.repeat(times)
        ));
    }
    is_limited("x".to_owned() + &".x".repeat(3_000));
    is_limited("[]".to_owned() + &"[0]".repeat(2_000));
    is_limited("f'{".repeat(1_000) + "1" + &"}'".repeat(1_000));
    is_limited("f'{1:{".repeat(500) + "1" + &"}}'".repeat(500));
}

/// As deep as is allowed, everything works: on the stack of an ordinary thread, without
/// optimisation.
#[test]
fn the_deepest_sources_work() {
    for (open, inside, close) in [
        ("(", "1", ")"),
        ("[", "1", "]"),
        ("{1: ", "1", "}"),
        ("-", "1", ""),
        ("not ", "1", ""),
        ("1 if 1 else ", "1", ""),
        ("[x for x in ", "[]", "]"),
        ("[", "[1 for x in 'a']", " for y in 'a']"),
        ("1 - ", "1", ""),
        ("str(", "1", ")"),
        ("max(1, ", "1", ")"),
        ("any(1 for y in [", "1", "])"),
        ("f'{", "1", "}'"),
        ("1 and (2 or ", "1", ")"),
    ] {
        let mut deepest = 0;
        for times in 1..=128 {
            let source = format!("{}{inside}{}", open.repeat(times), close.repeat(times));
            if everything(source).is_none() {
                deepest = times;
            }
        }
        assert!(deepest >= 40, "{open}…{close} works {deepest} deep");
    }
}

#[test]
fn slices_with_extreme_bounds_end() {
    let bounds = [
        "",
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "3",
    ];
    for value in [
        "'häuser'",
        "[1, 2, 3]",
        "(1, 2)",
        "''",
        "context.history.tools",
    ] {
        for lower in bounds {
            for upper in bounds {
                for step in ["", "1", "-1", "9223372036854775807", "-9223372036854775808"] {
                    let source = format!("{value}[{lower}:{upper}:{step}]");
                    assert_eq!(everything(source.clone()), None, "{source}");
                }
            }
        }
    }
}

#[test]
fn arithmetic_at_the_ends_overflows_and_does_not_panic() {
    let ends = [
        "-9223372036854775808",
        "9223372036854775807",
        "-1",
        "0",
        "1",
        "1e308",
        "-1e308",
        "5e-324",
        "float('nan')",
        "float('inf')",
        "-0.0",
    ];
    for op in [
        "+", "-", "*", "/", "//", "%", "**", "<<", ">>", "&", "|", "^", "<", "==",
    ] {
        for left in ends {
            for right in ends {
                everything(format!("({left}) {op} ({right})"));
            }
        }
    }
    for function in ["abs", "round", "int", "float", "str", "bool", "-", "~"] {
        for end in ends {
            everything(format!("{function}({end})"));
        }
    }
    for digits in ends {
        everything(format!("round(1.5, {digits})"));
        everything(format!("round(-9223372036854775808, {digits})"));
    }
}

#[test]
fn nothing_can_be_changed() {
    let before = document();
    for source in [
        "context.history.tools.append(1)",
        "context.history.tools.sort()",
        "context.history.failures.clear()",
        "context.state.update({'a': 1})",
        "context.state.setdefault('a', [])",
        "context.state.pop('seen')",
        "context.state.popitem()",
        "context.state.seen.extend(['c'])",
        "context.state.seen.insert(0, 'c')",
        "context.state.seen.remove('a')",
        "context.state.seen.reverse()",
        "set(context.state.seen).add('c')",
        "set(context.state.seen).discard('a')",
        "context.state.__setitem__('a', 1)",
        "[x.append(1) for x in [context.state.seen]]",
        "dict.fromkeys(['a'])",
        "context.turn.number.__class__.__bases__[0].__subclasses__()",
        "(1).__class__",
        "''.format_map(context)",
        "'{0.__class__}'.format(1)",
        "str.mro()",
        "[c for c in ().__class__.__base__.__subclasses__()]",
    ] {
        let kind = everything(source.to_owned());
        let refused = matches!(kind, Some(ErrorKind::Unsupported | ErrorKind::Unknown));
        assert!(refused, "{source}: {kind:?}");
    }
    assert_eq!(document(), before);
}

#[test]
fn growth_is_bounded() {
    for source in [
        "'a' * 99999999999",
        "[0] * 99999999999",
        "('a' * 100000) * 100000",
        "[[0] * 100000 for x in 'a' * 10000]",
        "['a' * 100000 for x in 'a' * 10000]",
        "{x: 'a' * 100000 + str(x) for x in [y for y in 'a' * 5000]} and ['b' * 90000 + x for x in 'a' * 5000]",
        "sum([[0] * 10000 for x in 'a' * 1000], [])",
        "''.join(['a' * 100000 for x in 'a' * 1000])",
        "str([['a' * 1000] * 1000] * 1000)",
        "f'{str([0] * 30000)}{str([0] * 30000)}'",
        "('a' * 99999).replace('a', 'aaaaaaaaaa')",
        "('a,' * 49999).split(',') * 3",
        "[list('a' * 10000) for x in 'a' * 10000]",
        "f'{1:{\"9\" * 30}}'",
        "'%*.*f' % (99999999, 99999999, 1.0)",
        "'%999999999s' % 1",
        "[x for x in 'a' * 101 for y in 'a' * 101]",
        "[[x for x in 'a' * 101] for y in 'a' * 101]",
        "all(x in 'b' * 100000 + 'a' for x in 'a' * 10000)",
        "[x for x in [0] * 9999 if x not in [1] * 100000]",
        "[sorted([1] * 100000) for x in 'a' * 100]",
        "[('a' * 50000).find('b') for x in 'a' * 9999]",
        "[('a' * 50000).strip('a' * 1000) for x in 'a' * 9999]",
        "[[1] * 50000 == [1] * 50000 for x in 'a' * 9999]",
        "[set('abc') | set('def') for x in [0] * 20000]",
    ] {
        let kind = everything(source.to_owned());
        assert_eq!(kind, Some(ErrorKind::Limit), "{source}");
    }
}

/// A small value whose parts are shared may be endless when it is written out.
#[test]
fn values_that_share_their_parts_are_written_within_bounds() {
    let kind = everything("[[0] * 100000] * 100000".to_owned());
    assert_eq!(kind, None);
    let kind = everything("{x: ['a' * 50000] * 50000 for x in 'abc'}".to_owned());
    assert_eq!(kind, None);
}

#[test]
fn names_in_any_script_are_names() {
    assert_eq!(everything("größe".to_owned()), Some(ErrorKind::Unknown));
    assert_eq!(everything("[größe for größe in 'äö']".to_owned()), None);
    // Python normalises names, and so does our parser.
    assert_eq!(everything("ｃontext.turn".to_owned()), None);
    assert_eq!(
        everything("context.turn.nümber".to_owned()),
        Some(ErrorKind::Unknown)
    );
    assert_eq!(everything("'😀' in '😀😀'".to_owned()), None);
}

/// A document may nest deeper than an expression; reading it must not.
#[test]
fn deep_documents_are_refused_where_they_are_walked() {
    let schema = Schema::parse("x: any\ny: any").unwrap();
    let deep = |inner: i64| {
        // The macro would copy what is inside, one call deeper for each level.
        (0..2_000).fold(Json::from(inner), |json, _| Json::Array(vec![json]))
    };
    let names = [("x".to_owned(), deep(1)), ("y".to_owned(), deep(2))];
    let document = Json::Object(names.into_iter().collect());
    let scope = JsonScope::new(&schema, &document);
    for source in ["x == y", "str(x)", "x < y", "f'{x!r}'", "'%s' % (x,)"] {
        let expr = Expr::compile(source, &schema).unwrap();
        assert_eq!(
            expr.eval(&scope).unwrap_err().kind(),
            ErrorKind::Limit,
            "{source}"
        );
    }
    for source in ["x", "[x, x]", "x in [y]", "{'a': x}"] {
        let expr = Expr::compile(source, &schema).unwrap();
        let explained = expr.explain(&scope);
        let _ = (explained.root.to_json(), explained.root.to_string());
    }
    unnest(document);
}

/// The standard way to drop JSON would go as deep as the document.
fn unnest(json: Json) {
    let mut left = vec![json];
    while let Some(json) = left.pop() {
        match json {
            Json::Array(items) => left.extend(items),
            Json::Object(map) => left.extend(map.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
}

/// A host that breaks its word is told so; nothing panics.
#[test]
fn a_document_of_the_wrong_types_is_an_error_where_it_matters() {
    let document = SCHEMA.fill(&json!({"context": {"turn": "three", "history": {"tools": 5}}}));
    let scope = JsonScope::new(&SCHEMA, &document);
    for source in [
        "context.turn.number > 2",
        "context.turn.token_usage * 2",
        "any(t.success for t in context.history.tools)",
        "context.history.tools[0].name",
    ] {
        let expr = Expr::compile(source, &SCHEMA).unwrap();
        assert!(expr.eval(&scope).is_err(), "{source}");
        assert!(expr.test(&scope).is_err(), "{source}");
    }
    let expr = Expr::compile("context.turn.number > 2", &SCHEMA).unwrap();
    assert!(expr.test(&Empty).is_err());
}
