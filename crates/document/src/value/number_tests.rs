//! Arithmetic against a real server's answers, recorded in `tests/data/numbers.json` as `[operator, operands, result]`;
//! an error is null.

use super::decimal_math::Rounding;
use super::number::Number;
use super::sum::Sum;
use super::{Decimal128, Value};

fn compute(operator: &str, operands: &[Number]) -> Option<Number> {
    let sum = |numbers: &[Number]| {
        let mut sum = Sum::new();
        numbers.iter().for_each(|number| sum.add(*number));
        sum
    };
    match (operator, operands) {
        ("$add" | "$sum", numbers) => Some(sum(numbers).total()),
        ("$avg", numbers) => Some(sum(numbers).average(numbers.len() as u64)),
        ("$subtract", [a, b]) => Some(a.minus(*b)),
        ("$multiply", [a, b]) => Some(a.times(*b)),
        ("$divide", [a, b]) => a.divided_by(*b),
        ("$mod", [a, b]) => a.modulo(*b),
        ("$pow", [a, b]) if a.is_zero() && b.is_negative() => None,
        ("$pow", [a, b]) => Some(a.pow(*b)),
        ("$log", [a, b]) => Some(a.log(*b)),
        ("$abs", [a]) => a.abs(),
        ("$ceil", [a]) => Some(a.ceil()),
        ("$floor", [a]) => Some(a.floor()),
        ("$sqrt", [a]) if a.is_negative() => None,
        ("$sqrt", [a]) => Some(a.sqrt()),
        ("$exp", [a]) => Some(a.exp()),
        ("$ln" | "$log10", [a]) if a.is_negative() || a.is_zero() => None,
        ("$ln", [a]) => Some(a.ln()),
        ("$log10", [a]) => Some(a.log10()),
        ("$round", [a, place]) => a.round_to(place.as_i32_exact().unwrap(), Rounding::HalfEven),
        ("$trunc", [a, place]) => a.round_to(place.as_i32_exact().unwrap(), Rounding::TowardZero),
        _ => panic!("{operator} {operands:?}"),
    }
}

/// The server's decimal functions are off in the last digit now and then (its logarithm of 1E+40 is not 40), ours are not.
fn near(ours: Decimal128, theirs: Decimal128) -> bool {
    let limit = ours.abs().times("1E-32".parse().unwrap());
    !ours.is_zero() && !ours.is_nan() && ours.minus(theirs).abs().compare(limit).is_le()
}

fn same(operator: &str, ours: Option<Number>, theirs: Option<Number>) -> bool {
    match (ours, theirs) {
        (None, None) => true,
        (Some(Number::Double(a)), Some(Number::Double(b))) => {
            a.to_bits() == b.to_bits()
                || a.is_nan() && b.is_nan()
                || matches!(operator, "$exp" | "$ln" | "$log" | "$log10" | "$pow") && (a - b).abs() <= a.abs() * 3e-16
        }
        (Some(Number::Decimal(a)), Some(Number::Decimal(b))) => {
            a == b || matches!(operator, "$exp" | "$ln" | "$log" | "$log10" | "$pow") && near(a, b)
        }
        (Some(a), Some(b)) => Value::from(a) == Value::from(b),
        _ => false,
    }
}

#[test]
fn arithmetic_answers_as_the_real_server_did() {
    let rows: Vec<serde_json::Value> =
        serde_json::from_str(include_str!("../../tests/data/numbers.json")).expect("recorded file");
    let number = |json: &serde_json::Value| {
        let value = Value::from(bson::Bson::try_from(json.clone()).unwrap());
        Number::of(&value)
    };
    let mut wrong = Vec::new();
    for row in &rows {
        let (operator, result) = (row[0].as_str().unwrap(), number(&row[2]));
        let operands: Vec<Number> = row[1].as_array().unwrap().iter().map(|json| number(json).unwrap()).collect();
        let ours = compute(operator, &operands);
        if !same(operator, ours, result) {
            wrong.push(format!("{operator} {operands:?}: {ours:?}, recorded {result:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
    assert!(rows.len() > 2000);
}

#[test]
fn doubles_become_decimals_with_15_digits_or_all() {
    for (double, short, exact) in [
        (0.1, "0.100000000000000", "0.1000000000000000055511151231257827"),
        (5.0, "5.00000000000000", "5"),
        (0.5, "0.500000000000000", "0.5"),
        (1e22, "1.00000000000000E+22", "10000000000000000000000"),
        (1e23, "1.00000000000000E+23", "99999999999999991611392"),
        (1e40, "1.00000000000000E+40", "1.000000000000000030378602842700367E+40"),
        (-0.0, "-0", "-0"),
        (5e-324, "4.94065645841247E-324", "4.940656458412465441765687928682214E-324"),
        (f64::INFINITY, "Infinity", "Infinity"),
    ] {
        assert_eq!(Decimal128::from_f64(double).to_string(), short);
        assert_eq!(Decimal128::from_f64_exact(double).to_string(), exact);
    }
}

#[test]
fn conversions_to_whole_numbers_check_their_range() {
    let decimal = |text: &str| Number::Decimal(text.parse().unwrap());
    for (number, exact, truncated, saturated) in [
        (Number::Double(2.0), Some(2), Some(2), 2),
        (Number::Double(-2.9), None, Some(-2), -2),
        (Number::Double(f64::NAN), None, None, 0),
        (Number::Double(9_223_372_036_854_775_808.0), None, None, i64::MAX),
        (Number::Double(-9_223_372_036_854_775_808.0), Some(i64::MIN), Some(i64::MIN), i64::MIN),
        (decimal("12E+2"), Some(1200), Some(1200), 1200),
        (decimal("12.00"), Some(12), Some(12), 12),
        (decimal("12.50"), None, Some(12), 12),
        (decimal("-9223372036854775808"), Some(i64::MIN), Some(i64::MIN), i64::MIN),
        (decimal("9223372036854775808"), None, None, i64::MAX),
        (decimal("-1E+100"), None, None, i64::MIN),
        (decimal("NaN"), None, None, 0),
    ] {
        assert_eq!(number.as_i64_exact(), exact, "{number:?}");
        assert_eq!(number.to_i64_truncated(), truncated, "{number:?}");
        assert_eq!(number.to_i64_saturated(), saturated, "{number:?}");
    }
}

#[test]
fn updates_refuse_what_expressions_make_a_double() {
    let big = Number::Int64(i64::MAX);
    assert!(big.checked_plus(Number::Int32(1)).is_none());
    assert!(matches!(big.plus(Number::Int32(1)), Number::Double(_)));
    assert!(big.checked_times(Number::Int32(2)).is_none());
    assert!(matches!(Number::Int32(i32::MAX).checked_plus(Number::Int32(1)), Some(Number::Int64(2_147_483_648))));
}
