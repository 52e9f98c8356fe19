//! Arithmetic on decimals: exact integer arithmetic where the digits fit, the library where they do not.
//!
//! Results carry the exponents that IEEE 754 prefers, because MongoDB shows them: 1.0 + 1.00 is 2.00.

use super::Decimal128;
use super::decimal::{MAX_COEFFICIENT, MAX_EXPONENT, MIN_EXPONENT, Parts};

/// How digits that do not fit are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    HalfEven,
    TowardZero,
    Up,
    Down,
}

/// Digits of a full coefficient.
const DIGITS: i32 = 34;
/// Working precision of the functions that have no exact result: 34 digits and enough to round them right.
const WIDE: usize = 18;

type Context = dec::Context<dec::Decimal128>;
type Wide = dec::Decimal<WIDE>;

impl Decimal128 {
    pub const ZERO: Decimal128 = Decimal128::from_bytes((6176_u128 << 113).to_le_bytes());

    #[must_use]
    pub fn negate(self) -> Decimal128 {
        if self.is_nan() {
            return self;
        }
        Decimal128::from_bytes((u128::from_le_bytes(self.bytes()) ^ (1 << 127)).to_le_bytes())
    }

    #[must_use]
    pub fn abs(self) -> Decimal128 {
        Decimal128::from_bytes((u128::from_le_bytes(self.bytes()) & !(1 << 127)).to_le_bytes())
    }

    #[must_use]
    pub fn plus(self, other: Decimal128) -> Decimal128 {
        if let (Some((a, ea)), Some((b, eb))) = (self.signed(), other.signed())
            && ea == eb
            && let sum = a + b
            && sum.unsigned_abs() <= MAX_COEFFICIENT
        {
            let negative = if sum == 0 { self.is_negative() && other.is_negative() } else { sum < 0 };
            return Decimal128::from_parts(negative, sum.unsigned_abs(), ea);
        }
        Decimal128::from_dec(Context::default().add(self.to_dec(), other.to_dec()))
    }

    #[must_use]
    pub fn minus(self, other: Decimal128) -> Decimal128 {
        self.plus(other.negate())
    }

    #[must_use]
    pub fn times(self, other: Decimal128) -> Decimal128 {
        if let (
            Parts::Finite { negative: na, coefficient: a, exponent: ea },
            Parts::Finite { negative: nb, coefficient: b, exponent: eb },
        ) = (self.parts(), other.parts())
            && let Some(product) = a.checked_mul(b)
            && product <= MAX_COEFFICIENT
            && (MIN_EXPONENT..=MAX_EXPONENT).contains(&(ea + eb))
        {
            return Decimal128::from_parts(na != nb, product, ea + eb);
        }
        Decimal128::from_dec(Context::default().mul(self.to_dec(), other.to_dec()))
    }

    #[must_use]
    pub fn divided_by(self, other: Decimal128) -> Decimal128 {
        Decimal128::from_dec(Context::default().div(self.to_dec(), other.to_dec()))
    }

    /// The remainder of truncated division, exact whatever the quotient (the library gives up beyond 34 digits).
    #[must_use]
    pub fn remainder(self, other: Decimal128) -> Decimal128 {
        match (self.parts(), other.parts()) {
            (Parts::Finite { .. }, Parts::Infinity { .. }) => self,
            (
                Parts::Finite { negative, coefficient: a, exponent: ea },
                Parts::Finite { coefficient: b, exponent: eb, .. },
            ) if b != 0 => {
                if ea >= eb {
                    let mut rest = a % b;
                    let mut shift = ea - eb;
                    // The divisor has at most 113 bits: four more digits fit beside it.
                    while shift > 0 && rest != 0 {
                        let step = shift.min(4);
                        rest = rest * 10_u128.pow(step.unsigned_abs()) % b;
                        shift -= step;
                    }
                    return Decimal128::from_parts(negative, rest, eb);
                }
                let scaled = power_of_ten(eb - ea).and_then(|scale| b.checked_mul(scale));
                Decimal128::from_parts(negative, scaled.map_or(a, |b| a % b), ea)
            }
            _ => Decimal128::NAN,
        }
    }

    /// The same number with exactly this exponent; `None` if that needs more than 34 digits.
    pub fn quantize(self, exponent: i32, rounding: Rounding) -> Option<Decimal128> {
        let Parts::Finite { negative, coefficient, exponent: own } = self.parts() else { return None };
        let shift = exponent - own;
        let coefficient = if shift <= 0 {
            match coefficient {
                0 => 0,
                _ => coefficient.checked_mul(power_of_ten(-shift)?)?,
            }
        } else {
            drop_digits(negative, coefficient, shift, rounding)
        };
        (coefficient <= MAX_COEFFICIENT).then(|| Decimal128::from_parts(negative, coefficient, exponent))
    }

    /// Rounds to `place` digits after the point (before it, if negative), as `$round` does: where 34 digits do not reach so
    /// far, it keeps the 34 it has.
    #[must_use]
    pub fn round_to(self, place: i32, rounding: Rounding) -> Decimal128 {
        let Parts::Finite { coefficient, exponent, .. } = self.parts() else { return self };
        let top = exponent + digits(coefficient) - 1;
        let target = if coefficient == 0 { -place } else { (-place).max(top - (DIGITS - 1)) };
        let target = target.clamp(MIN_EXPONENT, MAX_EXPONENT);
        self.quantize(target, rounding).or_else(|| self.quantize(target + 1, rounding)).unwrap_or(self)
    }

    /// Rounded to a whole number, if it then fits.
    pub fn to_i64(self, rounding: Rounding) -> Option<i64> {
        let Parts::Finite { negative, coefficient, exponent } = self.parts() else { return None };
        let magnitude = match exponent {
            0 => coefficient,
            _ if coefficient == 0 => 0,
            1.. => coefficient.checked_mul(power_of_ten(exponent)?)?,
            _ => drop_digits(negative, coefficient, -exponent, rounding),
        };
        let signed = i128::try_from(magnitude).ok()?;
        i64::try_from(if negative { -signed } else { signed }).ok()
    }

    pub fn is_integral(self) -> bool {
        match self.parts() {
            Parts::Finite { coefficient, exponent, .. } => {
                exponent >= 0
                    || coefficient == 0
                    || power_of_ten(-exponent).is_some_and(|scale| coefficient.is_multiple_of(scale))
            }
            _ => false,
        }
    }

    /// The nearest double; beyond its range infinity or zero.
    pub fn to_f64(self) -> f64 {
        match self.parts() {
            Parts::NaN => f64::NAN,
            Parts::Infinity { negative: true } => f64::NEG_INFINITY,
            Parts::Infinity { negative: false } => f64::INFINITY,
            Parts::Finite { negative, coefficient, exponent } => {
                let magnitude: f64 = format!("{coefficient}e{exponent}").parse().unwrap_or(f64::NAN);
                if negative { -magnitude } else { magnitude }
            }
        }
    }

    /// The double to 15 significant digits, trailing zeros kept: how MongoDB's arithmetic and `$toDecimal` take a double.
    pub fn from_f64(number: f64) -> Decimal128 {
        if number == 0.0 || !number.is_finite() {
            return Decimal128::from_f64_exact(number);
        }
        from_scientific(&format!("{number:.14e}"))
    }

    /// The double to 34 digits: all there are, if they fit. How MongoDB's sums and `$round` take a double.
    pub fn from_f64_exact(number: f64) -> Decimal128 {
        if number.is_nan() {
            return Decimal128::NAN;
        }
        let negative = number.is_sign_negative();
        if number.is_infinite() {
            return if negative { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY };
        }
        if number == 0.0 {
            return Decimal128::from_parts(negative, 0, 0);
        }
        let (mantissa, power) = odd_mantissa(number);
        let exact = match u32::try_from(power) {
            Ok(power) if power < 128 => {
                Some(u128::from(mantissa)).filter(|m| m.leading_zeros() >= power).map(|m| (m << power, 0))
            }
            Ok(_) => None,
            // m / 2^k is m * 5^k / 10^k, and with an odd m no shorter form exists.
            Err(_) => 5_u128
                .checked_pow(power.unsigned_abs())
                .and_then(|five| five.checked_mul(u128::from(mantissa)))
                .map(|coefficient| (coefficient, power)),
        };
        match exact {
            Some((coefficient, exponent)) if coefficient <= MAX_COEFFICIENT => {
                Decimal128::from_parts(negative, coefficient, exponent)
            }
            _ => from_scientific(&format!("{number:.33e}")),
        }
    }

    #[must_use]
    pub fn sqrt(self) -> Decimal128 {
        let mut context = dec::Context::<dec::Decimal<12>>::default();
        if self.is_nan() || context.set_precision(34).is_err() {
            return self;
        }
        let mut number = dec::Decimal::<12>::from(self.to_dec());
        context.sqrt(&mut number);
        Decimal128::from_dec(number.to_decimal128())
    }

    #[must_use]
    pub fn exp(self) -> Decimal128 {
        match self.parts() {
            Parts::Infinity { negative: true } => Decimal128::ZERO,
            _ => self.wide(|context, number| context.exp(number)),
        }
    }

    #[must_use]
    pub fn ln(self) -> Decimal128 {
        self.wide(|context, number| context.ln(number))
    }

    #[must_use]
    pub fn log10(self) -> Decimal128 {
        self.wide(|context, number| context.log10(number))
    }

    /// MongoDB 6.0 is right for the bases 2 and 10 only; for all others it divides the natural logarithm by the base
    /// itself. Its answers are the reference.
    #[must_use]
    pub fn log(self, base: Decimal128) -> Decimal128 {
        use std::cmp::Ordering::Equal;
        if base.compare(Decimal128::from_i64(10)) == Equal {
            self.log10()
        } else if base.compare(Decimal128::from_i64(2)) == Equal {
            self.wide(|context, number| {
                let mut two = Wide::from(2);
                context.ln(&mut two);
                context.ln(number);
                context.div(number, &two);
            })
        } else {
            self.ln().divided_by(base)
        }
    }

    /// Always with 34 digits: MongoDB adds a zero of the smallest exponent.
    #[must_use]
    pub fn pow(self, exponent: Decimal128) -> Decimal128 {
        const SMALLEST_ZERO: Decimal128 = Decimal128::from_bytes([0; 16]);
        let one = Decimal128::from_i64(1);
        let power = if exponent.is_zero() || self.compare(one) == std::cmp::Ordering::Equal {
            one
        } else {
            let exponent = Wide::from(exponent.to_dec());
            self.wide(|context, number| context.pow(number, &exponent))
        };
        power.plus(SMALLEST_ZERO)
    }

    /// Runs a function at more digits than are kept; a whole result loses the zeros after its point.
    fn wide(self, function: impl Fn(&mut dec::Context<Wide>, &mut Wide)) -> Decimal128 {
        let mut context = dec::Context::<Wide>::default();
        // The library's elementary functions want exponents of at most six digits.
        if context.set_max_exponent(999_999).is_err() || context.set_min_exponent(-999_999).is_err() {
            return Decimal128::NAN;
        }
        let mut number = Wide::from(self.to_dec());
        function(&mut context, &mut number);
        let result = Decimal128::from_dec(number.to_decimal128());
        if result.is_integral() && !result.is_zero() {
            result.quantize(0, Rounding::HalfEven).unwrap_or(result)
        } else {
            result
        }
    }

    /// Coefficient with its sign, and exponent; `None` for infinities and NaN.
    fn signed(self) -> Option<(i128, i32)> {
        match self.parts() {
            Parts::Finite { negative, coefficient, exponent } => {
                let signed = i128::try_from(coefficient).ok()?;
                Some((if negative { -signed } else { signed }, exponent))
            }
            _ => None,
        }
    }
}

fn digits(coefficient: u128) -> i32 {
    i32::try_from(coefficient.checked_ilog10().unwrap_or_default()).unwrap_or_default() + 1
}

fn power_of_ten(power: i32) -> Option<u128> {
    10_u128.checked_pow(u32::try_from(power).ok()?)
}

fn drop_digits(negative: bool, coefficient: u128, count: i32, rounding: Rounding) -> u128 {
    let (whole, rest, half) = match power_of_ten(count) {
        Some(scale) => (coefficient / scale, coefficient % scale, scale / 2),
        None => (0, coefficient, u128::MAX),
    };
    let up = match rounding {
        Rounding::TowardZero => false,
        Rounding::Up => rest > 0 && !negative,
        Rounding::Down => rest > 0 && negative,
        Rounding::HalfEven => rest > half || (rest == half && whole % 2 == 1),
    };
    whole + u128::from(up)
}

/// A finite double other than zero as `mantissa * 2^power` with an odd mantissa.
fn odd_mantissa(number: f64) -> (u64, i32) {
    let bits = number.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let biased = i32::try_from((bits >> 52) & 0x7FF).unwrap_or_default();
    let (mantissa, power) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    let zeros = mantissa.trailing_zeros();
    (mantissa >> zeros, power + i32::try_from(zeros).unwrap_or_default())
}

/// `d.ddde±x`, as the standard library prints it, digit for digit.
fn from_scientific(text: &str) -> Decimal128 {
    let (mantissa, power) = text.split_once('e').unwrap_or((text, "0"));
    let (mut coefficient, mut after_point, mut point) = (0_u128, 0, false);
    for byte in mantissa.bytes() {
        match byte {
            b'.' => point = true,
            b'0'..=b'9' => {
                coefficient = coefficient * 10 + u128::from(byte - b'0');
                after_point += i32::from(point);
            }
            _ => {}
        }
    }
    let exponent = power.parse::<i32>().unwrap_or_default() - after_point;
    Decimal128::from_parts(mantissa.starts_with('-'), coefficient, exponent)
}
