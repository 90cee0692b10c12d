//! How values are written: `str`, `repr`, `ascii`.

use super::number::float_repr;
use super::{Dict, Value};
use crate::error::Fault;
use crate::limits::{MAX_NESTING, Meter};

/// Which of Python's ways of writing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Str,
    Repr,
    Ascii,
}

/// `str(value)`.
pub(crate) fn display(value: &Value<'_>, meter: &mut Meter) -> Result<String, Fault> {
    write_within(value, Style::Str, meter)
}

/// `repr(value)`.
pub(crate) fn repr(value: &Value<'_>, meter: &mut Meter) -> Result<String, Fault> {
    write_within(value, Style::Repr, meter)
}

/// `ascii(value)`.
pub(crate) fn ascii(value: &Value<'_>, meter: &mut Meter) -> Result<String, Fault> {
    write_within(value, Style::Ascii, meter)
}

fn write_within(value: &Value<'_>, style: Style, meter: &mut Meter) -> Result<String, Fault> {
    let mut writer = Writer {
        out: String::new(),
        end: meter.max_length().saturating_mul(4),
        full: false,
    };
    writer.value(value, style, 0);
    if writer.full {
        return Err(Fault::limit("the text of a value is too long"));
    }
    meter.text(writer.out.len())?;
    meter.length(writer.out.chars().count())?;
    Ok(writer.out)
}

/// How much of a value is shown where nobody asked for all of it.
const SHORT: usize = 200;

pub(super) fn short(value: &Value<'_>, style: Style) -> String {
    let mut writer = Writer {
        out: String::new(),
        end: SHORT,
        full: false,
    };
    writer.value(value, style, 0);
    if writer.full {
        let mut end = writer.out.len().min(SHORT);
        while !writer.out.is_char_boundary(end) {
            end -= 1;
        }
        writer.out.truncate(end);
        writer.out.push('…');
    }
    writer.out
}

pub(crate) fn quoted_short(text: &str) -> String {
    short(&Value::str(text), Style::Repr)
}

/// Writes until it is full, and then nothing more.
struct Writer {
    out: String,
    end: usize,
    full: bool,
}

impl Writer {
    fn push(&mut self, text: &str) {
        if self.full {
            return;
        }
        if self.out.len() + text.len() > self.end {
            // What still fits, so that a cut text shows its beginning.
            let left = self.end.saturating_sub(self.out.len());
            let fitting = text.char_indices().take_while(|(at, _)| *at < left);
            self.out.extend(fitting.map(|(_, character)| character));
            self.full = true;
            return;
        }
        self.out.push_str(text);
    }

    fn value(&mut self, value: &Value<'_>, style: Style, depth: usize) {
        if self.full {
            return;
        }
        match value {
            Value::None => self.push("None"),
            Value::Bool(true) => self.push("True"),
            Value::Bool(false) => self.push("False"),
            Value::Int(value) => self.push(&value.to_string()),
            Value::Float(value) => self.push(&float_repr(*value)),
            Value::Str(text) if style == Style::Str => self.push(text),
            Value::Str(text) => self.quoted(text, style),
            _ => self.collection(value, inner(style), depth),
        }
    }

    fn collection(&mut self, value: &Value<'_>, style: Style, depth: usize) {
        if depth >= MAX_NESTING {
            self.full = true;
            return;
        }
        let depth = depth + 1;
        match value {
            Value::List(list) => self.items("[", list.iter(), "]", style, depth),
            Value::Tuple(list) if list.len() == 1 => {
                self.items("(", list.iter(), ",)", style, depth);
            }
            Value::Tuple(list) => self.items("(", list.iter(), ")", style, depth),
            Value::Set(set) if set.is_empty() => self.push("set()"),
            Value::Set(set) => self.items("{", set.iter().cloned(), "}", style, depth),
            Value::Dict(dict) => self.dict(dict, style, depth),
            _ => {}
        }
    }

    fn items<'a>(
        &mut self,
        open: &str,
        items: impl Iterator<Item = Value<'a>>,
        close: &str,
        style: Style,
        depth: usize,
    ) {
        self.push(open);
        for (index, item) in items.enumerate() {
            if self.full {
                return;
            }
            if index > 0 {
                self.push(", ");
            }
            self.value(&item, style, depth);
        }
        self.push(close);
    }

    fn dict(&mut self, dict: &Dict<'_>, style: Style, depth: usize) {
        self.push("{");
        for (index, (key, value)) in dict.entries().enumerate() {
            if self.full {
                return;
            }
            if index > 0 {
                self.push(", ");
            }
            self.value(&key, style, depth);
            self.push(": ");
            self.value(&value, style, depth);
        }
        self.push("}");
    }

    /// In single quotes, unless only double ones save an escape.
    fn quoted(&mut self, text: &str, style: Style) {
        let quote = if text.contains('\'') && !text.contains('"') {
            '"'
        } else {
            '\''
        };
        let mut buffer = [0; 4];
        self.push(quote.encode_utf8(&mut buffer));
        for character in text.chars() {
            if self.full {
                return;
            }
            match character {
                '\n' => self.push("\\n"),
                '\r' => self.push("\\r"),
                '\t' => self.push("\\t"),
                '\\' => self.push("\\\\"),
                c if c == quote => {
                    self.push("\\");
                    self.push(c.encode_utf8(&mut buffer));
                }
                c if c.is_ascii_graphic() || c == ' ' => self.push(c.encode_utf8(&mut buffer)),
                c if style == Style::Ascii || !crate::builtins::is_printable(c) => {
                    self.push(&escape(c));
                }
                c => self.push(c.encode_utf8(&mut buffer)),
            }
        }
        self.push(quote.encode_utf8(&mut buffer));
    }
}

fn inner(style: Style) -> Style {
    if style == Style::Str {
        Style::Repr
    } else {
        style
    }
}

fn escape(character: char) -> String {
    let code = u32::from(character);
    match code {
        0..=0xff => format!("\\x{code:02x}"),
        0x100..=0xffff => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    }
}
