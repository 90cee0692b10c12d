//! For every source and every document: no panic, an end, and the same answer in every way.

use dodona_expr::{Error, Expr, ExprSet, JsonScope, Limits, Schema};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::generate::Generator;
use crate::simpleeval;
use crate::support::{SCHEMA, document, functions};

/// Pieces of which sources are made that come close to being expressions.
const PIECES: &[&str] = &[
    "context",
    ".turn",
    ".number",
    ".history.tools",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    ":",
    ",",
    " ",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "<<",
    ">>",
    "&",
    "|",
    "^",
    "~",
    "<",
    ">",
    "==",
    "!=",
    " in ",
    " not ",
    " is ",
    " and ",
    " or ",
    " if ",
    " else ",
    " for x in ",
    "x",
    "1",
    "0",
    "2.5",
    "9223372036854775807",
    "'a'",
    "\"",
    "'",
    "f'{",
    "}'",
    "!r",
    ":>5",
    "len(",
    "sorted(",
    "any(",
    "str(",
    "int(",
    ".split(",
    ".get(",
    ".join(",
    "None",
    "True",
    "lambda ",
    "=",
    ";",
    "\n",
    "\\",
    "#",
    "é",
    "😀",
    "\u{0}",
    "_",
    "...",
    "@",
    "`",
    "$",
    "1e999",
    "0x",
    "''",
    "[]",
    "{}",
    "()",
    "**{",
    "*[",
];

fn source() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        prop::collection::vec(prop::sample::select(PIECES), 0..40)
            .prop_map(|pieces| pieces.concat()),
        any::<u64>().prop_map(|seed| Generator::new(seed).expression()),
        // An expression with a hole in it.
        (
            any::<u64>(),
            any::<prop::sample::Index>(),
            prop::sample::select(PIECES)
        )
            .prop_map(|(seed, at, piece)| {
                let mut text = Generator::new(seed).expression();
                let at = at.index(text.len() + 1);
                if text.is_char_boundary(at) {
                    text.insert_str(at, piece);
                }
                text
            }),
    ]
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".{0,8}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
            prop::collection::vec(("[a-c]", inner), 0..4)
                .prop_map(|entries| Json::Object(entries.into_iter().collect())),
        ]
    })
}

fn shown<T: std::fmt::Debug>(answer: Result<T, Error>) -> String {
    match answer {
        Ok(value) => format!("{value:?}"),
        Err(error) => format!("{} at {:?}: {error}", error.kind(), error.span()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn no_source_panics(source in source()) {
        let document = document();
        let scope = JsonScope::new(&SCHEMA, &document).with_functions(&functions);
        match Expr::compile(&source, &SCHEMA) {
            Ok(expr) => {
                let _ = expr.eval(&scope);
            }
            Err(error) => {
                prop_assert!(!error.message().is_empty());
                let _ = format!("{error:#}");
            }
        }
    }

    /// Alone, explained, for its truth only, or twice in a set: one answer.
    #[test]
    fn every_way_gives_the_same_answer(seed in any::<u64>(), other in any::<u64>()) {
        let schema = Schema::parse(simpleeval::NAMES).unwrap();
        let document = simpleeval::names();
        let scope = JsonScope::new(&schema, &document);
        let exprs: Vec<Expr> = [seed, other, seed]
            .into_iter()
            .filter_map(|seed| Expr::compile(&Generator::new(seed).expression(), &schema).ok())
            .collect();
        let set = ExprSet::new(exprs.clone());
        let mut run = set.run(&scope);
        for (index, expr) in exprs.iter().enumerate() {
            let alone = shown(expr.eval(&scope));
            prop_assert_eq!(&shown(run.eval(index)), &alone, "{}", expr.source());
            prop_assert_eq!(&shown(expr.explain(&scope).result), &alone, "{}", expr.source());
            let truth = shown(expr.eval(&scope).map(|value| value.is_truthy()));
            prop_assert_eq!(&shown(expr.test(&scope)), &truth, "{}", expr.source());
            prop_assert_eq!(&shown(run.test(index)), &truth, "{}", expr.source());
        }
    }

    /// What a set says cannot hold does not, whatever the fields are; and it does not fail either.
    #[test]
    fn what_is_not_open_does_not_hold(n in any_json(), s in any_json(), numbers in prop::collection::vec(-3..4_i64, 4), seed in any::<u64>()) {
        let schema = Schema::parse("n: any\ns: any\nd: any").unwrap();
        let [a, b, c, d] = [0, 1, 2, 3].map(|at| numbers[at]);
        let sources = [
            format!("n > {a}"), format!("n >= {b}.5 and s == 'x'"), format!("n < {c}"),
            format!("n <= {d} and n > {a}"), "s == 'a'".to_owned(), "s == '' and n > 0".to_owned(),
            format!("s > 'm' or n == {b}"), format!("n > {} and d.x > 1", i64::MAX),
            format!("{a} < n < {b}"), "not n".to_owned(),
        ];
        let exprs: Vec<Expr> = sources.iter().filter_map(|source| Expr::compile(source, &schema).ok()).collect();
        prop_assert_eq!(exprs.len(), sources.len());
        let numbers = json!([0.5, -2, 3.0, i64::MAX, 1, "a", "x", ""]);
        let number = &numbers[seed as usize % 8];
        for document in [json!({"n": n, "s": s, "d": null}), json!({"n": number, "s": number, "d": {"x": n}})] {
            let scope = JsonScope::new(&schema, &document);
            let set = ExprSet::new(exprs.clone());
            let run = set.run(&scope);
            let mut open = vec![0; exprs.len()];
            run.open(|index| open[index] += 1);
            for (expr, told) in exprs.iter().zip(open) {
                prop_assert!(told <= 1, "{}", expr.source());
                if told == 0 {
                    prop_assert_eq!(expr.test(&scope), Ok(false), "{} {}", expr.source(), document);
                }
            }
        }
    }

    #[test]
    fn no_document_panics(seed in any::<u64>(), x in any_json(), y in any_json()) {
        // The names of the generator, with anything behind them.
        let schema = Schema::parse(simpleeval::NAMES).unwrap();
        let document = json!({"n": x, "f": y, "s": x, "xs": y, "ws": x, "d": y, "nothing": x});
        let scope = JsonScope::new(&schema, &document);
        if let Ok(expr) = Expr::compile(&Generator::new(seed).expression(), &schema) {
            let _ = expr.eval(&scope);
            let _ = expr.explain(&scope).root.to_json();
        }
    }

    /// Constants are folded under limits of their own, which are below these.
    #[test]
    fn small_limits_hold(seed in any::<u64>(), steps in 0..500_u64, elements in 257..400_usize) {
        let schema = Schema::parse(simpleeval::NAMES).unwrap();
        let document = simpleeval::names();
        let scope = JsonScope::new(&schema, &document);
        let limits = Limits { steps, elements, iterations: 3, memory: 1 << 14 };
        let source = format!("(str({}) + '.') * 90", Generator::new(seed).expression());
        if let Ok(expr) = Expr::compile(&source, &schema) {
            let expr = expr.with_limits(limits);
            let _ = expr.test(&scope);
            if let Ok(value) = expr.eval(&scope) {
                let length = value.as_str().map_or(0, |text| text.chars().count());
                prop_assert!(length <= elements, "{} characters from {}", length, expr.source());
            }
        }
    }

    #[test]
    fn no_schema_panics(text in "[a-z:{}\\[\\]()?@,=>. #\n-]{0,60}") {
        let _ = Schema::parse(&text);
    }
}
