//! The functions that every template has.

use crate::args::Args;
use crate::error::{Fault, Result};
use crate::meter::Meter;
use crate::ops::{as_int, equal};
use crate::value::{Text, Value};

/// `range(stop)`, `range(start, stop)`, `range(start, stop, step)`.
pub(crate) fn range<'v>(meter: &mut Meter, args: Args<'v>) -> Result<Value<'v>> {
    let whole = |value: &Value<'_>| {
        as_int(value).ok_or_else(|| Fault::operation("`range` takes whole numbers"))
    };
    let bounds = args
        .positional()
        .iter()
        .map(whole)
        .collect::<Result<Vec<_>>>()?;
    if args.names().next().is_some() {
        return Err(Fault::operation("`range` takes no named arguments"));
    }
    let (start, stop, step) = match bounds[..] {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] => (start, stop, step),
        _ => return Err(Fault::operation("`range` takes one to three numbers")),
    };
    let span = if step > 0 { stop - start } else { start - stop };
    let count = match (step, span) {
        (0, _) => return Err(Fault::operation("`range` cannot have a step of 0")),
        (_, ..=0) => 0,
        (step, span) => (span - 1) / step.abs() + 1,
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    meter.steps(count)?;
    meter.memory(count.saturating_mul(size_of::<Value<'_>>()))?;
    let values = (0..count).map(|index| Value::Int(start + step * index as i128));
    let values = values.collect();
    Value::list(meter, values)
}

/// `dict(name=value, …)`.
pub(crate) fn dict<'v>(meter: &mut Meter, args: Args<'v>) -> Result<Value<'v>> {
    let mut pairs = match args.positional() {
        [] => Vec::new(),
        [Value::Dict(dict)] => dict.pairs(meter)?,
        _ => return Err(Fault::operation("`dict` takes a mapping and named values")),
    };
    for (name, value) in args.names() {
        let name = Value::Str(Text::Borrowed(name));
        insert(meter, &mut pairs, name, value.clone())?;
    }
    Value::dict(meter, pairs)
}

/// A list cannot be a key, as in Python.
pub(crate) fn check_key(key: &Value<'_>) -> Result<()> {
    match key {
        Value::List(_) | Value::Dict(_) | Value::Macro(_) => {
            let message = format!("a value of type {} cannot be a key", key.type_name());
            Err(Fault::operation(message))
        }
        _ => Ok(()),
    }
}

pub(crate) fn insert<'v>(
    meter: &mut Meter,
    pairs: &mut Vec<(Value<'v>, Value<'v>)>,
    key: Value<'v>,
    value: Value<'v>,
) -> Result<()> {
    for (known, old) in pairs.iter_mut() {
        if equal(meter, known, &key)? {
            *old = value;
            return Ok(());
        }
    }
    meter.memory(2 * size_of::<Value<'_>>())?;
    pairs.push((key, value));
    Ok(())
}
