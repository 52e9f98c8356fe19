//! Arithmetic: `$add`, `$subtract` (dates too), `$multiply`, `$divide`, `$mod`. Null in gives null out; the types of the results
//! are [`Number`]'s.

use super::form::{fail, values};
use super::{Expr, ExprDef, Form, Scope};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::value::Value;
use crate::value::decimal_math::Rounding;
use crate::value::number::Number;
use crate::value::sum::Sum;

pub(super) const ADD: ExprDef = ExprDef {
    name: "$add",
    help: "The sum of numbers; with one date among them, the date that many milliseconds later.",
    form: Form::Commutative(add),
};

pub(super) const DIVIDE: ExprDef =
    ExprDef { name: "$divide", help: "One number divided by another.", form: Form::Exactly(2, divide) };

pub(super) const MOD: ExprDef =
    ExprDef { name: "$mod", help: "The remainder of a division.", form: Form::Exactly(2, modulo) };

pub(super) const MULTIPLY: ExprDef =
    ExprDef { name: "$multiply", help: "The product of numbers.", form: Form::Commutative(multiply) };

pub(super) const SUBTRACT: ExprDef = ExprDef {
    name: "$subtract",
    help: "The difference of two numbers, of two dates in milliseconds, or a date that many milliseconds earlier.",
    form: Form::Exactly(2, subtract),
};

fn add<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let mut sum = Sum::new();
    let mut has_date = false;
    for operand in operands {
        match operand.eval(scope)? {
            Value::DateTime(_) if has_date => return fail(16612, "only one date allowed in an $add expression"),
            Value::DateTime(millis) => {
                has_date = true;
                sum.add(Number::Int64(millis));
            }
            value => match Number::of(&value) {
                Some(number) => sum.add(number),
                None if value.is_nullish() => return Ok(Value::Null),
                None => {
                    return fail(16554, format!("$add only supports numeric or date types, not {}", value.type_name()));
                }
            },
        }
    }
    if !has_date {
        return Ok(sum.total().into());
    }
    match sum.total() {
        // What no long can hold becomes the least long, as MongoDB has it.
        Number::Decimal(total) => Ok(Value::DateTime(total.to_i64(Rounding::HalfEven).unwrap_or(i64::MIN))),
        _ => match sum.to_long() {
            Some(millis) => Ok(Value::DateTime(millis)),
            None => Err(Error::new(Code::Overflow, "date overflow in $add")),
        },
    }
}

fn multiply<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let mut product = Number::Int32(1);
    for operand in operands {
        let value = operand.eval(scope)?;
        match Number::of(&value) {
            Some(number) => product = product.times(number),
            None if value.is_nullish() => return Ok(Value::Null),
            None => {
                return Err(Error::type_mismatch(format!(
                    "$multiply only supports numeric types, not {}",
                    value.type_name()
                )));
            }
        }
    }
    Ok(product.into())
}

fn divide<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [left, right] = values(operands, scope)?;
    match (Number::of(&left), Number::of(&right)) {
        (Some(dividend), Some(divisor)) => match dividend.divided_by(divisor) {
            Some(quotient) => Ok(quotient.into()),
            None => Err(Error::bad_value("can't $divide by zero")),
        },
        _ if left.is_nullish() || right.is_nullish() => Ok(Value::Null),
        _ => Err(Error::type_mismatch(format!(
            "$divide only supports numeric types, not {} and {}",
            left.type_name(),
            right.type_name()
        ))),
    }
}

fn modulo<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [left, right] = values(operands, scope)?;
    match (Number::of(&left), Number::of(&right)) {
        (Some(dividend), Some(divisor)) => match dividend.modulo(divisor) {
            Some(rest) => Ok(rest.into()),
            None => {
                let decimal = matches!(dividend, Number::Decimal(_)) || matches!(divisor, Number::Decimal(_));
                fail(if decimal { 5_733_415 } else { 16610 }, "can't $mod by zero")
            }
        },
        _ if left.is_nullish() || right.is_nullish() => Ok(Value::Null),
        _ => {
            fail(16611, format!("$mod only supports numeric types, not {} and {}", left.type_name(), right.type_name()))
        }
    }
}

fn subtract<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [left, right] = values(operands, scope)?;
    if let (Some(left), Some(right)) = (Number::of(&left), Number::of(&right)) {
        return Ok(left.minus(right).into());
    }
    if left.is_nullish() || right.is_nullish() {
        return Ok(Value::Null);
    }
    match (&left, &right) {
        (Value::DateTime(left), Value::DateTime(right)) => Ok(Value::Int64(left.wrapping_sub(*right))),
        (Value::DateTime(date), right) => match Number::of(right) {
            Some(number) => earlier(*date, number),
            None => Err(Error::type_mismatch(format!("can't $subtract {} from Date", right.type_name()))),
        },
        _ => Err(Error::type_mismatch(format!("can't $subtract {} from {}", right.type_name(), left.type_name()))),
    }
}

fn earlier<'a>(date: i64, number: Number) -> Result<Value<'a>> {
    let millis = match number {
        Number::Decimal(decimal) => decimal.to_i64(Rounding::HalfEven).unwrap_or(i64::MIN),
        other => to_long(other)?,
    };
    let Some(negated) = millis.checked_neg() else {
        return Err(Error::new(Code::DurationOverflow, "Cannot negate the minimum duration"));
    };
    match date.checked_add(negated) {
        Some(result) => Ok(Value::DateTime(result)),
        None => Err(Error::new(
            Code::DurationOverflow,
            format!("Overflow while adding {negated}ms to {}ms", date.wrapping_add(negated)),
        )),
    }
}

/// A number as a long, without its fraction.
pub(super) fn to_long(number: Number) -> Result<i64> {
    match number.to_i64_truncated() {
        Some(long) => Ok(long),
        None => fail(
            31109,
            format!("Can't coerce out of range value {} to long", crate::value::show::computed(&number.into())),
        ),
    }
}
