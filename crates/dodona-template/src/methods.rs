//! Methods of texts, lists and mappings: those of Python's that change nothing.

use crate::args::{Args, count_or, flag, int_or, needed};
use crate::error::{ErrorKind, Fault, Result};
use crate::functions::check_key;
use crate::meter::Meter;
use crate::ops::{equal, lookup};
use crate::show::Building;
use crate::show::Sink as _;
use crate::strformat;
use crate::text;
use crate::value::{Dict, Seq, Text, Value};

pub(crate) fn call<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    name: &str,
    args: Args<'v>,
) -> Result<Value<'v>> {
    let called = match value {
        Value::Str(text) => text_method(meter, text, name, args)?,
        Value::Dict(dict) => dict_method(meter, dict, name, args)?,
        Value::List(seq) | Value::Tuple(seq) => list_method(meter, seq, name, args)?,
        _ => None,
    };
    called.ok_or_else(|| {
        let message = format!(
            "a value of type {} has no method `{name}`",
            value.type_name()
        );
        Fault::new(ErrorKind::Undefined, message)
    })
}

fn dict_method<'v>(
    meter: &mut Meter,
    dict: &Dict<'v>,
    name: &str,
    args: Args<'v>,
) -> Result<Option<Value<'v>>> {
    if name == "get" {
        let [key, default] = args.bind(["key", "default"])?;
        let key = needed(key, "key")?;
        check_key(&key)?;
        let found = lookup(meter, dict, &key)?;
        return Ok(Some(found.or(default).unwrap_or(Value::None)));
    }
    if !matches!(name, "keys" | "values" | "items") {
        return Ok(None);
    }
    args.none()?;
    let mut list = Vec::new();
    for (key, value) in dict.pairs(meter)? {
        list.push(match name {
            "keys" => key,
            "values" => value,
            _ => Value::tuple(meter, vec![key, value])?,
        });
    }
    Value::list(meter, list).map(Some)
}

fn list_method<'v>(
    meter: &mut Meter,
    seq: &Seq<'v>,
    name: &str,
    args: Args<'v>,
) -> Result<Option<Value<'v>>> {
    if !matches!(name, "count" | "index") {
        return Ok(None);
    }
    let [value] = args.bind(["value"])?;
    let value = needed(value, "value")?;
    let mut count = 0;
    for (index, item) in seq.iter().enumerate() {
        if equal(meter, &item, &value)? {
            if name == "index" {
                return Ok(Some(Value::Int(index as i128)));
            }
            count += 1;
        }
    }
    match name {
        "count" => Ok(Some(Value::Int(count))),
        _ => Err(Fault::operation("the value is not in the list")),
    }
}

fn text_method<'v>(
    meter: &mut Meter,
    text: &Text<'v>,
    name: &str,
    args: Args<'v>,
) -> Result<Option<Value<'v>>> {
    meter.memory(text.len())?;
    let value = match name {
        "format" => strformat::format(meter, text, &args)?,
        "join" => join(meter, text, args)?,
        "replace" => replace(meter, text, args)?,
        "split" | "rsplit" => split(meter, text, name == "rsplit", args)?,
        "splitlines" => {
            let [keep] = args.bind(["keepends"])?;
            texts(meter, text::lines(text, flag(keep)))?
        }
        "partition" | "rpartition" => partition(meter, text, name == "rpartition", args)?,
        "strip" | "lstrip" | "rstrip" => {
            let [chars] = args.bind(["chars"])?;
            let chars = chars.filter(|chars| !matches!(chars, Value::None));
            let chars = chars
                .as_ref()
                .map(|chars| string(chars, "chars"))
                .transpose()?;
            let stripped = text::strip(text, chars, name != "rstrip", name != "lstrip");
            Value::text(meter, stripped)?
        }
        "removeprefix" | "removesuffix" => {
            let [affix] = args.bind(["affix"])?;
            let affix = needed(affix, "affix")?;
            let affix = string(&affix, "affix")?;
            let kept = match name {
                "removeprefix" => text.strip_prefix(affix),
                _ => text.strip_suffix(affix),
            };
            Value::text(meter, kept.unwrap_or(text))?
        }
        "startswith" | "endswith" => starts_or_ends(text, name == "startswith", args)?,
        "count" | "find" | "rfind" | "index" | "rindex" => find(text, name, args)?,
        "center" | "ljust" | "rjust" | "zfill" => pad(meter, text, name, args)?,
        _ => return plain_text_method(meter, text, name, args),
    };
    Ok(Some(value))
}

/// Methods without arguments.
fn plain_text_method<'v>(
    meter: &mut Meter,
    text: &str,
    name: &str,
    args: Args<'v>,
) -> Result<Option<Value<'v>>> {
    let all = |test: fn(char) -> bool| Value::Bool(!text.is_empty() && text.chars().all(test));
    let value = match name {
        "upper" => Value::text(meter, text.to_uppercase())?,
        "lower" | "casefold" => Value::text(meter, text.to_lowercase())?,
        "capitalize" => Value::text(meter, text::capitalize(text))?,
        "title" => Value::text(meter, text::words(text, |c| !c.is_alphabetic()))?,
        "swapcase" => Value::text(meter, swapcase(text))?,
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isdigit" | "isdecimal" | "isnumeric" => all(char::is_numeric),
        "isspace" => all(char::is_whitespace),
        "isascii" => Value::Bool(text.is_ascii()),
        "islower" | "isupper" => Value::Bool(is_case(
            &Value::Str(Text::Borrowed(text)),
            name == "isupper",
        )),
        _ => return Ok(None),
    };
    args.none()?;
    Ok(Some(value))
}

fn swapcase(text: &str) -> String {
    let mut swapped = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_uppercase() {
            true => swapped.extend(c.to_lowercase()),
            false => swapped.extend(c.to_uppercase()),
        }
    }
    swapped
}

/// Whether a text has letters of this case and none of the other.
pub(crate) fn is_case(value: &Value<'_>, upper: bool) -> bool {
    let Some(text) = value.as_str() else {
        return false;
    };
    let any_upper = text.chars().any(char::is_uppercase);
    let any_lower = text.chars().any(char::is_lowercase);
    if upper {
        any_upper && !any_lower
    } else {
        any_lower && !any_upper
    }
}

fn string<'a>(value: &'a Value<'_>, name: &str) -> Result<&'a str> {
    let wrong = || Fault::operation(format!("`{name}` must be a text"));
    value.as_str().ok_or_else(wrong)
}

fn texts<'v>(meter: &mut Meter, pieces: Vec<&str>) -> Result<Value<'v>> {
    let mut list = Vec::new();
    for piece in pieces {
        meter.memory(size_of::<Value<'_>>())?;
        list.push(Value::text(meter, piece)?);
    }
    Value::list(meter, list)
}

fn join<'v>(meter: &mut Meter, separator: &str, args: Args<'v>) -> Result<Value<'v>> {
    let [items] = args.bind(["iterable"])?;
    let items = needed(items, "iterable")?.to_vec(meter)?;
    let mut building = Building::new(meter);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            building.push(separator)?;
        }
        building.push(string(item, "iterable")?)?;
    }
    Ok(Value::made(building.text))
}

fn replace<'v>(meter: &mut Meter, text: &str, args: Args<'v>) -> Result<Value<'v>> {
    let [old, new, count] = args.bind(["old", "new", "count"])?;
    let (old, new) = (needed(old, "old")?, needed(new, "new")?);
    let count = int_or(count, "count", -1)?;
    let replaced = text::replaced(
        meter,
        text,
        string(&old, "old")?,
        string(&new, "new")?,
        count,
    )?;
    Ok(Value::made(replaced))
}

fn split<'v>(meter: &mut Meter, text: &str, from_end: bool, args: Args<'v>) -> Result<Value<'v>> {
    let [separator, most] = args.bind(["sep", "maxsplit"])?;
    let most = int_or(most, "maxsplit", -1)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let pieces = match separator.filter(|separator| !matches!(separator, Value::None)) {
        None => split_spaces(text, most, from_end),
        Some(separator) => {
            let separator = string(&separator, "sep")?;
            if separator.is_empty() {
                return Err(Fault::operation("`sep` must not be empty"));
            }
            let most = most.saturating_add(1);
            match from_end {
                false => text.splitn(most, separator).collect(),
                true => {
                    let mut pieces: Vec<_> = text.rsplitn(most, separator).collect();
                    pieces.reverse();
                    pieces
                }
            }
        }
    };
    texts(meter, pieces)
}

fn trim_near(text: &str, from_end: bool) -> &str {
    match from_end {
        false => text.trim_start(),
        true => text.trim_end(),
    }
}

/// Splits at runs of white space, at most so often; what is left keeps the space at its far end.
fn split_spaces(text: &str, most: usize, from_end: bool) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = trim_near(text, from_end);
    while !rest.is_empty() {
        let space = match from_end {
            false => rest.find(char::is_whitespace),
            true => rest.rfind(char::is_whitespace),
        };
        let Some(at) = space.filter(|_| pieces.len() < most) else {
            pieces.push(rest);
            break;
        };
        let after = at + rest[at..].chars().next().map_or(1, char::len_utf8);
        let (piece, left) = match from_end {
            false => (&rest[..at], &rest[after..]),
            true => (&rest[after..], &rest[..at]),
        };
        pieces.push(piece);
        rest = trim_near(left, from_end);
    }
    if from_end {
        pieces.reverse();
    }
    pieces
}

fn partition<'v>(
    meter: &mut Meter,
    text: &str,
    from_end: bool,
    args: Args<'v>,
) -> Result<Value<'v>> {
    let [separator] = args.bind(["sep"])?;
    let separator = needed(separator, "sep")?;
    let separator = string(&separator, "sep")?;
    if separator.is_empty() {
        return Err(Fault::operation("`sep` must not be empty"));
    }
    let split = match from_end {
        false => text.split_once(separator),
        true => text.rsplit_once(separator),
    };
    let parts = match (split, from_end) {
        (Some((before, after)), _) => [before, separator, after],
        (None, false) => [text, "", ""],
        (None, true) => ["", "", text],
    };
    let parts = parts.map(|part| Value::text(meter, part));
    let parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
    Value::tuple(meter, parts)
}

fn starts_or_ends<'v>(text: &str, starts: bool, args: Args<'v>) -> Result<Value<'v>> {
    let [affix] = args.bind(["affix"])?;
    let holds = |affix: &str| match starts {
        true => text.starts_with(affix),
        false => text.ends_with(affix),
    };
    match needed(affix, "affix")? {
        Value::Tuple(affixes) => {
            for affix in affixes.iter() {
                if holds(string(&affix, "affix")?) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        affix => Ok(Value::Bool(holds(string(&affix, "affix")?))),
    }
}

fn find<'v>(text: &str, name: &str, args: Args<'v>) -> Result<Value<'v>> {
    let [part] = args.bind(["sub"])?;
    let part = needed(part, "sub")?;
    let part = string(&part, "sub")?;
    let at = match name {
        "count" if part.is_empty() => return Ok(Value::Int(text.chars().count() as i128 + 1)),
        "count" => return Ok(Value::Int(text.matches(part).count() as i128)),
        "find" | "index" => text.find(part),
        _ => text.rfind(part),
    };
    match at {
        Some(at) => Ok(Value::Int(text[..at].chars().count() as i128)),
        None if name.ends_with("index") => Err(Fault::operation("the text does not contain it")),
        None => Ok(Value::Int(-1)),
    }
}

fn pad<'v>(meter: &mut Meter, text: &str, name: &str, args: Args<'v>) -> Result<Value<'v>> {
    let [width, fill] = args.bind(["width", "fillchar"])?;
    let width = count_or(Some(needed(width, "width")?), "width", 0)?;
    let fill = match &fill {
        None => ' ',
        Some(fill) => {
            let mut chars = string(fill, "fillchar")?.chars();
            match (chars.next(), chars.next()) {
                (Some(fill), None) => fill,
                _ => return Err(Fault::operation("`fillchar` must be one character")),
            }
        }
    };
    let missing = width.saturating_sub(text.chars().count());
    let padded = match name {
        "center" => text::centered(meter, text, width, fill)?,
        "ljust" => text::padded(meter, text, 0, missing, fill)?,
        "rjust" => text::padded(meter, text, missing, 0, fill)?,
        _ => {
            let sign = usize::from(text.starts_with(['+', '-']));
            text[..sign].to_owned() + &text::padded(meter, &text[sign..], missing, 0, '0')?
        }
    };
    Ok(Value::made(padded))
}
