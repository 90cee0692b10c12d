//! `"%s of %d" % values`, and the filter `format`.

use std::iter::Peekable;
use std::str::Chars;

use crate::error::{Fault, Result};
use crate::layout::{Align, Layout, Sign, shown, truncated, wrong};
use crate::meter::Meter;
use crate::ops::{as_float, as_int, lookup};
use crate::value::{Dict, Value};

/// Where the values come from.
struct Source<'a, 'v> {
    values: &'a [Value<'v>],
    dict: Option<Dict<'v>>,
    next: usize,
}

/// The operator: a tuple gives the values in order, a mapping by name, anything else is the one.
pub(crate) fn percent<'v>(
    meter: &mut Meter,
    format: &Value<'v>,
    values: &Value<'v>,
) -> Result<Value<'v>> {
    let Some(text) = format.as_str() else {
        return Err(Fault::operation("only a text can be formatted"));
    };
    match values {
        Value::Tuple(_) => {
            let values = values.to_vec(meter)?;
            printf(meter, text, &values, None)
        }
        Value::Dict(dict) => printf(
            meter,
            text,
            std::slice::from_ref(values),
            Some(dict.clone()),
        ),
        one => printf(meter, text, std::slice::from_ref(one), None),
    }
}

/// Python lets a single list or mapping be left over, and takes what is missing for one of them.
fn may_remain(values: &[Value<'_>]) -> bool {
    matches!(
        values,
        [Value::List(_) | Value::Dict(_) | Value::Undefined(_)]
    )
}

pub(crate) fn printf<'v>(
    meter: &mut Meter,
    format: &str,
    values: &[Value<'v>],
    dict: Option<Dict<'v>>,
) -> Result<Value<'v>> {
    meter.steps(format.len())?;
    let by_name = dict.is_some();
    let mut source = Source {
        values,
        dict,
        next: 0,
    };
    let mut text = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            meter.push(&mut text, c.encode_utf8(&mut [0; 4]))?;
        } else {
            let piece = conversion(meter, &mut chars, &mut source)?;
            meter.push(&mut text, &piece)?;
        }
    }
    if !by_name && source.next < values.len() && !may_remain(values) {
        return Err(Fault::operation(
            "the format does not use all of its values",
        ));
    }
    Ok(Value::made(text))
}

/// One `%…` after its `%`.
fn conversion<'v>(
    meter: &mut Meter,
    chars: &mut Peekable<Chars<'_>>,
    source: &mut Source<'_, 'v>,
) -> Result<String> {
    let named = chars.next_if_eq(&'(').is_some();
    let name = named.then(|| chars.by_ref().take_while(|c| *c != ')').collect::<String>());
    let (mut layout, zero) = flags(chars);
    layout.width = count(meter, chars, source)?.unwrap_or(0);
    if chars.next_if_eq(&'.').is_some() {
        layout.precision = Some(count(meter, chars, source)?.unwrap_or(0));
    }
    let Some(kind) = chars.next() else {
        return Err(Fault::operation("the format ends within a `%`"));
    };
    if kind == '%' {
        return Ok("%".into());
    }
    let value = source.take(meter, name.as_deref())?;
    if zero && layout.align.is_none() && !"srac".contains(kind) {
        (layout.fill, layout.align) = ('0', Some(Align::AfterSign));
    }
    lay_out(meter, layout, kind, &value)
}

fn flags(chars: &mut Peekable<Chars<'_>>) -> (Layout, bool) {
    let mut layout = Layout {
        align: None,
        ..Layout::default()
    };
    let mut zero = false;
    while let Some(flag) = chars.next_if(|c| "#0- +".contains(*c)) {
        match flag {
            '#' => layout.alternate = true,
            '0' => zero = true,
            '-' => layout.align = Some(Align::Left),
            '+' => layout.sign = Sign::Plus,
            _ if layout.sign == Sign::OnlyMinus => layout.sign = Sign::Space,
            _ => {}
        }
    }
    (layout, zero)
}

/// A width or precision: digits, or `*` for the next value.
fn count<'v>(
    meter: &mut Meter,
    chars: &mut Peekable<Chars<'_>>,
    source: &mut Source<'_, 'v>,
) -> Result<Option<usize>> {
    if chars.next_if_eq(&'*').is_some() {
        let value = source.take(meter, None)?;
        let count = as_int(&value).and_then(|count| usize::try_from(count).ok());
        return match count {
            Some(count) => Ok(Some(count)),
            None => Err(wrong("a width", &value)),
        };
    }
    Ok(digits(chars))
}

/// A number in the source; more digits than fit are as good as the largest number.
pub(crate) fn digits(chars: &mut Peekable<Chars<'_>>) -> Option<usize> {
    let mut number: Option<usize> = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        let digit = digit as usize - '0' as usize;
        number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
    }
    number
}

fn lay_out(meter: &mut Meter, layout: Layout, kind: char, value: &Value<'_>) -> Result<String> {
    // Text stands right in a printf field, unless told otherwise.
    let text = Layout {
        align: layout.align.or(Some(Align::Right)),
        ..layout
    };
    match kind {
        's' | 'r' | 'a' => {
            let shown = shown(meter, value, kind)?;
            text.text(meter, &shown)
        }
        'c' => {
            let shown = character(value)?;
            text.text(meter, &shown)
        }
        'd' | 'i' | 'u' => layout.int(meter, truncated(value)?, 'd'),
        'o' | 'x' | 'X' => match as_int(value) {
            Some(int) => layout.int(meter, int, kind),
            None => Err(wrong("a whole number", value)),
        },
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => match as_float(value) {
            Some(float) => layout.float(meter, float, kind),
            None => Err(wrong("a number", value)),
        },
        other => Err(Fault::operation(format!("`%{other}` is no format"))),
    }
}

fn character(value: &Value<'_>) -> Result<String> {
    if let Some(text) = value.as_str().filter(|text| text.chars().count() == 1) {
        return Ok(text.to_owned());
    }
    let code = as_int(value).and_then(|code| u32::try_from(code).ok());
    match code.and_then(char::from_u32) {
        Some(c) => Ok(c.to_string()),
        None => Err(wrong("a character", value)),
    }
}

impl<'v> Source<'_, 'v> {
    fn take(&mut self, meter: &mut Meter, name: Option<&str>) -> Result<Value<'v>> {
        if let Some(name) = name {
            let Some(dict) = &self.dict else {
                return Err(Fault::operation(
                    "the format names its values: it needs a mapping",
                ));
            };
            let key = Value::text(meter, name)?;
            return match lookup(meter, dict, &key)? {
                Some(value) => Ok(value),
                None => Err(Fault::operation(format!(
                    "the format needs a value `{name}`"
                ))),
            };
        }
        let value = self.values.get(self.next).cloned();
        self.next += 1;
        value.ok_or_else(|| Fault::operation("the format needs more values"))
    }
}
