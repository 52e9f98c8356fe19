//! The bytes of keys in a collection's space: documents and index entries.
//!
//! | key | value |
//! | --- | --- |
//! | `00 00 00 00`, encoded `_id` | a format byte, then the document |
//! | index id (4 bytes), encoded fields, encoded `_id` | length of the fields (2 bytes, top bit: inexact), type bits |
//!
//! The encoding is that of [`document::value::key`], so a range of values is a range of keys, and entries of equal values are in
//! the order of `_id`. Fields longer than [`MAX_FIELDS`] are cut and end in a hash: they still find and tell apart,
//! but only the document says what they were (inexact).

use bytes::{BufMut, Bytes, BytesMut};
use document::value::key::{self, TypeBits, TypeReader};
use document::{Code, Doc, Error, Result, Value};

/// The index id under which documents are clustered.
pub const DOCUMENTS: u32 = 0;
/// The format byte of a plain BSON document.
const PLAIN: u8 = 0;
/// The length of [`index_prefix`].
pub const PREFIX: usize = 4;
/// Encoded fields of an entry are at most this long.
pub const MAX_FIELDS: usize = 1024;
const HASH: usize = 16;
/// What is left of longer fields before the hash. Bounds longer than this are cut to it.
pub const KEPT_FIELDS: usize = MAX_FIELDS - HASH;
const INEXACT: u16 = 0x8000;

/// The key of the document with this `_id`.
pub fn document_key(id: &Value<'_>) -> Bytes {
    let mut bytes = Vec::with_capacity(PREFIX + 16);
    bytes.extend_from_slice(&index_prefix(DOCUMENTS));
    key::encode(id, &mut bytes);
    Bytes::from(bytes)
}

/// The key of the document whose encoded `_id` this is.
pub fn document_key_of(encoded_id: &[u8]) -> Bytes {
    Bytes::from([&index_prefix(DOCUMENTS), encoded_id].concat())
}

/// Cuts the encoded fields that stand in `key` after the index id, if they are too long, and gives the value of the entry.
pub(crate) fn finish_fields(key: &mut Vec<u8>, types: &TypeBits) -> Bytes {
    let fields = key.get(PREFIX..).unwrap_or_default();
    let (length, types) = if fields.len() <= MAX_FIELDS {
        (u16::try_from(fields.len()).unwrap_or(!INEXACT), types.as_bytes())
    } else {
        let hash = xxhash_rust::xxh3::xxh3_128(fields);
        key.truncate(PREFIX + KEPT_FIELDS);
        key.extend_from_slice(&hash.to_be_bytes());
        (u16::try_from(MAX_FIELDS).unwrap_or(!INEXACT) | INEXACT, &[][..])
    };
    let mut value = Vec::with_capacity(2 + types.len());
    value.extend_from_slice(&length.to_be_bytes());
    value.extend_from_slice(types);
    Bytes::from(value)
}

/// The parts of an entry as a scan finds it.
#[derive(Clone, Copy, Debug)]
pub struct EntryParts<'a> {
    /// The encoded fields, or what is left of them.
    pub fields: &'a [u8],
    /// The encoded `_id`: a document's key without its prefix.
    pub id: &'a [u8],
    pub types: &'a [u8],
    /// Whether the fields were cut.
    pub inexact: bool,
}

impl<'a> EntryParts<'a> {
    /// Returns `None` if the bytes are no entry.
    pub fn parse(key: &'a [u8], value: &'a [u8]) -> Option<EntryParts<'a>> {
        let (head, types) = value.split_at_checked(2)?;
        let head = u16::from_be_bytes(head.try_into().ok()?);
        let (fields, id) = key.get(PREFIX..)?.split_at_checked(usize::from(head & !INEXACT))?;
        Some(EntryParts { fields, id, types, inexact: head & INEXACT != 0 })
    }

    /// The indexed values, given which fields are descending; `None` if the entry is inexact.
    pub fn values(&self, descending: impl Iterator<Item = bool>) -> Option<Vec<Value<'static>>> {
        if self.inexact {
            return None;
        }
        let (mut rest, mut types, mut values) = (self.fields, TypeReader::new(self.types), Vec::new());
        for descending in descending {
            let (value, taken) = key::decode(rest, descending, &mut types)?;
            values.push(value);
            rest = rest.get(taken..)?;
        }
        Some(values)
    }
}

/// The smallest key above all keys that begin with `prefix`; `None` if there is none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut bytes = prefix.get(..=last)?.to_vec();
    *bytes.last_mut()? += 1;
    Some(bytes)
}

/// The four bytes that begin the keys of an index.
pub fn index_prefix(index: u32) -> [u8; 4] {
    index.to_be_bytes()
}

/// The stored form of a document: the one copy that a write makes of it.
pub fn record(doc: &Doc<'_>) -> Bytes {
    let bytes = doc.as_bytes();
    let mut value = BytesMut::with_capacity(bytes.len() + 1);
    value.put_u8(PLAIN);
    value.put_slice(bytes);
    value.freeze()
}

/// The document in a stored value, sharing its bytes.
pub fn document(mut value: Bytes) -> Result<Doc<'static>> {
    match value.first() {
        Some(&PLAIN) => {
            bytes::Buf::advance(&mut value, 1);
            Ok(Doc::trusted_bytes(value))
        }
        Some(other) => Err(Error::new(
            Code::UnsupportedFormat,
            format!("a stored document has format {other}; this version reads format {PLAIN}"),
        )),
        None => Err(Error::new(Code::InternalError, "a stored document is empty")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key and value of an entry of index 3, without an `_id`.
    fn entry(text: &str) -> (Vec<u8>, Bytes) {
        let (mut bytes, mut types) = (index_prefix(3).to_vec(), TypeBits::new());
        key::encode_typed(&Value::from(text), &mut bytes, &mut types);
        let value = finish_fields(&mut bytes, &types);
        (bytes, value)
    }

    #[test]
    fn an_entry_gives_back_its_values_and_its_document() {
        let document = document_key(&Value::Int32(7));
        let (mut key, value) = entry("abc");
        key.extend_from_slice(&document[PREFIX..]);
        let parts = EntryParts::parse(&key, &value).unwrap();
        assert_eq!(document_key_of(parts.id), document);
        assert_eq!(parts.values([false].into_iter()).unwrap(), [Value::from("abc")]);
        assert!(EntryParts::parse(&key, &value[..1]).is_none());
    }

    #[test]
    fn long_fields_keep_their_place_and_stay_apart() {
        let long = "x".repeat(70_000);
        let ((a, value), (b, _)) = (entry(&format!("{long}a")), entry(&format!("{long}b")));
        assert_eq!(a.len(), PREFIX + MAX_FIELDS);
        assert_ne!(a, b);
        assert!(entry("w").0 < a && a < entry("y").0);
        let parts = EntryParts::parse(&a, &value).unwrap();
        assert!(parts.inexact && parts.values([false].into_iter()).is_none());
    }

    #[test]
    fn after_a_prefix_comes_its_successor() {
        assert_eq!(after_prefix(&[1, 2]), Some(vec![1, 3]));
        assert_eq!(after_prefix(&[1, 0xFF]), Some(vec![2]));
        assert_eq!(after_prefix(&[0xFF, 0xFF]), None);
    }
}
