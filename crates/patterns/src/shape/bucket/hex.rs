//! Series that are declared `as: hex`: digits for clients, bytes in the store.

use document::value::hex;
use document::{Result, Value};

/// What is stored for a value of a field that is declared `as: hex`: null stays null.
pub(super) fn stored(field: &str, value: &Value<'_>) -> Result<Value<'static>> {
    let bytes = match value {
        Value::Null => return Ok(Value::Null),
        Value::String(digits) => hex::to_bytes(digits.as_str()),
        _ => None,
    };
    match bytes {
        Some(bytes) => Ok(binary(bytes)),
        None => Err(document::Error::bad_value(format!(
            "'{field}' is stored as bytes: it must be a string of an even number of hex digits, not {}",
            document::value::show::element(value)
        ))),
    }
}

pub(super) fn binary(bytes: Vec<u8>) -> Value<'static> {
    Value::Binary { subtype: 0, bytes: bytes.into() }
}
