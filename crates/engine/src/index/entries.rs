//! The entries that a document has in an index: multikey, sparse, partial, compound, long keys.
//!
//! MongoDB's rules: a missing field is null (nothing at all in a sparse index if every field is missing), an empty
//! array is undefined, an array gives one entry per different element, two arrays in one compound key are refused. A partial
//! index has entries only for documents that its filter matches. [`crate::store::keys`] says the bytes.

use super::text_entries;
use crate::catalog::Index;
use crate::store::keys::{EntryParts, finish_fields, index_prefix};
use bytes::Bytes;
use document::value::expand::{self, Refused, Visit};
use document::value::key::{self, TypeBits};
use document::value::path::Part;
use document::{Code, Doc, DocWriter, Env, Error, Result, Value};
use smallvec::SmallVec;

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
pub fn entries(index: &Index, doc: &Doc<'_>, id_key: &[u8], env: &Env) -> Result<Entries> {
    if let Some(partial) = &index.partial
        && !partial.matches(doc, env)?
    {
        return Ok(Entries::default());
    }
    if let Some(text) = &index.text {
        return text_entries::entries(index, text, doc, id_key);
    }
    let mut collected =
        Collected { index, id_key, entries: Vec::with_capacity(1), marks: Vec::new(), types: TypeBits::new() };
    if !collected.without_arrays(doc) {
        collected.marks.resize(index.keys.len(), 0);
        let paths: SmallVec<[&[Part]; 4]> = index.keys.iter().map(|key| &*key.path.parts).collect();
        expand::expand(doc, &paths, &mut collected).map_err(refused)?;
    }
    let Collected { mut entries, marks, .. } = collected;
    if entries.len() > 1 {
        entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        entries.dedup_by(|a, b| a.key == b.key);
    }
    Ok(Entries { entries, marks })
}

/// The values of an entry under the names of the index's keys: `{ a: 1, "b.c": "x" }`. Empty if they were cut.
pub fn values(index: &Index, entry: &Entry) -> Doc<'static> {
    let values = EntryParts::parse(&entry.key, &entry.value)
        .and_then(|parts| parts.values(index.keys.iter().map(|key| key.descending)))
        .unwrap_or_default();
    let mut writer = DocWriter::new();
    for (key, value) in index.keys.iter().zip(&values) {
        writer.append(&key.path.dotted(), value);
    }
    writer.finish()
}

fn refused(refused: Refused) -> Error {
    match refused {
        Refused::Parallel { second, first } => {
            Error::new(Code::CannotIndexParallelArrays, format!("cannot index parallel arrays [{second}] [{first}]"))
        }
        Refused::Ambiguous(error) => error,
    }
}

struct Collected<'d> {
    index: &'d Index,
    id_key: &'d [u8],
    entries: Vec<Entry>,
    marks: Vec<u64>,
    types: TypeBits,
}

impl Collected<'_> {
    /// The usual case, in one pass; false if there is an array on one of the paths.
    fn without_arrays(&mut self, doc: &Doc<'_>) -> bool {
        let mut values = SmallVec::<[Value<'_>; 4]>::new();
        let mut missing = 0;
        for key in &self.index.keys {
            match expand::walk(doc, &key.path.parts).0 {
                Value::Array(_) => return false,
                Value::Missing => {
                    missing += 1;
                    values.push(Value::Null);
                }
                value => values.push(value),
            }
        }
        self.combination(&values, missing);
        true
    }
}

impl<'a> Visit<'a> for Collected<'_> {
    fn combination(&mut self, values: &[Value<'a>], missing: usize) {
        if self.index.sparse && missing == values.len() {
            return;
        }
        let mut bytes = Vec::with_capacity(4 + 16 * values.len() + self.id_key.len());
        bytes.extend_from_slice(&index_prefix(self.index.id));
        self.types.clear();
        for (key, value) in self.index.keys.iter().zip(values) {
            let start = bytes.len();
            key::encode_typed(value, &mut bytes, &mut self.types);
            if key.descending {
                key::invert_from(&mut bytes, start);
            }
        }
        let value = finish_fields(&mut bytes, &self.types);
        let unique_length = bytes.len();
        bytes.extend_from_slice(self.id_key);
        self.entries.push(Entry { key: Bytes::from(bytes), unique_length, value });
    }

    fn array(&mut self, path: usize, component: usize) {
        if let Some(bits) = self.marks.get_mut(path) {
            *bits |= 1 << component.min(63);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson, doc};

    fn index(pattern: bson::Document, sparse: bool) -> Index {
        Index::from_spec(1, Doc::from(doc! { "key": pattern, "name": "x", "sparse": sparse }), true).unwrap()
    }

    fn keys(index: &Index, doc: bson::Document) -> Result<(Bson, Vec<u64>)> {
        let mut id = Vec::new();
        key::encode(&Value::Int32(1), &mut id);
        let entries = entries(index, &Doc::from(doc), &id, &Env::fixed())?;
        let keys = entries.entries.iter().map(|entry| {
            assert_eq!(entry.key[entry.unique_length..], id);
            let values = bson::Document::try_from(&values(index, entry)).unwrap();
            Bson::Array(values.into_iter().map(|(_, value)| value).collect())
        });
        Ok((Bson::Array(keys.collect()), entries.marks))
    }

    #[test]
    fn documents_give_the_entries_that_mongodb_gives() {
        let check = |pattern: bson::Document, doc: bson::Document, expected: Bson, marks: &[u64]| {
            let found = keys(&index(pattern.clone(), false), doc.clone()).unwrap();
            assert_eq!(found, (expected, marks.to_vec()), "{pattern} {doc}");
        };
        check(doc! {"a": 1}, doc! {"a": 5}, bson!([[5]]), &[]);
        check(doc! {"a": -1}, doc! {"a": 5i64}, bson!([[5i64]]), &[]);
        check(doc! {"a": 1}, doc! {}, bson!([[null]]), &[]);
        check(doc! {"a": 1}, doc! {"a": []}, bson!([[(Bson::Undefined)]]), &[1]);
        check(doc! {"a": 1}, doc! {"a": [2, 1, 2, 1.0]}, bson!([[1], [2]]), &[1]);
        check(doc! {"a": 1}, doc! {"a": [[1, 2], [3]]}, bson!([[[1, 2]], [[3]]]), &[1]);
        check(doc! {"a": 1}, doc! {"a": [[]]}, bson!([[[]]]), &[1]);
        check(doc! {"a.b": 1}, doc! {"a": [{"b": 1}, {"c": 2}]}, bson!([[null], [1]]), &[1]);
        check(doc! {"a.b": 1}, doc! {"a": []}, bson!([[null]]), &[1]);
        check(doc! {"a.b": 1}, doc! {"a": 7}, bson!([[null]]), &[]);
        check(doc! {"a.b": 1}, doc! {"a": {"b": [1, 2]}}, bson!([[1], [2]]), &[2]);
        check(doc! {"a.b": 1}, doc! {"a": [{"b": [1, 2]}, {"b": []}]}, bson!([[(Bson::Undefined)], [1], [2]]), &[3]);
        check(doc! {"a": 1, "b": 1}, doc! {"a": [1, 2], "b": "x"}, bson!([[1, "x"], [2, "x"]]), &[1, 0]);
        check(doc! {"a": 1, "b": -1}, doc! {"a": 1, "b": [1, 2]}, bson!([[1, 2], [1, 1]]), &[0, 1]);
        check(doc! {"a.b": 1, "a.c": 1}, doc! {"a": [{"b": 1, "c": 2}, {"b": 3}]}, bson!([[1, 2], [3, null]]), &[1, 1]);
        check(doc! {"a.0": 1}, doc! {"a": [5, 6]}, bson!([[5]]), &[0]);
        check(doc! {"a.0": 1}, doc! {"a": [[5, 7], 6]}, bson!([[[5, 7]]]), &[0]);
        check(doc! {"a.0.b": 1}, doc! {"a": [{"b": 5}, 6]}, bson!([[5]]), &[0]);
    }

    #[test]
    fn a_sparse_index_skips_documents_without_any_of_its_fields() {
        let sparse = index(doc! {"a": 1, "b": 1}, true);
        assert_eq!(keys(&sparse, doc! {"c": 1}).unwrap().0, bson!([]));
        assert_eq!(keys(&sparse, doc! {"b": 1}).unwrap().0, bson!([[null, 1]]));
        assert_eq!(keys(&sparse, doc! {"a": null}).unwrap().0, bson!([[null, null]]));
    }

    #[test]
    fn parallel_arrays_are_refused() {
        let check = |pattern: bson::Document, doc: bson::Document, message: &str| {
            let error = keys(&index(pattern, false), doc).unwrap_err();
            assert_eq!((error.code().number(), error.message()), (171, message));
        };
        check(doc! {"x.a": 1, "b": 1}, doc! {"x": {"a": [1]}, "b": [2]}, "cannot index parallel arrays [b] [a]");
        check(doc! {"a.b": 1, "a.c": 1}, doc! {"a": [{"b": [1], "c": [2]}]}, "cannot index parallel arrays [c] [b]");
    }
}
