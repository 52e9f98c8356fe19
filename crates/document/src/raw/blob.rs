//! Bytes that are borrowed or shared: the storage of every string, document, array and binary value.

use bytes::Bytes;
use std::ops::Range;

/// A run of bytes, borrowed from a document or program, or shared by reference count. Cloning never copies the bytes.
#[derive(Clone)]
pub enum Blob<'a> {
    Borrowed(&'a [u8]),
    Shared(Bytes),
}

impl<'a> Blob<'a> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Blob::Borrowed(bytes) => bytes,
            Blob::Shared(bytes) => bytes,
        }
    }

    /// The part of it in `range`, sharing the same storage. Out of range is empty.
    pub fn slice(&self, range: Range<usize>) -> Blob<'a> {
        match self {
            Blob::Borrowed(bytes) => Blob::Borrowed(bytes.get(range).unwrap_or_default()),
            Blob::Shared(bytes) if range.start <= range.end && range.end <= bytes.len() => {
                Blob::Shared(bytes.slice(range))
            }
            Blob::Shared(_) => Blob::Borrowed(&[]),
        }
    }

    /// The same bytes borrowed from `self`: cheaper to walk than shared ones.
    pub fn borrow(&self) -> Blob<'_> {
        Blob::Borrowed(self.as_slice())
    }

    /// Bytes that outlive `'a`; copies only if they were borrowed.
    pub fn into_owned(self) -> Blob<'static> {
        Blob::Shared(self.into_bytes())
    }

    pub fn into_bytes(self) -> Bytes {
        match self {
            Blob::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
            Blob::Shared(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Blob<'static> {
    fn from(bytes: Vec<u8>) -> Self {
        Blob::Shared(Bytes::from(bytes))
    }
}

impl std::fmt::Debug for Blob<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x?}", self.as_slice())
    }
}

/// UTF-8 text in a [`Blob`]. Compare texts by [`Text::as_bytes`]: MongoDB's order of strings is the order of their bytes.
#[derive(Clone)]
pub struct Text<'a>(pub(crate) Blob<'a>);

impl<'a> Text<'a> {
    pub fn borrowed(text: &'a str) -> Self {
        Text(Blob::Borrowed(text.as_bytes()))
    }

    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// Documents are checked when they enter ([`super::validate`]), so the fallback is never seen in practice.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).unwrap_or("\u{FFFD}")
    }

    pub fn borrow(&self) -> Text<'_> {
        Text(self.0.borrow())
    }

    pub fn into_owned(self) -> Text<'static> {
        Text(self.0.into_owned())
    }
}

impl From<String> for Text<'static> {
    fn from(text: String) -> Self {
        Text(Blob::from(text.into_bytes()))
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text::borrowed(text)
    }
}

impl std::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl std::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
