//! Numbers as filter operators take them: exactly, cut to an integer, or refused in the server's words.

use crate::value::decimal::Parts;
use crate::value::{Value, order, show};

/// 2^63: the first double above every 64-bit integer.
const LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// The 64-bit integer that the number is, whatever its type. The message names the element as `name: value`.
pub(super) fn integer(name: &str, value: &Value<'_>) -> Result<i64, String> {
    let shown = || format!("{name}: {}", show::element(value));
    match value {
        Value::Int32(number) => Ok(i64::from(*number)),
        Value::Int64(number) => Ok(*number),
        Value::Double(number) if number.is_nan() => Err(format!("Expected an integer, but found NaN in: {}", shown())),
        Value::Double(number) => match truncated(value) {
            None => Err(format!("Cannot represent as a 64-bit integer: {}", shown())),
            Some(_) if number.fract() != 0.0 => Err(format!("Expected an integer: {}", shown())),
            Some(whole) => Ok(whole),
        },
        Value::Decimal(_) => match truncated(value) {
            Some(whole) if order::equal(value, &Value::Int64(whole)) => Ok(whole),
            _ => Err(format!("Cannot represent as a 64-bit integer: {}", shown())),
        },
        _ => Err(format!("Expected a number in: {}", shown())),
    }
}

/// As [`integer`], refusing negative numbers.
pub(super) fn non_negative(name: &str, value: &Value<'_>) -> Result<i64, String> {
    match integer(name, value)? {
        number if number < 0 => Err(format!("Expected a non-negative number in: {name}: {}", show::element(value))),
        number => Ok(number),
    }
}

/// As [`non_negative`], refusing what is above the 32-bit integers.
pub(super) fn non_negative_int(name: &str, value: &Value<'_>) -> Result<i32, String> {
    let number = non_negative(name, value)?;
    i32::try_from(number).map_err(|_| format!("Cannot represent {name}: {} in an int", show::element(value)))
}

/// The number without its fraction, if it is in range.
pub(super) fn truncated(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(i64::from(*number)),
        Value::Int64(number) => Some(*number),
        #[expect(clippy::cast_possible_truncation, reason = "checked against the range of int64")]
        Value::Double(number) => (-LIMIT..LIMIT).contains(number).then(|| number.trunc() as i64),
        Value::Decimal(number) => {
            let Parts::Finite { negative, coefficient, exponent } = number.parts() else { return None };
            let power = 10_u128.checked_pow(exponent.unsigned_abs());
            let magnitude = match (coefficient, exponent >= 0, power) {
                (0, ..) => 0,
                (_, true, power) => coefficient.checked_mul(power?)?,
                (_, false, None) => 0,
                (_, false, Some(power)) => coefficient / power,
            };
            let magnitude = i128::try_from(magnitude).ok()?;
            i64::try_from(if negative { -magnitude } else { magnitude }).ok()
        }
        _ => None,
    }
}

/// The nearest double; nothing but numbers has one.
pub(super) fn to_double(value: &Value<'_>) -> f64 {
    match value {
        Value::Int32(number) => f64::from(*number),
        #[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
        Value::Int64(number) => *number as f64,
        Value::Double(number) => *number,
        Value::Decimal(number) => number.to_string().parse().unwrap_or(f64::NAN),
        _ => f64::NAN,
    }
}
