//! The entries that a document has in an index: multikey, sparse, partial, compound, long keys.
//!
//! An entry's key is the index id, the encoded values, then the encoded `_id`; its value is what the values' bytes do not
//! say ([`document::value::key::TypeBits`]).

use crate::catalog::Index;
use bytes::Bytes;
use document::{Code, Doc, Env, Error, Result};

/// One entry of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Bytes,
    /// How many bytes of `key` come before the `_id`: two entries of a unique index may not agree on them.
    pub unique_length: usize,
    pub value: Bytes,
}

/// The entries of one document in one index, sorted and without duplicates, and the array marks that they need.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    pub entries: Vec<Entry>,
    /// Per key of the index: see [`Index::multikey`].
    pub marks: Vec<u64>,
}

/// What `doc`, stored under the encoded `_id` `id_key`, has in `index`.
pub fn entries(_index: &Index, _doc: &Doc<'_>, _id_key: &[u8], _env: &Env) -> Result<Entries> {
    Err(Error::new(Code::NotImplemented, "secondary indexes"))
}

/// The values of an entry under the names of the index's keys: `{ a: 1, "b.c": "x" }`.
pub fn values(_index: &Index, _entry: &Entry) -> Doc<'static> {
    Doc::empty()
}
