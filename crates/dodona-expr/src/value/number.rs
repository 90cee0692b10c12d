//! Arithmetic as Python has it, on 64-bit integers and floats.

use std::cmp::Ordering;

use crate::error::{ErrorKind, Fault};
use crate::limits::{MAX_POWER, MAX_SHIFT};

/// 2⁶³, the first float above every integer.
const ABOVE: f64 = 9_223_372_036_854_775_808.0;

/// 2⁵³: integers up to here are floats without loss.
const EXACT: u64 = 1 << 53;

#[cold]
fn by_zero() -> Fault {
    Fault::new(ErrorKind::ZeroDivision, "division by zero")
}

/// The integer that a float is, if it is one.
pub(crate) fn exact_int(value: f64) -> Option<i64> {
    let fits = value.trunc() == value && (-ABOVE..ABOVE).contains(&value);
    fits.then_some(value as i64)
}

/// Compares without rounding the integer.
pub(crate) fn compare_int_float(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float >= ABOVE {
        return Some(Ordering::Less);
    }
    if float < -ABOVE {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    let order = int.cmp(&(whole as i64));
    // Equal up to the fraction, which then decides.
    Some(order.then_with(|| {
        0.0f64
            .partial_cmp(&(float - whole))
            .unwrap_or(Ordering::Equal)
    }))
}

/// The nearest float to `left / right`.
pub(crate) fn divide_ints(left: i64, right: i64) -> Result<f64, Fault> {
    if right == 0 {
        return Err(by_zero());
    }
    let (top, bottom) = (left.unsigned_abs(), right.unsigned_abs());
    if top == 0 || (top <= EXACT && bottom <= EXACT) {
        return Ok(left as f64 / right as f64);
    }
    // The quotient of the scaled integers has at least 63 bits; what is left over becomes its last
    // bit, so that the conversion below rounds as if it saw all of them.
    let scale = u128::from(top).leading_zeros();
    let scaled = u128::from(top) << scale;
    let quotient = scaled / u128::from(bottom);
    let sticky = u128::from(!scaled.is_multiple_of(u128::from(bottom)));
    let size = (quotient | sticky) as f64 / 2f64.powi(scale.cast_signed());
    Ok(if (left < 0) == (right < 0) {
        size
    } else {
        -size
    })
}

pub(crate) fn divide_floats(left: f64, right: f64) -> Result<f64, Fault> {
    if right == 0.0 {
        return Err(by_zero());
    }
    Ok(left / right)
}

pub(crate) fn floor_divide_ints(left: i64, right: i64) -> Result<i64, Fault> {
    if right == 0 {
        return Err(by_zero());
    }
    let quotient = left.checked_div(right).ok_or_else(Fault::overflow)?;
    let inexact = left.wrapping_rem(right) != 0;
    Ok(if inexact && ((left < 0) != (right < 0)) {
        quotient - 1
    } else {
        quotient
    })
}

pub(crate) fn modulo_ints(left: i64, right: i64) -> Result<i64, Fault> {
    if right == 0 {
        return Err(by_zero());
    }
    let rest = left.wrapping_rem(right);
    Ok(if rest != 0 && ((rest < 0) != (right < 0)) {
        rest + right
    } else {
        rest
    })
}

/// `//` and `%` of floats at once: the rest has the sign of the divisor.
pub(crate) fn divmod_floats(left: f64, right: f64) -> Result<(f64, f64), Fault> {
    if right == 0.0 {
        return Err(by_zero());
    }
    let mut rest = left % right;
    let mut quotient = (left - rest) / right;
    if rest == 0.0 {
        rest = 0.0f64.copysign(right);
    } else if (right < 0.0) != (rest < 0.0) {
        rest += right;
        quotient -= 1.0;
    }
    let floored = if quotient == 0.0 {
        0.0f64.copysign(left / right)
    } else {
        let floor = quotient.floor();
        if quotient - floor > 0.5 {
            floor + 1.0
        } else {
            floor
        }
    };
    Ok((floored, rest))
}

/// What a power is: an integer if both parts are and the exponent is not negative.
pub(crate) enum Power {
    Int(i64),
    Float(f64),
}

pub(crate) fn power_ints(base: i64, exponent: i64) -> Result<Power, Fault> {
    check_power(base as f64, exponent as f64)?;
    if exponent < 0 {
        return power_floats(base as f64, exponent as f64).map(Power::Float);
    }
    match base {
        // The only bases whose powers stay small for exponents that do not fit below.
        0 | 1 => Ok(Power::Int(if exponent == 0 { 1 } else { base })),
        -1 => Ok(Power::Int(if exponent % 2 == 0 { 1 } else { -1 })),
        _ => u32::try_from(exponent)
            .ok()
            .and_then(|exponent| base.checked_pow(exponent))
            .map(Power::Int)
            .ok_or_else(Fault::overflow),
    }
}

pub(crate) fn power_floats(base: f64, exponent: f64) -> Result<f64, Fault> {
    check_power(base, exponent)?;
    if base == 0.0 && exponent < 0.0 {
        return Err(Fault::new(
            ErrorKind::ZeroDivision,
            "zero to a negative power",
        ));
    }
    if base < 0.0 && base.is_finite() && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(Fault::value_error(
            "a negative number to a fraction is a complex number, and there are none",
        ));
    }
    let result = base.powf(exponent);
    if result.is_infinite() && base.is_finite() && exponent.is_finite() {
        return Err(Fault::new(
            ErrorKind::Overflow,
            "the power is too large for a float",
        ));
    }
    Ok(result)
}

fn check_power(base: f64, exponent: f64) -> Result<(), Fault> {
    if base.abs() > MAX_POWER || exponent.abs() > MAX_POWER {
        return Err(Fault::limit(format!(
            "base and exponent of a power go up to {MAX_POWER}"
        )));
    }
    Ok(())
}

pub(crate) fn shift_left(value: i64, by: i64) -> Result<i64, Fault> {
    check_shift(by)?;
    if value == 0 {
        return Ok(0);
    }
    let shifted = u32::try_from(by)
        .ok()
        .filter(|&by| by < 64)
        .map(|by| i128::from(value) << by);
    shifted
        .and_then(|wide| i64::try_from(wide).ok())
        .ok_or_else(Fault::overflow)
}

pub(crate) fn shift_right(value: i64, by: i64) -> Result<i64, Fault> {
    check_shift(by)?;
    Ok(value >> by.min(63))
}

fn check_shift(by: i64) -> Result<(), Fault> {
    if by < 0 {
        return Err(Fault::value_error("a shift by less than nothing"));
    }
    if by > MAX_SHIFT {
        return Err(Fault::limit(format!("shifts go up to {MAX_SHIFT}")));
    }
    Ok(())
}

/// `round(value)`: to the nearest integer, halves to the even one.
pub(crate) fn round_to_int(value: f64) -> Result<i64, Fault> {
    int_of_float(value.round_ties_even())
}

/// `int(value)`: towards zero.
pub(crate) fn int_of_float(value: f64) -> Result<i64, Fault> {
    if value.is_nan() {
        return Err(Fault::value_error("nan is no integer"));
    }
    if value.is_infinite() {
        return Err(Fault::new(ErrorKind::Overflow, "infinity is no integer"));
    }
    exact_int(value.trunc()).ok_or_else(Fault::overflow)
}

/// `round(value, digits)` of a float: the nearest decimal, judged by the exact value.
pub(crate) fn round_float(value: f64, digits: i64) -> Result<f64, Fault> {
    if !value.is_finite() || digits > 323 {
        return Ok(value);
    }
    if digits < -308 {
        return Ok(0.0f64.copysign(value));
    }
    let rounded = if digits >= 0 {
        let places = usize::try_from(digits).unwrap_or_default();
        format!("{value:.places$}").parse().unwrap_or(value)
    } else {
        round_whole_digits(value, digits.unsigned_abs() as usize)
    };
    if f64::is_infinite(rounded) {
        return Err(Fault::new(
            ErrorKind::Overflow,
            "the rounded value is too large for a float",
        ));
    }
    Ok(rounded)
}

/// Rounds away the last `places` digits before the point.
fn round_whole_digits(value: f64, places: usize) -> f64 {
    // The exact decimal of the float; `{:e}` with enough digits rounds it where we need it.
    let whole = format!("{:.0}", value.abs().trunc());
    let kept = whole.len() as i64 - places as i64;
    let digits = if kept > 0 {
        format!("{:.*e}", (kept - 1) as usize, value.abs())
    } else if kept == 0 {
        // Between nothing and one unit of the first place that is kept; half goes to nothing.
        let unit: f64 = format!("1e{places}").parse().unwrap_or(f64::INFINITY);
        if value.abs() > unit / 2.0 {
            format!("1e{places}")
        } else {
            "0".to_owned()
        }
    } else {
        "0".to_owned()
    };
    let rounded: f64 = digits.parse().unwrap_or(value);
    rounded.copysign(value)
}

/// `round(value, digits)` of an integer: halves to the even multiple.
pub(crate) fn round_int(value: i64, digits: i64) -> Result<i64, Fault> {
    if digits >= 0 {
        return Ok(value);
    }
    let Some(unit) = u32::try_from(digits.unsigned_abs())
        .ok()
        .and_then(|places| 10i128.checked_pow(places))
    else {
        return Ok(0);
    };
    let wide = i128::from(value);
    let below = wide.div_euclid(unit);
    let rest = wide.rem_euclid(unit);
    let up = match (rest * 2).cmp(&unit) {
        Ordering::Less => false,
        Ordering::Equal => below % 2 != 0,
        Ordering::Greater => true,
    };
    i64::try_from((below + i128::from(up)) * unit).map_err(|_| Fault::overflow())
}

/// A float as Python writes it: the shortest digits that read back as the same float.
pub(crate) fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let scientific = shortest(value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        return plain(mantissa, exponent);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// The fewest digits that read back as the same float; of two that are equally near, the even one.
fn shortest(value: f64) -> String {
    let short = format!("{value:e}");
    let digits = short.bytes().take_while(|&byte| byte != b'e');
    let places = digits.filter(u8::is_ascii_digit).count() - 1;
    // The standard library does not promise which of two it takes, but rounds an exact tie to even.
    let rounded = format!("{value:.places$e}");
    if rounded.parse() == Ok(value) {
        rounded
    } else {
        short
    }
}

/// A mantissa such as `-1.25` with its point where the exponent puts it, and a digit after it.
fn plain(mantissa: &str, exponent: i32) -> String {
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", mantissa),
    };
    let digits = digits.replace('.', "");
    match usize::try_from(exponent) {
        Err(_) => {
            let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
            format!("{sign}0.{zeros}{digits}")
        }
        Ok(exponent) => {
            let digits = format!("{digits:0<width$}", width = exponent + 2);
            let (whole, fraction) = digits.split_at(exponent + 1);
            format!("{sign}{whole}.{fraction}")
        }
    }
}

/// The text without the underscores that may stand between digits; none if one stands elsewhere.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut kept = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        if character != '_' {
            kept.push(character);
            continue;
        }
        let between = at > 0
            && bytes[at - 1].is_ascii_alphanumeric()
            && bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        if !between {
            return None;
        }
    }
    Some(kept)
}

/// `int(text, base)`.
pub(crate) fn parse_int(text: &str, base: u32) -> Result<i64, Fault> {
    let refuse = || {
        Fault::value_error(format!(
            "{} is no integer of base {base}",
            super::repr::quoted_short(text)
        ))
    };
    let trimmed = text.trim_matches(crate::builtins::is_space);
    let (negative, digits) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let (base, digits) = strip_prefix(digits, base);
    let digits = without_underscores(digits).ok_or_else(refuse)?;
    let all_digits = !digits.is_empty() && digits.chars().all(|c| c.is_digit(base));
    if !all_digits {
        return Err(refuse());
    }
    let sign = if negative { "-" } else { "" };
    i64::from_str_radix(&format!("{sign}{digits}"), base).map_err(|_| Fault::overflow())
}

/// Takes `0x`, `0o` or `0b` away where the base agrees; base 0 asks the prefix.
fn strip_prefix(digits: &str, base: u32) -> (u32, &str) {
    for (prefix, of) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        let start = digits.get(..2).unwrap_or_default();
        if start.eq_ignore_ascii_case(prefix) && (base == of || base == 0) {
            let rest = &digits[2..];
            return (of, rest.strip_prefix('_').unwrap_or(rest));
        }
    }
    (if base == 0 { 10 } else { base }, digits)
}

/// `float(text)`.
pub(crate) fn parse_float(text: &str) -> Result<f64, Fault> {
    let refuse = || Fault::value_error(format!("{} is no float", super::repr::quoted_short(text)));
    let trimmed = text.trim_matches(crate::builtins::is_space);
    let unsigned = trimmed.trim_start_matches(['+', '-']).to_ascii_lowercase();
    if matches!(unsigned.as_str(), "nan" | "inf" | "infinity") {
        return trimmed.to_ascii_lowercase().parse().map_err(|_| refuse());
    }
    let plain = without_underscores(trimmed).ok_or_else(refuse)?;
    let allowed = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-');
    if plain.is_empty() || !plain.chars().all(allowed) {
        return Err(refuse());
    }
    plain.parse().map_err(|_| refuse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_is_floored_and_the_rest_follows_the_divisor() {
        assert_eq!(floor_divide_ints(-7, 2).unwrap(), -4);
        assert_eq!(modulo_ints(-7, 2).unwrap(), 1);
        assert_eq!(modulo_ints(7, -2).unwrap(), -1);
        assert_eq!(divmod_floats(-7.0, 2.0).unwrap(), (-4.0, 1.0));
    }

    #[test]
    fn the_smallest_integer_over_minus_one_overflows_and_does_not_panic() {
        assert!(floor_divide_ints(i64::MIN, -1).is_err());
        assert_eq!(modulo_ints(i64::MIN, -1).unwrap(), 0);
        assert!(power_ints(i64::MIN, 2).is_err());
        assert!(shift_left(1, 63).is_err());
        assert_eq!(shift_left(-1, 63).unwrap(), i64::MIN);
    }

    #[test]
    fn integers_and_floats_compare_without_rounding() {
        let big = (1i64 << 53) + 1;
        assert_eq!(
            compare_int_float(big, (1u64 << 53) as f64),
            Some(Ordering::Greater)
        );
        assert_eq!(compare_int_float(i64::MAX, ABOVE), Some(Ordering::Less));
        assert_eq!(compare_int_float(0, 0.5), Some(Ordering::Less));
        assert_eq!(compare_int_float(0, -0.5), Some(Ordering::Greater));
        assert_eq!(compare_int_float(0, f64::NAN), None);
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (value, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (1e15, "1000000000000000.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-0.0, "-0.0"),
            (1.5e300, "1.5e+300"),
            (900_719_925_474_099.2, "900719925474099.2"),
            (-12.0, "-12.0"),
            (0.0, "0.0"),
        ] {
            assert_eq!(float_repr(value), text);
        }
    }

    #[test]
    fn rounding_is_that_of_the_exact_value() {
        assert_eq!(round_float(2.675, 2).unwrap(), 2.67);
        assert_eq!(round_float(1250.0, -2).unwrap(), 1200.0);
        assert_eq!(round_float(1350.0, -2).unwrap(), 1400.0);
        assert_eq!(round_float(60.0, -2).unwrap(), 100.0);
        assert_eq!(round_float(50.0, -2).unwrap(), 0.0);
        assert_eq!(round_int(25, -1).unwrap(), 20);
        assert_eq!(round_int(-35, -1).unwrap(), -40);
        assert_eq!(round_to_int(2.5).unwrap(), 2);
    }
}
