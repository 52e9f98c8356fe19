//! Decimal128 as BSON stores it (binary integer coefficient), and the way to and from the arithmetic library.

use std::cmp::Ordering;

/// IEEE 754 decimal128 in BSON's encoding, little endian. Cohorts are kept: 1.0 and 1.00 are different bytes, equal values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128([u8; 16]);

/// What the sixteen bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    NaN,
    Infinity { negative: bool },
    Finite { negative: bool, coefficient: u128, exponent: i32 },
}

const BIAS: i32 = 6176;
/// 10^34 - 1: the largest coefficient.
pub const MAX_COEFFICIENT: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;
pub const MIN_EXPONENT: i32 = -6176;
pub const MAX_EXPONENT: i32 = 6111;

impl Decimal128 {
    pub const NAN: Decimal128 = Decimal128((0x7C00_u128 << 112).to_le_bytes());
    pub const INFINITY: Decimal128 = Decimal128((0x7800_u128 << 112).to_le_bytes());
    pub const NEGATIVE_INFINITY: Decimal128 = Decimal128((0xF800_u128 << 112).to_le_bytes());

    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Decimal128(bytes)
    }

    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    pub fn parts(self) -> Parts {
        let bits = u128::from_le_bytes(self.0);
        let negative = bits >> 127 == 1;
        let combination = (bits >> 122) & 0x1F;
        match combination {
            0x1F => Parts::NaN,
            0x1E => Parts::Infinity { negative },
            // The large-coefficient form only holds values above 34 digits, which read as zero.
            c if c >= 0x18 => Parts::Finite {
                negative,
                coefficient: 0,
                exponent: i32::try_from((bits >> 111) & 0x3FFF).unwrap_or_default() - BIAS,
            },
            _ => {
                let coefficient = bits & ((1 << 113) - 1);
                let exponent = i32::try_from((bits >> 113) & 0x3FFF).unwrap_or_default() - BIAS;
                Parts::Finite {
                    negative,
                    coefficient: if coefficient > MAX_COEFFICIENT { 0 } else { coefficient },
                    exponent,
                }
            }
        }
    }

    /// The caller keeps the coefficient within 34 digits and the exponent within range; others become NaN.
    pub fn from_parts(negative: bool, coefficient: u128, exponent: i32) -> Self {
        if coefficient > MAX_COEFFICIENT || !(MIN_EXPONENT..=MAX_EXPONENT).contains(&exponent) {
            return Self::NAN;
        }
        let biased = u128::try_from(exponent + BIAS).unwrap_or_default();
        Decimal128((u128::from(negative) << 127 | biased << 113 | coefficient).to_le_bytes())
    }

    pub fn from_i64(number: i64) -> Self {
        Self::from_parts(number < 0, u128::from(number.unsigned_abs()), 0)
    }

    pub fn is_nan(self) -> bool {
        self.parts() == Parts::NaN
    }

    pub fn is_infinite(self) -> bool {
        matches!(self.parts(), Parts::Infinity { .. })
    }

    pub fn is_zero(self) -> bool {
        matches!(self.parts(), Parts::Finite { coefficient: 0, .. })
    }

    pub fn is_negative(self) -> bool {
        u128::from_le_bytes(self.0) >> 127 == 1
    }

    /// Into the arithmetic library's own encoding.
    pub fn to_dec(self) -> dec::Decimal128 {
        match self.parts() {
            Parts::NaN => dec::Decimal128::NAN,
            Parts::Infinity { negative } => {
                let text = if negative { "-Infinity" } else { "Infinity" };
                text.parse().unwrap_or(dec::Decimal128::NAN)
            }
            Parts::Finite { negative, coefficient, exponent } => {
                let mut context = dec::Context::<dec::Decimal128>::default();
                let mut number = context.from_u128(coefficient);
                context.set_exponent(&mut number, exponent);
                if !negative {
                    return number;
                }
                // The library's negation loses the sign of zero; its sign is the top bit, as in BSON's encoding.
                dec::Decimal128::from_le_bytes((u128::from_le_bytes(number.to_le_bytes()) | 1 << 127).to_le_bytes())
            }
        }
    }

    pub fn from_dec(number: dec::Decimal128) -> Self {
        if number.is_nan() {
            Self::NAN
        } else if number.is_infinite() {
            if number.is_negative() { Self::NEGATIVE_INFINITY } else { Self::INFINITY }
        } else {
            Self::from_parts(number.is_signed(), number.coefficient().unsigned_abs(), number.exponent())
        }
    }

    /// MongoDB's order: NaN below everything, equal values equal whatever their exponent, -0 = 0.
    pub fn compare(self, other: Self) -> Ordering {
        match (self.parts(), other.parts()) {
            (Parts::NaN, Parts::NaN) => Ordering::Equal,
            (Parts::NaN, _) => Ordering::Less,
            (_, Parts::NaN) => Ordering::Greater,
            (left, right) => compare_parts(left, right),
        }
    }
}

/// Orders two numbers that are not NaN, exactly.
pub fn compare_parts(left: Parts, right: Parts) -> Ordering {
    let rank = |parts: &Parts| match parts {
        Parts::Infinity { negative: true } => -2,
        Parts::Finite { coefficient: 0, .. } | Parts::NaN => 0,
        Parts::Finite { negative: true, .. } => -1,
        Parts::Finite { negative: false, .. } => 1,
        Parts::Infinity { negative: false } => 2,
    };
    rank(&left).cmp(&rank(&right)).then_with(|| match (left, right) {
        (
            Parts::Finite { negative, coefficient: a, exponent: ea },
            Parts::Finite { coefficient: b, exponent: eb, .. },
        ) if a != 0 => {
            let magnitude = compare_magnitude(a, ea, b, eb);
            if negative { magnitude.reverse() } else { magnitude }
        }
        _ => Ordering::Equal,
    })
}

fn compare_magnitude(a: u128, ea: i32, b: u128, eb: i32) -> Ordering {
    // The position of the leading digit decides unless it is the same.
    let top = |c: u128, e: i32| i64::from(c.checked_ilog10().unwrap_or_default()) + i64::from(e);
    top(a, ea).cmp(&top(b, eb)).then_with(|| {
        // Same leading position: the exponents differ by less than 34 digits; strip the digits they share.
        let mut a = digits(a);
        let mut b = digits(b);
        let length = a.len().max(b.len());
        a.resize(length, 0);
        b.resize(length, 0);
        a.cmp(&b)
    })
}

fn digits(coefficient: u128) -> Vec<u8> {
    coefficient.to_string().into_bytes().into_iter().map(|digit| digit - b'0').collect()
}

/// As the Decimal128 specification prints it: scientific when the exponent is positive or the value very small.
impl std::fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&bson::Decimal128::from_bytes(self.0).to_string())
    }
}

impl std::fmt::Debug for Decimal128 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Decimal128({self})")
    }
}

impl std::str::FromStr for Decimal128 {
    type Err = ();
    /// Digits beyond 34 are rounded half to even.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut context = dec::Context::<dec::Decimal128>::default();
        context.parse(text).map(Decimal128::from_dec).map_err(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn d(text: &str) -> Decimal128 {
        text.parse().unwrap()
    }

    #[test]
    fn bytes_agree_with_the_reference_codec_both_ways() {
        for text in [
            "0",
            "-0",
            "1.50",
            "1E+6000",
            "-9.999999999999999999999999999999999E+6144",
            "1E-6176",
            "Infinity",
            "-Infinity",
            "NaN",
        ] {
            let reference: bson::Decimal128 = text.parse().unwrap();
            assert_eq!(d(text).bytes(), reference.bytes(), "{text}");
            assert_eq!(Decimal128::from_dec(d(text).to_dec()).bytes(), reference.bytes(), "{text}");
        }
    }

    #[test]
    fn order_is_by_value_not_by_bytes() {
        let ascending = [
            "NaN",
            "-Infinity",
            "-10",
            "-1.5",
            "-1E-6176",
            "0",
            "1E-6176",
            "1",
            "1.5",
            "2",
            "1E+1",
            "11",
            "1E+40",
            "Infinity",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(d(a).compare(d(b)), i.cmp(&j), "{a} {b}");
            }
        }
        assert_eq!(d("1.0").compare(d("1.00")), Ordering::Equal);
        assert_eq!(d("-0").compare(d("0E+3")), Ordering::Equal);
    }
}
