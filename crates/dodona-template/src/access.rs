//! Reaching into values: attributes, items, slices.

use crate::error::{Fault, Result};
use crate::meter::Meter;
use crate::ops::{as_int, lookup};
use crate::value::{Dict, Text, Value};

/// `value.name`: a member of a mapping, or nothing.
pub(crate) fn attribute<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    name: &'v str,
) -> Result<Value<'v>> {
    value.defined()?;
    Ok(find_attribute(meter, value, name)?.unwrap_or(Value::Undefined(name)))
}

fn find_attribute<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    name: &str,
) -> Result<Option<Value<'v>>> {
    match value {
        Value::Dict(dict) => {
            if let Dict::Own(own) = dict {
                meter.steps(own.pairs.len())?;
            }
            Ok(dict.field(name))
        }
        Value::Tuple(seq) => Ok(seq.named(name)),
        _ => Ok(None),
    }
}

/// `value[key]`: an element, a member, or nothing.
pub(crate) fn item<'v>(meter: &mut Meter, value: &Value<'v>, key: &Value<'_>) -> Result<Value<'v>> {
    value.defined()?;
    Ok(find_item(meter, value, key)?.unwrap_or(Value::NO_NAME))
}

fn find_item<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    key: &Value<'_>,
) -> Result<Option<Value<'v>>> {
    match value {
        Value::Dict(dict) => lookup(meter, dict, key),
        Value::List(seq) | Value::Tuple(seq) => {
            let index = as_int(key).and_then(|index| position(index, seq.len()));
            Ok(index.and_then(|index| seq.get(index)))
        }
        Value::Str(text) => {
            let Some(index) = as_int(key) else {
                return Ok(None);
            };
            meter.read(text.len())?;
            let index = position(index, text.chars().count());
            let found = index.and_then(|index| text.chars().nth(index));
            Ok(found.map(|c| Value::made(c.to_string())))
        }
        _ => Ok(None),
    }
}

/// Counts from the end if negative.
fn position(index: i128, len: usize) -> Option<usize> {
    let index = if index < 0 {
        index + len as i128
    } else {
        index
    };
    usize::try_from(index).ok().filter(|index| *index < len)
}

/// What an attribute argument means, as in `sort(attribute="a.0.b")`.
pub(crate) fn path<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    path: &Value<'v>,
) -> Result<Value<'v>> {
    let Value::Str(path) = path else {
        return item(meter, value, path);
    };
    let mut value = value.clone();
    for part in path.split('.') {
        value.defined()?;
        meter.steps(1)?;
        let found = match part.parse::<u32>() {
            Ok(index) => find_item(meter, &value, &Value::Int(index.into()))?,
            Err(_) => find_attribute(meter, &value, part)?,
        };
        value = found.unwrap_or(Value::NO_NAME);
    }
    Ok(value)
}

/// `value[start:stop:step]`.
pub(crate) fn slice<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    bounds: [Option<Value<'v>>; 3],
) -> Result<Value<'v>> {
    value.defined()?;
    let [start, stop, step] = bounds.map(|bound| bound.map_or(Ok(None), |bound| whole(&bound)));
    let (start, stop, step) = (start?, stop?, step?.unwrap_or(1));
    if step == 0 {
        return Err(Fault::operation("a slice cannot have a step of 0"));
    }
    match value {
        Value::Str(text) => {
            meter.memory(text.len() * size_of::<char>())?;
            let chars: Vec<char> = text.chars().collect();
            let picked = indices(start, stop, step, chars.len());
            let text: String = picked.map(|index| chars[index]).collect();
            Ok(Value::Str(Text::Shared(text.into())))
        }
        Value::List(seq) | Value::Tuple(seq) => {
            meter.steps(seq.len())?;
            meter.memory(seq.len() * size_of::<Value<'_>>())?;
            let picked = indices(start, stop, step, seq.len());
            let values = picked.filter_map(|index| seq.get(index)).collect();
            match value {
                Value::Tuple(_) => Value::tuple(meter, values),
                _ => Value::list(meter, values),
            }
        }
        other => {
            let message = format!("cannot slice a value of type {}", other.type_name());
            Err(Fault::operation(message))
        }
    }
}

fn whole(value: &Value<'_>) -> Result<Option<i128>> {
    match value {
        Value::None => Ok(None),
        value => match as_int(value) {
            Some(int) => Ok(Some(int)),
            None => Err(Fault::operation("the bounds of a slice are whole numbers")),
        },
    }
}

/// The positions that a slice picks, Python's way: bounds are clamped, whatever they are.
fn indices(
    start: Option<i128>,
    stop: Option<i128>,
    step: i128,
    len: usize,
) -> impl Iterator<Item = usize> {
    let len = len as i128;
    let (lowest, highest) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |bound: i128| {
        let bound = if bound < 0 {
            bound.saturating_add(len)
        } else {
            bound
        };
        bound.clamp(lowest, highest)
    };
    let first = start.map_or(if step > 0 { lowest } else { highest }, clamp);
    let end = stop.map_or(if step > 0 { highest } else { lowest }, clamp);
    let mut next = first;
    std::iter::from_fn(move || {
        let inside = if step > 0 { next < end } else { next > end };
        let index = usize::try_from(next).ok().filter(|_| inside)?;
        next = next.saturating_add(step);
        Some(index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(start: Option<i128>, stop: Option<i128>, step: i128) -> Vec<usize> {
        indices(start, stop, step, 4).collect()
    }

    #[test]
    fn a_slice_takes_any_bounds() {
        assert_eq!(picked(None, None, 1), [0, 1, 2, 3]);
        assert_eq!(picked(None, None, -1), [3, 2, 1, 0]);
        assert_eq!(picked(Some(-3), Some(-1), 1), [1, 2]);
        assert_eq!(picked(Some(0), Some(2), -1), [0_usize; 0]);
        assert_eq!(picked(Some(i128::MIN), Some(i128::MAX), 3), [0, 3]);
        assert_eq!(picked(Some(i128::MAX), Some(i128::MIN), i128::MIN), [3]);
    }
}
