//! Filters that pick or change elements one by one.

use super::Filter;
use crate::access;
use crate::args::{Args, flag};
use crate::checks::Check;
use crate::error::{Fault, Result};
use crate::meter::Meter;
use crate::value::{Text, Value};

pub(super) fn default<'v>(_: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [default, boolean] = args.bind(["default_value", "boolean"])?;
    let missing = value.is_undefined() || (flag(boolean) && !value.is_true());
    match missing {
        true => Ok(default.unwrap_or(Value::Str(Text::Borrowed("")))),
        false => Ok(value),
    }
}

pub(super) fn first<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    args.none()?;
    let items = value.elements(meter)?;
    Ok(items.get(0).unwrap_or(Value::Undefined("first")))
}

pub(super) fn last<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    args.none()?;
    let items = value.elements(meter)?;
    let last = items
        .len()
        .checked_sub(1)
        .and_then(|index| items.get(index));
    Ok(last.unwrap_or(Value::Undefined("last")))
}

/// Either an attribute of each element, or a filter applied to each. As in Jinja2 whatever counts as
/// false has no elements, be it a list or the number 0, and nobody looks at the arguments then.
pub(super) fn map<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    if !value.is_true() {
        return Value::list(meter, Vec::new());
    }
    let mut items = value.to_vec(meter)?;
    if args.positional().is_empty() {
        let [attribute, default] = args.bind(["attribute", "default"])?;
        let Some(attribute) = attribute else {
            return Err(Fault::operation("`map` needs a filter or an attribute"));
        };
        for item in &mut items {
            let found = access::path(meter, item, &attribute)?;
            *item = match &default {
                Some(default) if found.is_undefined() => default.clone(),
                _ => found,
            };
        }
    } else {
        let filter = match args.positional().first() {
            Some(Value::Str(name)) => Filter::named(name)?,
            _ => return Err(Fault::operation("`map` needs the name of a filter")),
        };
        for item in &mut items {
            let args = rest(&args, 1);
            *item = filter.run(meter, item.clone(), args)?;
        }
    }
    Value::list(meter, items)
}

/// The arguments after the first ones.
fn rest<'v>(args: &Args<'v>, skip: usize) -> Args<'v> {
    let positional = args.positional().iter().skip(skip).cloned().collect();
    Args::new(positional, args.names().cloned().collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Passing,
    Failing,
}

/// The elements for which the test holds, or does not; of the element or of its attribute. What
/// counts as false has none, as for `map`.
fn filtered<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    args: &Args<'v>,
    by_attribute: bool,
    keep: Keep,
) -> Result<Value<'v>> {
    if !value.is_true() {
        return Value::list(meter, Vec::new());
    }
    let used = usize::from(by_attribute);
    let attribute = match (by_attribute, args.positional().first()) {
        (true, None) => return Err(Fault::operation("needs the name of an attribute")),
        (true, attribute) => attribute,
        (false, _) => None,
    };
    let check = match args.positional().get(used) {
        Some(Value::Str(name)) => Some(Check::named(name)?),
        Some(_) => return Err(Fault::operation("needs the name of a test")),
        None => None,
    };
    let mut kept = Vec::new();
    for item in value.to_vec(meter)? {
        let tested = match attribute {
            Some(attribute) => access::path(meter, &item, attribute)?,
            None => item.clone(),
        };
        let passes = match &check {
            Some(check) => check.run(meter, &tested, rest(args, used + 1))?,
            None => tested.is_true(),
        };
        if passes == (keep == Keep::Passing) {
            kept.push(item);
        }
    }
    Value::list(meter, kept)
}

pub(super) fn select<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    filtered(meter, &value, &args, false, Keep::Passing)
}

pub(super) fn reject<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    filtered(meter, &value, &args, false, Keep::Failing)
}

pub(super) fn selectattr<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    filtered(meter, &value, &args, true, Keep::Passing)
}

pub(super) fn rejectattr<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    filtered(meter, &value, &args, true, Keep::Failing)
}
