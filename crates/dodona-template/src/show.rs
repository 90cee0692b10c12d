//! Values as text, as Python shows them: `str` outside, `repr` inside of lists and mappings.

use std::fmt::Write as _;

use crate::error::Result;
use crate::meter::Meter;
use crate::value::{Dict, Value};

/// Where text goes: the output, or a text in the making. Each pays in its own way.
pub(crate) trait Sink {
    fn push(&mut self, piece: &str) -> Result<()>;
    fn meter(&mut self) -> &mut Meter;
}

/// A text in the making.
pub(crate) struct Building<'m> {
    pub(crate) text: String,
    pub(crate) meter: &'m mut Meter,
}

impl<'m> Building<'m> {
    pub(crate) fn new(meter: &'m mut Meter) -> Self {
        Self {
            text: String::new(),
            meter,
        }
    }
}

impl Sink for Building<'_> {
    fn push(&mut self, piece: &str) -> Result<()> {
        self.meter.push(&mut self.text, piece)
    }

    fn meter(&mut self) -> &mut Meter {
        self.meter
    }
}

/// Writes what `str(value)` is.
pub(crate) fn write_str(sink: &mut impl Sink, value: &Value<'_>) -> Result<()> {
    match value {
        Value::Undefined(_) => Ok(()),
        Value::Str(text) => sink.push(text),
        Value::Int(int) => write_int(sink, *int),
        Value::Float(float) => sink.push(&float_text(*float)),
        Value::Bool(true) => sink.push("True"),
        Value::Bool(false) => sink.push("False"),
        Value::None => sink.push("None"),
        Value::Macro(_) => sink.push("<macro>"),
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) => write_repr(sink, value),
    }
}

/// Writes what `repr(value)` is.
pub(crate) fn write_repr(sink: &mut impl Sink, value: &Value<'_>) -> Result<()> {
    sink.meter().steps(1)?;
    match value {
        Value::Undefined(_) => sink.push("Undefined"),
        Value::Str(text) => write_quoted(sink, text),
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) => {
            sink.meter().enter()?;
            let written = write_container(sink, value);
            sink.meter().leave();
            written
        }
        other => write_str(sink, other),
    }
}

fn write_container(sink: &mut impl Sink, value: &Value<'_>) -> Result<()> {
    match value {
        Value::List(seq) => {
            sink.push("[")?;
            write_items(sink, seq.iter())?;
            sink.push("]")
        }
        Value::Tuple(seq) => {
            sink.push("(")?;
            write_items(sink, seq.iter())?;
            sink.push(if seq.len() == 1 { ",)" } else { ")" })
        }
        Value::Dict(dict) => write_dict(sink, dict),
        other => write_str(sink, other),
    }
}

fn write_items<'v>(sink: &mut impl Sink, items: impl Iterator<Item = Value<'v>>) -> Result<()> {
    for (index, item) in items.enumerate() {
        if index > 0 {
            sink.push(", ")?;
        }
        write_repr(sink, &item)?;
    }
    Ok(())
}

fn write_dict(sink: &mut impl Sink, dict: &Dict<'_>) -> Result<()> {
    let pairs = dict.pairs(sink.meter())?;
    sink.push("{")?;
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            sink.push(", ")?;
        }
        write_repr(sink, key)?;
        sink.push(": ")?;
        write_repr(sink, value)?;
    }
    sink.push("}")
}

fn write_int(sink: &mut impl Sink, int: i128) -> Result<()> {
    let Ok(int) = i64::try_from(int) else {
        return sink.push(&int.to_string());
    };
    // The longest has 20 characters, its sign included.
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut left = int.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if int < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    sink.push(std::str::from_utf8(&digits[at..]).expect("digits are text"))
}

/// Shortest digits that read back the same, in Python's notation.
pub(crate) fn float_text(float: f64) -> String {
    if float.is_nan() {
        return "nan".into();
    }
    if float.is_infinite() {
        return if float > 0.0 { "inf" } else { "-inf" }.into();
    }
    let text = format!("{float:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            let digits = digits.strip_suffix(".0").unwrap_or(digits);
            format!("{digits}e{sign}{exponent:0>2}")
        }
    }
}

fn write_quoted(sink: &mut impl Sink, text: &str) -> Result<()> {
    let quote = match text.contains('\'') && !text.contains('"') {
        true => '"',
        false => '\'',
    };
    let mut quoted = String::with_capacity(text.len() + 2);
    sink.meter().read(text.len())?;
    quoted.push(quote);
    for c in text.chars() {
        match c {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c == quote => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if is_printable(c) => quoted.push(c),
            c => push_escape(&mut quoted, c),
        }
    }
    quoted.push(quote);
    sink.push(&quoted)
}

fn is_printable(c: char) -> bool {
    c == ' ' || !(c.is_control() || c.is_whitespace())
}

fn push_escape(text: &mut String, c: char) {
    let code = u32::from(c);
    let written = match code {
        0..=0xff => write!(text, "\\x{code:02x}"),
        0x100..=0xffff => write!(text, "\\u{code:04x}"),
        _ => write!(text, "\\U{code:08x}"),
    };
    written.expect("a String takes what is written");
}

/// `str(value)` as a text of its own, borrowed where it is one already.
pub(crate) fn text_of(meter: &mut Meter, value: &Value<'_>) -> Result<String> {
    let mut building = Building::new(meter);
    write_str(&mut building, value)?;
    Ok(building.text)
}
