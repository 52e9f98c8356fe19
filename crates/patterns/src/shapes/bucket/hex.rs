//! Series that are declared `as: hex`: digits for clients, bytes in the store. Clients may write digits of either case; logical
//! documents have lower case.

use crate::shapes::bucket::{Body, Bucket, ReadingId};
use crate::shapes::hex::{lowered, lowered_fields};
use document::value::hex;
use document::{Doc, DocWriter, Result, Value};

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

impl Bucket {
    pub(super) fn hex_fields(&self) -> impl Iterator<Item = &str> {
        self.by.iter().filter(|series| series.hex).map(|series| &*series.field)
    }

    /// Whether the logical `_id` is made of series and time.
    pub(crate) fn derives_id(&self) -> bool {
        match &self.body {
            Body::Slots(_) => true,
            Body::Readings(readings) => readings.reading_id == ReadingId::Time,
        }
    }

    /// A logical document with its hex digits as they are given back; `None` if they are so already.
    pub(crate) fn in_lower_case(&self, doc: &Doc<'_>) -> Option<Doc<'static>> {
        let is_hex = |name: &str| self.hex_fields().any(|field| field == name);
        let mut writer = DocWriter::with_capacity(doc.as_bytes().len());
        let mut changed = false;
        for (name, value) in doc.iter() {
            let lowered = match &value {
                Value::Document(id) if name.as_str() == "_id" && self.derives_id() => {
                    lowered_fields(id, &is_hex).map(Value::Document)
                }
                value if is_hex(name.as_str()) => lowered(value),
                _ => None,
            };
            changed |= lowered.is_some();
            writer.append(name.as_str(), &lowered.unwrap_or(value));
        }
        changed.then(|| writer.finish())
    }
}
