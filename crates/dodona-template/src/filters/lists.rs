//! Filters about whole lists and mappings.

use super::texts::joined;
use crate::access;
use crate::args::{Args, count_or, needed};
use crate::error::{Fault, Result};
use crate::meter::Meter;
use crate::show::text_of;
use crate::value::Value;

pub(super) fn length<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    args.none()?;
    let length = match &value {
        Value::Undefined(_) => 0,
        Value::Str(text) => {
            meter.read(text.len())?;
            text.chars().count()
        }
        Value::List(seq) | Value::Tuple(seq) => seq.len(),
        Value::Dict(dict) => dict.len(meter)?,
        other => {
            let message = format!("a value of type {} has no length", other.type_name());
            return Err(Fault::operation(message));
        }
    };
    Ok(Value::Int(length as i128))
}

pub(super) fn list<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    args.none()?;
    let items = value.to_vec(meter)?;
    Value::list(meter, items)
}

pub(super) fn reverse<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    args.none()?;
    if let Value::Str(text) = &value {
        meter.memory(text.len())?;
        return Ok(Value::made(text.chars().rev().collect()));
    }
    let mut items = value.to_vec(meter)?;
    items.reverse();
    Value::list(meter, items)
}

pub(super) fn join<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [separator, attribute] = args.bind(["d", "attribute"])?;
    let separator = separator.map_or(Ok(String::new()), |d| text_of(meter, &d))?;
    let attribute = attribute.filter(|attribute| !matches!(attribute, Value::None));
    let mut items = value.to_vec(meter)?;
    if let Some(attribute) = attribute {
        for item in &mut items {
            *item = access::path(meter, item, &attribute)?;
        }
    }
    joined(meter, items.into_iter(), &separator)
}

pub(super) fn items<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    args.none()?;
    match &value {
        Value::Undefined(_) => Value::list(meter, Vec::new()),
        Value::Dict(dict) => {
            let pairs = dict.pairs(meter)?.into_iter();
            let pairs = pairs.map(|(key, value)| Value::tuple(meter, vec![key, value]));
            let pairs = pairs.collect::<Result<Vec<_>>>()?;
            Value::list(meter, pairs)
        }
        _ => Err(Fault::operation("`items` is for mappings")),
    }
}

/// Lists of so many elements, the last one filled up if there is something to fill it with.
pub(super) fn batch<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [count, fill] = args.bind(["linecount", "fill_with"])?;
    let count = count_or(Some(needed(count, "linecount")?), "linecount", 0)?;
    if count == 0 {
        return Err(Fault::operation("`linecount` must be at least 1"));
    }
    let fill = fill.filter(|fill| !matches!(fill, Value::None));
    let items = value.to_vec(meter)?;
    let mut batches = Vec::new();
    for batch in items.chunks(count) {
        let mut batch = batch.to_vec();
        if let Some(fill) = &fill {
            meter.memory((count - batch.len()).saturating_mul(size_of::<Value<'_>>()))?;
            batch.resize(count, fill.clone());
        }
        batches.push(Value::list(meter, batch)?);
    }
    Value::list(meter, batches)
}

/// So many lists, the first ones longer by one where it does not come out even.
pub(super) fn slice<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [count, fill] = args.bind(["slices", "fill_with"])?;
    let count = count_or(Some(needed(count, "slices")?), "slices", 0)?;
    if count == 0 {
        return Err(Fault::operation("`slices` must be at least 1"));
    }
    let fill = fill.filter(|fill| !matches!(fill, Value::None));
    let items = value.to_vec(meter)?;
    meter.memory(count.saturating_mul(size_of::<Value<'_>>()))?;
    meter.steps(count)?;
    let (each, longer) = (items.len() / count, items.len() % count);
    let mut rest = items.into_iter();
    let mut slices = Vec::with_capacity(count);
    for index in 0..count {
        let take = each + usize::from(index < longer);
        let mut slice: Vec<_> = rest.by_ref().take(take).collect();
        if let Some(fill) = &fill
            && index >= longer
        {
            slice.push(fill.clone());
        }
        slices.push(Value::list(meter, slice)?);
    }
    Value::list(meter, slices)
}
