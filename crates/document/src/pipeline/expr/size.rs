//! `$binarySize` and `$bsonSize`: how many bytes a value takes.

use super::form::{fail, only};
use super::{Expr, ExprDef, Form, Scope};
use crate::error::Result;
use crate::value::Value;

pub(super) const BINARY_SIZE: ExprDef = ExprDef {
    name: "$binarySize",
    help: "The size of a string or binary value in bytes.",
    form: Form::Exactly(1, binary_size),
};
pub(super) const BSON_SIZE: ExprDef =
    ExprDef { name: "$bsonSize", help: "The size of a document in bytes.", form: Form::Exactly(1, bson_size) };

fn binary_size<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    match only(operands, scope)? {
        Value::String(text) => Ok(size(text.as_bytes())),
        Value::Binary { bytes, .. } => Ok(size(bytes.as_slice())),
        value if value.is_nullish() => Ok(Value::Null),
        value => {
            fail(51276, format!("$binarySize requires a string or BinData argument, found: {}", value.type_name()))
        }
    }
}

fn bson_size<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    match only(operands, scope)? {
        Value::Document(doc) => Ok(size(doc.as_bytes())),
        value if value.is_nullish() => Ok(Value::Null),
        value => fail(31393, format!("$bsonSize requires a document input, found: {}", value.type_name())),
    }
}

fn size(bytes: &[u8]) -> Value<'static> {
    Value::Int32(i32::try_from(bytes.len()).unwrap_or(i32::MAX))
}
