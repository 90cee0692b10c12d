//! Laying out one value: width, precision, sign, alignment. Both kinds of format strings use it.

use crate::error::{Fault, Result};
use crate::meter::Meter;
use crate::ops::{as_float, as_int};
use crate::show::{Building, text_of, write_repr};
use crate::value::Value;

/// The standard library writes at most 65 535 decimals, and panics for more; `g` may ask for a few
/// more than it was given.
const MOST_DECIMALS: usize = 65_000;

/// How one value is to be laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) fill: char,
    pub(crate) align: Option<Align>,
    pub(crate) sign: Sign,
    /// `#`: with the prefix of its base.
    pub(crate) alternate: bool,
    /// Numbers are filled up after their sign, unless aligned otherwise.
    pub(crate) zero: bool,
    /// Digits in groups of three.
    pub(crate) grouped: Option<char>,
    pub(crate) width: usize,
    pub(crate) precision: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
    Middle,
    /// Between the sign and the digits.
    AfterSign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    OnlyMinus,
    Plus,
    Space,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            fill: ' ',
            align: None,
            sign: Sign::OnlyMinus,
            alternate: false,
            zero: false,
            grouped: None,
            width: 0,
            precision: None,
        }
    }
}

impl Layout {
    /// Text, cut to the precision and padded to the width.
    pub(crate) fn text(&self, meter: &mut Meter, text: &str) -> Result<String> {
        meter.read(text.len())?;
        let cut = match self.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text.to_owned(),
        };
        self.pad(meter, "", &cut, Align::Left)
    }

    /// A whole number in base `b`, `o`, `x`, `X` or `d`.
    pub(crate) fn int(&self, meter: &mut Meter, value: i128, base: char) -> Result<String> {
        let magnitude = value.unsigned_abs();
        let (prefix, mut digits) = match base {
            'b' => ("0b", format!("{magnitude:b}")),
            'o' => ("0o", format!("{magnitude:o}")),
            'x' => ("0x", format!("{magnitude:x}")),
            'X' => ("0X", format!("{magnitude:X}")),
            _ => ("", magnitude.to_string()),
        };
        if let Some(precision) = self.precision {
            meter.memory(precision)?;
            digits.insert_str(0, &"0".repeat(precision.saturating_sub(digits.len())));
        }
        let prefix = if self.alternate { prefix } else { "" };
        let sign = self.sign_of(value < 0);
        self.pad(
            meter,
            &format!("{sign}{prefix}"),
            &self.group(digits),
            self.usual(),
        )
    }

    /// A number in the notation `e`, `f` or `g`, or `%`; capitals write capitals.
    pub(crate) fn float(&self, meter: &mut Meter, value: f64, notation: char) -> Result<String> {
        let precision = self.precision.unwrap_or(6);
        // A float has at most 309 digits before the point and 1074 behind it that are not zero.
        meter.memory(precision.saturating_add(320))?;
        if precision > MOST_DECIMALS {
            let message = format!("a number has at most {MOST_DECIMALS} digits behind the point");
            return Err(Fault::limit(message));
        }
        let magnitude = value.abs();
        let digits = match notation.to_ascii_lowercase() {
            _ if value.is_nan() => "nan".into(),
            _ if value.is_infinite() => "inf".into(),
            'e' => exponent(magnitude, precision),
            'g' => general(magnitude, precision.max(1), self.alternate, 0),
            // As `g`, but with one decimal at least.
            'r' => general(magnitude, precision.max(1), self.alternate, 1),
            '%' => format!("{:.precision$}%", magnitude * 100.0),
            _ => format!("{magnitude:.precision$}"),
        };
        let digits = match notation.is_ascii_uppercase() {
            true => digits.to_ascii_uppercase(),
            false => digits,
        };
        let sign = self.sign_of(value.is_sign_negative() && !value.is_nan());
        self.pad(meter, sign, &self.group(digits), self.usual())
    }

    /// Digits that somebody else has made.
    pub(crate) fn digits(&self, meter: &mut Meter, text: &str) -> Result<String> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let digits = self.group(digits.to_owned());
        self.pad(meter, self.sign_of(negative), &digits, self.usual())
    }

    /// How numbers are aligned.
    fn usual(&self) -> Align {
        if self.zero {
            Align::AfterSign
        } else {
            Align::Right
        }
    }

    fn sign_of(&self, negative: bool) -> &'static str {
        match (negative, self.sign) {
            (true, _) => "-",
            (false, Sign::OnlyMinus) => "",
            (false, Sign::Plus) => "+",
            (false, Sign::Space) => " ",
        }
    }

    fn group(&self, digits: String) -> String {
        let Some(separator) = self.grouped else {
            return digits;
        };
        let whole = digits
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(digits.len());
        let mut grouped = String::new();
        for (index, digit) in digits[..whole].chars().enumerate() {
            if index > 0 && (whole - index).is_multiple_of(3) {
                grouped.push(separator);
            }
            grouped.push(digit);
        }
        grouped + &digits[whole..]
    }

    fn pad(&self, meter: &mut Meter, sign: &str, body: &str, usual: Align) -> Result<String> {
        let taken = sign.chars().count() + body.chars().count();
        let missing = self.width.saturating_sub(taken);
        let bytes = missing.saturating_mul(self.fill.len_utf8());
        meter.memory(bytes.saturating_add(sign.len() + body.len()))?;
        let fill = |count: usize| self.fill.to_string().repeat(count);
        Ok(match self.align.unwrap_or(usual) {
            Align::Left => format!("{sign}{body}{}", fill(missing)),
            Align::Right => format!("{}{sign}{body}", fill(missing)),
            Align::AfterSign => format!("{sign}{}{body}", fill(missing)),
            Align::Middle => {
                let before = missing / 2;
                format!("{}{sign}{body}{}", fill(before), fill(missing - before))
            }
        })
    }
}

/// `1.5e+07`, Python's way.
fn exponent(magnitude: f64, precision: usize) -> String {
    let text = format!("{magnitude:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

/// The shorter of the two notations, without zeros at the end.
fn general(magnitude: f64, precision: usize, keep_zeros: bool, decimals: usize) -> String {
    let scientific = exponent(magnitude, precision - 1);
    let power: i64 = scientific
        .split_once('e')
        .and_then(|(_, power)| power.parse().ok())
        .unwrap_or(0);
    let strip = |digits: &str| match keep_zeros || !digits.contains('.') {
        true => digits.to_owned(),
        false => digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
    };
    if power < -4 || power >= precision as i64 - decimals as i64 {
        let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        format!("{}e{power}", strip(digits))
    } else {
        let places = usize::try_from(precision as i64 - 1 - power).unwrap_or(0);
        let digits = strip(&format!("{magnitude:.places$}"));
        match decimals > 0 && !digits.contains('.') {
            true => digits + ".0",
            false => digits,
        }
    }
}

/// The value as a whole number, cutting decimals off if it is a float.
pub(crate) fn truncated(value: &Value<'_>) -> Result<i128> {
    match (as_int(value), as_float(value)) {
        (Some(int), _) => Ok(int),
        (None, Some(float)) if float.is_finite() && float.abs() < 1e38 => Ok(float.trunc() as i128),
        _ => Err(wrong("a whole number", value)),
    }
}

pub(crate) fn wrong(expected: &str, value: &Value<'_>) -> Fault {
    let found = value.type_name();
    Fault::operation(format!("the format needs {expected}, and got {found}"))
}

/// `str` or `repr` of a value.
pub(crate) fn shown(meter: &mut Meter, value: &Value<'_>, conversion: char) -> Result<String> {
    match conversion {
        'r' | 'a' => {
            let mut building = Building::new(meter);
            write_repr(&mut building, value)?;
            Ok(building.text)
        }
        _ => text_of(meter, value),
    }
}
