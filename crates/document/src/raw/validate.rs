//! The one check of bytes that come from outside: every length, every terminator, every type byte, every text.
//!
//! Unlike mongod, text and names must be UTF-8: everything behind this line may rely on it.

use super::kind;
use super::read::{Element, read_i32, value_length};
use crate::code::Code;
use crate::error::{Error, Result};

/// How deep documents may nest; MongoDB's limit.
pub const MAX_DEPTH: usize = 200;

/// Checks one whole document: `bytes` holds it and nothing else.
pub fn validate(bytes: &[u8]) -> Result<()> {
    document(bytes, 0)
}

/// How deep the documents and arrays in a valid document nest; a flat one has depth 1.
pub fn depth(bytes: &[u8]) -> usize {
    let mut deepest = 0;
    let mut position = 4;
    while let Some(element) = Element::at(bytes, position) {
        if matches!(element.kind, kind::DOCUMENT | kind::ARRAY) {
            deepest = deepest.max(depth(bytes.get(element.start..element.end).unwrap_or_default()));
        }
        position = element.end;
    }
    deepest + 1
}

fn invalid(what: &str) -> Error {
    Error::new(Code::InvalidBSON, what)
}

fn document(bytes: &[u8], depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::new(Code::Overflow, format!("BSON nesting level exceeds {MAX_DEPTH}")));
    }
    let stated = read_i32(bytes, 0).and_then(|length| usize::try_from(length).ok());
    if stated != Some(bytes.len()) || bytes.len() < 5 || bytes.last() != Some(&0) {
        return Err(invalid("invalid BSON: document length does not match its bytes"));
    }
    let last = bytes.len() - 1;
    let mut position = 4;
    while position < last {
        let kind = *bytes.get(position).ok_or_else(|| invalid("invalid BSON: torn element"))?;
        let rest = bytes.get(position + 1..last).ok_or_else(|| invalid("invalid BSON: torn element"))?;
        let name_length = memchr::memchr(0, rest).ok_or_else(|| invalid("invalid BSON: field name without end"))?;
        let name = rest.get(..name_length).unwrap_or_default();
        if std::str::from_utf8(name).is_err() {
            return Err(invalid("invalid BSON: a field name is not UTF-8"));
        }
        let start = position + 1 + name_length + 1;
        let length = value_length(kind, bytes, start)
            .ok_or_else(|| invalid(&format!("invalid BSON: unknown type or torn value of type {kind}")))?;
        let end = start.checked_add(length).filter(|end| *end <= last);
        let value =
            end.and_then(|end| bytes.get(start..end)).ok_or_else(|| invalid("invalid BSON: value past the end"))?;
        check_value(kind, value, depth)?;
        position = start + length;
    }
    Ok(())
}

fn check_value(kind: u8, value: &[u8], depth: usize) -> Result<()> {
    match kind {
        kind::STRING | kind::CODE | kind::SYMBOL => text(value),
        kind::DOCUMENT | kind::ARRAY => document(value, depth + 1),
        kind::BOOL if value.first().is_some_and(|byte| *byte > 1) => {
            Err(invalid("invalid BSON: boolean is not 0 or 1"))
        }
        kind::REGEX if std::str::from_utf8(value).is_err() => Err(invalid("invalid BSON: regex is not UTF-8")),
        kind::BINARY if value.get(4) == Some(&2) => {
            // The old binary subtype repeats its length inside.
            let inner = value.get(5..).unwrap_or_default();
            let stated = read_i32(inner, 0).and_then(|length| usize::try_from(length).ok());
            match stated == inner.len().checked_sub(4) {
                true => Ok(()),
                false => Err(invalid("invalid BSON: binary subtype 2 with a wrong length")),
            }
        }
        kind::DB_POINTER => match value.len().checked_sub(12).and_then(|end| value.get(..end)) {
            Some(namespace) => text(namespace),
            None => Err(invalid("invalid BSON: torn DBPointer")),
        },
        kind::CODE_WITH_SCOPE => {
            let code = read_i32(value, 4).and_then(|length| usize::try_from(length).ok());
            let split =
                code.and_then(|length| length.checked_add(8)).ok_or_else(|| invalid("invalid BSON: torn code"))?;
            text(value.get(4..split).ok_or_else(|| invalid("invalid BSON: torn code"))?)?;
            document(value.get(split..).unwrap_or_default(), depth + 1)
        }
        _ => Ok(()),
    }
}

/// A length, bytes, NUL; the length counts the NUL.
fn text(value: &[u8]) -> Result<()> {
    let body = value.get(4..).and_then(|rest| rest.split_last());
    match body {
        Some((0, text)) if read_i32(value, 0).and_then(|n| usize::try_from(n).ok()) == Some(text.len() + 1) => {
            match std::str::from_utf8(text) {
                Ok(_) => Ok(()),
                Err(_) => Err(invalid("invalid BSON: a string is not UTF-8")),
            }
        }
        _ => Err(invalid("invalid BSON: string without its end")),
    }
}
