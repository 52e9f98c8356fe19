//! Numbers of all types on one scale: the double at or next below the magnitude, and exact digits where it is not exact.
//!
//! The 63 bits of the double below the sign are written in groups of seven, each with a bit that says whether more
//! follows: trailing zeros cost nothing and "nothing follows" sorts first. A small integer takes two to four bytes.
//! A magnitude that is no double (a large int64, most decimals) has all nine groups, then the decimal exponent of its first
//! digit and its significant digits, two to a byte plus one, ended by 0. Negative numbers are the same bytes inverted.

use super::tag;
use crate::value::Value;
use crate::value::decimal::{Decimal128, Parts};
use std::cmp::Ordering;

const GROUPS: u32 = 9;
/// Makes the exponent of the first digit of any decimal positive.
const EXPONENT_BIAS: i32 = 0x4000;

pub(super) fn append(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Int32(number) => append_double(f64::from(*number), out),
        Value::Int64(number) => append_long(*number, out),
        Value::Double(number) => append_double(*number, out),
        Value::Decimal(decimal) => append_decimal(*decimal, out),
        _ => out.push(tag::NAN),
    }
}

fn append_double(number: f64, out: &mut Vec<u8>) {
    if number.is_nan() {
        out.push(tag::NAN);
    } else if number == 0.0 {
        out.push(tag::ZERO);
    } else {
        append_magnitude(number < 0.0, number.abs(), None, out);
    }
}

fn append_long(number: i64, out: &mut Vec<u8>) {
    const EXACT: u64 = 1 << 53;
    let magnitude = number.unsigned_abs();
    if magnitude <= EXACT {
        #[expect(clippy::cast_precision_loss, reason = "up to 2^53 every integer is a double")]
        return append_double(number as f64, out);
    }
    // Clear the bits that a double has no room for: rounds toward zero.
    let spare = 64 - magnitude.leading_zeros() - 53;
    let whole = magnitude >> spare << spare;
    #[expect(clippy::cast_precision_loss, reason = "53 significant bits are left")]
    let double = whole as f64;
    let digits = (whole != magnitude).then(|| Digits::new(u128::from(magnitude), 0));
    append_magnitude(number < 0, double, digits, out);
}

fn append_decimal(decimal: Decimal128, out: &mut Vec<u8>) {
    match decimal.parts() {
        Parts::NaN => out.push(tag::NAN),
        Parts::Infinity { negative } => append_magnitude(negative, f64::INFINITY, None, out),
        Parts::Finite { coefficient: 0, .. } => out.push(tag::ZERO),
        Parts::Finite { negative, coefficient, exponent } => {
            let digits = Digits::new(coefficient, exponent);
            let (double, exact) = digits.double_below();
            append_magnitude(negative, double, (!exact).then_some(digits), out);
        }
    }
}

fn append_magnitude(negative: bool, double: f64, digits: Option<Digits>, out: &mut Vec<u8>) {
    out.push(if negative { tag::NEGATIVE } else { tag::POSITIVE });
    let start = out.len();
    let mut rest = double.to_bits() << 1;
    for _ in 0..GROUPS {
        let group = (rest >> 57 << 1).to_le_bytes()[0];
        rest <<= 7;
        if rest == 0 && digits.is_none() {
            out.push(group);
            break;
        }
        out.push(group | 1);
    }
    if let Some(digits) = digits {
        digits.append(out);
    }
    if negative {
        super::invert_from(out, start);
    }
}

/// A positive decimal number without trailing zeros.
pub(super) struct Digits {
    coefficient: u128,
    exponent: i32,
}

impl Digits {
    fn new(mut coefficient: u128, mut exponent: i32) -> Digits {
        while coefficient != 0 && coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
        }
        Digits { coefficient, exponent }
    }

    fn append(&self, out: &mut Vec<u8>) {
        let text = self.coefficient.to_string();
        let top = self.exponent + i32::try_from(text.len()).unwrap_or_default() - 1 + EXPONENT_BIAS;
        out.extend_from_slice(&u16::try_from(top).unwrap_or_default().to_be_bytes());
        for pair in text.as_bytes().chunks(2) {
            let digit = |at: usize| pair.get(at).map_or(0, |digit| digit - b'0');
            out.push(digit(0) * 10 + digit(1) + 1);
        }
        out.push(0);
    }

    /// The largest double that is not above it, and whether that is it exactly.
    fn double_below(&self) -> (f64, bool) {
        let nearest = format!("{}e{}", self.coefficient, self.exponent).parse::<f64>().unwrap_or(f64::INFINITY);
        if nearest.is_infinite() {
            return (f64::MAX, false);
        }
        match self.compare(nearest) {
            Ordering::Equal => (nearest, true),
            Ordering::Greater => (nearest, false),
            Ordering::Less => (f64::from_bits(nearest.to_bits().saturating_sub(1)), false),
        }
    }

    /// Against a double that is not negative, exactly.
    fn compare(&self, double: f64) -> Ordering {
        self.compare_in_u128(double).unwrap_or_else(|| {
            let parts = Parts::Finite { negative: false, coefficient: self.coefficient, exponent: self.exponent };
            crate::value::order::compare_double_decimal(double, parts).reverse()
        })
    }

    /// Both sides brought to whole numbers of one scale, if 128 bits hold them: prices and the like.
    fn compare_in_u128(&self, double: f64) -> Option<Ordering> {
        let bits = double.to_bits();
        let power = i32::try_from(bits >> 52).ok()?;
        if power == 0 {
            return None;
        }
        let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
        let shift = mantissa.trailing_zeros();
        let (mut left, mut right) = (self.coefficient, u128::from(mantissa >> shift));
        let power = power - 1075 + i32::try_from(shift).ok()?;
        let ten = |exponent: i32| 10u128.checked_pow(exponent.unsigned_abs());
        if self.exponent >= 0 {
            left = left.checked_mul(ten(self.exponent)?)?;
        } else {
            right = right.checked_mul(ten(self.exponent)?)?;
        }
        let scaled = |number: u128, by: u32| (number.leading_zeros() > by).then(|| number << by);
        if power >= 0 {
            right = scaled(right, power.unsigned_abs())?;
        } else {
            left = scaled(left, power.unsigned_abs())?;
        }
        Some(left.cmp(&right))
    }
}

/// A magnitude read back.
pub(super) enum Magnitude {
    Double(f64),
    Decimal { coefficient: u128, exponent: i32 },
}

impl Magnitude {
    /// Reads what [`append_magnitude`] wrote after the tag, through `next`, which undoes inversions.
    pub(super) fn read(mut next: impl FnMut() -> Option<u8>) -> Option<Magnitude> {
        let mut bits = 0u64;
        for group in 0..GROUPS {
            let byte = next()?;
            bits |= u64::from(byte >> 1) << (56 - 7 * group);
            if byte & 1 == 0 {
                return Some(Magnitude::Double(f64::from_bits(bits)));
            }
        }
        let top = i32::from(u16::from_be_bytes([next()?, next()?])) - EXPONENT_BIAS;
        let (mut coefficient, mut digits) = (0u128, 0);
        loop {
            let byte = next()?;
            if byte == 0 {
                break;
            }
            coefficient = coefficient.checked_mul(100)?.checked_add(u128::from(byte - 1))?;
            digits += 2;
        }
        Some(Magnitude::Decimal { coefficient, exponent: top + 1 - digits })
    }

    pub(super) fn to_long(&self, negative: bool) -> i64 {
        let magnitude = match self {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was an int64")]
            Magnitude::Double(double) => *double as u128,
            Magnitude::Decimal { coefficient, exponent } => {
                let scale = 10u128.saturating_pow(exponent.unsigned_abs());
                if *exponent < 0 { coefficient / scale } else { coefficient.saturating_mul(scale) }
            }
        };
        let signed = i128::try_from(magnitude).unwrap_or(i128::MAX);
        let signed = if negative { -signed } else { signed };
        i64::try_from(signed).unwrap_or(if negative { i64::MIN } else { i64::MAX })
    }

    pub(super) fn to_double(&self, negative: bool) -> f64 {
        let magnitude = match self {
            Magnitude::Double(double) => *double,
            Magnitude::Decimal { coefficient, exponent } => {
                format!("{coefficient}e{exponent}").parse().unwrap_or(f64::INFINITY)
            }
        };
        if negative { -magnitude } else { magnitude }
    }
}
