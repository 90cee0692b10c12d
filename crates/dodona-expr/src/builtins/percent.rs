//! `'…' % values`: formatting in the manner of C.

use super::format::{Digits, Spec, assemble, float_digits, pad};
use crate::error::{ErrorKind, Fault};
use crate::limits::Meter;
use crate::value::{Dict, Value, ascii, display, number, repr};

/// `template % values`.
pub(crate) fn percent<'a>(
    template: &str,
    values: &Value<'a>,
    meter: &mut Meter,
) -> Result<String, Fault> {
    meter.read(template)?;
    let mut formatter = Formatter {
        rest: template,
        values,
        next: 0,
        out: String::new(),
    };
    formatter.run(meter)?;
    meter.length(formatter.out.chars().count())?;
    meter.text(formatter.out.len())?;
    Ok(formatter.out)
}

struct Formatter<'t, 'a> {
    rest: &'t str,
    values: &'t Value<'a>,
    next: usize,
    out: String,
}

/// One conversion: a key, or the next of the values, and how to write it.
#[derive(Default)]
struct Directive<'t> {
    key: Option<&'t str>,
    left: bool,
    spec: Spec,
}

impl<'t, 'a> Formatter<'t, 'a> {
    fn run(&mut self, meter: &mut Meter) -> Result<(), Fault> {
        while let Some(at) = self.rest.find('%') {
            self.out.push_str(&self.rest[..at]);
            self.rest = &self.rest[at + 1..];
            self.directive(meter)?;
            meter.length(self.out.len() / 4)?;
        }
        self.out.push_str(self.rest);
        let leftover = match self.values {
            Value::Tuple(items) => self.next < items.len(),
            Value::Dict(_) | Value::List(_) | Value::Set(_) => false,
            _ => self.next == 0,
        };
        if leftover {
            return Err(Fault::type_error("more values than the text asks for"));
        }
        Ok(())
    }

    fn directive(&mut self, meter: &mut Meter) -> Result<(), Fault> {
        let mut directive = Directive::default();
        if self.eat('(') {
            directive.key = Some(self.key()?);
        }
        self.flags(&mut directive);
        if let Some(width) = self.size(meter)? {
            directive.left |= width < 0;
            directive.spec.width = bounded(width.unsigned_abs(), meter)?;
        }
        if self.eat('.') {
            let precision = self.size(meter)?.unwrap_or_default().max(0);
            directive.spec.precision = Some(bounded(precision.unsigned_abs(), meter)?);
        }
        while self.eat('h') || self.eat('l') || self.eat('L') {}
        let Some(kind) = self.rest.chars().next() else {
            return Err(Fault::value_error("the text ends within a `%`"));
        };
        self.rest = &self.rest[kind.len_utf8()..];
        if kind == '%' {
            self.out.push('%');
            return Ok(());
        }
        let value = match directive.key {
            Some(key) => self.keyed(key)?,
            None => self.take()?,
        };
        let text = directive.write(kind, &value, meter)?;
        self.out.push_str(&text);
        Ok(())
    }

    fn eat(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// A key in parentheses, which may hold pairs of parentheses.
    fn key(&mut self) -> Result<&'t str, Fault> {
        let mut open = 1usize;
        for (at, character) in self.rest.char_indices() {
            match character {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
            if open == 0 {
                let key = &self.rest[..at];
                self.rest = &self.rest[at + 1..];
                return Ok(key);
            }
        }
        Err(Fault::value_error("a key without its closing parenthesis"))
    }

    fn flags(&mut self, directive: &mut Directive<'_>) {
        loop {
            let spec = &mut directive.spec;
            if self.eat('-') {
                directive.left = true;
            } else if self.eat('+') {
                spec.sign = Some('+');
            } else if self.eat(' ') {
                spec.sign = spec.sign.or(Some(' '));
            } else if self.eat('#') {
                spec.alternate = true;
            } else if self.eat('0') {
                spec.zero = true;
            } else {
                return;
            }
        }
    }

    /// A number, or `*` for one of the values.
    fn size(&mut self, meter: &Meter) -> Result<Option<i64>, Fault> {
        if self.eat('*') {
            let value = self.take()?;
            let size = value.as_int();
            return match size {
                Some(size) => Ok(Some(size)),
                None => Err(Fault::type_error("`*` wants an int")),
            };
        }
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        if digits.is_empty() {
            return Ok(None);
        }
        let size = digits.parse().map_err(|_| too_wide(meter))?;
        Ok(Some(size))
    }

    fn take(&mut self) -> Result<Value<'a>, Fault> {
        let at = self.next;
        self.next += 1;
        let value = match self.values {
            Value::Tuple(items) => items.get(at),
            single => (at == 0).then(|| single.clone()),
        };
        value.ok_or_else(|| Fault::type_error("fewer values than the text asks for"))
    }

    fn keyed(&mut self, key: &str) -> Result<Value<'a>, Fault> {
        let Value::Dict(dict) = self.values else {
            return Err(Fault::type_error("a key wants a dict to look it up"));
        };
        let dict: &Dict<'a> = dict;
        dict.get_str(key).ok_or_else(|| {
            Fault::new(
                ErrorKind::Key,
                format!("there is no key {}", Value::str(key).short_repr()),
            )
        })
    }
}

fn too_wide(meter: &Meter) -> Fault {
    Fault::limit(format!(
        "widths and precisions go up to {}",
        meter.max_length()
    ))
}

fn bounded(size: u64, meter: &Meter) -> Result<usize, Fault> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if size > meter.max_length() {
        return Err(too_wide(meter));
    }
    Ok(size)
}

impl Directive<'_> {
    fn write(mut self, kind: char, value: &Value<'_>, meter: &mut Meter) -> Result<String, Fault> {
        if self.left {
            self.spec.align = Some('<');
        }
        match kind {
            's' => self.text(&display(value, meter)?),
            'r' => self.text(&repr(value, meter)?),
            'a' => self.text(&ascii(value, meter)?),
            'c' => self.character(value),
            'd' | 'i' | 'u' | 'x' | 'X' | 'o' => self.int(kind, value),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' => self.float(kind, value),
            other => Err(Fault::value_error(format!("there is no `%{other}`"))),
        }
    }

    fn text(self, text: &str) -> Result<String, Fault> {
        let cut: String = match self.spec.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text.to_owned(),
        };
        let spec = Spec {
            zero: false,
            ..self.spec
        };
        Ok(pad(&cut, &spec, '>'))
    }

    fn character(self, value: &Value<'_>) -> Result<String, Fault> {
        let character = match value {
            Value::Str(text) if text.chars().count() == 1 => text.chars().next(),
            value => value
                .as_int()
                .and_then(|code| u32::try_from(code).ok())
                .and_then(char::from_u32),
        };
        match character {
            Some(character) => {
                let spec = Spec {
                    precision: None,
                    ..self.spec
                };
                Ok(pad(&character.to_string(), &spec, '>'))
            }
            None => Err(Fault::type_error("`%c` wants one character or its code")),
        }
    }

    fn int(self, kind: char, value: &Value<'_>) -> Result<String, Fault> {
        let decimal = matches!(kind, 'd' | 'i' | 'u');
        let value = match value {
            Value::Float(float) if decimal => number::int_of_float(*float)?,
            other => other.as_int().ok_or_else(|| {
                Fault::type_error(format!("`%{kind}` wants a number, not {}", other.a_type()))
            })?,
        };
        let size = value.unsigned_abs();
        let (prefix, mut whole) = match kind {
            'x' => ("0x", format!("{size:x}")),
            'X' => ("0X", format!("{size:X}")),
            'o' => ("0o", format!("{size:o}")),
            _ => ("", size.to_string()),
        };
        let least = self.spec.precision.unwrap_or_default();
        if whole.len() < least {
            whole.insert_str(0, &"0".repeat(least - whole.len()));
        }
        let digits = Digits {
            negative: value < 0,
            prefix: if self.spec.alternate { prefix } else { "" },
            whole,
            rest: String::new(),
            group: 3,
        };
        Ok(self.assembled(&digits))
    }

    fn float(self, kind: char, value: &Value<'_>) -> Result<String, Fault> {
        let Some(float) = value.as_float() else {
            return Err(Fault::type_error(format!(
                "`%{kind}` wants a number, not {}",
                value.a_type()
            )));
        };
        let precision = Some(self.spec.precision.unwrap_or(6));
        let digits = Digits {
            negative: float.is_sign_negative() && !float.is_nan(),
            prefix: "",
            whole: float_digits(float.abs(), Some(kind), precision, self.spec.alternate),
            rest: String::new(),
            group: 3,
        };
        Ok(self.assembled(&digits))
    }

    /// Zeros fill between sign and digits, unless the text stands left.
    fn assembled(mut self, digits: &Digits) -> String {
        if self.left {
            self.spec.zero = false;
        }
        if self.spec.zero {
            self.spec.fill = Some('0');
        }
        assemble(digits, &self.spec)
    }
}
