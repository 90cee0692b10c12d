//! Filters that make numbers.

use crate::access;
use crate::args::{Args, flag, int_or};
use crate::error::{Fault, Result};
use crate::meter::Meter;
use crate::ops::{self, BinOp, as_float, as_int};
use crate::value::Value;

pub(super) fn abs<'v>(_: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    args.none()?;
    value.defined()?;
    match (as_int(&value), as_float(&value)) {
        (Some(int), _) => ops::int(int.checked_abs()),
        (None, Some(float)) => Ok(Value::Float(float.abs())),
        _ => Err(no_number(&value)),
    }
}

/// Text is read in the base; what is no number becomes the default.
pub(super) fn int<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [default, base] = args.bind(["default", "base"])?;
    let base = int_or(base, "base", 10)?;
    value.defined()?;
    let read = match &value {
        Value::Str(text) => {
            meter.read(text.len())?;
            let float = || read_float(text).and_then(truncated);
            read_int(text, base).or_else(float)
        }
        Value::Float(float) if float.is_infinite() => {
            return Err(Fault::operation("infinity is no whole number"));
        }
        other => as_int(other).or_else(|| as_float(other).and_then(truncated)),
    };
    match read {
        Some(int) => ops::int(Some(int)),
        None => Ok(default.unwrap_or(Value::Int(0))),
    }
}

fn truncated(float: f64) -> Option<i128> {
    (float.is_finite() && float.abs() < 1e38).then(|| float.trunc() as i128)
}

/// What Python's `int(text, base)` reads: a sign, the base's prefix, digits with single underscores.
fn read_int(text: &str, base: i128) -> Option<i128> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match (base, lower.get(..2)) {
        (0 | 16, Some("0x")) => (16, &lower[2..]),
        (0 | 8, Some("0o")) => (8, &lower[2..]),
        (0 | 2, Some("0b")) => (2, &lower[2..]),
        (0, _) => (10, &*lower),
        (base, _) => (
            u32::try_from(base)
                .ok()
                .filter(|base| (2..=36).contains(base))?,
            &*lower,
        ),
    };
    let digits = without_underscores(digits)?;
    if !digits.starts_with(|c: char| c.is_digit(base)) {
        return None;
    }
    let magnitude = i128::from_str_radix(&digits, base).ok()?;
    Some(if negative { -magnitude } else { magnitude })
}

/// Underscores may stand between digits only.
fn without_underscores(digits: &str) -> Option<String> {
    let stray = digits.starts_with('_') || digits.ends_with('_') || digits.contains("__");
    (!stray).then(|| digits.replace('_', ""))
}

/// What Python's `float(text)` reads.
fn read_float(text: &str) -> Option<f64> {
    let text = text.trim();
    let special = text.trim_start_matches(['+', '-']).to_ascii_lowercase();
    let is_special = matches!(&*special, "inf" | "infinity" | "nan");
    if !is_special && text.contains(|c: char| c.is_ascii_alphabetic() && !"eE".contains(c)) {
        return None;
    }
    without_underscores(text)?.parse().ok()
}

pub(super) fn float<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [default] = args.bind(["default"])?;
    value.defined()?;
    let read = match &value {
        Value::Str(text) => {
            meter.read(text.len())?;
            read_float(text)
        }
        other => as_float(other),
    };
    Ok(read
        .map(Value::Float)
        .or(default)
        .unwrap_or(Value::Float(0.0)))
}

pub(super) fn round<'v>(_: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [precision, method] = args.bind(["precision", "method"])?;
    let precision = int_or(precision, "precision", 0)?;
    let precision = precision.clamp(-400, 400) as i32;
    value.defined()?;
    let scaled = |round: fn(f64) -> f64| {
        let number = as_float(&value).ok_or_else(|| no_number(&value))?;
        let scale = 10_f64.powi(precision);
        Ok(Value::Float(round(number * scale) / scale))
    };
    match method
        .as_ref()
        .map_or(Some("common"), |method| method.as_str())
    {
        Some("ceil") => scaled(f64::ceil),
        Some("floor") => scaled(f64::floor),
        Some("common") => match (as_int(&value), as_float(&value)) {
            (Some(int), _) => ops::int(Some(round_int(int, precision))),
            (None, Some(float)) => Ok(Value::Float(round_float(float, precision))),
            _ => Err(no_number(&value)),
        },
        _ => Err(Fault::operation("`method` must be common, ceil or floor")),
    }
}

/// Ties go to the even neighbour.
fn round_int(int: i128, precision: i32) -> i128 {
    let Some(unit) = 10_i128.checked_pow(precision.min(0).unsigned_abs()) else {
        return 0;
    };
    let (down, rest) = (int.div_euclid(unit), int.rem_euclid(unit));
    let up = match (rest * 2).cmp(&unit) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => down % 2 != 0,
    };
    (down + i128::from(up)) * unit
}

/// Decimal digits are exact, so a tie is one only if the binary number is.
fn round_float(float: f64, precision: i32) -> f64 {
    if !float.is_finite() {
        return float;
    }
    match usize::try_from(precision) {
        Ok(decimals) => format!("{float:.decimals$}").parse().unwrap_or(float),
        Err(_) => {
            let unit = 10_f64.powi(-precision);
            let rounded = (float / unit).round_ties_even() * unit;
            if rounded.is_nan() { 0.0 } else { rounded }
        }
    }
}

pub(super) fn sum<'v>(meter: &mut Meter, value: Value<'v>, args: Args<'v>) -> Result<Value<'v>> {
    let [attribute, start] = args.bind(["attribute", "start"])?;
    let attribute = attribute.filter(|attribute| !matches!(attribute, Value::None));
    let mut sum = start.unwrap_or(Value::Int(0));
    if matches!(sum, Value::Str(_)) {
        return Err(Fault::operation("`sum` does not add texts; use `join`"));
    }
    for item in value.to_vec(meter)? {
        let item = match &attribute {
            Some(attribute) => access::path(meter, &item, attribute)?,
            None => item,
        };
        sum = ops::binary(meter, BinOp::Add, &sum, &item)?;
    }
    Ok(sum)
}

pub(super) fn filesizeformat<'v>(
    meter: &mut Meter,
    value: Value<'v>,
    args: Args<'v>,
) -> Result<Value<'v>> {
    let [binary] = args.bind(["binary"])?;
    let bytes = match &value {
        Value::Str(text) => read_float(text),
        other => as_float(other),
    };
    let bytes = bytes.ok_or_else(|| no_number(&value))?;
    let (base, letters) = match flag(binary) {
        true => (
            1024.0,
            ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"],
        ),
        false => (1000.0, ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"]),
    };
    let text = if bytes == 1.0 {
        "1 Byte".to_owned()
    } else if bytes < base {
        // Whole bytes have no negative zero.
        format!("{} Bytes", bytes.trunc() + 0.0)
    } else {
        let unit = |index: usize| f64::powi(base, index as i32 + 2);
        let fits = (0..letters.len()).find(|index| bytes < unit(*index));
        let index = fits.unwrap_or(letters.len() - 1);
        format!("{:.1} {}", base * bytes / unit(index), letters[index])
    };
    Value::text(meter, text)
}

fn no_number(value: &Value<'_>) -> Fault {
    Fault::operation(format!(
        "a value of type {} is no number",
        value.type_name()
    ))
}
