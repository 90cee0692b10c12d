//! Format specifications: the mini-language of f-strings, and numbers in its forms.

use crate::error::{ErrorKind, Fault};
use crate::limits::Meter;
use crate::value::number::float_repr;
use crate::value::{Value, display};

/// `[[fill]align][sign][z][#][0][width][grouping][.precision][type]`
#[derive(Debug, Clone, Default)]
pub(super) struct Spec {
    pub(super) fill: Option<char>,
    pub(super) align: Option<char>,
    pub(super) sign: Option<char>,
    pub(super) no_negative_zero: bool,
    pub(super) alternate: bool,
    pub(super) zero: bool,
    pub(super) width: usize,
    pub(super) grouping: Option<char>,
    pub(super) precision: Option<usize>,
    pub(super) kind: Option<char>,
}

/// `format(value, spec)`.
pub(crate) fn format(value: &Value<'_>, spec: &str, meter: &mut Meter) -> Result<String, Fault> {
    if spec.is_empty() {
        return display(value, meter);
    }
    let parsed = Spec::parse(spec, meter)?;
    let body = match value {
        Value::Str(text) => format_text(text, &parsed)?,
        Value::Bool(_) | Value::Int(_) => {
            format_int(value.as_int().unwrap_or_default(), &parsed, meter)?
        }
        Value::Float(number) => format_float(*number, &parsed, "float", meter)?,
        other => {
            return Err(Fault::type_error(format!(
                "{} has no format but the empty one",
                other.a_type()
            )));
        }
    };
    meter.length(body.chars().count())?;
    meter.text(body.len())?;
    Ok(body)
}

impl Spec {
    fn parse(text: &str, meter: &Meter) -> Result<Self, Fault> {
        let characters: Vec<char> = text.chars().collect();
        let mut reader = Reader {
            rest: &characters,
            text,
        };
        let mut spec = Self::default();
        let is_align = |c: &char| matches!(c, '<' | '>' | '=' | '^');
        if characters.get(1).is_some_and(is_align) {
            spec.fill = reader.any();
            spec.align = reader.any();
        } else {
            spec.align = reader.one_of(&['<', '>', '=', '^']);
        }
        spec.sign = reader.one_of(&['+', '-', ' ']);
        spec.no_negative_zero = reader.one_of(&['z']).is_some();
        spec.alternate = reader.one_of(&['#']).is_some();
        if spec.fill.is_none() && reader.one_of(&['0']).is_some() {
            spec.fill = Some('0');
            spec.zero = spec.align.is_none();
        }
        spec.width = reader.number(meter)?.unwrap_or_default();
        spec.grouping = reader.one_of(&[',', '_']);
        if reader.one_of(&['.']).is_some() {
            let precision = reader.number(meter)?;
            spec.precision = Some(precision.ok_or_else(|| reader.refuse())?);
        }
        spec.kind = reader.any();
        if !reader.rest.is_empty() {
            return Err(reader.refuse());
        }
        Ok(spec)
    }
}

struct Reader<'t> {
    rest: &'t [char],
    text: &'t str,
}

impl Reader<'_> {
    fn any(&mut self) -> Option<char> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn one_of(&mut self, allowed: &[char]) -> Option<char> {
        let first = *self.rest.first()?;
        allowed.contains(&first).then(|| self.any()).flatten()
    }

    fn number(&mut self, meter: &Meter) -> Result<Option<usize>, Fault> {
        let digits = self.rest.iter().take_while(|c| c.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(None);
        }
        let text: String = self.rest[..digits].iter().collect();
        self.rest = &self.rest[digits..];
        match text.parse::<usize>() {
            Ok(number) if number <= meter.max_length() => Ok(Some(number)),
            _ => Err(Fault::limit(format!(
                "widths and precisions go up to {}",
                meter.max_length()
            ))),
        }
    }

    fn refuse(&self) -> Fault {
        Fault::value_error(format!(
            "{} is no format",
            Value::str(self.text).short_repr()
        ))
    }
}

fn refuse(spec: &Spec, what: &str) -> Fault {
    let kind = spec
        .kind
        .map_or_else(String::new, |kind| format!(" `{kind}`"));
    Fault::value_error(format!("the format{kind} does not fit {what}"))
}

fn format_text(text: &str, spec: &Spec) -> Result<String, Fault> {
    let unfit = !matches!(spec.kind, None | Some('s'))
        || spec.sign.is_some()
        || spec.grouping.is_some()
        || spec.alternate
        || spec.no_negative_zero
        || spec.align == Some('=');
    if unfit {
        return Err(refuse(spec, "a text"));
    }
    let cut: String = match spec.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text.to_owned(),
    };
    Ok(pad(&cut, spec, '<'))
}

/// Fills up to the width.
pub(super) fn pad(body: &str, spec: &Spec, default_align: char) -> String {
    let missing = spec.width.saturating_sub(body.chars().count());
    if missing == 0 {
        return body.to_owned();
    }
    let fill = spec.fill.unwrap_or(' ');
    let before = match spec.align.unwrap_or(default_align) {
        '<' => 0,
        '^' => missing / 2,
        _ => missing,
    };
    let mut padded = String::with_capacity(body.len() + missing * fill.len_utf8());
    padded.extend(std::iter::repeat_n(fill, before));
    padded.push_str(body);
    padded.extend(std::iter::repeat_n(fill, missing - before));
    padded
}

/// A number in its parts: sign, prefix (`0x`), digits, and what follows them.
pub(super) struct Digits {
    pub(super) negative: bool,
    pub(super) prefix: &'static str,
    pub(super) whole: String,
    /// Point, fraction, exponent and percent sign.
    pub(super) rest: String,
    /// Digits between two separators.
    pub(super) group: usize,
}

fn format_int(value: i64, spec: &Spec, meter: &Meter) -> Result<String, Fault> {
    if matches!(spec.kind, Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) {
        return format_float(value as f64, spec, "int", meter);
    }
    if spec.precision.is_some() || spec.no_negative_zero {
        return Err(refuse(spec, "an integer"));
    }
    let size = value.unsigned_abs();
    let (prefix, whole, group) = match spec.kind {
        None | Some('d' | 'n') => ("", size.to_string(), 3),
        Some('b') => ("0b", format!("{size:b}"), 4),
        Some('o') => ("0o", format!("{size:o}"), 4),
        Some('x') => ("0x", format!("{size:x}"), 4),
        Some('X') => ("0X", format!("{size:X}"), 4),
        Some('c') => return format_code(value, spec),
        _ => return Err(refuse(spec, "an integer")),
    };
    let comma_in_base = spec.grouping == Some(',') && group == 4;
    if comma_in_base || (spec.grouping.is_some() && spec.kind == Some('n')) {
        return Err(refuse(spec, "a grouping"));
    }
    let digits = Digits {
        negative: value < 0,
        prefix: if spec.alternate { prefix } else { "" },
        whole,
        rest: String::new(),
        group,
    };
    Ok(assemble(&digits, spec))
}

/// `c`: the character with this code.
fn format_code(value: i64, spec: &Spec) -> Result<String, Fault> {
    if spec.sign.is_some() || spec.grouping.is_some() || spec.alternate {
        return Err(refuse(spec, "a character"));
    }
    let character = u32::try_from(value).ok().and_then(char::from_u32);
    match character {
        Some(character) => {
            let default = if spec.zero { '=' } else { '>' };
            Ok(pad(&character.to_string(), spec, default))
        }
        None => Err(Fault::new(
            ErrorKind::Overflow,
            format!("{value} is the code of no character"),
        )),
    }
}

fn format_float(value: f64, spec: &Spec, of: &str, meter: &Meter) -> Result<String, Fault> {
    let kind = match spec.kind {
        None => None,
        Some('n') if spec.grouping.is_some() => return Err(refuse(spec, "a grouping")),
        Some('n') => Some('g'),
        Some(kind @ ('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) => Some(kind),
        _ => return Err(refuse(spec, &format!("a {of}"))),
    };
    let value = if kind == Some('%') {
        value * 100.0
    } else {
        value
    };
    let mut text = float_digits(value.abs(), kind, spec.precision, spec.alternate);
    meter.length(text.len())?;
    if kind == Some('%') {
        text.push('%');
    }
    let is_zero = !text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) && value.is_finite();
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let negative =
        value.is_sign_negative() && !value.is_nan() && !(spec.no_negative_zero && is_zero);
    let (whole, rest) = text.split_at(split);
    let digits = Digits {
        negative,
        prefix: "",
        whole: whole.to_owned(),
        rest: rest.to_owned(),
        group: 3,
    };
    Ok(assemble(&digits, spec))
}

/// Sign, prefix and digits, grouped and padded.
pub(super) fn assemble(digits: &Digits, spec: &Spec) -> String {
    let sign = match (digits.negative, spec.sign) {
        (true, _) => "-",
        (false, Some('+')) => "+",
        (false, Some(' ')) => " ",
        _ => "",
    };
    let inside = spec.align == Some('=') || spec.zero;
    let taken = sign.len() + digits.prefix.len() + digits.rest.chars().count();
    // Zeros before the digits are digits too, and are grouped with them.
    let least = if inside && spec.fill == Some('0') {
        spec.width.saturating_sub(taken)
    } else {
        0
    };
    let whole = match spec.grouping {
        Some(separator) => group(&digits.whole, separator, digits.group, least),
        None => digits.whole.clone(),
    };
    let head = format!("{sign}{}", digits.prefix);
    let body = format!("{whole}{}", digits.rest);
    if inside {
        let missing = spec.width.saturating_sub(head.len() + body.chars().count());
        let fill = spec.fill.unwrap_or(' ');
        let filling: String = std::iter::repeat_n(fill, missing).collect();
        return format!("{head}{filling}{body}");
    }
    pad(&(head + &body), spec, '>')
}

/// Puts separators between groups, and zeros in front until it is as long as asked.
fn group(digits: &str, separator: char, size: usize, least: usize) -> String {
    let mut digits = digits.to_owned();
    let length = |count: usize| count + count.saturating_sub(1) / size;
    if length(digits.len()) < least {
        // The fewest digits that, with their separators, fill the width.
        let mut count = digits.len() + (least - length(digits.len())) * size / (size + 1);
        while length(count) < least {
            count += 1;
        }
        digits.insert_str(0, &"0".repeat(count - digits.len()));
    }
    let mut grouped = String::with_capacity(length(digits.len()));
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(size) {
            grouped.push(separator);
        }
        grouped.push(digit);
    }
    grouped
}

/// More digits than this after the point are zeros for every float.
const MAX_PLACES: usize = 1_100;

/// A number without sign in the form that `kind` asks for; without one, as `repr` or, with a
/// precision, as `g` with at least one place.
pub(super) fn float_digits(
    value: f64,
    kind: Option<char>,
    precision: Option<usize>,
    alternate: bool,
) -> String {
    let upper = matches!(kind, Some('E' | 'F' | 'G'));
    let text = if !value.is_finite() {
        float_repr(value)
    } else {
        match kind.map(|kind| kind.to_ascii_lowercase()) {
            Some('f' | '%') => fixed(value, precision.unwrap_or(6), alternate),
            Some('e') => scientific(value, precision.unwrap_or(6), alternate),
            Some(_) => general(value, precision.unwrap_or(6), alternate, Places::Trimmed),
            None => match precision {
                Some(precision) => general(value, precision, alternate, Places::AtLeastOne),
                None => float_repr(value),
            },
        }
    };
    if upper { text.to_uppercase() } else { text }
}

fn fixed(value: f64, places: usize, alternate: bool) -> String {
    let shown = places.min(MAX_PLACES);
    let mut text = format!("{value:.shown$}");
    text.extend(std::iter::repeat_n('0', places - shown));
    if alternate && places == 0 {
        text.push('.');
    }
    text
}

fn scientific(value: f64, places: usize, alternate: bool) -> String {
    let shown = places.min(MAX_PLACES);
    let text = format!("{value:.shown$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut mantissa = mantissa.to_owned();
    mantissa.extend(std::iter::repeat_n('0', places - shown));
    if alternate && places == 0 {
        mantissa.push('.');
    }
    mantissa + &exponent_text(exponent.parse().unwrap_or_default())
}

fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.abs())
}

/// What happens to the places of `g` that are zero.
#[derive(Clone, Copy, PartialEq)]
enum Places {
    Trimmed,
    AtLeastOne,
}

/// `g`: so many significant digits, fixed where that is short enough.
fn general(value: f64, precision: usize, alternate: bool, places: Places) -> String {
    let precision = precision.max(1);
    let shown = precision.min(MAX_PLACES);
    let rounded = format!("{value:.*e}", shown - 1);
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let mut digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    if alternate {
        digits.extend(std::iter::repeat_n('0', precision - shown));
    } else {
        let kept = digits.trim_end_matches('0').len().max(1);
        digits.truncate(kept);
    }
    let last =
        i64::try_from(precision).unwrap_or(i64::MAX) - i64::from(places == Places::AtLeastOne);
    let point = i64::from(exponent) + 1;
    if point <= -4 || point > last {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() && !alternate {
            ""
        } else {
            "."
        };
        return format!("{first}{dot}{rest}{}", exponent_text(exponent));
    }
    let mut text = place_point(&digits, exponent);
    if !text.contains('.') {
        if places == Places::AtLeastOne {
            text.push_str(".0");
        } else if alternate {
            text.push('.');
        }
    }
    text
}

/// The digits with the point after the one whose weight is ten to the zero.
fn place_point(digits: &str, exponent: i32) -> String {
    match usize::try_from(exponent) {
        Err(_) => {
            let zeros = exponent.unsigned_abs() as usize - 1;
            format!("0.{}{digits}", "0".repeat(zeros))
        }
        Ok(exponent) if digits.len() <= exponent + 1 => {
            format!("{digits}{}", "0".repeat(exponent + 1 - digits.len()))
        }
        Ok(exponent) => {
            let (whole, fraction) = digits.split_at(exponent + 1);
            format!("{whole}.{fraction}")
        }
    }
}
