//! Filters that make text.

use crate::args::{Args, count_or, flag, int_or, needed};
use crate::error::{Fault, Result};
use crate::json;
use crate::meter::Meter;
use crate::ops::as_int;
use crate::printf::printf;
use crate::show::{Building, Sink, text_of, write_str};
use crate::text;
use crate::value::{Dict, Value};

/// Text made from the value's text by a function that makes it at most three times as long.
fn mapped<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    change: impl Fn(&str) -> String,
) -> Result<Value<'v>> {
    let text = text_of(meter, value)?;
    meter.memory(text.len())?;
    Ok(Value::made(change(&text)))
}

pub(super) fn upper<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    args.none()?;
    mapped(meter, &value, str::to_uppercase)
}

pub(super) fn lower<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    args.none()?;
    mapped(meter, &value, str::to_lowercase)
}

pub(super) fn capitalize<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    args.none()?;
    mapped(meter, &value, text::capitalize)
}

/// Unlike the method of this name, words begin only after white space and opening brackets.
pub(super) fn title<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    args.none()?;
    mapped(meter, &value, |text| {
        text::words(text, |c| c.is_whitespace() || "-({[<".contains(c))
    })
}

pub(super) fn trim<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [chars] = args.bind(["chars"])?;
    let chars = chars.filter(|chars| !matches!(chars, Value::None));
    let chars = chars.map(|chars| text_of(meter, &chars)).transpose()?;
    mapped(meter, &value, |text| {
        text::strip(text, chars.as_deref(), true, true).to_owned()
    })
}

pub(super) fn string<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    args.none()?;
    match value {
        Value::Str(_) => Ok(value),
        other => Ok(Value::made(text_of(meter, &other)?)),
    }
}

pub(super) fn center<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [width] = args.bind(["width"])?;
    let width = count_or(width, "width", 80)?;
    let text = text_of(meter, &value)?;
    text::centered(meter, &text, width, ' ').map(Value::made)
}

pub(super) fn replace<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    let [old, new, count] = args.bind(["old", "new", "count"])?;
    let text = text_of(meter, &value)?;
    let old = text_of(meter, &needed(old, "old")?)?;
    let new = text_of(meter, &needed(new, "new")?)?;
    let count = count.filter(|count| !matches!(count, Value::None));
    let count = int_or(count, "count", -1)?;
    text::replaced(meter, &text, &old, &new, count).map(Value::made)
}

pub(super) fn indent<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [width, first, blank] = args.bind(["width", "first", "blank"])?;
    value.defined()?;
    let text = only_text(&value, "indent")?;
    meter.memory(text.len())?;
    let indent = match width {
        Some(Value::Str(indent)) => indent.to_string(),
        width => {
            let width = count_or(width, "width", 4)?;
            meter.memory(width)?;
            " ".repeat(width)
        }
    };
    let (first, blank) = (flag(first), flag(blank));
    let mut building = Building::new(meter);
    // One line end more, so that a text which ends with one keeps an empty last line.
    let text = format!("{text}\n");
    for (index, line) in text::lines(&text, false).into_iter().enumerate() {
        if index > 0 {
            building.push("\n")?;
        }
        if if index == 0 {
            first
        } else {
            blank || !line.is_empty()
        } {
            building.push(&indent)?;
        }
        building.push(line)?;
    }
    Ok(Value::made(building.text))
}

pub(super) fn truncate<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    let [length, killwords, end, leeway] = args.bind(["length", "killwords", "end", "leeway"])?;
    let end = end.map_or(Ok("...".into()), |end| text_of(meter, &end))?;
    let length = count_or(length, "length", 255)?;
    let leeway = leeway.filter(|leeway| !matches!(leeway, Value::None));
    let leeway = count_or(leeway, "leeway", 5)?;
    let ending = end.chars().count();
    if length < ending {
        return Err(Fault::operation(format!(
            "`length` must be at least {ending}"
        )));
    }
    // Whatever has a length and is short enough stays what it is.
    let found = match &value {
        Value::Undefined(_) => 0,
        Value::List(seq) | Value::Tuple(seq) => seq.len(),
        Value::Dict(dict) => dict.len(meter)?,
        text => only_text(text, "truncate")?.chars().count(),
    };
    if found <= length.saturating_add(leeway) {
        return Ok(value);
    }
    let text = only_text(&value, "truncate")?;
    meter.memory(text.len() + end.len())?;
    let kept: String = text.chars().take(length - ending).collect();
    let kept = match flag(killwords) {
        true => &kept,
        false => kept.rsplit_once(' ').map_or(&*kept, |(before, _)| before),
    };
    Ok(Value::made(format!("{kept}{end}")))
}

/// These filters do not turn other values into text.
fn only_text<'a>(value: &'a Value<'_>, filter: &str) -> Result<&'a str> {
    let wrong = || Fault::operation(format!("`{filter}` is for texts"));
    value.as_str().ok_or_else(wrong)
}

pub(super) fn wordcount<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    args.none()?;
    let text = text_of(meter, &value)?;
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let count = words.filter(|word| !word.is_empty()).count();
    Ok(Value::Int(count as i128))
}

pub(super) fn format<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let text = text_of(meter, &value)?;
    let names: Vec<_> = args.names().cloned().collect();
    if names.is_empty() {
        return printf(meter, &text, args.positional(), None);
    }
    if !args.positional().is_empty() {
        return Err(Fault::operation(
            "`format` takes values either in order or by name",
        ));
    }
    let named = Args::new(Vec::new(), names);
    match crate::functions::dict(meter, named)? {
        Value::Dict(dict @ Dict::Own(_)) => printf(meter, &text, &[], Some(dict)),
        other => Err(Fault::operation(format!(
            "no values by name in {}",
            other.type_name()
        ))),
    }
}

pub(super) fn tojson<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [indent] = args.bind(["indent"])?;
    let indent = match indent {
        None | Some(Value::None) => None,
        Some(Value::Str(indent)) => Some(indent.to_string()),
        Some(indent) => {
            let width = as_int(&indent).and_then(|width| usize::try_from(width.max(0)).ok());
            let width = width.ok_or_else(|| Fault::operation("`indent` must be a whole number"))?;
            meter.memory(width)?;
            Some(" ".repeat(width))
        }
    };
    json::write(meter, &value, indent.as_deref())
}

pub(super) fn urlencode<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    args.none()?;
    let pairs = match &value {
        Value::Str(text) => return percent_encoded(meter, text, true).map(Value::made),
        Value::Dict(dict) => dict.pairs(meter)?,
        Value::List(_) | Value::Tuple(_) => {
            let mut pairs = Vec::new();
            for item in value.to_vec(meter)? {
                match &item.to_vec(meter)?[..] {
                    [key, value] => pairs.push((key.clone(), value.clone())),
                    _ => return Err(Fault::operation("`urlencode` takes pairs")),
                }
            }
            pairs
        }
        other => {
            let text = text_of(meter, other)?;
            return percent_encoded(meter, &text, true).map(Value::made);
        }
    };
    let mut encoded = String::new();
    for (index, (key, value)) in pairs.iter().enumerate() {
        let separator = if index > 0 { "&" } else { "" };
        let key = text_of(meter, key)?;
        let value = text_of(meter, value)?;
        let key = percent_encoded(meter, &key, false)?;
        let value = percent_encoded(meter, &value, false)?;
        meter.push(&mut encoded, &format!("{separator}{key}={value}"))?;
    }
    Ok(Value::made(encoded))
}

/// In a path a slash stays; in a query a space is `+`.
fn percent_encoded(meter: &mut Meter, text: &str, path: bool) -> Result<String> {
    meter.memory(text.len().saturating_mul(3))?;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                encoded.push(char::from(byte));
            }
            b'/' if path => encoded.push('/'),
            b' ' if !path => encoded.push('+'),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(encoded)
}

/// Joins texts with a separator.
pub(super) fn joined<'v>(
    meter: &mut Meter,
    values: impl Iterator<Item = Value<'v>>,
    separator: &str,
) -> Result<Value<'v>> {
    let mut building = Building::new(meter);
    for (index, value) in values.enumerate() {
        building.meter().steps(1)?;
        if index > 0 {
            building.push(separator)?;
        }
        write_str(&mut building, &value)?;
    }
    Ok(Value::made(building.text))
}
