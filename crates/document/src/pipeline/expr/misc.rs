//! What belongs to no other family: `$rand`, `$binarySize`, `$tsSecond`, `$tsIncrement`, `$meta`, which
//! has nothing to give, and bytes as hex digits, which is ours.

use super::form::{fail, only};
use super::{Expr, ExprDef, Form, Names, Operator, Scope};
use crate::error::{Error, Result};
use crate::text::carried;
use crate::value::{Value, hex};
use std::sync::Arc;

pub(super) const BINARY_SIZE: ExprDef = ExprDef {
    name: "$binarySize",
    help: "The size of a string or binary value in bytes.",
    form: Form::Exactly(1, |operands, scope| {
        let size = |length: usize| Ok(Value::Int32(i32::try_from(length).unwrap_or(i32::MAX)));
        match only(operands, scope)? {
            Value::String(text) => size(text.as_bytes().len()),
            Value::Binary { bytes, .. } => size(bytes.as_slice().len()),
            value if value.is_nullish() => Ok(Value::Null),
            value => {
                fail(51276, format!("$binarySize requires a string or BinData argument, found: {}", value.type_name()))
            }
        }
    }),
};

/// Internal: MongoDB 6.0 has no operator for it.
pub(super) const HEX: ExprDef = ExprDef {
    name: "$_internalPleachHex",
    help: "The bytes of a binary value as upper-case hex digits; other values as they are.",
    form: Form::Exactly(1, |operands, scope| {
        Ok(match only(operands, scope)? {
            Value::Binary { bytes, .. } => Value::from(hex::to_digits(bytes.as_slice())),
            other => other,
        })
    }),
};

pub(super) const META: ExprDef = ExprDef {
    name: "$meta",
    help: "Metadata of a document: the score of a text search; index keys and record ids are not supported.",
    form: Form::Special(parse_meta),
};

pub(super) const RAND: ExprDef =
    ExprDef { name: "$rand", help: "A random number from 0 up to 1.", form: Form::Special(parse_rand) };

pub(super) const TS_INCREMENT: ExprDef = ExprDef {
    name: "$tsIncrement",
    help: "The increment of a timestamp.",
    form: Form::Exactly(1, |operands, scope| {
        of_timestamp("$tsIncrement", 5_687_302, only(operands, scope)?, |bits| bits & 0xFFFF_FFFF)
    }),
};

pub(super) const TS_SECOND: ExprDef = ExprDef {
    name: "$tsSecond",
    help: "The seconds of a timestamp.",
    form: Form::Exactly(1, |operands, scope| {
        of_timestamp("$tsSecond", 5_687_301, only(operands, scope)?, |bits| bits >> 32)
    }),
};

fn of_timestamp<'a>(name: &str, code: i32, value: Value<'a>, part: fn(u64) -> u64) -> Result<Value<'a>> {
    match value {
        Value::Timestamp(bits) => Ok(Value::Int64(part(bits).cast_signed())),
        value if value.is_nullish() => Ok(Value::Null),
        value => fail(code, format!(" Argument to {name} must be a timestamp, but is {}", value.type_name())),
    }
}

fn parse_meta(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let Some(name) = argument.as_str() else { return fail(17307, "$meta only supports string arguments") };
    match name {
        "textScore" => Ok(text_score(names)),
        "geoNearDistance" => unavailable("$geoNear distance"),
        "geoNearPoint" => unavailable("$geoNear point"),
        "randVal"
        | "searchHighlights"
        | "searchScore"
        | "searchScoreDetails"
        | "timeseriesBucketMaxTime"
        | "timeseriesBucketMinTime" => Ok(Expr::Const(Value::Missing)),
        "indexKey" | "recordId" | "sortKey" => {
            Err(Error::not_implemented(format_args!("The expression {{$meta: \"{name}\"}}")))
        }
        other => fail(17308, format!("Unsupported argument to $meta: {other}")),
    }
}

/// The score of the document that a text search found. Whoever parses it sees to it that there is such a search.
pub(crate) fn text_score(names: &mut Names) -> Expr {
    names.note_score();
    Expr::Custom(Arc::new(TextScore))
}

#[derive(Debug)]
struct TextScore;

impl Operator for TextScore {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        Ok(carried::score(&scope.root).map_or(Value::Missing, Value::Double))
    }

    fn operands(&self, _: &mut dyn FnMut(&Expr)) {}
}

fn unavailable(what: &str) -> Result<Expr> {
    fail(40218, format!("query requires {what} metadata, but it is not available"))
}

#[derive(Debug)]
struct Rand;

fn parse_rand(argument: &Value<'_>, _: &mut Names) -> Result<Expr> {
    match argument {
        Value::Document(doc) if doc.is_empty() => Ok(Expr::Custom(Arc::new(Rand))),
        Value::Array(array) if array.is_empty() => Ok(Expr::Custom(Arc::new(Rand))),
        Value::Document(_) | Value::Array(_) => fail(3_040_501, "$rand does not currently accept arguments"),
        _ => fail(10065, "invalid parameter: expected an object ($rand)"),
    }
}

impl Operator for Rand {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        Ok(Value::Double((scope.env.random)()))
    }

    fn operands(&self, _: &mut dyn FnMut(&Expr)) {}
}
