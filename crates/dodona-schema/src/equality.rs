//! Equality and order of JSON values as JSON Schema defines them: numbers are compared by value.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Whether two values are the same. `1` and `1.0` are; the order of an object's members is
/// irrelevant.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            compare(left, right) == Some(Ordering::Equal)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| equal(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, l)| right.get(name).is_some_and(|r| equal(l, r)))
        }
        _ => left == right,
    }
}

/// Compares integers exactly and everything else as floats.
pub(crate) fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

/// The number as an integer, also when it is written with a fraction of zero.
pub(crate) fn integer(number: &Number) -> Option<i128> {
    if let Some(value) = number.as_i64() {
        return Some(value.into());
    }
    if let Some(value) = number.as_u64() {
        return Some(value.into());
    }
    let value = number.as_f64()?;
    // Larger floats are integers too, but a cast would saturate.
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    let whole = (value.fract() == 0.0 && value.abs() < 1e30).then_some(value as i128);
    whole
}

/// Whether a number is an integer multiple of another, which is positive.
pub(crate) fn is_multiple(number: &Number, of: &Number) -> bool {
    if let (Some(number), Some(of)) = (integer(number), integer(of)) {
        return of != 0 && number % of == 0;
    }
    let (Some(number), Some(of)) = (number.as_f64(), of.as_f64()) else {
        return false;
    };
    let quotient = number / of;
    // 19.99 / 0.01 is 1998.9999999999998: decimal fractions are not exact in binary.
    let tolerance = 1e-9 * quotient.abs().max(1.0);
    quotient.is_finite() && (quotient - quotient.round()).abs() <= tolerance
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        assert!(equal(&json!(1), &json!(1.0)));
        assert!(equal(&json!({"a": [1, 2.0]}), &json!({"a": [1.0, 2]})));
        assert!(!equal(&json!(u64::MAX), &json!(u64::MAX - 1)));
        assert!(!equal(&json!(1), &json!(true)));
        assert!(!equal(&json!("1"), &json!(1)));
    }

    #[test]
    fn decimal_fractions_are_multiples() {
        let number = |value: f64| Number::from_f64(value).unwrap();
        assert!(is_multiple(&number(19.99), &number(0.01)));
        assert!(is_multiple(&number(0.0075), &number(0.0001)));
        assert!(!is_multiple(&number(0.00751), &number(0.0001)));
        assert!(is_multiple(&Number::from(9), &number(1.5)));
        assert!(!is_multiple(&Number::from(1), &Number::from(0)));
    }
}
