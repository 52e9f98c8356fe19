//! The order-preserving byte encoding of values: comparing two encodings as bytes is comparing the values.
//!
//! `encode(a) < encode(b)` exactly if [`super::order::compare`] says so, and equal values of different types (1, 1.0,
//! NumberDecimal("1.00"); a string and a symbol) have equal bytes. What is lost by that is kept beside in [`TypeBits`], so that
//! an index can give back the exact value. Every encoding ends itself, so encodings are concatenated to compound keys,
//! and no encoding begins with 0x00 or 0xFF, ascending or inverted: those are free for bounds.
//!
//! It serves as the record key, in index entries, and as the hash key wherever values are made unique: `$group`,
//! `$addToSet`, `distinct`, set expressions. The bytes are on disk: changing them is a change of the format.
//!
//! | bytes | meaning |
//! | --- | --- |
//! | tag | the type's place in the order ([`tag`]) |
//! | number | sign in the tag, then the magnitude ([`number`]) |
//! | string, code | bytes, 0x00 escaped as 0x00 0xFF, then 0x00 |
//! | document | per field: type tag, name, 0x00, value; then 0x00 |
//! | array | elements, then 0x00 |
//! | binary | length (one byte, or 0xFF and four), subtype, bytes |
//! | others | big-endian, fixed length |

mod decode;
mod number;
#[cfg(test)]
mod tests;
mod types;

pub use decode::{decode, decode_double, length};
pub use types::{TypeBits, TypeReader};

use super::Value;
use crate::raw::Doc;
use types::Record;

/// The first byte of an encoding. Gaps are left between types.
pub mod tag {
    /// Ends documents, arrays and strings: below everything.
    pub const END: u8 = 0x00;
    pub const MIN_KEY: u8 = 10;
    pub const UNDEFINED: u8 = 15;
    pub const NULL: u8 = 20;
    /// Numbers as a type; as values they begin with one of the four below.
    pub const NUMBER: u8 = 30;
    pub const NAN: u8 = 30;
    pub const NEGATIVE: u8 = 31;
    pub const ZERO: u8 = 32;
    pub const POSITIVE: u8 = 33;
    pub const STRING: u8 = 60;
    pub const DOCUMENT: u8 = 70;
    pub const ARRAY: u8 = 80;
    pub const BINARY: u8 = 90;
    pub const OBJECT_ID: u8 = 100;
    /// Booleans as a type, and false.
    pub const BOOL: u8 = 110;
    pub const TRUE: u8 = 111;
    pub const DATE_TIME: u8 = 120;
    pub const TIMESTAMP: u8 = 130;
    pub const REGEX: u8 = 140;
    pub const DB_POINTER: u8 = 150;
    pub const CODE: u8 = 160;
    pub const CODE_WITH_SCOPE: u8 = 170;
    pub const MAX_KEY: u8 = 240;
}

/// Appends the encoding of `value`.
pub fn encode(value: &Value<'_>, out: &mut Vec<u8>) {
    append(value, out, &mut ());
}

/// As [`encode`], keeping what the bytes do not say in `types`.
pub fn encode_typed(value: &Value<'_>, out: &mut Vec<u8>, types: &mut TypeBits) {
    append(value, out, types);
}

/// Inverts what was appended since `start`: the same order, backwards.
pub fn invert_from(out: &mut [u8], start: usize) {
    for byte in out.get_mut(start..).unwrap_or_default() {
        *byte = !*byte;
    }
}

fn append(value: &Value<'_>, out: &mut Vec<u8>, types: &mut impl Record) {
    match value {
        Value::MinKey => out.push(tag::MIN_KEY),
        Value::Missing | Value::Undefined => out.push(tag::UNDEFINED),
        Value::Null => out.push(tag::NULL),
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal(_) => {
            number::append(value, out);
            types.number(value);
        }
        Value::String(text) => {
            out.push(tag::STRING);
            append_text(text.as_bytes(), out);
            types.string(false);
        }
        Value::Symbol(text) => {
            out.push(tag::STRING);
            append_text(text.as_bytes(), out);
            types.string(true);
        }
        Value::Document(doc) => {
            out.push(tag::DOCUMENT);
            append_fields(doc, out, types);
        }
        Value::Array(array) => {
            out.push(tag::ARRAY);
            for item in array.borrow().iter() {
                append(&item, out, types);
            }
            out.push(tag::END);
        }
        Value::Binary { subtype, bytes } => {
            out.push(tag::BINARY);
            append_length(bytes.as_slice().len(), out);
            out.push(*subtype);
            out.extend_from_slice(bytes.as_slice());
        }
        Value::ObjectId(id) => {
            out.push(tag::OBJECT_ID);
            out.extend_from_slice(id);
        }
        Value::Bool(truth) => out.push(if *truth { tag::TRUE } else { tag::BOOL }),
        Value::DateTime(millis) => {
            out.push(tag::DATE_TIME);
            out.extend_from_slice(&(millis ^ i64::MIN).to_be_bytes());
        }
        Value::Timestamp(bits) => {
            out.push(tag::TIMESTAMP);
            out.extend_from_slice(&bits.to_be_bytes());
        }
        Value::Regex { pattern, options } => {
            out.push(tag::REGEX);
            append_text(pattern.as_bytes(), out);
            append_text(options.as_bytes(), out);
        }
        Value::DbPointer { namespace, id } => {
            out.push(tag::DB_POINTER);
            append_length(namespace.as_bytes().len(), out);
            out.extend_from_slice(namespace.as_bytes());
            out.extend_from_slice(id);
        }
        Value::Code(text) => {
            out.push(tag::CODE);
            append_text(text.as_bytes(), out);
        }
        Value::CodeWithScope { code, scope } => {
            out.push(tag::CODE_WITH_SCOPE);
            append_text(code.as_bytes(), out);
            append_fields(scope, out, types);
        }
        Value::MaxKey => out.push(tag::MAX_KEY),
    }
}

fn append_fields(doc: &Doc<'_>, out: &mut Vec<u8>, types: &mut impl Record) {
    for (name, value) in doc.borrow().iter() {
        out.push(type_tag(&value));
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        append(&value, out, types);
    }
    out.push(tag::END);
}

/// The tag of the value's type: one for all numbers, one for both booleans.
pub fn type_tag(value: &Value<'_>) -> u8 {
    match value {
        Value::MinKey => tag::MIN_KEY,
        Value::Missing | Value::Undefined => tag::UNDEFINED,
        Value::Null => tag::NULL,
        Value::Double(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => tag::NUMBER,
        Value::String(_) | Value::Symbol(_) => tag::STRING,
        Value::Document(_) => tag::DOCUMENT,
        Value::Array(_) => tag::ARRAY,
        Value::Binary { .. } => tag::BINARY,
        Value::ObjectId(_) => tag::OBJECT_ID,
        Value::Bool(_) => tag::BOOL,
        Value::DateTime(_) => tag::DATE_TIME,
        Value::Timestamp(_) => tag::TIMESTAMP,
        Value::Regex { .. } => tag::REGEX,
        Value::DbPointer { .. } => tag::DB_POINTER,
        Value::Code(_) => tag::CODE,
        Value::CodeWithScope { .. } => tag::CODE_WITH_SCOPE,
        Value::MaxKey => tag::MAX_KEY,
    }
}

/// A text that ends below any longer one: what follows an encoding is never 0xFF.
fn append_text(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(0, rest) {
        let (head, tail) = rest.split_at(at + 1);
        out.extend_from_slice(head);
        out.push(0xFF);
        rest = tail;
    }
    out.extend_from_slice(rest);
    out.push(tag::END);
}

fn append_length(length: usize, out: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(short) if short < 0xFF => out.push(short),
        _ => {
            out.push(0xFF);
            out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        }
    }
}
