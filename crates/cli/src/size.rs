//! Sizes as people write them: `512MB`, `2GB`, `1073741824`.

use std::str::FromStr;

/// A number of bytes. Units are powers of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let bytes = bytes(text)?;
        if bytes < 64 << 20 {
            return Err("the store needs at least 64MB".into());
        }
        Ok(Size(bytes))
    }
}

/// The same without a least size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnySize(pub(crate) u64);

impl FromStr for AnySize {
    type Err = String;

    fn from_str(text: &str) -> Result<AnySize, String> {
        bytes(text).map(AnySize)
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor = match unit.trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1_u64 << 30,
        _ => return Err(format!("'{unit}' is no unit of size: write it like 512MB or 2GB")),
    };
    let number: u64 = digits.parse().map_err(|_| "a size is a whole number and a unit, like 512MB".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "that is more than any machine has".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_written() {
        for (text, bytes) in
            [("64MB", 64 << 20), ("2GB", 2 << 30), ("1g", 1 << 30), ("100 MiB", 100 << 20), ("134217728", 128 << 20)]
        {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "MB", "12 parsecs", "1KB", "99999999999GB", "-1GB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }
}
