//! Equality, identity and order, as Python has them.

use std::cmp::Ordering;
use std::sync::Arc;

use super::number::compare_int_float;
use super::{Dict, List, Value};
use crate::error::Fault;
use crate::limits::{MAX_NESTING, Meter};

/// `==`.
#[inline]
pub(crate) fn equals<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    meter: &mut Meter,
) -> Result<bool, Fault> {
    equal_at(left, right, meter, 0)
}

fn equal_at<'a>(
    left: &Value<'a>,
    right: &Value<'a>,
    meter: &mut Meter,
    depth: usize,
) -> Result<bool, Fault> {
    Ok(match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Str(one), Value::Str(two)) => {
            if one.len() != two.len() {
                return Ok(false);
            }
            meter.read(one)?;
            **one == **two
        }
        (Value::Int(one), Value::Int(two)) => one == two,
        (Value::Float(one), Value::Float(two)) => one == two,
        (Value::List(one), Value::List(two)) | (Value::Tuple(one), Value::Tuple(two)) => {
            equal_lists(one, two, meter, depth)?
        }
        (Value::Dict(one), Value::Dict(two)) => equal_dicts(one, two, meter, depth)?,
        (Value::Set(one), Value::Set(two)) => {
            meter.work(one.len())?;
            one.len() == two.len() && is_subset(one, two)?
        }
        _ => compare_numbers(left, right) == Some(Some(Ordering::Equal)),
    })
}

fn equal_lists<'a>(
    one: &List<'a>,
    two: &List<'a>,
    meter: &mut Meter,
    depth: usize,
) -> Result<bool, Fault> {
    if one.len() != two.len() {
        return Ok(false);
    }
    let depth = deeper(depth)?;
    for (left, right) in one.iter().zip(two.iter()) {
        meter.work(1)?;
        if !equal_at(&left, &right, meter, depth)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_dicts<'a>(
    one: &Dict<'a>,
    two: &Dict<'a>,
    meter: &mut Meter,
    depth: usize,
) -> Result<bool, Fault> {
    if one.len() != two.len() {
        return Ok(false);
    }
    let depth = deeper(depth)?;
    for (key, left) in one.entries() {
        meter.work(1)?;
        let Some(right) = two.get(&key)? else {
            return Ok(false);
        };
        if !equal_at(&left, &right, meter, depth)? {
            return Ok(false);
        }
    }
    Ok(true)
}

pub(super) fn deeper(depth: usize) -> Result<usize, Fault> {
    if depth >= MAX_NESTING {
        return Err(Fault::limit(format!(
            "a value that nests deeper than {MAX_NESTING}"
        )));
    }
    Ok(depth + 1)
}

fn is_subset<'a>(one: &super::Set<'a>, two: &super::Set<'a>) -> Result<bool, Fault> {
    for item in one.iter() {
        if !two.contains(item)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `is`: the same value for what has no identity, the same object for the rest.
pub(crate) fn identical(left: &Value<'_>, right: &Value<'_>) -> bool {
    match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Bool(one), Value::Bool(two)) => one == two,
        (Value::Int(one), Value::Int(two)) => one == two,
        (Value::Float(one), Value::Float(two)) => one == two,
        (Value::Str(one), Value::Str(two)) => **one == **two,
        (Value::List(one), Value::List(two)) => one.is(two),
        (Value::Tuple(one), Value::Tuple(two)) => one.is(two) || (one.is_empty() && two.is_empty()),
        (Value::Dict(one), Value::Dict(two)) => one.is(two),
        (Value::Set(one), Value::Set(two)) => Arc::ptr_eq(one, two),
        _ => false,
    }
}

/// The order of two numbers: none if one of the values is no number, and none inside if one is
/// not a number in the sense of floats.
#[inline]
fn compare_numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Option<Ordering>> {
    match (left, right) {
        (Value::Float(one), Value::Float(two)) => Some(one.partial_cmp(two)),
        (Value::Float(one), two) => {
            let two = two.as_int()?;
            Some(compare_int_float(two, *one).map(Ordering::reverse))
        }
        (one, Value::Float(two)) => Some(compare_int_float(one.as_int()?, *two)),
        (one, two) => Some(Some(one.as_int()?.cmp(&two.as_int()?))),
    }
}

/// Which order is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Asked {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
        }
    }

    #[inline]
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Less => order.is_lt(),
            Self::LessEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterEqual => order.is_ge(),
        }
    }

    /// Whether it holds of two numbers of one type.
    #[inline]
    pub(crate) fn of<T: PartialOrd>(self, one: &T, two: &T) -> bool {
        match self {
            Self::Less => one < two,
            Self::LessEqual => one <= two,
            Self::Greater => one > two,
            Self::GreaterEqual => one >= two,
        }
    }
}

/// `<`, `<=`, `>`, `>=`.
#[inline]
pub(crate) fn order<'a>(
    asked: Asked,
    left: &Value<'a>,
    right: &Value<'a>,
    meter: &mut Meter,
) -> Result<bool, Fault> {
    match compare_numbers(left, right) {
        Some(order) => Ok(order.is_some_and(|order| asked.holds(order))),
        None => order_others(asked, left, right, meter, 0),
    }
}

fn order_at<'a>(
    asked: Asked,
    left: &Value<'a>,
    right: &Value<'a>,
    meter: &mut Meter,
    depth: usize,
) -> Result<bool, Fault> {
    match compare_numbers(left, right) {
        Some(order) => Ok(order.is_some_and(|order| asked.holds(order))),
        None => order_others(asked, left, right, meter, depth),
    }
}

fn order_others<'a>(
    asked: Asked,
    left: &Value<'a>,
    right: &Value<'a>,
    meter: &mut Meter,
    depth: usize,
) -> Result<bool, Fault> {
    match (left, right) {
        (Value::Str(one), Value::Str(two)) => {
            meter.read(one)?;
            Ok(asked.holds((**one).cmp(&**two)))
        }
        (Value::List(one), Value::List(two)) | (Value::Tuple(one), Value::Tuple(two)) => {
            order_lists(asked, one, two, meter, depth)
        }
        (Value::Set(one), Value::Set(two)) => {
            meter.work(one.len().max(two.len()))?;
            match asked {
                Asked::LessEqual => is_subset(one, two),
                Asked::GreaterEqual => is_subset(two, one),
                Asked::Less => Ok(one.len() < two.len() && is_subset(one, two)?),
                Asked::Greater => Ok(two.len() < one.len() && is_subset(two, one)?),
            }
        }
        _ => Err(Fault::type_error(format!(
            "`{}` does not compare {} with {}",
            asked.symbol(),
            left.type_name(),
            right.type_name()
        ))),
    }
}

/// The first pair that differs decides; without one, the lengths do.
fn order_lists<'a>(
    asked: Asked,
    one: &List<'a>,
    two: &List<'a>,
    meter: &mut Meter,
    depth: usize,
) -> Result<bool, Fault> {
    let depth = deeper(depth)?;
    for (left, right) in one.iter().zip(two.iter()) {
        meter.work(1)?;
        if !equal_at(&left, &right, meter, depth)? {
            return order_at(asked, &left, &right, meter, depth);
        }
    }
    Ok(asked.holds(one.len().cmp(&two.len())))
}
