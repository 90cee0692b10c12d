//! Values as JSON: for the program around, and for the filter `tojson`.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value as Json};

use crate::error::{Fault, Result};
use crate::meter::Meter;
use crate::show::{Building, Sink, float_text, text_of};
use crate::value::Value;

/// The value for the program around; what is not there becomes `null`.
pub(crate) fn to_json(meter: &mut Meter, value: &Value<'_>) -> Result<Json> {
    meter.steps(1)?;
    meter.enter()?;
    let json = convert(meter, value)?;
    meter.leave();
    Ok(json)
}

fn convert(meter: &mut Meter, value: &Value<'_>) -> Result<Json> {
    Ok(match value {
        Value::Undefined(_) | Value::None => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(int) => match Number::from_i128(*int) {
            Some(number) => Json::Number(number),
            None => return Err(Fault::operation("the number does not fit in 64 bits")),
        },
        Value::Float(float) => match Number::from_f64(*float) {
            Some(number) => Json::Number(number),
            None => return Err(Fault::operation("JSON has no such number")),
        },
        Value::Str(text) => {
            meter.memory(text.len())?;
            Json::String(text.to_string())
        }
        Value::List(seq) | Value::Tuple(seq) => {
            let mut items = Vec::new();
            for item in seq.iter() {
                meter.memory(size_of::<Json>())?;
                items.push(to_json(meter, &item)?);
            }
            Json::Array(items)
        }
        Value::Dict(dict) => {
            let mut map = Map::new();
            for (key, value) in dict.pairs(meter)? {
                meter.memory(size_of::<Json>())?;
                map.insert(key_text(meter, &key)?, to_json(meter, &value)?);
            }
            Json::Object(map)
        }
        Value::Macro(_) => return Err(Fault::operation("a macro is no JSON")),
    })
}

/// JSON's keys are texts; Python's `json` turns these into texts.
fn key_text(meter: &mut Meter, key: &Value<'_>) -> Result<String> {
    match key {
        Value::Str(_) | Value::Int(_) | Value::Float(_) => text_of(meter, key),
        Value::Bool(true) => Ok("true".into()),
        Value::Bool(false) => Ok("false".into()),
        Value::None => Ok("null".into()),
        other => {
            let message = format!("a value of type {} is no key in JSON", other.type_name());
            Err(Fault::operation(message))
        }
    }
}

/// As Jinja2 writes it: keys in order, everything but ASCII escaped, and safe within HTML.
pub(crate) fn write<'v>(
    meter: &mut Meter,
    value: &Value<'v>,
    indent: Option<&str>,
) -> Result<Value<'v>> {
    let mut building = Building::new(meter);
    let style = Style { indent };
    style.value(&mut building, value, 0)?;
    Ok(Value::made(building.text))
}

struct Style<'a> {
    /// The text of one level, for JSON on several lines.
    indent: Option<&'a str>,
}

impl Style<'_> {
    fn value(&self, out: &mut Building<'_>, value: &Value<'_>, level: usize) -> Result<()> {
        out.meter().steps(1)?;
        out.meter().enter()?;
        match value {
            Value::None => out.push("null"),
            Value::Bool(true) => out.push("true"),
            Value::Bool(false) => out.push("false"),
            Value::Int(int) => out.push(&int.to_string()),
            Value::Float(float) if float.is_nan() => out.push("NaN"),
            Value::Float(float) if *float == f64::INFINITY => out.push("Infinity"),
            Value::Float(float) if *float == f64::NEG_INFINITY => out.push("-Infinity"),
            Value::Float(float) => out.push(&float_text(*float)),
            Value::Str(text) => quoted(out, text),
            Value::List(seq) | Value::Tuple(seq) => self.list(out, seq.iter(), level),
            Value::Dict(dict) => {
                let pairs = dict.pairs(out.meter())?;
                self.dict(out, pairs, level)
            }
            Value::Undefined(_) => value.defined(),
            Value::Macro(_) => Err(Fault::operation("a macro is no JSON")),
        }?;
        out.meter().leave();
        Ok(())
    }

    fn list<'v>(
        &self,
        out: &mut Building<'_>,
        items: impl Iterator<Item = Value<'v>>,
        level: usize,
    ) -> Result<()> {
        let mut empty = true;
        out.push("[")?;
        for item in items {
            self.separate(out, &mut empty, level + 1)?;
            self.value(out, &item, level + 1)?;
        }
        self.finish(out, empty, level)?;
        out.push("]")
    }

    fn dict(
        &self,
        out: &mut Building<'_>,
        pairs: Vec<(Value<'_>, Value<'_>)>,
        level: usize,
    ) -> Result<()> {
        let mut sorted = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            sorted.push((key_text(out.meter(), &key)?, value));
        }
        sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
        let mut empty = true;
        out.push("{")?;
        for (key, value) in &sorted {
            self.separate(out, &mut empty, level + 1)?;
            quoted(out, key)?;
            out.push(": ")?;
            self.value(out, value, level + 1)?;
        }
        self.finish(out, empty, level)?;
        out.push("}")
    }

    fn separate(&self, out: &mut Building<'_>, empty: &mut bool, level: usize) -> Result<()> {
        let first = std::mem::replace(empty, false);
        match (first, self.indent) {
            (true, None) => Ok(()),
            (false, None) => out.push(", "),
            (first, Some(_)) => {
                if !first {
                    out.push(",")?;
                }
                self.line(out, level)
            }
        }
    }

    fn finish(&self, out: &mut Building<'_>, empty: bool, level: usize) -> Result<()> {
        match empty {
            true => Ok(()),
            false => self.line(out, level),
        }
    }

    fn line(&self, out: &mut Building<'_>, level: usize) -> Result<()> {
        let Some(indent) = self.indent else {
            return Ok(());
        };
        out.push("\n")?;
        (0..level).try_for_each(|_| out.push(indent))
    }
}

fn quoted(out: &mut Building<'_>, text: &str) -> Result<()> {
    out.push("\"")?;
    let mut piece = String::new();
    for c in text.chars() {
        piece.clear();
        match c {
            '"' => piece.push_str("\\\""),
            '\\' => piece.push_str("\\\\"),
            '\n' => piece.push_str("\\n"),
            '\r' => piece.push_str("\\r"),
            '\t' => piece.push_str("\\t"),
            '\u{8}' => piece.push_str("\\b"),
            '\u{c}' => piece.push_str("\\f"),
            '<' | '>' | '&' | '\'' => escape(&mut piece, c),
            ' '..='~' => piece.push(c),
            c => escape(&mut piece, c),
        }
        out.push(&piece)?;
    }
    out.push("\"")
}

fn escape(text: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        write!(text, "\\u{unit:04x}").expect("a String takes what is written");
    }
}
