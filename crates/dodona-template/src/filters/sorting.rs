//! Filters that compare elements.

use std::cmp::Ordering;

use crate::access;
use crate::args::{Args, flag, needed};
use crate::error::{Fault, Result};
use crate::meter::Meter;
use crate::ops::{equal, order};
use crate::value::Value;

/// An element with what it is compared by.
type Keyed<'v> = (Value<'v>, Value<'v>);

/// The key of an element: an attribute or several, without regard to case unless told otherwise.
fn key<'v>(
    meter: &mut Meter,
    item: &Value<'v>,
    attribute: Option<&Value<'v>>,
    case_sensitive: bool,
) -> Result<Value<'v>> {
    let value = match attribute {
        Some(attribute) => access::path(meter, item, attribute)?,
        None => item.clone(),
    };
    folded(meter, value, case_sensitive)
}

fn folded<'v>(meter: &mut Meter, value: Value<'v>, case_sensitive: bool) -> Result<Value<'v>> {
    match &value {
        Value::Str(text) if !case_sensitive => Value::text(meter, text.to_lowercase()),
        _ => Ok(value),
    }
}

/// `sort` compares by several attributes if they are separated by commas.
fn sort_key<'v>(
    meter: &mut Meter,
    item: &Value<'v>,
    attribute: Option<&Value<'v>>,
    case_sensitive: bool,
) -> Result<Value<'v>> {
    match attribute {
        Some(Value::Str(names)) if names.contains(',') => {
            let mut keys = Vec::new();
            for name in names.split(',') {
                let name = Value::text(meter, name.trim())?;
                keys.push(key(meter, item, Some(&name), case_sensitive)?);
            }
            Value::tuple(meter, keys)
        }
        attribute => key(meter, item, attribute, case_sensitive),
    }
}

/// A stable sort that can fail, and that does not mind an order which is none (NaN).
fn merge_sort<'v>(
    meter: &mut Meter,
    items: Vec<Keyed<'v>>,
    reverse: bool,
) -> Result<Vec<Keyed<'v>>> {
    if items.len() < 2 {
        return Ok(items);
    }
    let mut left = items;
    let right = left.split_off(left.len() / 2);
    let left = merge_sort(meter, left, reverse)?;
    let right = merge_sort(meter, right, reverse)?;
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
        let ordering = order(meter, "<", &second.0, &first.0)?;
        let second_first = match reverse {
            false => ordering == Some(Ordering::Less),
            true => ordering == Some(Ordering::Greater),
        };
        merged.extend(if second_first {
            right.next()
        } else {
            left.next()
        });
    }
    merged.extend(left);
    merged.extend(right);
    Ok(merged)
}

pub(super) fn sort<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [reverse, case, attribute] = args.bind(["reverse", "case_sensitive", "attribute"])?;
    let attribute = attribute.filter(|attribute| !matches!(attribute, Value::None));
    let case = flag(case);
    let mut keyed = Vec::new();
    for item in value.to_vec(meter)? {
        keyed.push((sort_key(meter, &item, attribute.as_ref(), case)?, item));
    }
    let sorted = merge_sort(meter, keyed, flag(reverse))?;
    Value::list(meter, sorted.into_iter().map(|(_, item)| item).collect())
}

pub(super) fn dictsort<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    let [case, by, reverse] = args.bind(["case_sensitive", "by", "reverse"])?;
    let Value::Dict(dict) = &value else {
        return Err(Fault::operation("`dictsort` is for mappings"));
    };
    let by_value = match by.as_ref().map_or(Some("key"), |by| by.as_str()) {
        Some("key") => false,
        Some("value") => true,
        _ => return Err(Fault::operation("`by` must be key or value")),
    };
    let case = flag(case);
    let mut keyed = Vec::new();
    for (key, value) in dict.pairs(meter)? {
        let by = if by_value { value.clone() } else { key.clone() };
        let by = folded(meter, by, case)?;
        keyed.push((by, Value::tuple(meter, vec![key, value])?));
    }
    let sorted = merge_sort(meter, keyed, flag(reverse))?;
    Value::list(meter, sorted.into_iter().map(|(_, item)| item).collect())
}

pub(super) fn groupby<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    let [attribute, default, case] = args.bind(["attribute", "default", "case_sensitive"])?;
    let attribute = needed(attribute, "attribute")?;
    let case = flag(case);
    let mut keyed = Vec::new();
    for item in value.to_vec(meter)? {
        let mut by = key(meter, &item, Some(&attribute), case)?;
        if let (true, Some(default)) = (by.is_undefined(), &default) {
            by = folded(meter, default.clone(), case)?;
        }
        keyed.push((by, item));
    }
    let mut groups: Vec<(Value<'v>, Vec<Value<'v>>)> = Vec::new();
    for (by, item) in merge_sort(meter, keyed, false)? {
        match groups.last_mut() {
            Some((last, items)) if equal(meter, last, &by)? => items.push(item),
            _ => groups.push((by, vec![item])),
        }
    }
    let mut tuples = Vec::with_capacity(groups.len());
    for (by, items) in groups {
        // What is shown is the first one's, whatever its case.
        let mut shown = access::path(meter, &items[0], &attribute)?;
        if shown.is_undefined() {
            shown = default.clone().unwrap_or(by);
        }
        let items = Value::list(meter, items)?;
        tuples.push(Value::named_tuple(
            meter,
            &["grouper", "list"],
            vec![shown, items],
        )?);
    }
    Value::list(meter, tuples)
}

pub(super) fn unique<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [case, attribute] = args.bind(["case_sensitive", "attribute"])?;
    let attribute = attribute.filter(|attribute| !matches!(attribute, Value::None));
    let case = flag(case);
    let mut seen: Vec<Value<'v>> = Vec::new();
    let mut kept = Vec::new();
    'items: for item in value.to_vec(meter)? {
        let by = key(meter, &item, attribute.as_ref(), case)?;
        for known in &seen {
            if equal(meter, known, &by)? {
                continue 'items;
            }
        }
        seen.push(by);
        kept.push(item);
    }
    Value::list(meter, kept)
}

pub(super) fn min<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    extreme(meter, &value, args, Ordering::Less)
}

pub(super) fn max<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    extreme(meter, &value, args, Ordering::Greater)
}

/// The first element that no other one is beyond.
fn extreme<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    args: Args<'v>,
    beyond: Ordering,
) -> Result<Value<'v>> {
    let [case, attribute] = args.bind(["case_sensitive", "attribute"])?;
    let attribute = attribute.filter(|attribute| !matches!(attribute, Value::None));
    let case = flag(case);
    let mut best: Option<Keyed<'v>> = None;
    for item in value.to_vec(meter)? {
        let by = key(meter, &item, attribute.as_ref(), case)?;
        let better = match &best {
            Some((known, _)) => order(meter, "<", &by, known)? == Some(beyond),
            None => true,
        };
        if better {
            best = Some((by, item));
        }
    }
    Ok(best.map_or(
        Value::Undefined("an element of an empty list"),
        |(_, item)| item,
    ))
}
