//! The order of BSON values: MongoDB's comparison of types first, then of values. Equality is `Ordering::Equal`.
//!
//! Numbers of different types compare by exact value; NaN is below all numbers and equal to itself.

use super::Value;
use super::decimal::{Parts, compare_parts};
use crate::raw::{Array, Doc};
use std::cmp::Ordering;

/// The rank of the value's type among types. Missing and undefined share a rank, as do strings and symbols.
pub fn rank(value: &Value<'_>) -> u8 {
    match value {
        Value::MinKey => 0,
        Value::Missing | Value::Undefined => 1,
        Value::Null => 2,
        Value::Double(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => 3,
        Value::String(_) | Value::Symbol(_) => 4,
        Value::Document(_) => 5,
        Value::Array(_) => 6,
        Value::Binary { .. } => 7,
        Value::ObjectId(_) => 8,
        Value::Bool(_) => 9,
        Value::DateTime(_) => 10,
        Value::Timestamp(_) => 11,
        Value::Regex { .. } => 12,
        Value::DbPointer { .. } => 13,
        Value::Code(_) => 14,
        Value::CodeWithScope { .. } => 15,
        Value::MaxKey => 16,
    }
}

/// MongoDB's order of any two values.
pub fn compare(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Int32(a), Value::Int32(b)) => a.cmp(b),
        (Value::String(a) | Value::Symbol(a), Value::String(b) | Value::Symbol(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Document(a), Value::Document(b)) => compare_documents(a, b),
        (Value::Array(a), Value::Array(b)) => compare_arrays(a, b),
        (Value::Binary { subtype: sa, bytes: a }, Value::Binary { subtype: sb, bytes: b }) => {
            let (a, b) = (a.as_slice(), b.as_slice());
            a.len().cmp(&b.len()).then(sa.cmp(sb)).then_with(|| a.cmp(b))
        }
        (Value::ObjectId(a), Value::ObjectId(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Regex { pattern: pa, options: oa }, Value::Regex { pattern: pb, options: ob }) => {
            pa.as_bytes().cmp(pb.as_bytes()).then_with(|| oa.as_bytes().cmp(ob.as_bytes()))
        }
        (Value::DbPointer { namespace: na, id: a }, Value::DbPointer { namespace: nb, id: b }) => {
            let (na, nb) = (na.as_bytes(), nb.as_bytes());
            na.len().cmp(&nb.len()).then_with(|| na.cmp(nb)).then_with(|| a.cmp(b))
        }
        (Value::Code(a), Value::Code(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::CodeWithScope { code: a, scope: sa }, Value::CodeWithScope { code: b, scope: sb }) => {
            a.as_bytes().cmp(b.as_bytes()).then_with(|| compare_documents(sa, sb))
        }
        (a, b) if a.is_number() && b.is_number() => compare_numbers(a, b),
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

pub fn equal(left: &Value<'_>, right: &Value<'_>) -> bool {
    compare(left, right) == Ordering::Equal
}

/// Field by field: the type, then the name, then the value; a document that ends first is less.
pub fn compare_documents(left: &Doc<'_>, right: &Doc<'_>) -> Ordering {
    let (left, right) = (left.borrow(), right.borrow());
    let (mut a, mut b) = (left.iter(), right.iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some((name_a, value_a)), Some((name_b, value_b))) => {
                let order = rank(&value_a)
                    .cmp(&rank(&value_b))
                    .then_with(|| name_a.as_bytes().cmp(name_b.as_bytes()))
                    .then_with(|| compare(&value_a, &value_b));
                if order != Ordering::Equal {
                    return order;
                }
            }
        }
    }
}

/// Element by element; an array that ends first is less.
pub fn compare_arrays(left: &Array<'_>, right: &Array<'_>) -> Ordering {
    let (left, right) = (left.borrow(), right.borrow());
    let (mut a, mut b) = (left.iter(), right.iter());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(value_a), Some(value_b)) => match compare(&value_a, &value_b) {
                Ordering::Equal => {}
                order => return order,
            },
        }
    }
}

fn compare_numbers(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Int32(a), Value::Int64(b)) => i64::from(*a).cmp(b),
        (Value::Int64(a), Value::Int32(b)) => a.cmp(&i64::from(*b)),
        (Value::Int64(a), Value::Int64(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => compare_doubles(*a, *b),
        (Value::Int32(a), Value::Double(b)) => compare_doubles(f64::from(*a), *b),
        (Value::Double(a), Value::Int32(b)) => compare_doubles(*a, f64::from(*b)),
        (Value::Int64(a), Value::Double(b)) => compare_long_double(*a, *b),
        (Value::Double(a), Value::Int64(b)) => compare_long_double(*b, *a).reverse(),
        (a, b) => match (exact(a), exact(b)) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(Exact::Decimal(a)), Some(Exact::Decimal(b))) => compare_parts(a, b),
            (Some(Exact::Double(a)), Some(Exact::Decimal(b))) => compare_double_decimal(a, b),
            (Some(Exact::Decimal(a)), Some(Exact::Double(b))) => compare_double_decimal(b, a).reverse(),
            (Some(Exact::Double(a)), Some(Exact::Double(b))) => compare_doubles(a, b),
        },
    }
}

enum Exact {
    Double(f64),
    Decimal(Parts),
}

/// A number as something to compare with a decimal; `None` for NaN.
fn exact(value: &Value<'_>) -> Option<Exact> {
    let whole = |n: i64| {
        Exact::Decimal(Parts::Finite { negative: n < 0, coefficient: u128::from(n.unsigned_abs()), exponent: 0 })
    };
    match value {
        Value::Int32(n) => Some(whole(i64::from(*n))),
        Value::Int64(n) => Some(whole(*n)),
        Value::Double(n) if n.is_nan() => None,
        Value::Double(n) => Some(Exact::Double(*n)),
        Value::Decimal(d) => match d.parts() {
            Parts::NaN => None,
            parts => Some(Exact::Decimal(parts)),
        },
        _ => None,
    }
}

fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// Exact: a double beyond the range of int64 decides by itself, any other is split into whole and fraction.
fn compare_long_double(long: i64, double: f64) -> Ordering {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if double.is_nan() {
        return Ordering::Greater;
    }
    if double >= LIMIT {
        return Ordering::Less;
    }
    if double < -LIMIT {
        return Ordering::Greater;
    }
    let whole = double.trunc();
    #[expect(clippy::cast_possible_truncation, reason = "checked against the range of int64 above")]
    let as_long = whole as i64;
    long.cmp(&as_long).then_with(|| 0.0_f64.partial_cmp(&(double - whole)).unwrap_or(Ordering::Equal))
}

/// Exact: the double's full decimal expansion (at most 767 significant digits) against the decimal's digits.
pub(super) fn compare_double_decimal(double: f64, decimal: Parts) -> Ordering {
    let Parts::Finite { negative, coefficient, exponent } = decimal else {
        // Only infinities remain.
        let Parts::Infinity { negative } = decimal else { return Ordering::Greater };
        let infinity = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
        return compare_doubles(double, infinity);
    };
    if double.is_infinite() {
        return if double > 0.0 { Ordering::Greater } else { Ordering::Less };
    }
    let sign = |zero: bool, negative: bool| {
        if zero {
            0
        } else if negative {
            -1
        } else {
            1
        }
    };
    let (sign_a, sign_b) = (sign(double == 0.0, double < 0.0), sign(coefficient == 0, negative));
    if sign_a != sign_b || sign_a == 0 {
        return sign_a.cmp(&sign_b);
    }
    let text = format!("{:.766e}", double.abs());
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let digits_a = mantissa.bytes().filter(u8::is_ascii_digit);
    let top_a = power.parse::<i64>().unwrap_or_default();
    let digits_b = coefficient.to_string();
    let top_b = i64::from(exponent) + i64::try_from(digits_b.len()).unwrap_or_default() - 1;
    let magnitude =
        top_a.cmp(&top_b).then_with(|| digits_a.cmp(digits_b.bytes().chain(std::iter::repeat(b'0')).take(767)));
    if sign_a < 0 { magnitude.reverse() } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Decimal128;

    #[test]
    fn numbers_compare_by_exact_value_over_all_types() {
        let decimal = |text: &str| Value::Decimal(text.parse::<Decimal128>().unwrap());
        let ascending = [
            Value::Double(f64::NAN),
            Value::Double(f64::NEG_INFINITY),
            decimal("-1E+400"),
            Value::Double(-1e300),
            Value::Int64(i64::MIN),
            Value::Double(-1.5),
            Value::Int32(0),
            Value::Double(f64::from_bits(1)),
            decimal("0.1"),
            Value::Double(0.1), // a little above one tenth
            Value::Int64((1 << 53) - 1),
            Value::Double(9_007_199_254_740_992.0),
            Value::Int64((1 << 53) + 1),
            decimal("9007199254740993.5"),
            Value::Int64(i64::MAX),
            Value::Double(9_223_372_036_854_775_808.0),
            decimal("9223372036854775809"),
            Value::Double(f64::MAX),
            decimal("1E+6000"),
            Value::Double(f64::INFINITY),
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a:?} {b:?}");
            }
        }
        assert_eq!(compare(&Value::Int32(1), &decimal("1.000")), Ordering::Equal);
        assert_eq!(compare(&Value::Double(-0.0), &Value::Int64(0)), Ordering::Equal);
    }

    #[test]
    fn documents_compare_type_then_name_then_value() {
        let doc = |d: bson::Document| Value::Document(Doc::from(d));
        assert_eq!(compare(&doc(bson::doc! {"b": 1}), &doc(bson::doc! {"a": "x"})), Ordering::Less);
        assert_eq!(compare(&doc(bson::doc! {"a": 1}), &doc(bson::doc! {"b": 0})), Ordering::Less);
        assert_eq!(compare(&doc(bson::doc! {"a": 1}), &doc(bson::doc! {"a": 1, "b": 0})), Ordering::Less);
    }
}
