//! Operators, with Python's meaning.

use std::cmp::Ordering;

use crate::error::{Fault, Result};
use crate::functions::check_key;
use crate::meter::Meter;
use crate::printf;
use crate::show::{Building, write_str};
use crate::value::{Dict, Seq, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Rem,
    Pow,
    Concat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompareOp {
    Eq,
    Ne,
    Lt,
    Lte,
    Gt,
    Gte,
    In,
    NotIn,
}

/// Two numbers, brought to a common type.
enum Numbers {
    Int(i128, i128),
    Float(f64, f64),
}

fn numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Numbers> {
    match (number(left)?, number(right)?) {
        (Value::Int(left), Value::Int(right)) => Some(Numbers::Int(left, right)),
        (left, right) => Some(Numbers::Float(as_float(&left)?, as_float(&right)?)),
    }
}

/// A truth value counts as 0 or 1.
fn number<'v>(value: &Value<'v>) -> Option<Value<'v>> {
    match value {
        Value::Bool(value) => Some(Value::Int(i128::from(*value))),
        Value::Int(_) | Value::Float(_) => Some(value.clone()),
        _ => None,
    }
}

pub(crate) fn as_float(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Int(int) => Some(*int as f64),
        Value::Float(float) => Some(*float),
        _ => None,
    }
}

/// A whole number, where nothing else will do.
pub(crate) fn as_int(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Bool(value) => Some(i128::from(*value)),
        Value::Int(int) => Some(*int),
        _ => None,
    }
}

/// Results are 64 bits wide, like everywhere in Dodona.
pub(crate) fn int<'v>(result: Option<i128>) -> Result<Value<'v>> {
    match result {
        Some(result) if i64::try_from(result).is_ok() => Ok(Value::Int(result)),
        _ => Err(Fault::operation("the result does not fit in 64 bits")),
    }
}

pub(crate) fn binary<'v>(
    meter: &mut Meter,
    op: BinOp,
    left: &Value<'v>,
    right: &Value<'v>,
) -> Result<Value<'v>> {
    if op == BinOp::Concat {
        return concat(meter, left, right);
    }
    left.defined()?;
    // What is missing is an empty text to a format, as it is where it is written out.
    if op == BinOp::Rem && left.as_str().is_some() {
        return printf::percent(meter, left, right);
    }
    right.defined()?;
    match op {
        BinOp::Add => add(meter, left, right),
        BinOp::Mul => multiply(meter, left, right),
        _ => match numbers(left, right) {
            Some(numbers) => arithmetic(op, numbers),
            None => Err(mismatch(symbol(op), left, right)),
        },
    }
}

fn concat<'v>(meter: &mut Meter, left: &Value<'v>, right: &Value<'v>) -> Result<Value<'v>> {
    let mut building = Building::new(meter);
    write_str(&mut building, left)?;
    write_str(&mut building, right)?;
    Ok(Value::made(building.text))
}

fn add<'v>(meter: &mut Meter, left: &Value<'v>, right: &Value<'v>) -> Result<Value<'v>> {
    match (left, right) {
        (Value::Str(_), Value::Str(_)) => concat(meter, left, right),
        (Value::List(left), Value::List(right)) => {
            let joined = join(meter, left, right)?;
            Value::list(meter, joined)
        }
        (Value::Tuple(left), Value::Tuple(right)) => {
            let joined = join(meter, left, right)?;
            Value::tuple(meter, joined)
        }
        _ => match numbers(left, right) {
            Some(numbers) => arithmetic(BinOp::Add, numbers),
            None => Err(mismatch("+", left, right)),
        },
    }
}

fn join<'v>(meter: &mut Meter, left: &Seq<'v>, right: &Seq<'v>) -> Result<Vec<Value<'v>>> {
    meter.steps(left.len() + right.len())?;
    meter.memory((left.len() + right.len()) * size_of::<Value<'_>>())?;
    Ok(left.iter().chain(right.iter()).collect())
}

fn multiply<'v>(meter: &mut Meter, left: &Value<'v>, right: &Value<'v>) -> Result<Value<'v>> {
    if let Some(numbers) = numbers(left, right) {
        return arithmetic(BinOp::Mul, numbers);
    }
    match (as_int(left), as_int(right)) {
        (None, Some(times)) => repeat(meter, left, times),
        (Some(times), None) => repeat(meter, right, times),
        _ => None,
    }
    .unwrap_or_else(|| Err(mismatch("*", left, right)))
}

/// The value so many times over; `None` if it is not the kind that repeats.
fn repeat<'v>(meter: &mut Meter, value: &Value<'v>, times: i128) -> Option<Result<Value<'v>>> {
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    match value {
        Value::Str(text) => Some(
            meter
                .memory(text.len().saturating_mul(times))
                .map(|()| Value::made(text.repeat(times))),
        ),
        Value::List(seq) => {
            Some(repeat_seq(meter, seq, times).and_then(|values| Value::list(meter, values)))
        }
        Value::Tuple(seq) => {
            Some(repeat_seq(meter, seq, times).and_then(|values| Value::tuple(meter, values)))
        }
        _ => None,
    }
}

fn repeat_seq<'v>(meter: &mut Meter, seq: &Seq<'v>, times: usize) -> Result<Vec<Value<'v>>> {
    let count = seq.len().saturating_mul(times);
    meter.steps(count)?;
    meter.memory(count.saturating_mul(size_of::<Value<'_>>()))?;
    if seq.is_empty() {
        return Ok(Vec::new());
    }
    Ok((0..times).flat_map(|_| seq.iter()).collect())
}

fn arithmetic<'v>(op: BinOp, numbers: Numbers) -> Result<Value<'v>> {
    match numbers {
        Numbers::Int(left, right) => int_arithmetic(op, left, right),
        Numbers::Float(left, right) => float_arithmetic(op, left, right),
    }
}

fn int_arithmetic<'v>(op: BinOp, left: i128, right: i128) -> Result<Value<'v>> {
    match op {
        BinOp::Add => int(left.checked_add(right)),
        BinOp::Sub => int(left.checked_sub(right)),
        BinOp::Mul => int(left.checked_mul(right)),
        BinOp::Pow if right < 0 => float_arithmetic(op, left as f64, right as f64),
        BinOp::Pow => int(u32::try_from(right)
            .ok()
            .and_then(|right| power(left, right))),
        _ if right == 0 => Err(Fault::operation("division by zero")),
        BinOp::Div => Ok(Value::Float(left as f64 / right as f64)),
        BinOp::FloorDiv => int(floor_div(left, right)),
        BinOp::Rem => int(floor_div(left, right).map(|quotient| left - quotient * right)),
        BinOp::Concat => Err(Fault::operation("numbers are not concatenated")),
    }
}

/// `checked_pow` goes on squaring once more than needed; small exponents are all that can fit.
fn power(base: i128, exponent: u32) -> Option<i128> {
    match base {
        0 | 1 => Some(if exponent == 0 { 1 } else { base }),
        -1 => Some(if exponent.is_multiple_of(2) { 1 } else { -1 }),
        _ => base.checked_pow(exponent),
    }
}

fn floor_div(left: i128, right: i128) -> Option<i128> {
    let quotient = left.checked_div(right)?;
    let inexact = left % right != 0 && (left < 0) != (right < 0);
    quotient.checked_sub(i128::from(inexact))
}

fn float_arithmetic<'v>(op: BinOp, left: f64, right: f64) -> Result<Value<'v>> {
    let result = match op {
        BinOp::Add => left + right,
        BinOp::Sub => left - right,
        BinOp::Mul => left * right,
        BinOp::Pow => return float_power(left, right),
        _ if right == 0.0 => return Err(Fault::operation("division by zero")),
        BinOp::Div => left / right,
        BinOp::FloorDiv => float_divmod(left, right).0,
        BinOp::Rem => float_divmod(left, right).1,
        BinOp::Concat => return Err(Fault::operation("numbers are not concatenated")),
    };
    Ok(Value::Float(result))
}

fn float_power<'v>(left: f64, right: f64) -> Result<Value<'v>> {
    if left == 0.0 && right < 0.0 {
        return Err(Fault::operation(
            "zero cannot be raised to a negative power",
        ));
    }
    if left < 0.0 && right.fract() != 0.0 && left.is_finite() && right.is_finite() {
        return Err(Fault::operation("the result is a complex number"));
    }
    let result = left.powf(right);
    match result.is_infinite() && left.is_finite() && right.is_finite() {
        true => Err(Fault::operation("the result is too large for a float")),
        false => Ok(Value::Float(result)),
    }
}

/// Quotient and remainder whose sign is that of the divisor.
fn float_divmod(left: f64, right: f64) -> (f64, f64) {
    let mut remainder = left % right;
    let mut quotient = (left - remainder) / right;
    if remainder == 0.0 {
        remainder = 0.0_f64.copysign(right);
    } else if (right < 0.0) != (remainder < 0.0) {
        remainder += right;
        quotient -= 1.0;
    }
    let floor = match quotient == 0.0 {
        true => 0.0_f64.copysign(left / right),
        false if quotient - quotient.floor() > 0.5 => quotient.floor() + 1.0,
        false => quotient.floor(),
    };
    (floor, remainder)
}

pub(crate) fn negate<'v>(value: &Value<'v>) -> Result<Value<'v>> {
    value.defined()?;
    match number(value) {
        Some(Value::Int(value)) => int(value.checked_neg()),
        Some(Value::Float(value)) => Ok(Value::Float(-value)),
        _ => Err(Fault::operation(format!(
            "cannot negate a value of type {}",
            value.type_name()
        ))),
    }
}

pub(crate) fn compare(
    meter: &mut Meter,
    op: CompareOp,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<bool> {
    match op {
        CompareOp::Eq => equal(meter, left, right),
        CompareOp::Ne => Ok(!equal(meter, left, right)?),
        CompareOp::In => contains(meter, right, left),
        CompareOp::NotIn => Ok(!contains(meter, right, left)?),
        CompareOp::Lt => Ok(order(meter, "<", left, right)? == Some(Ordering::Less)),
        CompareOp::Gt => Ok(order(meter, ">", left, right)? == Some(Ordering::Greater)),
        CompareOp::Lte => Ok(order(meter, "<=", left, right)?.is_some_and(Ordering::is_le)),
        CompareOp::Gte => Ok(order(meter, ">=", left, right)?.is_some_and(Ordering::is_ge)),
    }
}

pub(crate) fn equal(meter: &mut Meter, left: &Value<'_>, right: &Value<'_>) -> Result<bool> {
    meter.steps(1)?;
    match (left, right) {
        (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => Ok(true),
        (Value::Str(left), Value::Str(right)) => {
            meter.read(left.len().min(right.len()))?;
            Ok(**left == **right)
        }
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => {
            nested(meter, |meter| equal_seqs(meter, left, right))
        }
        (Value::Dict(left), Value::Dict(right)) => {
            nested(meter, |meter| equal_dicts(meter, left, right))
        }
        (Value::Macro(left), Value::Macro(right)) => Ok(left == right),
        _ => Ok(match numbers(left, right) {
            Some(Numbers::Int(left, right)) => left == right,
            Some(Numbers::Float(left, right)) => left == right,
            None => false,
        }),
    }
}

fn nested<T>(meter: &mut Meter, work: impl FnOnce(&mut Meter) -> Result<T>) -> Result<T> {
    meter.enter()?;
    let done = work(meter);
    meter.leave();
    done
}

fn equal_seqs(meter: &mut Meter, left: &Seq<'_>, right: &Seq<'_>) -> Result<bool> {
    if left.len() != right.len() {
        return Ok(false);
    }
    for (left, right) in left.iter().zip(right.iter()) {
        if !equal(meter, &left, &right)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_dicts(meter: &mut Meter, left: &Dict<'_>, right: &Dict<'_>) -> Result<bool> {
    let left = left.pairs(meter)?;
    if left.len() != right.len(meter)? {
        return Ok(false);
    }
    for (key, value) in &left {
        match lookup(meter, right, key)? {
            Some(other) if equal(meter, value, &other)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The value under any key.
pub(crate) fn lookup<'v>(
    meter: &mut Meter,
    dict: &Dict<'v>,
    key: &Value<'_>,
) -> Result<Option<Value<'v>>> {
    match (dict, key) {
        (Dict::Json(_) | Dict::Host(_), Value::Str(key)) => Ok(dict.field(key)),
        (Dict::Json(_) | Dict::Host(_), _) => Ok(None),
        (Dict::Own(own), _) => {
            for (known, value) in &own.pairs {
                if equal(meter, known, key)? {
                    return Ok(Some(value.clone()));
                }
            }
            Ok(None)
        }
    }
}

/// `None` where Python finds no order between comparable values, which is NaN's doing.
pub(crate) fn order(
    meter: &mut Meter,
    op: &str,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<Option<Ordering>> {
    meter.steps(1)?;
    match (left, right) {
        (Value::Str(left), Value::Str(right)) => {
            meter.read(left.len().min(right.len()))?;
            Ok(Some(left.cmp(right)))
        }
        (Value::List(left), Value::List(right)) | (Value::Tuple(left), Value::Tuple(right)) => {
            nested(meter, |meter| order_seqs(meter, op, left, right))
        }
        _ => match numbers(left, right) {
            Some(Numbers::Int(left, right)) => Ok(Some(left.cmp(&right))),
            Some(Numbers::Float(left, right)) => Ok(left.partial_cmp(&right)),
            None => {
                left.defined()?;
                right.defined()?;
                Err(mismatch(op, left, right))
            }
        },
    }
}

fn order_seqs(
    meter: &mut Meter,
    op: &str,
    left: &Seq<'_>,
    right: &Seq<'_>,
) -> Result<Option<Ordering>> {
    for (left, right) in left.iter().zip(right.iter()) {
        if !equal(meter, &left, &right)? {
            return order(meter, op, &left, &right);
        }
    }
    Ok(Some(left.len().cmp(&right.len())))
}

pub(crate) fn contains(meter: &mut Meter, all: &Value<'_>, one: &Value<'_>) -> Result<bool> {
    match (all, one) {
        (Value::Str(all), Value::Str(one)) => {
            meter.read(all.len())?;
            Ok(all.contains(&**one))
        }
        (Value::Str(_), _) => {
            one.defined()?;
            Err(mismatch("in", one, all))
        }
        (Value::List(seq) | Value::Tuple(seq), _) => {
            for item in seq.iter() {
                if equal(meter, &item, one)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Value::Dict(dict), _) => {
            check_key(one)?;
            Ok(lookup(meter, dict, one)?.is_some())
        }
        (Value::Undefined(_), _) => Ok(false),
        _ => Err(mismatch("in", one, all)),
    }
}

fn symbol(op: BinOp) -> &'static str {
    match op {
        BinOp::Add => "+",
        BinOp::Sub => "-",
        BinOp::Mul => "*",
        BinOp::Div => "/",
        BinOp::FloorDiv => "//",
        BinOp::Rem => "%",
        BinOp::Pow => "**",
        BinOp::Concat => "~",
    }
}

pub(crate) fn mismatch(op: &str, left: &Value<'_>, right: &Value<'_>) -> Fault {
    let (left, right) = (left.type_name(), right.type_name());
    Fault::operation(format!("`{op}` does not work between {left} and {right}"))
}
