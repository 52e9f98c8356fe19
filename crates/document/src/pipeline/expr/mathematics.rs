//! Functions of numbers: `$abs`, `$ceil`, `$floor`, `$round`, `$trunc`, `$sqrt`, `$pow`, `$exp`, `$ln`, `$log`, `$log10`.

use super::arithmetic::to_long;
use super::form::{fail, only, values};
use super::{Expr, ExprDef, Form, Scope};
use crate::error::Result;
use crate::value::decimal_math::Rounding;
use crate::value::number::Number;
use crate::value::{Value, order, show};
use std::cmp::Ordering;

pub(super) const ABS: ExprDef = ExprDef {
    name: "$abs",
    help: "The absolute value of a number.",
    form: Form::Exactly(1, |operands, scope| {
        of_number("$abs", operands, scope, |number| match number.abs() {
            Some(result) => Ok(result),
            None => fail(28680, "can't take $abs of long long min"),
        })
    }),
};

pub(super) const CEIL: ExprDef = ExprDef {
    name: "$ceil",
    help: "The least whole number that is not below a number.",
    form: Form::Exactly(1, |operands, scope| of_number("$ceil", operands, scope, |number| Ok(number.ceil()))),
};

pub(super) const EXP: ExprDef = ExprDef {
    name: "$exp",
    help: "Euler's number to a power.",
    form: Form::Exactly(1, |operands, scope| of_number("$exp", operands, scope, |number| Ok(number.exp()))),
};

pub(super) const FLOOR: ExprDef = ExprDef {
    name: "$floor",
    help: "The greatest whole number that is not above a number.",
    form: Form::Exactly(1, |operands, scope| of_number("$floor", operands, scope, |number| Ok(number.floor()))),
};

pub(super) const LN: ExprDef = ExprDef {
    name: "$ln",
    help: "The natural logarithm of a number.",
    form: Form::Exactly(1, |operands, scope| {
        of_number("$ln", operands, scope, |number| logarithm(positive("$ln's argument", 28766, number)?, Number::ln))
    }),
};

pub(super) const LOG: ExprDef =
    ExprDef { name: "$log", help: "The logarithm of a number to a base.", form: Form::Exactly(2, log) };

pub(super) const LOG10: ExprDef = ExprDef {
    name: "$log10",
    help: "The decimal logarithm of a number.",
    form: Form::Exactly(1, |operands, scope| {
        of_number("$log10", operands, scope, |number| {
            logarithm(positive("$log10's argument", 28761, number)?, Number::log10)
        })
    }),
};

pub(super) const POW: ExprDef = ExprDef { name: "$pow", help: "A number to a power.", form: Form::Exactly(2, pow) };

pub(super) const ROUND: ExprDef = ExprDef {
    name: "$round",
    help: "A number rounded to a decimal place, halves to even.",
    form: Form::Between(1, 2, |operands, scope| round("$round", Rounding::HalfEven, operands, scope)),
};

pub(super) const SQRT: ExprDef = ExprDef {
    name: "$sqrt",
    help: "The square root of a number.",
    form: Form::Exactly(1, |operands, scope| {
        of_number("$sqrt", operands, scope, |number| match number.is_negative() {
            true => fail(28714, "$sqrt's argument must be greater than or equal to 0"),
            false => Ok(number.sqrt()),
        })
    }),
};

pub(super) const TRUNC: ExprDef = ExprDef {
    name: "$trunc",
    help: "A number cut off at a decimal place.",
    form: Form::Between(1, 2, |operands, scope| round("$trunc", Rounding::TowardZero, operands, scope)),
};

/// Applies `function` to the number that the only operand is; null stays null.
pub(super) fn of_number<'a>(
    name: &str,
    operands: &'a [Expr],
    scope: &mut Scope<'a>,
    function: impl FnOnce(Number) -> Result<Number>,
) -> Result<Value<'a>> {
    let value = only(operands, scope)?;
    match Number::of(&value) {
        Some(number) => Ok(function(number)?.into()),
        None if value.is_nullish() => Ok(Value::Null),
        None => fail(28765, format!("{name} only supports numeric types, not {}", value.type_name())),
    }
}

/// The logarithm of NaN is a double, of a decimal too.
fn logarithm(number: Number, function: fn(Number) -> Number) -> Result<Number> {
    Ok(if number.is_nan() { Number::Double(f64::NAN) } else { function(number) })
}

/// NaN passes.
fn positive(what: &str, code: i32, number: Number) -> Result<Number> {
    let value = Value::from(number);
    if number.is_nan() || order::compare(&value, &Value::Int32(0)) == Ordering::Greater {
        return Ok(number);
    }
    fail(code, format!("{what} must be a positive number, but is {}", show::general(number.to_f64(), 6)))
}

fn log<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [argument, base] = values(operands, scope)?;
    if argument.is_nullish() || base.is_nullish() {
        return Ok(Value::Null);
    }
    let Some(number) = Number::of(&argument) else {
        return fail(28756, format!("$log's argument must be numeric, not {}", argument.type_name()));
    };
    let Some(base_number) = Number::of(&base) else {
        return fail(28757, format!("$log's base must be numeric, not {}", base.type_name()));
    };
    let number = positive("$log's argument", 28758, number)?;
    let one = order::equal(&base, &Value::Int32(1));
    if one || !(base_number.is_nan() || order::compare(&base, &Value::Int32(0)) == Ordering::Greater) {
        return fail(
            28759,
            format!(
                "$log's base must be a positive number not equal to 1, but is {}",
                show::general(base_number.to_f64(), 6)
            ),
        );
    }
    if number.is_nan() || base_number.is_nan() {
        return Ok(Value::Double(f64::NAN));
    }
    Ok(number.log(base_number).into())
}

fn pow<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [base, exponent] = values(operands, scope)?;
    if base.is_nullish() || exponent.is_nullish() {
        return Ok(Value::Null);
    }
    let Some(number) = Number::of(&base) else {
        return fail(28762, format!("$pow's base must be numeric, not {}", base.type_name()));
    };
    let Some(power) = Number::of(&exponent) else {
        return fail(28763, format!("$pow's exponent must be numeric, not {}", exponent.type_name()));
    };
    if number.is_zero() && power.is_negative() {
        return fail(28764, "$pow cannot take a base of 0 and a negative exponent");
    }
    Ok(number.pow(power).into())
}

fn round<'a>(name: &str, rounding: Rounding, operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [value, place] = values(operands, scope)?;
    let place = if operands.len() < 2 { Value::Int32(0) } else { place };
    if value.is_nullish() {
        return Ok(Value::Null);
    }
    let Some(number) = Number::of(&value) else {
        return fail(51081, format!("{name} only supports numeric types, not {}", value.type_name()));
    };
    if place.is_nullish() {
        return Ok(Value::Null);
    }
    let Some(place_number) = Number::of(&place) else {
        return fail(16004, format!("can't convert from BSON type {} to long", place.type_name()));
    };
    let digits = to_long(place_number)?;
    if place_number.as_i32_exact().is_none() {
        return fail(51082, format!("precision argument to  {name} must be a integral value"));
    }
    let digits = match i32::try_from(digits) {
        Ok(digits) if (-20..=100).contains(&digits) => digits,
        _ => {
            return fail(
                51083,
                format!("cannot apply {name} with precision value {digits} value must be in [-20, 100]"),
            );
        }
    };
    match number.round_to(digits, rounding) {
        Some(result) => Ok(result.into()),
        None => fail(
            51080,
            format!(
                "invalid conversion from Decimal128 result in {name} resulting from arguments: [{}, {}]",
                show::computed(&value),
                show::computed(&place)
            ),
        ),
    }
}
