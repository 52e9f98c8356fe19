//! Sums as MongoDB's `$sum`, `$avg` and `$add` make them: whole numbers exactly, doubles with compensation, decimals apart.
//!
//! The running sum is the unevaluated sum of two doubles (Møller's and Dekker's error-free additions), about 107 bits:
//! int64s add up exactly and the order of doubles hardly matters.

use super::Decimal128;
use super::number::Number;

#[derive(Clone, Debug)]
pub struct Sum {
    /// The sum as long as all of it are whole numbers up to [`EXACT`]: then the doubles would be just this, and are not kept.
    whole: Option<i64>,
    high: f64,
    low: f64,
    /// The plain sum: the answer when infinities make the compensated one NaN.
    plain: f64,
    decimals: Decimal128,
    widest: Widest,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Widest {
    Int32,
    Int64,
    Double,
    Decimal,
}

const EXACT: u64 = 1 << 52;
const INT64_END: f64 = 9_223_372_036_854_775_808.0;

impl Default for Sum {
    fn default() -> Self {
        Sum { whole: Some(0), high: 0.0, low: 0.0, plain: 0.0, decimals: Decimal128::ZERO, widest: Widest::Int32 }
    }
}

impl Sum {
    pub fn new() -> Sum {
        Sum::default()
    }

    pub fn add(&mut self, number: Number) {
        let kind = match number {
            Number::Int32(number) => {
                if !self.add_whole(i64::from(number)) {
                    self.add_double(f64::from(number));
                }
                Widest::Int32
            }
            Number::Int64(number) => {
                if !self.add_whole(number) {
                    self.add_long(number);
                }
                Widest::Int64
            }
            Number::Double(number) => {
                self.take_whole();
                self.add_double(number);
                Widest::Double
            }
            Number::Decimal(number) => {
                self.decimals = self.decimals.plus(number);
                Widest::Decimal
            }
        };
        self.widest = self.widest.max(kind);
    }

    /// In the widest type of what was added: an int that overflows is a long, a long that overflows is a double.
    pub fn total(&self) -> Number {
        if self.whole.is_some() {
            return self.settled().total();
        }
        match (self.widest, self.to_long()) {
            (Widest::Int32, Some(long)) => Number::int_or_long(long),
            (Widest::Int64, Some(long)) => Number::Int64(long),
            (Widest::Decimal, _) => Number::Decimal(self.decimals.plus(self.to_decimal())),
            (Widest::Int32 | Widest::Int64 | Widest::Double, _) => Number::Double(self.to_double()),
        }
    }

    /// The mean of `count` numbers: a double, or a decimal if one of them was.
    pub fn average(&self, count: u64) -> Number {
        if self.whole.is_some() {
            return self.settled().average(count);
        }
        #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
        match self.widest {
            Widest::Decimal => {
                let count = Decimal128::from_i64(i64::try_from(count).unwrap_or(i64::MAX));
                Number::Decimal(self.decimals.plus(self.to_decimal()).divided_by(count))
            }
            _ => Number::Double(self.to_double() / count as f64),
        }
    }

    /// Whether the sum is still kept as a whole number; if not, the number is not in it yet.
    #[inline]
    fn add_whole(&mut self, number: i64) -> bool {
        let sum = self.whole.and_then(|whole| whole.checked_add(number)).filter(|sum| sum.unsigned_abs() <= EXACT);
        if sum.is_some() {
            self.whole = sum;
        } else {
            self.take_whole();
        }
        sum.is_some()
    }

    /// Goes on in doubles.
    fn take_whole(&mut self) {
        if let Some(whole) = self.whole.take() {
            self.add_long(whole);
        }
    }

    fn settled(&self) -> Sum {
        let mut sum = self.clone();
        sum.take_whole();
        sum
    }

    fn add_double(&mut self, number: f64) {
        self.plain += number;
        // The low part is tinier than the high one: Dekker's addition first, Møller's after.
        let (number, rest) = add_smaller(number, self.low);
        let (high, lost) = add_exactly(self.high, number);
        self.high = high;
        self.low = rest + lost;
    }

    /// Both halves are exact as doubles. Only a long is added in halves: the second one brings high and low in order again, so
    /// that an int would give another last digit.
    #[expect(clippy::cast_precision_loss, reason = "each half has at most 32 significant bits")]
    fn add_long(&mut self, number: i64) {
        let high = number / (1 << 32) * (1 << 32);
        self.add_double((number - high) as f64);
        self.add_double(high as f64);
    }

    fn to_double(&self) -> f64 {
        if self.high.is_nan() { self.plain } else { self.high }
    }

    fn to_decimal(&self) -> Decimal128 {
        if self.high.is_finite() {
            Decimal128::from_f64_exact(self.high).plus(Decimal128::from_f64_exact(self.low))
        } else {
            Decimal128::from_f64_exact(self.plain)
        }
    }

    /// The nearest long (of two, the one nearer to zero), if it is in range; decimals do not count.
    #[expect(clippy::cast_possible_truncation, reason = "in range of i128; the range of i64 is checked at the end")]
    pub fn to_long(&self) -> Option<i64> {
        if self.whole.is_some() {
            return self.whole;
        }
        if self.high.is_nan() || self.high.abs() > INT64_END {
            return None;
        }
        let whole = self.high.round();
        let rest = (self.high - whole + self.low).round();
        i64::try_from(whole as i128 + rest as i128).ok()
    }
}

/// The rounded sum and what rounding lost, for `|a| >= |b|`.
fn add_smaller(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// The rounded sum and what rounding lost, for any two.
fn add_exactly(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let a_part = sum - b;
    let b_part = sum - a_part;
    (sum, (a - a_part) + (b - b_part))
}
