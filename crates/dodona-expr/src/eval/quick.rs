//! The short way for conditions that only compare fields with constants: no machine, no meter, no
//! error. Whatever is not as plain as that answers nothing, and goes the long way.

use std::cmp::Ordering;

use crate::ir::{CompareOp, Id, Op, Program};
use crate::schema::Slot;
use crate::scope::Scope;
use crate::value::Value;
use crate::value::number::compare_int_float;

/// Whether a node is true, if that can be told at once. It costs no more than the source is long.
#[inline]
pub(crate) fn truth(program: &Program, scope: &dyn Scope, id: Id) -> Option<bool> {
    match program.op(id) {
        Op::Compare(op, left, right) => compare(program, scope, *op, *left, *right),
        other => composed(program, scope, other),
    }
}

/// Apart from the above, which is then short enough to be put where it is called.
fn composed(program: &Program, scope: &dyn Scope, op: &Op) -> Option<bool> {
    match op {
        Op::And(terms) => decide(program, scope, terms.in_order(), false),
        Op::Or(terms) => decide(program, scope, terms.in_order(), true),
        Op::Not(inner) => truth(program, scope, *inner).map(|truth| !truth),
        Op::Field(slot) => scope.field(*slot).as_ref().map(Value::is_truthy),
        _ => None,
    }
}

fn decide(program: &Program, scope: &dyn Scope, terms: &[Id], decisive: bool) -> Option<bool> {
    for &term in terms {
        if truth(program, scope, term)? == decisive {
            return Some(decisive);
        }
    }
    Some(!decisive)
}

/// A field against a constant.
#[inline]
fn compare(
    program: &Program,
    scope: &dyn Scope,
    op: CompareOp,
    left: Id,
    right: Id,
) -> Option<bool> {
    match (program.op(left), program.op(right)) {
        (Op::Field(slot), Op::Constant(at)) => {
            field_with(scope, *slot, op, &program.constants[*at as usize])
        }
        _ => None,
    }
}

/// A field against a constant, for numbers, texts and `None`; nothing for the rest.
#[inline]
pub(super) fn field_with(
    scope: &dyn Scope,
    slot: Slot,
    op: CompareOp,
    constant: &Value<'_>,
) -> Option<bool> {
    // Looked at where the host has put it: moving a value that was just written costs more than
    // everything else here.
    let field = scope.field(slot);
    compare_with(field.as_ref()?, op, constant)
}

/// A value against a constant, for numbers, texts and `None`; nothing for the rest.
#[inline]
pub(crate) fn compare_with(field: &Value<'_>, op: CompareOp, constant: &Value<'_>) -> Option<bool> {
    if let CompareOp::Order(asked) = op {
        match (field, constant) {
            (Value::Float(one), Value::Float(two)) => return Some(asked.of(one, two)),
            (Value::Int(one), Value::Int(two)) => return Some(asked.of(one, two)),
            _ => {}
        }
    }
    let order = match (field, constant) {
        (Value::Float(one), Value::Float(two)) => one.partial_cmp(two),
        (Value::Int(one), Value::Int(two)) => Some(one.cmp(two)),
        (Value::Int(one), Value::Float(two)) => compare_int_float(*one, *two),
        (Value::Float(one), Value::Int(two)) => {
            compare_int_float(*two, *one).map(Ordering::reverse)
        }
        (field, constant) => return other_with(field, op, constant),
    };
    match op {
        CompareOp::Order(asked) => Some(order.is_some_and(|order| asked.holds(order))),
        CompareOp::Equal => Some(order == Some(Ordering::Equal)),
        CompareOp::NotEqual => Some(order != Some(Ordering::Equal)),
        _ => None,
    }
}

fn other_with(field: &Value<'_>, op: CompareOp, constant: &Value<'_>) -> Option<bool> {
    match (field, constant) {
        (Value::Str(one), Value::Str(two)) => texts(op, one, two),
        (field, Value::None) => none(op, field),
        _ => None,
    }
}

fn texts(op: CompareOp, one: &str, two: &str) -> Option<bool> {
    match op {
        CompareOp::Equal => Some(one == two),
        CompareOp::NotEqual => Some(one != two),
        CompareOp::Order(asked) => Some(asked.holds(one.cmp(two))),
        _ => None,
    }
}

fn none(op: CompareOp, field: &Value<'_>) -> Option<bool> {
    let is_none = matches!(field, Value::None);
    match op {
        CompareOp::Is | CompareOp::Equal => Some(is_none),
        CompareOp::IsNot | CompareOp::NotEqual => Some(!is_none),
        _ => None,
    }
}
