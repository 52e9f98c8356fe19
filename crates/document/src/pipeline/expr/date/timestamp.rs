//! `$tsSecond` and `$tsIncrement`: the two halves of a timestamp.

use super::super::form::{fail, only};
use super::super::{Expr, ExprDef, Form, Scope};
use crate::error::Result;
use crate::value::Value;

pub(in super::super) const TS_INCREMENT: ExprDef = ExprDef {
    name: "$tsIncrement",
    help: "The increment of a timestamp.",
    form: Form::Exactly(1, |operands, scope| {
        half("$tsIncrement", 5_687_302, operands, scope, |bits| bits & 0xFFFF_FFFF)
    }),
};

pub(in super::super) const TS_SECOND: ExprDef = ExprDef {
    name: "$tsSecond",
    help: "The seconds of a timestamp.",
    form: Form::Exactly(1, |operands, scope| half("$tsSecond", 5_687_301, operands, scope, |bits| bits >> 32)),
};

fn half<'a>(
    name: &str,
    code: i32,
    operands: &'a [Expr],
    scope: &mut Scope<'a>,
    pick: fn(u64) -> u64,
) -> Result<Value<'a>> {
    match only(operands, scope)? {
        Value::Timestamp(bits) => Ok(Value::Int64(i64::try_from(pick(bits)).unwrap_or_default())),
        value if value.is_nullish() => Ok(Value::Null),
        value => fail(code, format!(" Argument to {name} must be a timestamp, but is {}", value.type_name())),
    }
}
