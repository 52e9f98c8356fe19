//! Trigonometry in radians, hyperbolic functions, and degrees to radians and back.

use super::form::{fail, values};
use super::mathematics::of_number;
use super::{Expr, ExprDef, Form, Scope};
use crate::error::Result;
use crate::value::number::Number;
use crate::value::{Decimal128, Value, order, show};
use std::cmp::Ordering;

macro_rules! function {
    ($constant:ident, $name:literal, $help:literal, $bounds:expr, $double:expr, $decimal:expr) => {
        pub(super) const $constant: ExprDef = ExprDef {
            name: $name,
            help: $help,
            form: Form::Exactly(1, |operands, scope| {
                of_number($name, operands, scope, |number| {
                    check_bounds($name, &$bounds, number)?;
                    Ok(number.function($double, $decimal))
                })
            }),
        };
    };
}

/// Where a function is defined, as MongoDB says it.
enum Bounds {
    Everywhere,
    Finite,
    /// From -1 to 1.
    Unit,
    /// From 1 up.
    FromOne,
}

function!(ACOS, "$acos", "The inverse cosine.", Bounds::Unit, f64::acos, Decimal128::acos);
function!(ACOSH, "$acosh", "The inverse hyperbolic cosine.", Bounds::FromOne, acosh, Decimal128::acosh);
function!(ASIN, "$asin", "The inverse sine.", Bounds::Unit, f64::asin, Decimal128::asin);
function!(ASINH, "$asinh", "The inverse hyperbolic sine.", Bounds::Everywhere, asinh, Decimal128::asinh);
function!(ATAN, "$atan", "The inverse tangent.", Bounds::Everywhere, f64::atan, Decimal128::atan);
function!(ATANH, "$atanh", "The inverse hyperbolic tangent.", Bounds::Unit, f64::atanh, Decimal128::atanh);
function!(COS, "$cos", "The cosine of an angle.", Bounds::Finite, f64::cos, Decimal128::cos);
function!(COSH, "$cosh", "The hyperbolic cosine.", Bounds::Everywhere, f64::cosh, Decimal128::cosh);
function!(
    DEGREES_TO_RADIANS,
    "$degreesToRadians",
    "An angle in radians, from degrees.",
    Bounds::Everywhere,
    f64::to_radians,
    Decimal128::to_radians
);
function!(
    RADIANS_TO_DEGREES,
    "$radiansToDegrees",
    "An angle in degrees, from radians.",
    Bounds::Everywhere,
    f64::to_degrees,
    Decimal128::to_degrees
);
function!(SIN, "$sin", "The sine of an angle.", Bounds::Finite, f64::sin, Decimal128::sin);
function!(SINH, "$sinh", "The hyperbolic sine.", Bounds::Everywhere, f64::sinh, Decimal128::sinh);
function!(TAN, "$tan", "The tangent of an angle.", Bounds::Finite, f64::tan, Decimal128::tan);
function!(TANH, "$tanh", "The hyperbolic tangent.", Bounds::Everywhere, f64::tanh, Decimal128::tanh);

pub(super) const ATAN2: ExprDef =
    ExprDef { name: "$atan2", help: "The angle of a point (x, y), given as y, x.", form: Form::Exactly(2, atan2) };

fn check_bounds(name: &str, bounds: &Bounds, number: Number) -> Result<()> {
    if number.is_nan() {
        return Ok(());
    }
    let value = Value::from(number);
    let at_least = |bound: i32| order::compare(&value, &Value::Int32(bound)) != Ordering::Less;
    let at_most = |bound: i32| order::compare(&value, &Value::Int32(bound)) != Ordering::Greater;
    let (within, range) = match bounds {
        Bounds::Everywhere => return Ok(()),
        Bounds::Finite => (!number.is_infinite(), "(-inf,inf)"),
        Bounds::Unit => (at_least(-1) && at_most(1), "[-1,1]"),
        Bounds::FromOne => (at_least(1), "[1,inf]"),
    };
    if within {
        return Ok(());
    }
    fail(50989, format!("cannot apply {name} to {}, value must be in {range}", show::computed(&value)))
}

fn atan2<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [y, x] = values(operands, scope)?;
    let refuse = |code, value: &Value<'_>| match value.is_nullish() {
        true => Ok(Value::Null),
        false => fail(code, format!("$atan2 only supports numeric types, not {}", value.type_name())),
    };
    let Some(y_number) = Number::of(&y) else { return refuse(51044, &y) };
    let Some(x_number) = Number::of(&x) else { return refuse(51045, &x) };
    Ok(match (y_number, x_number) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
            Value::Decimal(y_number.to_decimal().atan2(x_number.to_decimal()))
        }
        _ => Value::Double(y_number.to_f64().atan2(x_number.to_f64())),
    })
}

/// From here on, squaring a number and adding one changes nothing that a double shows.
const LARGE: f64 = (1_u64 << 28) as f64;

/// As the C library computes it: the standard library's differs in the last digit of large arguments.
fn acosh(x: f64) -> f64 {
    if x > LARGE { x.ln() + std::f64::consts::LN_2 } else { x.acosh() }
}

fn asinh(x: f64) -> f64 {
    if x.abs() > LARGE { (x.abs().ln() + std::f64::consts::LN_2).copysign(x) } else { x.asinh() }
}
