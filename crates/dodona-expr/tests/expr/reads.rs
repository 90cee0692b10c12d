//! What an expression can tell of itself without being evaluated.

use dodona_expr::{Expr, Schema};

fn schema() -> Schema {
    Schema::parse("n: int, user: { id: str, settings: dict }, count(name: str) -> int").unwrap()
}

#[test]
fn an_expression_tells_which_fields_and_functions_it_names() {
    let schema = schema();
    let source =
        "n > 3 and any(user.id == name for name in ['a', user.settings.x]) and count('b') < n";
    let expr = Expr::compile(source, &schema).unwrap();
    let mut fields: Vec<&str> = expr
        .fields()
        .filter_map(|slot| schema.slot_path(slot))
        .collect();
    fields.sort_unstable();
    fields.dedup();
    assert_eq!(fields, ["n", "user.id", "user.settings"]);
    let calls: Vec<&str> = expr
        .calls()
        .filter_map(|call| schema.function_path(call))
        .collect();
    assert_eq!(calls, ["count"]);
}

#[test]
fn what_can_never_hold_is_known() {
    let never = |source: &str| Expr::compile(source, &schema()).unwrap().never_holds();
    for source in [
        "False",
        "1 > 2",
        "False and n > 2",
        "n > 2 and 0",
        "False or n > 2 and ''",
    ] {
        assert!(never(source), "{source}");
    }
    for source in ["True", "n > 2", "n > 2 or False", "not False"] {
        assert!(!never(source), "{source}");
    }
}

#[test]
fn an_expression_tells_which_constant_keys_it_reads_of_a_dict() {
    let schema = schema();
    let source = "user.settings.a and user.settings['b'] > 1 or user.settings.get('c', 2) \
                  or 'd' in user.settings or user.settings[user.id] or user.settings.e.f";
    let expr = Expr::compile(source, &schema).unwrap();
    let keys: Vec<(String, bool, &str)> = expr
        .keys()
        .into_iter()
        .map(|read| {
            assert_eq!(schema.slot_path(read.slot), Some("user.settings"));
            let text = &source[read.span.start..read.span.end];
            (read.key, read.is_required, text)
        })
        .collect();
    let expected = [
        ("a", true, "user.settings.a"),
        ("b", true, "user.settings['b']"),
        ("c", false, "user.settings.get('c', 2)"),
        ("d", false, "'d' in user.settings"),
        ("e", true, "user.settings.e"),
    ];
    assert_eq!(
        keys,
        expected.map(|(key, required, text)| (key.to_owned(), required, text))
    );
}
