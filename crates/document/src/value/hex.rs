//! Bytes as hex digits, and back.

/// The bytes of an even number of hex digits of either case; nothing else has any.
pub fn to_bytes(digits: &str) -> Option<Vec<u8>> {
    let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
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

/// In lower case.
pub fn to_digits(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS.get(usize::from(value & 15)).copied().unwrap_or(b'0'));
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
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
                assert_eq!(to_digits(&bytes), digits.to_lowercase());
            }
        }
    }
}
