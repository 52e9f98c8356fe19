//! Walking documents and arrays: each element is found by its length, never decoded on the way.

use super::{Blob, Text, kind};
use crate::error::{Error, Result};
use crate::value::{Decimal128, Value};
use bytes::Bytes;

/// A BSON document as bytes: length, elements, a final NUL.
#[derive(Clone)]
pub struct Doc<'a>(pub(crate) Blob<'a>);

/// A BSON array as bytes: a document whose names are "0", "1", …; the names are not looked at when reading.
#[derive(Clone)]
pub struct Array<'a>(pub(crate) Blob<'a>);

const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

impl<'a> Doc<'a> {
    /// Views `bytes` as a document. The caller vouches that they were validated (from the store, or by [`super::validate`]).
    pub fn trusted(bytes: &'a [u8]) -> Self {
        Doc(Blob::Borrowed(bytes))
    }

    /// As [`Doc::trusted`], for shared bytes.
    pub fn trusted_bytes(bytes: Bytes) -> Doc<'static> {
        Doc(Blob::Shared(bytes))
    }

    /// Checks `bytes` from outside, whole and deep, then views them.
    pub fn checked(bytes: Bytes) -> Result<Doc<'static>> {
        super::validate(&bytes)?;
        Ok(Doc(Blob::Shared(bytes)))
    }

    pub fn empty() -> Doc<'static> {
        Doc(Blob::Borrowed(EMPTY))
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    pub fn is_empty(&self) -> bool {
        let bytes = self.as_bytes();
        bytes.len() <= 5 || (bytes.get(4) == Some(&kind::PLACE) && Element::at(bytes, 4).is_none())
    }

    pub fn borrow(&self) -> Doc<'_> {
        Doc(self.0.borrow())
    }

    pub fn into_owned(self) -> Doc<'static> {
        Doc(self.0.into_owned())
    }

    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }

    pub fn iter(&self) -> Fields<'a> {
        Fields { blob: self.0.clone(), position: 4 }
    }

    /// The first field of that name, on this level.
    pub fn get(&self, name: &str) -> Option<Value<'a>> {
        let bytes = self.as_bytes();
        let mut position = 4;
        while let Some(element) = Element::at(bytes, position) {
            if bytes.get(element.name.clone()) == Some(name.as_bytes()) {
                return Some(value_at(&self.0, &element));
            }
            position = element.end;
        }
        None
    }

    pub fn contains(&self, name: &str) -> bool {
        self.borrow().get(name).is_some()
    }
}

impl<'a> Array<'a> {
    pub fn empty() -> Array<'static> {
        Array(Blob::Borrowed(EMPTY))
    }

    /// See [`Doc::trusted`].
    pub fn trusted(bytes: &'a [u8]) -> Self {
        Array(Blob::Borrowed(bytes))
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    pub fn is_empty(&self) -> bool {
        self.as_bytes().len() <= 5
    }

    pub fn borrow(&self) -> Array<'_> {
        Array(self.0.borrow())
    }

    pub fn into_owned(self) -> Array<'static> {
        Array(self.0.into_owned())
    }

    pub fn iter(&self) -> Items<'a> {
        Items(Fields { blob: self.0.clone(), position: 4 })
    }

    /// The elements with the names they are stored under, for [`Fields::next_raw`].
    pub fn raw_iter(&self) -> Fields<'a> {
        Fields { blob: self.0.clone(), position: 4 }
    }

    /// How many elements there are; walks the whole array.
    pub fn count(&self) -> usize {
        let bytes = self.as_bytes();
        let (mut count, mut position) = (0, 4);
        while let Some(element) = Element::at(bytes, position) {
            position = element.end;
            count += 1;
        }
        count
    }

    pub fn get(&self, index: usize) -> Option<Value<'a>> {
        let bytes = self.as_bytes();
        let mut position = 4;
        for _ in 0..index {
            position = Element::at(bytes, position)?.end;
        }
        Element::at(bytes, position).map(|element| value_at(&self.0, &element))
    }
}

/// The fields of a document, in order.
pub struct Fields<'a> {
    blob: Blob<'a>,
    position: usize,
}

impl<'a> Fields<'a> {
    /// Where the next element begins, in the bytes of the whole document: what lies between two positions is whole elements.
    pub fn position(&self) -> usize {
        self.position
    }

    /// The next element without looking at its value: its name, type byte and the bytes of its value.
    pub fn next_raw(&mut self) -> Option<(Text<'a>, u8, Blob<'a>)> {
        let element = Element::at(self.blob.as_slice(), self.position)?;
        Some(self.pass(&element))
    }

    /// As [`Fields::next_raw`], the places of removed fields included, which are of type [`kind::PLACE`].
    pub(crate) fn next_slot(&mut self) -> Option<(Text<'a>, u8, Blob<'a>)> {
        let element = Element::slot_at(self.blob.as_slice(), self.position)?;
        Some(self.pass(&element))
    }

    #[inline]
    fn pass(&mut self, element: &Element) -> (Text<'a>, u8, Blob<'a>) {
        self.position = element.end;
        (Text(self.blob.slice(element.name.clone())), element.kind, self.blob.slice(element.start..element.end))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Text<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let element = Element::at(self.blob.as_slice(), self.position)?;
        self.position = element.end;
        Some((Text(self.blob.slice(element.name.clone())), value_at(&self.blob, &element)))
    }
}

/// The elements of an array, in order.
pub struct Items<'a>(Fields<'a>);

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let element = Element::at(self.0.blob.as_slice(), self.0.position)?;
        self.0.position = element.end;
        Some(value_at(&self.0.blob, &element))
    }
}

/// Where one element lies.
#[derive(Clone)]
pub(crate) struct Element {
    pub(crate) kind: u8,
    pub(crate) name: std::ops::Range<usize>,
    /// The value's bytes are `start..end`; the next element begins at `end`.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Element {
    /// The element that begins at `position`, or behind the places there; nothing at the final NUL or where the bytes are torn.
    #[inline]
    pub(crate) fn at(bytes: &[u8], position: usize) -> Option<Element> {
        let element = Element::slot_at(bytes, position)?;
        if element.kind == kind::PLACE { Element::behind(bytes, element) } else { Some(element) }
    }

    #[cold]
    fn behind(bytes: &[u8], mut element: Element) -> Option<Element> {
        while element.kind == kind::PLACE {
            element = Element::slot_at(bytes, element.end)?;
        }
        Some(element)
    }

    /// As [`Element::at`], a place included.
    #[inline]
    pub(crate) fn slot_at(bytes: &[u8], position: usize) -> Option<Element> {
        let kind = *bytes.get(position)?;
        if kind == 0 {
            return None;
        }
        let name_start = position + 1;
        let name_length = short_nul(bytes.get(name_start..)?)?;
        let start = name_start + name_length + 1;
        let length = match value_length(kind, bytes, start) {
            Some(length) => length,
            None if kind == kind::PLACE => 0,
            None => return None,
        };
        let end = start.checked_add(length)?;
        (end < bytes.len()).then_some(Element { kind, name: name_start..name_start + name_length, start, end })
    }
}

/// Names are short: a plain loop beats a call into memchr for the first bytes.
#[inline]
fn short_nul(bytes: &[u8]) -> Option<usize> {
    match bytes.iter().take(16).position(|byte| *byte == 0) {
        Some(at) => Some(at),
        None => memchr::memchr(0, bytes),
    }
}

#[inline]
pub(crate) fn read_i32(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(i32::from_le_bytes)
}

fn read_u64(bytes: &[u8]) -> u64 {
    bytes.get(..8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes).unwrap_or_default()
}

/// How many bytes the value of `kind` takes at `start`.
#[inline]
pub(super) fn value_length(kind: u8, bytes: &[u8], start: usize) -> Option<usize> {
    let length_at = |at: usize| read_i32(bytes, at).and_then(|length| usize::try_from(length).ok());
    Some(match kind {
        kind::DOUBLE | kind::DATE_TIME | kind::TIMESTAMP | kind::INT64 => 8,
        kind::INT32 => 4,
        kind::STRING | kind::CODE | kind::SYMBOL => length_at(start)?.checked_add(4)?,
        kind::DOCUMENT | kind::ARRAY | kind::CODE_WITH_SCOPE => length_at(start)?,
        kind::BOOL => 1,
        kind::NULL | kind::UNDEFINED | kind::MIN_KEY | kind::MAX_KEY => 0,
        kind::OBJECT_ID => 12,
        kind::BINARY => length_at(start)?.checked_add(5)?,
        kind::DECIMAL => 16,
        kind::DB_POINTER => length_at(start)?.checked_add(16)?,
        kind::REGEX => {
            let pattern = memchr::memchr(0, bytes.get(start..)?)? + 1;
            let options = memchr::memchr(0, bytes.get(start + pattern..)?)? + 1;
            pattern + options
        }
        _ => return None,
    })
}

#[inline]
fn value_at<'a>(blob: &Blob<'a>, element: &Element) -> Value<'a> {
    decode(element.kind, &blob.slice(element.start..element.end))
}

/// The value of type `kind` whose bytes are `blob`. Torn bytes read as null.
pub(crate) fn decode<'a>(kind: u8, blob: &Blob<'a>) -> Value<'a> {
    let bytes = blob.as_slice();
    let text = |from: usize, to: usize| Text(blob.slice(from..to));
    let length = bytes.len();
    match kind {
        kind::DOUBLE => Value::Double(f64::from_bits(read_u64(bytes))),
        kind::STRING => Value::String(text(4, length.saturating_sub(1).max(4))),
        kind::DOCUMENT => Value::Document(Doc(blob.clone())),
        kind::ARRAY => Value::Array(Array(blob.clone())),
        kind::BINARY => match bytes.get(4) {
            Some(subtype) => Value::Binary { subtype: *subtype, bytes: blob.slice(5..length) },
            None => Value::Null,
        },
        kind::UNDEFINED => Value::Undefined,
        kind::OBJECT_ID => Value::ObjectId(bytes.try_into().unwrap_or_default()),
        kind::BOOL => Value::Bool(bytes.first().is_some_and(|byte| *byte != 0)),
        kind::DATE_TIME => Value::DateTime(read_u64(bytes).cast_signed()),
        kind::REGEX => {
            let pattern = memchr::memchr(0, bytes).unwrap_or_default();
            Value::Regex {
                pattern: text(0, pattern),
                options: text(pattern + 1, length.saturating_sub(1).max(pattern + 1)),
            }
        }
        kind::DB_POINTER => Value::DbPointer {
            namespace: text(4, length.saturating_sub(13).max(4)),
            id: bytes.get(length.saturating_sub(12)..).and_then(|id| id.try_into().ok()).unwrap_or_default(),
        },
        kind::CODE => Value::Code(text(4, length.saturating_sub(1).max(4))),
        kind::SYMBOL => Value::Symbol(text(4, length.saturating_sub(1).max(4))),
        kind::CODE_WITH_SCOPE => {
            let code = read_i32(bytes, 4).and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
            Value::CodeWithScope {
                code: text(8, (8 + code).saturating_sub(1).max(8)),
                scope: Doc(blob.slice(8 + code..length)),
            }
        }
        kind::INT32 => Value::Int32(read_i32(bytes, 0).unwrap_or_default()),
        kind::TIMESTAMP => Value::Timestamp(read_u64(bytes)),
        kind::INT64 => Value::Int64(read_u64(bytes).cast_signed()),
        kind::DECIMAL => Value::Decimal(Decimal128::from_bytes(bytes.try_into().unwrap_or_default())),
        kind::MIN_KEY => Value::MinKey,
        kind::MAX_KEY => Value::MaxKey,
        _ => Value::Null,
    }
}

impl std::fmt::Debug for Doc<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl std::fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Edges only: tests, extended JSON, generated replies.
impl From<&bson::Document> for Doc<'static> {
    fn from(document: &bson::Document) -> Self {
        document.to_vec().map(|bytes| Doc(Blob::from(bytes))).unwrap_or_else(|_| Doc::empty())
    }
}

impl From<bson::Document> for Doc<'static> {
    fn from(document: bson::Document) -> Self {
        Doc::from(&document)
    }
}

impl TryFrom<&Doc<'_>> for bson::Document {
    type Error = Error;
    fn try_from(doc: &Doc<'_>) -> Result<Self> {
        bson::Document::from_reader(doc.as_bytes())
            .map_err(|error| Error::new(crate::Code::InvalidBSON, error.to_string()))
    }
}

impl PartialEq for Doc<'_> {
    /// Byte equality: same fields, order and types. For MongoDB's equality use `value::order`.
    fn eq(&self, other: &Doc<'_>) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}
