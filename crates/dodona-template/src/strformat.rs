//! `"{} of {n:>5}".format(…)`.

use std::iter::Peekable;
use std::str::Chars;

use crate::access;
use crate::args::Args;
use crate::error::{Fault, Result};
use crate::layout::{Align, Layout, Sign, shown, wrong};
use crate::meter::Meter;
use crate::ops::{as_float, as_int};
use crate::printf::digits;
use crate::show::float_text;
use crate::value::Value;

pub(crate) fn format<'v>(meter: &mut Meter, format: &str, args: &Args<'v>) -> Result<Value<'v>> {
    meter.steps(format.len())?;
    let mut text = String::new();
    let mut chars = format.chars().peekable();
    let mut next = 0;
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' if chars.next_if_eq(&c).is_some() => meter.push(&mut text, &c.to_string())?,
            '}' => return Err(Fault::operation("a single `}` in the format")),
            '{' => {
                let piece = field(meter, &mut chars, args, &mut next)?;
                meter.push(&mut text, &piece)?;
            }
            c => meter.push(&mut text, c.encode_utf8(&mut [0; 4]))?,
        }
    }
    Ok(Value::made(text))
}

/// One `{…}` after its `{`.
fn field<'v>(
    meter: &mut Meter,
    chars: &mut Peekable<Chars<'_>>,
    args: &Args<'v>,
    next: &mut usize,
) -> Result<String> {
    let inner: String = chars.by_ref().take_while(|c| *c != '}').collect();
    if inner.contains('{') {
        return Err(Fault::unsupported("a field within a field of a format"));
    }
    let (name, spec) = inner.split_once(':').unwrap_or((&inner, ""));
    let (name, conversion) = match name.split_once('!') {
        Some((name, conversion @ ("r" | "s" | "a"))) => (name, conversion.chars().next()),
        Some(_) => return Err(Fault::operation("a format converts with !r, !s or !a")),
        None => (name, None),
    };
    let value = resolve(meter, name, args, next)?;
    match conversion {
        Some(conversion) => {
            let text = shown(meter, &value, conversion)?;
            lay_out(meter, spec, &Value::made(text))
        }
        None => lay_out(meter, spec, &value),
    }
}

/// `0`, `name`, `name.attribute`, `name[key]`, or nothing for the next value.
fn resolve<'v>(
    meter: &mut Meter,
    name: &str,
    args: &Args<'v>,
    next: &mut usize,
) -> Result<Value<'v>> {
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (first, mut rest) = name.split_at(end);
    let found = match first.parse::<usize>() {
        Ok(index) => args.positional().get(index).cloned(),
        Err(_) if first.is_empty() => {
            *next += 1;
            args.positional().get(*next - 1).cloned()
        }
        Err(_) => args.named(first).cloned(),
    };
    let missing = || Fault::operation(format!("the format needs a value `{first}`"));
    let mut value = found.ok_or_else(missing)?;
    while !rest.is_empty() {
        let part;
        (part, rest) = step(rest)?;
        let key = match part.parse::<u32>() {
            Ok(index) => Value::Int(index.into()),
            Err(_) => Value::text(meter, part)?,
        };
        value = access::item(meter, &value, &key)?;
        value.defined()?;
    }
    Ok(value)
}

fn step(rest: &str) -> Result<(&str, &str)> {
    if let Some(rest) = rest.strip_prefix('.') {
        Ok(rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())))
    } else {
        rest.strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .ok_or_else(|| Fault::operation("a format names its value as `a.b` or `a[b]`"))
    }
}

fn lay_out(meter: &mut Meter, spec: &str, value: &Value<'_>) -> Result<String> {
    let (layout, kind) = parse(spec)?;
    match (value, kind) {
        (Value::Int(_) | Value::Bool(_), None | Some('d' | 'b' | 'o' | 'x' | 'X'))
            if layout.precision.is_some() =>
        {
            Err(Fault::operation(
                "whole numbers are not formatted with a precision",
            ))
        }
        (Value::Str(text), None | Some('s')) => {
            let for_numbers = layout.grouped.is_some()
                || layout.alternate
                || layout.sign != Sign::OnlyMinus
                || layout.align == Some(Align::AfterSign);
            match for_numbers {
                true => Err(Fault::operation("the format is one for numbers")),
                false => layout.text(meter, text),
            }
        }
        (Value::Int(int), None | Some('d' | 'b' | 'o' | 'x' | 'X')) => {
            layout.int(meter, *int, kind.unwrap_or('d'))
        }
        (Value::Bool(_), Some('d' | 'b' | 'o' | 'x' | 'X')) => {
            layout.int(meter, as_int(value).unwrap_or(0), kind.unwrap_or('d'))
        }
        (Value::Float(float), None) => plain_float(meter, layout, *float),
        (_, Some(notation @ ('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%'))) => match as_float(value) {
            Some(float) => layout.float(meter, float, notation),
            None => Err(wrong("a number", value)),
        },
        (_, None) => {
            let text = shown(meter, value, 's')?;
            match spec.is_empty() || matches!(value, Value::Bool(_)) {
                true => layout.text(meter, &text),
                false => Err(Fault::operation("this value cannot be laid out")),
            }
        }
        (_, Some(kind)) => Err(Fault::operation(format!(
            "`{kind}` does not format this value"
        ))),
    }
}

/// A float without a notation: `repr`, or `g` that keeps one decimal if there is a precision.
fn plain_float(meter: &mut Meter, layout: Layout, float: f64) -> Result<String> {
    if layout.precision.is_some() {
        return layout.float(meter, float, 'r');
    }
    layout.digits(meter, &float_text(float))
}

/// `[[fill]align][sign][#][0][width][,][.precision][type]`
fn parse(spec: &str) -> Result<(Layout, Option<char>)> {
    let mut layout = Layout::default();
    let mut chars = spec.chars().peekable();
    let mut ahead = spec.chars();
    if let (Some(fill), Some(align)) = (ahead.next(), ahead.next().and_then(align_of)) {
        (layout.fill, layout.align) = (fill, Some(align));
        chars.next();
        chars.next();
    } else if let Some(align) = chars.peek().copied().and_then(align_of) {
        layout.align = Some(align);
        chars.next();
    }
    match chars.next_if(|c| "+- ".contains(*c)) {
        Some('+') => layout.sign = Sign::Plus,
        Some(' ') => layout.sign = Sign::Space,
        _ => {}
    }
    layout.alternate = chars.next_if_eq(&'#').is_some();
    if chars.next_if_eq(&'0').is_some() && layout.align.is_none() {
        (layout.fill, layout.zero) = ('0', true);
    }
    layout.width = digits(&mut chars).unwrap_or(0);
    layout.grouped = chars.next_if(|c| ",_".contains(*c));
    if chars.next_if_eq(&'.').is_some() {
        layout.precision = Some(digits(&mut chars).ok_or_else(|| bad(spec))?);
    }
    let kind = chars.next();
    match chars.next() {
        None => Ok((layout, kind)),
        Some(_) => Err(bad(spec)),
    }
}

fn align_of(c: char) -> Option<Align> {
    match c {
        '<' => Some(Align::Left),
        '>' => Some(Align::Right),
        '^' => Some(Align::Middle),
        '=' => Some(Align::AfterSign),
        _ => None,
    }
}

fn bad(spec: &str) -> Fault {
    Fault::operation(format!("`{spec}` is no format"))
}
