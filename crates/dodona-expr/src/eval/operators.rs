//! Unary and binary operators on values.

use std::sync::Arc;

use crate::builtins::Method;
use crate::builtins::methods::combine;
use crate::builtins::percent::percent;
use crate::error::Fault;
use crate::ir::{BinaryOp, UnaryOp};
use crate::limits::Meter;
use crate::value::number::{self, Power};
use crate::value::{Dict, List, Map, Value};

pub(crate) fn unary<'a>(op: UnaryOp, value: &Value<'a>) -> Result<Value<'a>, Fault> {
    match (op, value) {
        (UnaryOp::Minus, Value::Float(value)) => Ok(Value::Float(-value)),
        (UnaryOp::Plus, Value::Float(value)) => Ok(Value::Float(*value)),
        (op, value) => {
            let Some(int) = value.as_int() else {
                return Err(Fault::type_error(format!(
                    "`{}` does not apply to {}",
                    op.symbol(),
                    value.a_type()
                )));
            };
            match op {
                UnaryOp::Minus => int
                    .checked_neg()
                    .map(Value::Int)
                    .ok_or_else(Fault::overflow),
                UnaryOp::Plus => Ok(Value::Int(int)),
                UnaryOp::Invert => Ok(Value::Int(!int)),
            }
        }
    }
}

pub(crate) fn binary<'a>(
    op: BinaryOp,
    left: &Value<'a>,
    right: &Value<'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    if let (Value::Bool(left), Value::Bool(right)) = (left, right)
        && let Some(answer) = bools(op, *left, *right)
    {
        return Ok(Value::Bool(answer));
    }
    if let (Some(left), Some(right)) = (left.as_int(), right.as_int()) {
        return ints(op, left, right);
    }
    if let (Some(left), Some(right)) = (left.as_float(), right.as_float())
        && let Some(answer) = floats(op, left, right)
    {
        return answer.map(Value::Float);
    }
    collections(op, left, right, meter)
}

fn ints<'a>(op: BinaryOp, left: i64, right: i64) -> Result<Value<'a>, Fault> {
    let int = match op {
        BinaryOp::Add => left.checked_add(right),
        BinaryOp::Subtract => left.checked_sub(right),
        BinaryOp::Multiply => left.checked_mul(right),
        BinaryOp::Divide => return number::divide_ints(left, right).map(Value::Float),
        BinaryOp::FloorDivide => Some(number::floor_divide_ints(left, right)?),
        BinaryOp::Modulo => Some(number::modulo_ints(left, right)?),
        BinaryOp::Power => {
            return Ok(match number::power_ints(left, right)? {
                Power::Int(value) => Value::Int(value),
                Power::Float(value) => Value::Float(value),
            });
        }
        BinaryOp::ShiftLeft => Some(number::shift_left(left, right)?),
        BinaryOp::ShiftRight => Some(number::shift_right(left, right)?),
        BinaryOp::BitAnd => Some(left & right),
        BinaryOp::BitOr => Some(left | right),
        BinaryOp::BitXor => Some(left ^ right),
    };
    int.map(Value::Int).ok_or_else(Fault::overflow)
}

/// The operators that keep bools; the others take them as integers.
fn bools(op: BinaryOp, left: bool, right: bool) -> Option<bool> {
    match op {
        BinaryOp::BitAnd => Some(left & right),
        BinaryOp::BitOr => Some(left | right),
        BinaryOp::BitXor => Some(left ^ right),
        _ => None,
    }
}

/// Arithmetic of floats; none for operators that they do not have.
fn floats(op: BinaryOp, left: f64, right: f64) -> Option<Result<f64, Fault>> {
    Some(match op {
        BinaryOp::Add => Ok(left + right),
        BinaryOp::Subtract => Ok(left - right),
        BinaryOp::Multiply => Ok(left * right),
        BinaryOp::Divide => number::divide_floats(left, right),
        BinaryOp::FloorDivide => number::divmod_floats(left, right).map(|(quotient, _)| quotient),
        BinaryOp::Modulo => number::divmod_floats(left, right).map(|(_, rest)| rest),
        BinaryOp::Power => number::power_floats(left, right),
        _ => return None,
    })
}

fn collections<'a>(
    op: BinaryOp,
    left: &Value<'a>,
    right: &Value<'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    match (op, left, right) {
        (BinaryOp::Add, Value::Str(one), Value::Str(two)) => join_texts(one, two, meter),
        (BinaryOp::Add, Value::List(one), Value::List(two)) => {
            join_lists(one, two, meter).map(Value::list)
        }
        (BinaryOp::Add, Value::Tuple(one), Value::Tuple(two)) => {
            join_lists(one, two, meter).map(Value::tuple)
        }
        (BinaryOp::Modulo, Value::Str(template), values) => {
            percent(template, values, meter).map(Value::text)
        }
        (BinaryOp::Multiply, Value::Str(_) | Value::List(_) | Value::Tuple(_), _) => {
            repeat(left, right, meter)
        }
        (BinaryOp::Multiply, _, Value::Str(_) | Value::List(_) | Value::Tuple(_)) => {
            repeat(right, left, meter)
        }
        (BinaryOp::BitOr, Value::Dict(one), Value::Dict(two)) => merge(one, two, meter),
        (_, Value::Set(one), Value::Set(two)) => match set_method(op) {
            Some(method) => {
                meter.elements(one.len() + two.len())?;
                Ok(Value::Set(Arc::new(combine(method, one, two)?)))
            }
            None => Err(mismatch(op, left, right)),
        },
        _ => Err(mismatch(op, left, right)),
    }
}

#[cold]
fn mismatch(op: BinaryOp, left: &Value<'_>, right: &Value<'_>) -> Fault {
    Fault::type_error(format!(
        "`{}` does not apply to {} and {}",
        op.symbol(),
        left.type_name(),
        right.type_name()
    ))
}

fn set_method(op: BinaryOp) -> Option<Method> {
    match op {
        BinaryOp::BitAnd => Some(Method::Intersection),
        BinaryOp::BitOr => Some(Method::Union),
        BinaryOp::BitXor => Some(Method::SymmetricDifference),
        BinaryOp::Subtract => Some(Method::Difference),
        _ => None,
    }
}

fn join_texts<'a>(one: &str, two: &str, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    let bytes = one.len() + two.len();
    if bytes > meter.max_length() {
        meter.length(one.chars().count() + two.chars().count())?;
    }
    meter.text(bytes)?;
    Ok(Value::text([one, two].concat()))
}

fn join_lists<'a>(
    one: &List<'a>,
    two: &List<'a>,
    meter: &mut Meter,
) -> Result<Vec<Value<'a>>, Fault> {
    meter.elements(one.len() + two.len())?;
    Ok(one.iter().chain(two.iter()).collect())
}

fn merge<'a>(one: &Dict<'a>, two: &Dict<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    meter.elements(one.len() + two.len())?;
    let mut map = Map::default();
    for (key, value) in one.entries().chain(two.entries()) {
        map.insert(key, value)?;
    }
    Ok(Value::Dict(Dict::Shared(Arc::new(map))))
}

fn repeat<'a>(value: &Value<'a>, times: &Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    let Some(times) = times.as_int() else {
        return Err(mismatch(BinaryOp::Multiply, value, times));
    };
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    match value {
        Value::Str(text) => {
            meter.read(text)?;
            meter.length(text.chars().count().saturating_mul(times))?;
            meter.text(text.len().saturating_mul(times))?;
            Ok(Value::text(text.repeat(times)))
        }
        Value::List(list) => repeat_list(list, times, meter).map(Value::list),
        Value::Tuple(list) => repeat_list(list, times, meter).map(Value::tuple),
        other => Err(mismatch(BinaryOp::Multiply, other, other)),
    }
}

fn repeat_list<'a>(
    list: &List<'a>,
    times: usize,
    meter: &mut Meter,
) -> Result<Vec<Value<'a>>, Fault> {
    let total = list.len().saturating_mul(times);
    meter.elements(total)?;
    if total == 0 {
        return Ok(Vec::new());
    }
    Ok((0..times).flat_map(|_| list.iter()).collect())
}
