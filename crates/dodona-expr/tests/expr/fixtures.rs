//! Every line of `fixtures/*.txt` is an expression; the snapshot has what became of it.
//!
//! A line that starts with `#` is a comment, one that starts with `@` sets the trigger for those
//! after it. `⏎` stands for a line break.

use std::fmt::Write as _;
use std::path::Path;

use dodona_expr::{Expr, JsonScope, Schema};
use serde_json::Value as Json;

use crate::support::{SCHEMA, document, functions};

/// What is shown of each expression.
#[derive(Clone, Copy)]
enum Show {
    Value,
    Terms,
}

fn transcript(text: &str, show: Show) -> String {
    let document = document();
    let mut schema: Schema = SCHEMA.clone();
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(trigger) = line.strip_prefix('@') {
            schema = SCHEMA.at(trigger);
            let _ = writeln!(out, "{line}");
        } else if line.starts_with('#') {
            let _ = writeln!(out, "\n{line}");
        } else {
            let source = line.replace('⏎', "\n");
            let _ = writeln!(out, "{line}");
            out.push_str(&outcome(&source, &schema, &document, show));
        }
    }
    out
}

fn outcome(source: &str, schema: &Schema, document: &Json, show: Show) -> String {
    let mut out = String::new();
    let expr = match Expr::compile(source, schema) {
        Ok(expr) => expr,
        Err(error) => return format!("  refused, {}: {error:#}\n", error.kind()),
    };
    for warning in expr.warnings() {
        let _ = writeln!(out, "  warning: {}", warning.message);
    }
    let scope = JsonScope::new(schema, document).with_functions(&functions);
    if let Show::Terms = show {
        let _ = write!(out, "{}", expr.explain(&scope).root);
        return out;
    }
    let _ = match expr.eval(&scope) {
        Ok(value) => writeln!(out, "  {}", value.short_repr()),
        Err(error) => writeln!(out, "  failed, {}: {error:#}", error.kind()),
    };
    // Asking for the truth alone takes another way to the same answer.
    let truth = expr.eval(&scope).map(|value| value.is_truthy());
    assert_eq!(expr.test(&scope).ok(), truth.ok(), "{source}");
    out
}

fn check(name: &str, show: Show) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expr/fixtures");
    let text = std::fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap();
    insta::assert_snapshot!(name, transcript(&text, show));
}

macro_rules! fixtures {
    ($($name:ident $show:ident,)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), Show::$show);
        })*

        const NAMES: &[&str] = &[$(stringify!($name),)*];
    };
}

fixtures! {
    operators Value,
    comparisons Value,
    texts Value,
    collections Value,
    functions_of_the_language Value,
    functions_of_the_host Value,
    f_strings Value,
    percent Value,
    comprehensions Value,
    context Value,
    none Value,
    refused_syntax Value,
    refused_names Value,
    refused_types Value,
    run_time_errors Value,
    limits Value,
    explained Terms,
}

#[test]
fn no_fixture_is_forgotten() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expr/fixtures");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut expected: Vec<&str> = NAMES.to_vec();
    found.sort();
    expected.sort_unstable();
    assert_eq!(found, expected);
}
