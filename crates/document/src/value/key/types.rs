//! What an encoded value loses: which of the number types it was, string or symbol, the exponent of a decimal.
//!
//! One byte per number or string, in the order of encoding; a decimal and an unusual NaN keep their own bytes behind it.
//! Int32 and string are 0, and zeros at the end are not stored, so most keys have no type bits at all.

use crate::value::{Decimal128, Value};

pub(super) const INT32: u8 = 0;
pub(super) const INT64: u8 = 1;
pub(super) const DOUBLE: u8 = 2;
pub(super) const DECIMAL: u8 = 3;
pub(super) const NEGATIVE_ZERO: u8 = 4;
pub(super) const DOUBLE_BITS: u8 = 5;

const SYMBOL: u8 = 1;

/// Collects the type bits of a key while it is encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeBits(Vec<u8>);

impl TypeBits {
    pub fn new() -> TypeBits {
        TypeBits::default()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The bytes to store: empty if every value had the usual type.
    pub fn as_bytes(&self) -> &[u8] {
        let kept = self.0.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.0.get(..kept).unwrap_or_default()
    }

    pub fn reader(&self) -> TypeReader<'_> {
        TypeReader::new(self.as_bytes())
    }
}

/// Gives type bits back in the order they were kept.
#[derive(Clone, Debug)]
pub struct TypeReader<'a>(&'a [u8]);

impl<'a> TypeReader<'a> {
    pub fn new(bytes: &'a [u8]) -> TypeReader<'a> {
        TypeReader(bytes)
    }

    pub(super) fn is_symbol(&mut self) -> bool {
        self.next() == SYMBOL
    }

    pub(super) fn next(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// The next `N` bytes; zeros cut off at the end come back.
    pub(super) fn take<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next())
    }

    pub(super) fn decimal(&mut self) -> Decimal128 {
        Decimal128::from_bytes(self.take())
    }
}

/// Whoever listens to what the encoding leaves out.
pub(super) trait Record {
    fn number(&mut self, value: &Value<'_>);
    fn string(&mut self, is_symbol: bool);
}

impl Record for () {
    fn number(&mut self, _value: &Value<'_>) {}
    fn string(&mut self, _is_symbol: bool) {}
}

impl Record for TypeBits {
    fn number(&mut self, value: &Value<'_>) {
        match value {
            Value::Int64(_) => self.0.push(INT64),
            Value::Double(number) if number.is_nan() => {
                self.0.push(DOUBLE_BITS);
                self.0.extend_from_slice(&number.to_bits().to_be_bytes());
            }
            Value::Double(number) if *number == 0.0 && number.is_sign_negative() => self.0.push(NEGATIVE_ZERO),
            Value::Double(_) => self.0.push(DOUBLE),
            Value::Decimal(decimal) => {
                self.0.push(DECIMAL);
                self.0.extend_from_slice(&decimal.bytes());
            }
            _ => self.0.push(INT32),
        }
    }

    fn string(&mut self, is_symbol: bool) {
        self.0.push(if is_symbol { SYMBOL } else { 0 });
    }
}
