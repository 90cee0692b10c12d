//! Which type has which method.

use std::sync::Arc;

use super::Method;
use super::functions::collect;
use super::strings::{self, Arguments};
use crate::error::{ErrorKind, Fault};
use crate::limits::Meter;
use crate::value::{Dict, List, Set, Value, equals};

/// Calls a method of a value.
pub(crate) fn call<'a>(
    method: Method,
    receiver: &Value<'a>,
    values: &[Option<Value<'a>>],
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let arguments = Arguments { method, values };
    let answer = match receiver {
        Value::Str(text) => strings::call(method, text, &arguments, meter)?,
        Value::List(list) | Value::Tuple(list) => {
            of_list(method, receiver, list, &arguments, meter)?
        }
        Value::Dict(dict) => of_dict(method, dict, &arguments, meter)?,
        Value::Set(set) => of_set(method, set, &arguments, meter)?,
        Value::Int(_) | Value::Bool(_) | Value::Float(_) => of_number(method, receiver),
        Value::None => None,
    };
    answer.ok_or_else(|| missing(method, receiver))
}

fn missing(method: Method, receiver: &Value<'_>) -> Fault {
    let name = method.name();
    match receiver {
        Value::None => Fault::new(ErrorKind::None, format!("None has no method `{name}`")),
        other => Fault::type_error(format!("{} has no method `{name}`", other.a_type())),
    }
}

fn of_list<'a>(
    method: Method,
    receiver: &Value<'a>,
    list: &List<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Option<Value<'a>>, Fault> {
    let is_list = matches!(receiver, Value::List(_));
    Ok(Some(match method {
        Method::Copy if is_list => receiver.clone(),
        Method::Count if arguments.values.len() == 1 => {
            let wanted = arguments.need(0)?;
            let mut count = 0;
            for item in list.iter() {
                meter.work(1)?;
                count += i64::from(equals(&item, wanted, meter)?);
            }
            Value::Int(count)
        }
        Method::Index => index(list, arguments, meter)?,
        _ => return Ok(None),
    }))
}

fn index<'a>(
    list: &List<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let wanted = arguments.need(0)?;
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let place = |at: usize, default: i64| -> Result<usize, Fault> {
        let place = match arguments.get(at) {
            None => default,
            Some(value) => value
                .as_int()
                .ok_or_else(|| Fault::type_error("`index` wants int places"))?,
        };
        let place = if place < 0 {
            place.saturating_add(length).max(0)
        } else {
            place
        };
        Ok(usize::try_from(place.min(length)).unwrap_or_default())
    };
    for at in place(1, 0)?..place(2, length)? {
        meter.work(1)?;
        let Some(item) = list.get(at) else { break };
        if equals(&item, wanted, meter)? {
            return Ok(Value::Int(i64::try_from(at).unwrap_or(i64::MAX)));
        }
    }
    Err(Fault::value_error(format!(
        "{} is not in the list",
        wanted.short_repr()
    )))
}

fn of_dict<'a>(
    method: Method,
    dict: &Dict<'a>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Option<Value<'a>>, Fault> {
    Ok(Some(match method {
        Method::Get => {
            let found = dict.get(arguments.need(0)?)?;
            found.unwrap_or_else(|| arguments.get(1).cloned().unwrap_or_default())
        }
        Method::Has => Value::Bool(dict.get(arguments.need(0)?)?.is_some()),
        Method::Copy => Value::Dict(dict.clone()),
        Method::Keys => {
            meter.elements(dict.len())?;
            Value::list(dict.entries().map(|(key, _)| key).collect())
        }
        Method::Values => {
            meter.elements(dict.len())?;
            Value::list(dict.entries().map(|(_, value)| value).collect())
        }
        Method::Items => {
            meter.elements(dict.len().saturating_mul(3).min(meter.max_length()))?;
            meter.length(dict.len())?;
            let pairs = dict
                .entries()
                .map(|(key, value)| Value::tuple(vec![key, value]));
            Value::list(pairs.collect())
        }
        _ => return Ok(None),
    }))
}

fn of_set<'a>(
    method: Method,
    set: &Arc<Set<'a>>,
    arguments: &Arguments<'_, 'a>,
    meter: &mut Meter,
) -> Result<Option<Value<'a>>, Fault> {
    let mut result = Set::clone(set);
    meter.elements(set.len())?;
    match method {
        Method::Copy => return Ok(Some(Value::Set(set.clone()))),
        Method::IsDisjoint | Method::IsSubset | Method::IsSuperset => {
            let other = Set::of(collect(arguments.need(0)?, meter)?)?;
            return compare(method, set, &other).map(|answer| Some(Value::Bool(answer)));
        }
        Method::Union | Method::Intersection | Method::Difference | Method::SymmetricDifference => {
            for at in 0..arguments.values.len() {
                let other = Set::of(collect(arguments.need(at)?, meter)?)?;
                result = combine(method, &result, &other)?;
            }
        }
        _ => return Ok(None),
    }
    meter.elements(result.len())?;
    Ok(Some(Value::Set(Arc::new(result))))
}

fn compare<'a>(method: Method, one: &Set<'a>, two: &Set<'a>) -> Result<bool, Fault> {
    let (inner, outer) = if method == Method::IsSuperset {
        (two, one)
    } else {
        (one, two)
    };
    for item in inner.iter() {
        let found = outer.contains(item)?;
        if found == (method == Method::IsDisjoint) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The set operations, as methods and as operators.
pub(crate) fn combine<'a>(method: Method, one: &Set<'a>, two: &Set<'a>) -> Result<Set<'a>, Fault> {
    let mut result = Set::default();
    for item in one.iter() {
        let keep = match method {
            Method::Union => true,
            Method::Intersection => two.contains(item)?,
            _ => !two.contains(item)?,
        };
        if keep {
            result.insert(item.clone())?;
        }
    }
    if matches!(method, Method::Union | Method::SymmetricDifference) {
        for item in two.iter() {
            if !one.contains(item)? {
                result.insert(item.clone())?;
            }
        }
    }
    Ok(result)
}

fn of_number<'a>(method: Method, value: &Value<'a>) -> Option<Value<'a>> {
    match (method, value) {
        (Method::IsInteger, Value::Float(value)) => {
            Some(Value::Bool(value.is_finite() && value.trunc() == *value))
        }
        (Method::BitLength, value) => {
            let size = value.as_int()?.unsigned_abs();
            Some(Value::Int(i64::from(u64::BITS - size.leading_zeros())))
        }
        _ => None,
    }
}
