//! Many expressions together.

use std::sync::atomic::{AtomicUsize, Ordering};

use dodona_expr::{CallError, Expr, ExprSet, FunctionId, Schema, Scope, Slot, Value};

/// Counts how often it is asked.
#[derive(Default)]
struct Counting {
    fields: AtomicUsize,
    calls: AtomicUsize,
}

impl Scope for Counting {
    fn field(&self, slot: Slot) -> Option<Value<'_>> {
        self.fields.fetch_add(1, Ordering::Relaxed);
        Some(match slot.index() {
            0 => Value::Int(5),
            1 => Value::str("text"),
            _ => Value::None,
        })
    }

    fn call<'a>(&'a self, _: FunctionId, _: &[Value<'a>]) -> Result<Value<'a>, CallError> {
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(Value::Int(i64::try_from(before).unwrap()))
    }
}

fn schema() -> Schema {
    Schema::parse("n: int\ns: str\nnone: any\nslow() -> int").unwrap()
}

fn set(sources: &[&str]) -> ExprSet {
    let schema = schema();
    let exprs = sources
        .iter()
        .map(|source| Expr::compile(source, &schema).unwrap());
    ExprSet::new(exprs.collect())
}

#[test]
fn what_expressions_have_in_common_is_evaluated_once() {
    let set = set(&[
        "slow() == 0 and n > 3",
        "slow() == 0 and n > 4",
        "slow() == 0",
    ]);
    let scope = Counting::default();
    let mut run = set.run(&scope);
    for index in 0..set.len() {
        assert!(run.test(index).unwrap());
    }
    assert_eq!(scope.calls.load(Ordering::Relaxed), 1);
    assert!(set.shared_terms() >= 1);
}

#[test]
fn conditions_that_ask_first_for_what_is_not_so_are_not_looked_at() {
    let set = set(&[
        "n > 3",
        "n > 7 and slow() == 0",
        "n >= 5 and s == 'text'",
        "n < 5",
        "n <= 5 and n > 4",
        "s == 'other' and slow() == 0",
        "s == 'text'",
        "slow() == 0",
        "n > 7 or s == 'text'",
    ]);
    let scope = Counting::default();
    let run = set.run(&scope);
    let mut open = Vec::new();
    run.open(|index| open.push(index));
    open.sort_unstable();
    // 3 is told of too: whether `<` or `<=` was asked, the condition itself says.
    assert_eq!(open, [0, 2, 3, 4, 6, 7, 8]);
    assert_eq!(
        scope.fields.load(Ordering::Relaxed),
        2,
        "a look at each field"
    );
    assert_eq!(scope.calls.load(Ordering::Relaxed), 0);
}

#[test]
fn each_run_evaluates_anew() {
    let set = set(&["slow()", "slow()"]);
    let scope = Counting::default();
    assert_eq!(set.run(&scope).eval(0).unwrap().as_int(), Some(0));
    assert_eq!(set.run(&scope).eval(1).unwrap().as_int(), Some(1));
}

#[test]
fn terms_with_variables_are_not_shared_between_rounds() {
    let set = set(&[
        "[x + 1 for x in [1, 2]]",
        "[x + 1 for x in [10, 20]]",
        "[[y + x + 1 for y in [x]] for x in [1, 2]]",
    ]);
    let scope = Counting::default();
    let mut run = set.run(&scope);
    let shown = |value: Value<'_>| value.to_string();
    assert_eq!(shown(run.eval(0).unwrap()), "[2, 3]");
    assert_eq!(shown(run.eval(1).unwrap()), "[11, 21]");
    assert_eq!(shown(run.eval(2).unwrap()), "[[3], [5]]");
}

#[test]
fn an_error_has_its_place_in_its_own_expression() {
    let set = set(&["n / 0 > 1", "True and   n / 0 > 1"]);
    let scope = Counting::default();
    let mut run = set.run(&scope);
    assert_eq!(run.test(0).unwrap_err().span().start, 0);
    assert_eq!(run.test(1).unwrap_err().span().start, 11);
}

#[test]
fn one_expression_that_fails_leaves_the_others_alone() {
    let set = set(&["none.x", "n == 5"]);
    let scope = Counting::default();
    let mut run = set.run(&scope);
    assert!(run.test(0).is_err());
    assert!(run.test(1).unwrap());
}

#[test]
fn cheap_terms_come_first_where_nobody_can_tell() {
    let schema = schema();
    let scope = Counting::default();
    // The long comparison cannot fail, so the short one may decide before it.
    let expr = Expr::compile("(n > 1 and n > 2 and s == 'text') and n < 0", &schema).unwrap();
    assert!(!expr.test(&scope).unwrap());
    assert_eq!(scope.fields.load(Ordering::Relaxed), 1);
    // A call may fail, and what stands before it must have been asked before.
    let scope = Counting::default();
    let expr = Expr::compile("slow() < 0 and n < 0", &schema).unwrap();
    assert!(!expr.test(&scope).unwrap());
    assert_eq!(scope.fields.load(Ordering::Relaxed), 0);
}

#[test]
fn expressions_go_from_thread_to_thread() {
    fn check<T: Send + Sync>() {}
    check::<Expr>();
    check::<ExprSet>();
    check::<Value<'static>>();
}
