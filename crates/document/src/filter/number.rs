//! Numbers as filter operators take them: exactly, or cut to an integer.

use crate::value::Value;
use crate::value::decimal::Parts;

/// Why a number is no 64-bit integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inexact {
    Fraction,
    Range,
}

/// 2^63: the first double above every 64-bit integer.
const LIMIT: f64 = 9_223_372_036_854_775_808.0;

/// The 64-bit integer that the number is, whatever its type.
pub(super) fn exact_integer(value: &Value<'_>) -> Result<i64, Inexact> {
    match value {
        Value::Int32(number) => Ok(i64::from(*number)),
        Value::Int64(number) => Ok(*number),
        Value::Double(number) if !(-LIMIT..LIMIT).contains(number) => Err(Inexact::Range),
        Value::Double(number) if number.trunc() != *number => Err(Inexact::Fraction),
        Value::Decimal(number) => match number.parts() {
            Parts::Finite { coefficient: 0, .. } => Ok(0),
            Parts::Finite { .. } => match truncated(value) {
                Some(whole) if crate::value::order::equal(value, &Value::Int64(whole)) => Ok(whole),
                Some(_) => Err(Inexact::Fraction),
                None => Err(Inexact::Range),
            },
            _ => Err(Inexact::Range),
        },
        _ => truncated(value).ok_or(Inexact::Range),
    }
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
