//! The built-in functions.

use std::sync::Arc;

use super::Builtin;
use crate::error::Fault;
use crate::eval::operators;
use crate::ir::BinaryOp;
use crate::limits::Meter;
use crate::value::{Asked, Dict, List, Map, Set, Value, display, number, order};

/// What a loop runs over.
pub(crate) enum Items<'a> {
    List(List<'a>, usize),
    Chars(crate::value::Text<'a>, usize),
    Made(std::vec::IntoIter<Value<'a>>),
}

impl<'a> Items<'a> {
    /// The elements of a list, tuple or set, the keys of a dict, the characters of a text.
    pub(crate) fn of(value: &Value<'a>) -> Result<Self, Fault> {
        Ok(match value {
            Value::List(list) | Value::Tuple(list) => Self::List(list.clone(), 0),
            Value::Str(text) => Self::Chars(text.clone(), 0),
            Value::Set(set) => Self::Made(set.iter().cloned().collect::<Vec<_>>().into_iter()),
            Value::Dict(dict) => {
                let keys: Vec<Value<'a>> = dict.entries().map(|(key, _)| key).collect();
                Self::Made(keys.into_iter())
            }
            other => {
                return Err(Fault::type_error(format!(
                    "{} has no elements",
                    other.a_type()
                )));
            }
        })
    }

    fn size(&self) -> usize {
        match self {
            Self::List(list, at) => list.len().saturating_sub(*at),
            Self::Chars(text, at) => text.len().saturating_sub(*at),
            Self::Made(items) => items.len(),
        }
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        match self {
            Self::List(list, at) => {
                let item = list.get(*at)?;
                *at += 1;
                Some(item)
            }
            Self::Chars(text, at) => {
                let start = *at;
                let character = text.get(start..)?.chars().next()?;
                *at += character.len_utf8();
                Some(super::strings::part(text, start, *at))
            }
            Self::Made(items) => items.next(),
        }
    }
}

/// All elements as a vector, paid for.
pub(crate) fn collect<'a>(value: &Value<'a>, meter: &mut Meter) -> Result<Vec<Value<'a>>, Fault> {
    let items = Items::of(value)?;
    meter.elements(items.size().min(meter.max_length()))?;
    let items: Vec<Value<'a>> = items.collect();
    meter.length(items.len())?;
    Ok(items)
}

/// Calls a function whose number of arguments has been checked.
pub(crate) fn call<'a>(
    function: Builtin,
    arguments: &[Value<'a>],
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    match (function, arguments) {
        (Builtin::Int, []) => Ok(Value::Int(0)),
        (Builtin::Int, [value]) => int(value, meter),
        (Builtin::Int, [value, base, ..]) => int_of_base(value, base, meter),
        (Builtin::Float, []) => Ok(Value::Float(0.0)),
        (Builtin::Float, [value, ..]) => float(value, meter),
        (Builtin::Str, []) => Ok(Value::str("")),
        (Builtin::Str, [value @ Value::Str(_), ..]) => Ok(value.clone()),
        (Builtin::Str, [value, ..]) => Ok(Value::text(display(value, meter)?)),
        (Builtin::Bool, arguments) => {
            Ok(Value::Bool(arguments.first().is_some_and(Value::is_truthy)))
        }
        (Builtin::Abs, [value, ..]) => abs(value),
        (Builtin::Round, [value]) => round(value, None),
        (Builtin::Round, [value, digits, ..]) => round(value, Some(digits)),
        (Builtin::Sum, [items]) => sum(items, &Value::Int(0), meter),
        (Builtin::Sum, [items, start, ..]) => sum(items, start, meter),
        (Builtin::Len, [value, ..]) => len(value, meter),
        (Builtin::Any, [items, ..]) => quantify(items, true, meter),
        (Builtin::All, [items, ..]) => quantify(items, false, meter),
        (Builtin::Reversed, [items, ..]) => reversed(items, meter),
        (Builtin::List, []) => Ok(Value::list(Vec::new())),
        (Builtin::List, [items, ..]) => Ok(Value::list(collect(items, meter)?)),
        (Builtin::Tuple, []) => Ok(Value::tuple(Vec::new())),
        (Builtin::Tuple, [items @ Value::Tuple(_), ..]) => Ok(items.clone()),
        (Builtin::Tuple, [items, ..]) => Ok(Value::tuple(collect(items, meter)?)),
        (Builtin::Set, []) => Ok(Value::Set(Arc::default())),
        (Builtin::Set, [items, ..]) => {
            let items = collect(items, meter)?;
            Ok(Value::Set(Arc::new(Set::of(items)?)))
        }
        (Builtin::Dict, []) => Ok(Value::Dict(Dict::Shared(Arc::default()))),
        (Builtin::Dict, [items, ..]) => dict(items, meter),
        (Builtin::Sorted, [items, ..]) => sorted(items, None, false, meter),
        (Builtin::Min, arguments) => extreme(arguments, Asked::Less, None, meter),
        (Builtin::Max, arguments) => extreme(arguments, Asked::Greater, None, meter),
        _ => Err(Fault::type_error(format!(
            "`{}` lacks an argument",
            function.name()
        ))),
    }
}

fn int<'a>(value: &Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    match value {
        Value::Bool(_) | Value::Int(_) => Ok(Value::Int(value.as_int().unwrap_or_default())),
        Value::Float(value) => number::int_of_float(*value).map(Value::Int),
        Value::Str(text) => {
            meter.read(text)?;
            number::parse_int(text, 10).map(Value::Int)
        }
        other => Err(Fault::type_error(format!(
            "{} is no number",
            other.a_type()
        ))),
    }
}

fn int_of_base<'a>(
    value: &Value<'a>,
    base: &Value<'a>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let (Value::Str(text), Some(base)) = (value, base.as_int()) else {
        return Err(Fault::type_error(
            "`int` with a base wants a text and an int",
        ));
    };
    meter.read(text)?;
    match u32::try_from(base) {
        Ok(base) if base == 0 || (2..=36).contains(&base) => {
            number::parse_int(text, base).map(Value::Int)
        }
        _ => Err(Fault::value_error("a base is 0, or 2 to 36")),
    }
}

fn float<'a>(value: &Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    if let Value::Str(text) = value {
        meter.read(text)?;
        return number::parse_float(text).map(Value::Float);
    }
    value
        .as_float()
        .map(Value::Float)
        .ok_or_else(|| Fault::type_error(format!("{} is no number", value.a_type())))
}

fn abs<'a>(value: &Value<'a>) -> Result<Value<'a>, Fault> {
    match value {
        Value::Float(value) => Ok(Value::Float(value.abs())),
        Value::Bool(_) | Value::Int(_) => {
            let size = value.as_int().and_then(i64::checked_abs);
            size.map(Value::Int).ok_or_else(Fault::overflow)
        }
        other => Err(Fault::type_error(format!(
            "{} is no number",
            other.a_type()
        ))),
    }
}

fn round<'a>(value: &Value<'a>, digits: Option<&Value<'a>>) -> Result<Value<'a>, Fault> {
    let digits = match digits {
        None | Some(Value::None) => None,
        Some(digits) => Some(digits.as_int().ok_or_else(|| {
            Fault::type_error(format!("{} places are no int", digits.type_name()))
        })?),
    };
    match (value, digits) {
        (Value::Float(value), None) => number::round_to_int(*value).map(Value::Int),
        (Value::Float(value), Some(digits)) => {
            number::round_float(*value, digits).map(Value::Float)
        }
        (Value::Bool(_) | Value::Int(_), digits) => {
            let value = value.as_int().unwrap_or_default();
            number::round_int(value, digits.unwrap_or_default()).map(Value::Int)
        }
        (other, _) => Err(Fault::type_error(format!(
            "{} is no number",
            other.a_type()
        ))),
    }
}

fn sum<'a>(items: &Value<'a>, start: &Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    if matches!(start, Value::Str(_)) {
        return Err(Fault::type_error("`sum` adds no texts; use `''.join(…)`"));
    }
    let mut total = start.clone();
    for item in Items::of(items)? {
        meter.work(1)?;
        total = operators::binary(BinaryOp::Add, &total, &item, meter)?;
    }
    Ok(total)
}

/// `len(value)`.
pub(crate) fn len<'a>(value: &Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    let length = match value {
        Value::Str(text) => {
            meter.read(text)?;
            text.chars().count()
        }
        Value::List(list) | Value::Tuple(list) => list.len(),
        Value::Set(set) => set.len(),
        Value::Dict(dict) => dict.len(),
        other => {
            return Err(Fault::type_error(format!(
                "{} has no length",
                other.a_type()
            )));
        }
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn quantify<'a>(items: &Value<'a>, wanted: bool, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    for item in Items::of(items)? {
        meter.work(1)?;
        if item.is_truthy() == wanted {
            return Ok(Value::Bool(wanted));
        }
    }
    Ok(Value::Bool(!wanted))
}

fn reversed<'a>(items: &Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    if matches!(items, Value::Set(_)) {
        return Err(Fault::type_error("a set has no order to reverse"));
    }
    let mut items = collect(items, meter)?;
    items.reverse();
    Ok(Value::list(items))
}

fn dict<'a>(items: &Value<'a>, meter: &mut Meter) -> Result<Value<'a>, Fault> {
    if let Value::Dict(dict) = items {
        return Ok(Value::Dict(dict.clone()));
    }
    let items = collect(items, meter)?;
    let mut map = Map::default();
    for item in items {
        let pair = collect(&item, meter)?;
        let [key, value] = pair.as_slice() else {
            return Err(Fault::value_error("`dict` wants pairs of key and value"));
        };
        map.insert(key.clone(), value.clone())?;
    }
    Ok(Value::Dict(Dict::Shared(Arc::new(map))))
}

/// `sorted`, with the keys by which to compare if they are not the elements themselves.
pub(crate) fn sorted<'a>(
    items: &Value<'a>,
    keys: Option<Vec<Value<'a>>>,
    reverse: bool,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let items = collect(items, meter)?;
    let keys = keys.unwrap_or_else(|| items.clone());
    let mut places: Vec<usize> = (0..items.len()).collect();
    // Reversing before and after keeps equal elements in their order.
    if reverse {
        places.reverse();
    }
    let mut places = merge_sort(places, &keys, meter)?;
    if reverse {
        places.reverse();
    }
    let sorted = places.into_iter().filter_map(|at| items.get(at).cloned());
    Ok(Value::list(sorted.collect()))
}

/// Stable, and content with an order that is none: the standard library's sort may panic on one.
fn merge_sort<'a>(
    mut places: Vec<usize>,
    keys: &[Value<'a>],
    meter: &mut Meter,
) -> Result<Vec<usize>, Fault> {
    let mut width = 1;
    while width < places.len() {
        meter.work(places.len() / 4)?;
        let mut merged = Vec::with_capacity(places.len());
        for pair in places.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let (Some((&first, after_first)), Some((&second, after_second))) =
                (left.split_first(), right.split_first())
            {
                if order(Asked::Less, &keys[second], &keys[first], meter)? {
                    merged.push(second);
                    right = after_second;
                } else {
                    merged.push(first);
                    left = after_first;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        places = merged;
        width *= 2;
    }
    // One element was compared with nothing, and Python does not look at it either.
    Ok(places)
}

/// What `min` or `max` chooses from: one argument's elements, or the arguments.
pub(crate) fn candidates<'a>(
    arguments: &[Value<'a>],
    meter: &mut Meter,
) -> Result<Vec<Value<'a>>, Fault> {
    match arguments {
        [single] => collect(single, meter),
        several => Ok(several.to_vec()),
    }
}

/// The place of the first element that is beyond all others.
pub(crate) fn extreme_of<'a>(
    keys: &[Value<'a>],
    asked: Asked,
    meter: &mut Meter,
) -> Result<Option<usize>, Fault> {
    let mut best = 0;
    for at in 1..keys.len() {
        meter.work(1)?;
        if order(asked, &keys[at], &keys[best], meter)? {
            best = at;
        }
    }
    Ok((!keys.is_empty()).then_some(best))
}

fn extreme<'a>(
    arguments: &[Value<'a>],
    asked: Asked,
    default: Option<Value<'a>>,
    meter: &mut Meter,
) -> Result<Value<'a>, Fault> {
    let candidates = candidates(arguments, meter)?;
    let best = extreme_of(&candidates, asked, meter)?;
    best.and_then(|at| candidates.get(at).cloned())
        .or(default)
        .ok_or_else(|| Fault::value_error("there is nothing to choose from"))
}
