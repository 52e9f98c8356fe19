//! Arithmetic on BSON numbers: which type the result has, when int32 becomes int64, what happens when int64 overflows.
//!
//! The wider type of two decides: int, long, double, decimal. Expressions turn an overflowing long into a double
//! ([`Number::plus`]); updates refuse it ([`Number::checked_plus`]).

use super::decimal_math::Rounding;
use super::{Decimal128, Value};

#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal128),
}

/// Two numbers brought to the wider of their types.
enum Pair {
    Int32(i32, i32),
    Int64(i64, i64),
    Double(f64, f64),
    Decimal(Decimal128, Decimal128),
}

/// The first double above every int64.
const INT64_END: f64 = 9_223_372_036_854_775_808.0;

impl Number {
    pub fn of(value: &Value<'_>) -> Option<Number> {
        match value {
            Value::Int32(number) => Some(Number::Int32(*number)),
            Value::Int64(number) => Some(Number::Int64(*number)),
            Value::Double(number) => Some(Number::Double(*number)),
            Value::Decimal(number) => Some(Number::Decimal(*number)),
            _ => None,
        }
    }

    /// An int if it fits, else a long: what ints give.
    pub fn int_or_long(number: i64) -> Number {
        i32::try_from(number).map_or(Number::Int64(number), Number::Int32)
    }

    #[must_use]
    pub fn plus(self, other: Number) -> Number {
        self.checked_plus(other).unwrap_or_else(|| Number::Double(self.to_f64() + other.to_f64()))
    }

    #[must_use]
    pub fn minus(self, other: Number) -> Number {
        match pair(self, other) {
            Pair::Int32(a, b) => Number::int_or_long(i64::from(a) - i64::from(b)),
            Pair::Int64(a, b) => a.checked_sub(b).map_or(Number::Double(to_double(a) - to_double(b)), Number::Int64),
            Pair::Double(a, b) => Number::Double(a - b),
            Pair::Decimal(a, b) => Number::Decimal(a.minus(b)),
        }
    }

    #[must_use]
    pub fn times(self, other: Number) -> Number {
        self.checked_times(other).unwrap_or_else(|| Number::Double(self.to_f64() * other.to_f64()))
    }

    /// Returns `None` if a long overflows, as `$inc` wants it.
    pub fn checked_plus(self, other: Number) -> Option<Number> {
        match pair(self, other) {
            Pair::Int32(a, b) => Some(Number::int_or_long(i64::from(a) + i64::from(b))),
            Pair::Int64(a, b) => a.checked_add(b).map(Number::Int64),
            Pair::Double(a, b) => Some(Number::Double(a + b)),
            Pair::Decimal(a, b) => Some(Number::Decimal(a.plus(b))),
        }
    }

    /// Returns `None` if a long overflows, as `$mul` wants it.
    pub fn checked_times(self, other: Number) -> Option<Number> {
        match pair(self, other) {
            Pair::Int32(a, b) => Some(Number::int_or_long(i64::from(a) * i64::from(b))),
            Pair::Int64(a, b) => a.checked_mul(b).map(Number::Int64),
            Pair::Double(a, b) => Some(Number::Double(a * b)),
            Pair::Decimal(a, b) => Some(Number::Decimal(a.times(b))),
        }
    }

    /// A double, or a decimal if one operand is one. Returns `None` if the divisor is zero.
    pub fn divided_by(self, other: Number) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        Some(match pair(self, other) {
            Pair::Decimal(a, b) => Number::Decimal(a.divided_by(b)),
            _ => Number::Double(self.to_f64() / other.to_f64()),
        })
    }

    /// The remainder with the sign of the dividend. Returns `None` if the divisor is zero.
    pub fn modulo(self, other: Number) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        // A whole double as divisor counts as an int beside an int or long.
        let other = match (self, other) {
            (Number::Int32(_) | Number::Int64(_), Number::Double(_)) => {
                other.as_i32_exact().map_or(other, Number::Int32)
            }
            _ => other,
        };
        Some(match pair(self, other) {
            Pair::Int32(a, b) => Number::Int32(a.wrapping_rem(b)),
            Pair::Int64(a, b) => Number::Int64(a.wrapping_rem(b)),
            Pair::Double(a, b) => Number::Double(a % b),
            Pair::Decimal(a, b) => Number::Decimal(a.remainder(b)),
        })
    }

    /// Returns `None` for the smallest long, which has none.
    pub fn abs(self) -> Option<Number> {
        Some(match self {
            Number::Int32(number) => Number::int_or_long(i64::from(number).abs()),
            Number::Int64(number) => Number::Int64(number.checked_abs()?),
            Number::Double(number) => Number::Double(number.abs()),
            Number::Decimal(number) => Number::Decimal(number.abs()),
        })
    }

    #[must_use]
    pub fn ceil(self) -> Number {
        self.to_whole(f64::ceil, Rounding::Up)
    }

    #[must_use]
    pub fn floor(self) -> Number {
        self.to_whole(f64::floor, Rounding::Down)
    }

    /// A decimal that has no room for its whole part (and an infinite one) is NaN, as MongoDB has it.
    fn to_whole(self, double: fn(f64) -> f64, decimal: Rounding) -> Number {
        match self {
            Number::Int32(_) | Number::Int64(_) => self,
            Number::Double(number) => Number::Double(double(number)),
            Number::Decimal(number) => Number::Decimal(number.quantize(0, decimal).unwrap_or(Decimal128::NAN)),
        }
    }

    /// `$round` and `$trunc` to `place` digits after the point. Returns `None` if a rounded long overflows.
    pub fn round_to(self, place: i32, rounding: Rounding) -> Option<Number> {
        let whole = |number: i64| Decimal128::from_i64(number).round_to(place, rounding).to_i64(rounding);
        Some(match self {
            Number::Int32(_) | Number::Int64(_) if place >= 0 => self,
            Number::Int32(number) => Number::int_or_long(whole(i64::from(number))?),
            Number::Int64(number) => Number::Int64(whole(number)?),
            Number::Double(number) if place == 0 => Number::Double(match rounding {
                Rounding::HalfEven => number.round_ties_even(),
                Rounding::TowardZero => number.trunc(),
                Rounding::Up => number.ceil(),
                Rounding::Down => number.floor(),
            }),
            Number::Double(number) if !number.is_finite() => self,
            Number::Double(number) => {
                Number::Double(Decimal128::from_f64_exact(number).round_to(place, rounding).to_f64())
            }
            Number::Decimal(number) => Number::Decimal(number.round_to(place, rounding)),
        })
    }

    /// Whole powers of whole numbers stay whole while they fit; all else is a double or decimal. The caller refuses zero to
    /// a negative power.
    #[must_use]
    pub fn pow(self, exponent: Number) -> Number {
        match pair(self, exponent) {
            Pair::Int32(base, power) => match whole_power(i64::from(base), i64::from(power)) {
                Some(result) => Number::int_or_long(result),
                None => Number::Double(f64::from(base).powf(f64::from(power))),
            },
            Pair::Int64(base, power) => match whole_power(base, power) {
                Some(result) => Number::Int64(result),
                None => Number::Double(to_double(base).powf(to_double(power))),
            },
            Pair::Double(base, power) => Number::Double(base.powf(power)),
            Pair::Decimal(base, power) => Number::Decimal(base.pow(power)),
        }
    }

    #[must_use]
    pub fn sqrt(self) -> Number {
        self.function(f64::sqrt, Decimal128::sqrt)
    }

    #[must_use]
    pub fn exp(self) -> Number {
        self.function(f64::exp, Decimal128::exp)
    }

    #[must_use]
    pub fn ln(self) -> Number {
        self.function(f64::ln, Decimal128::ln)
    }

    #[must_use]
    pub fn log10(self) -> Number {
        self.function(f64::log10, Decimal128::log10)
    }

    #[must_use]
    pub fn log(self, base: Number) -> Number {
        match pair(self, base) {
            Pair::Decimal(number, base) => Number::Decimal(number.log(base)),
            _ => Number::Double(self.to_f64().ln() / base.to_f64().ln()),
        }
    }

    /// A function of a double, or of a decimal.
    #[must_use]
    pub fn function(self, double: fn(f64) -> f64, decimal: fn(Decimal128) -> Decimal128) -> Number {
        match self {
            Number::Decimal(number) => Number::Decimal(decimal(number)),
            _ => Number::Double(double(self.to_f64())),
        }
    }

    pub fn is_zero(self) -> bool {
        match self {
            Number::Int32(number) => number == 0,
            Number::Int64(number) => number == 0,
            Number::Double(number) => number == 0.0,
            Number::Decimal(number) => number.is_zero(),
        }
    }

    pub fn is_nan(self) -> bool {
        match self {
            Number::Int32(_) | Number::Int64(_) => false,
            Number::Double(number) => number.is_nan(),
            Number::Decimal(number) => number.is_nan(),
        }
    }

    pub fn is_infinite(self) -> bool {
        match self {
            Number::Int32(_) | Number::Int64(_) => false,
            Number::Double(number) => number.is_infinite(),
            Number::Decimal(number) => number.is_infinite(),
        }
    }

    /// Below zero; false for NaN and negative zero.
    pub fn is_negative(self) -> bool {
        match self {
            Number::Int32(number) => number < 0,
            Number::Int64(number) => number < 0,
            Number::Double(number) => number < 0.0,
            Number::Decimal(number) => number.is_negative() && !number.is_zero() && !number.is_nan(),
        }
    }

    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int32(number) => f64::from(number),
            Number::Int64(number) => to_double(number),
            Number::Double(number) => number,
            Number::Decimal(number) => number.to_f64(),
        }
    }

    /// A double counts with 15 digits.
    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Int32(number) => Decimal128::from_i64(i64::from(number)),
            Number::Int64(number) => Decimal128::from_i64(number),
            Number::Double(number) => Decimal128::from_f64(number),
            Number::Decimal(number) => number,
        }
    }

    /// The long it is exactly; `None` if it has a fraction or is out of range.
    pub fn as_i64_exact(self) -> Option<i64> {
        match self {
            Number::Double(number) if number.fract() != 0.0 => None,
            Number::Decimal(number) if !number.is_integral() => None,
            _ => self.to_i64_truncated(),
        }
    }

    pub fn as_i32_exact(self) -> Option<i32> {
        self.as_i64_exact().and_then(|number| i32::try_from(number).ok())
    }

    /// Without its fraction; `None` if out of range, infinite or NaN.
    pub fn to_i64_truncated(self) -> Option<i64> {
        match self {
            Number::Int32(number) => Some(i64::from(number)),
            Number::Int64(number) => Some(number),
            #[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
            Number::Double(number) => (-INT64_END..INT64_END).contains(&number).then_some(number as i64),
            Number::Decimal(number) => number.to_i64(Rounding::TowardZero),
        }
    }

    pub fn to_i32_truncated(self) -> Option<i32> {
        self.to_i64_truncated().and_then(|number| i32::try_from(number).ok())
    }

    /// Without its fraction; what is out of range becomes the nearest long, NaN becomes 0. How commands read counts.
    pub fn to_i64_saturated(self) -> i64 {
        match self {
            #[expect(clippy::cast_possible_truncation, reason = "saturates by definition")]
            Number::Double(number) => number as i64,
            Number::Decimal(number) => match number.to_i64(Rounding::TowardZero) {
                Some(whole) => whole,
                None if number.is_nan() => 0,
                None if number.is_negative() => i64::MIN,
                None => i64::MAX,
            },
            Number::Int32(number) => i64::from(number),
            Number::Int64(number) => number,
        }
    }
}

impl From<Number> for Value<'_> {
    fn from(number: Number) -> Self {
        match number {
            Number::Int32(number) => Value::Int32(number),
            Number::Int64(number) => Value::Int64(number),
            Number::Double(number) => Value::Double(number),
            Number::Decimal(number) => Value::Decimal(number),
        }
    }
}

impl Value<'_> {
    pub fn as_number(&self) -> Option<Number> {
        Number::of(self)
    }

    /// The long that a numeric value is exactly.
    pub fn as_i64_exact(&self) -> Option<i64> {
        Number::of(self)?.as_i64_exact()
    }
}

fn pair(left: Number, right: Number) -> Pair {
    match (left, right) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => Pair::Decimal(left.to_decimal(), right.to_decimal()),
        (Number::Double(_), _) | (_, Number::Double(_)) => Pair::Double(left.to_f64(), right.to_f64()),
        (Number::Int64(a), Number::Int64(b)) => Pair::Int64(a, b),
        (Number::Int64(a), Number::Int32(b)) => Pair::Int64(a, i64::from(b)),
        (Number::Int32(a), Number::Int64(b)) => Pair::Int64(i64::from(a), b),
        (Number::Int32(a), Number::Int32(b)) => Pair::Int32(a, b),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
fn to_double(number: i64) -> f64 {
    number as f64
}

/// Returns `None` if the power is no whole number or does not fit.
fn whole_power(base: i64, power: i64) -> Option<i64> {
    match (base, power) {
        (1, _) | (_, 0) => Some(1),
        (-1, _) => Some(if power % 2 == 0 { 1 } else { -1 }),
        (0, 1..) => Some(0),
        _ => base.checked_pow(u32::try_from(power).ok()?),
    }
}
