//! Hex digits as bytes, and back in upper case.

use document::{Result, Value};

/// The bytes of an even number of hex digits; nothing else has any.
pub(super) fn to_bytes(digits: &str) -> Option<Vec<u8>> {
    let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let digits = digits.as_bytes();
    if digits.len() % 2 != 0 {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| match pair {
            [high, low] => Some(nibble(*high)? << 4 | nibble(*low)?),
            _ => None,
        })
        .collect()
}

pub(super) fn to_digits(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |value: u8| char::from(DIGITS.get(usize::from(value & 15)).copied().unwrap_or(b'0'));
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// What is stored for a value of a field that is declared `as: hex`: null stays null.
pub(super) fn stored(field: &str, value: &Value<'_>) -> Result<Value<'static>> {
    let bytes = match value {
        Value::Null => return Ok(Value::Null),
        Value::String(digits) => to_bytes(digits.as_str()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_bytes() {
        for (digits, bytes) in
            [("", Some(vec![])), ("0aF0", Some(vec![0x0a, 0xf0])), ("abc", None), ("0g", None), ("é", None)]
        {
            assert_eq!(to_bytes(digits), bytes, "{digits}");
            if let Some(bytes) = bytes {
                assert_eq!(to_digits(&bytes), digits.to_uppercase());
            }
        }
    }
}
