//! The entries that a document has in a text index: one per term, with its score, between the values of the other keys.
//!
//! A document without terms has none. The other keys may not hold arrays: all entries of a document have the same values there.

use super::entries::{Entries, Entry};
use crate::catalog::{Index, IndexKey, TextKeys};
use crate::store::keys::{finish_fields, index_prefix};
use bytes::Bytes;
use document::value::key::{self, TypeBits};
use document::value::path::Part;
use document::value::show;
use document::{Code, Doc, Error, Result, Value};

/// A longer term is cut in the index, to so many bytes with a hash at the end.
const MAX_TERM: usize = 256;
const KEPT_TERM: usize = MAX_TERM - 32;

/// What `doc` has in the text index.
pub(super) fn entries(index: &Index, text: &TextKeys, doc: &Doc<'_>, id_key: &[u8]) -> Result<Entries> {
    let others = index
        .keys
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != text.at && *at != text.at + 1)
        .map(|(at, key)| Ok((at, key, value_of(doc, key)?)))
        .collect::<Result<Vec<_>>>()?;
    let mut entries = Vec::new();
    let mut types = TypeBits::new();
    for (term, score) in text.spec.scores(doc)? {
        let mut bytes = Vec::with_capacity(32 + term.len() + id_key.len());
        bytes.extend_from_slice(&index_prefix(index.id));
        types.clear();
        let (before, after) = others.split_at(others.iter().take_while(|(at, ..)| *at < text.at).count());
        for (_, key, value) in before {
            append(&mut bytes, &mut types, value, key.descending);
        }
        append(&mut bytes, &mut types, &Value::from(&*indexed_term(&term)), false);
        append(&mut bytes, &mut types, &Value::Double(score), false);
        for (_, key, value) in after {
            append(&mut bytes, &mut types, value, key.descending);
        }
        let value = finish_fields(&mut bytes, &types);
        let unique_length = bytes.len();
        bytes.extend_from_slice(id_key);
        entries.push(Entry { key: Bytes::from(bytes), unique_length, value });
    }
    entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    // Where the other keys are so long that terms were cut off, two terms may be one entry.
    entries.dedup_by(|a, b| a.key == b.key);
    let mut marks = vec![0; index.keys.len()];
    if let (true, Some(mark)) = (entries.len() > 1, marks.get_mut(text.at)) {
        *mark = 1;
    }
    Ok(Entries { entries, marks })
}

/// The term as the index has it.
pub(super) fn indexed_term(term: &str) -> std::borrow::Cow<'_, str> {
    if term.len() <= MAX_TERM {
        return term.into();
    }
    let hash = xxhash_rust::xxh3::xxh3_128(term.as_bytes());
    let kept = term.char_indices().map(|(at, _)| at).take_while(|at| *at <= KEPT_TERM).last().unwrap_or_default();
    format!("{}{hash:032x}", term.get(..kept).unwrap_or_default()).into()
}

/// Appends one value of a key to an entry, or to the bound of a range.
pub(super) fn append(bytes: &mut Vec<u8>, types: &mut TypeBits, value: &Value<'_>, descending: bool) {
    let start = bytes.len();
    key::encode_typed(value, bytes, types);
    if descending {
        key::invert_from(bytes, start);
    }
}

/// The value of a key that is no text: null if it is missing, refused if there is an array.
fn value_of<'a>(doc: &Doc<'a>, key: &IndexKey) -> Result<Value<'a>> {
    fn walk<'a>(doc: &Doc<'a>, parts: &[Part]) -> Option<Value<'a>> {
        let (first, rest) = parts.split_first()?;
        match doc.get(&first.name) {
            None => Some(Value::Null),
            Some(Value::Array(_)) => None,
            Some(value) if rest.is_empty() => Some(value),
            Some(Value::Document(inner)) => walk(&inner, rest),
            Some(_) => Some(Value::Null),
        }
    }
    walk(doc, &key.path.parts).ok_or_else(|| {
        let message =
            format!("Field '{}' of text index contains an array in document: {}", key.path, show::document(doc));
        Error::new(Code::CannotBuildIndexKeys, message)
    })
}

#[cfg(test)]
mod tests {
    use super::super::entries::{entries, values};
    use super::*;
    use bson::{Bson, bson, doc};
    use document::Env;

    fn index(key: bson::Document) -> Index {
        let spec = doc! {
            "key": key, "name": "x", "weights": { "t": 1 }, "default_language": "english", "language_override": "language",
        };
        Index::from_spec(1, Doc::from(spec), true).unwrap()
    }

    fn keys(index: &Index, doc: bson::Document) -> Result<(Bson, Vec<u64>)> {
        let mut id = Vec::new();
        key::encode(&Value::Int32(1), &mut id);
        let entries = entries(index, &Doc::from(doc), &id, &Env::fixed())?;
        let keys = entries.entries.iter().map(|entry| {
            let values = bson::Document::try_from(&values(index, entry)).unwrap();
            Bson::Array(values.into_iter().map(|(_, value)| value).collect())
        });
        Ok((Bson::Array(keys.collect()), entries.marks))
    }

    #[test]
    fn each_term_has_an_entry() {
        let plain = index(doc! { "_fts": "text", "_ftsx": 1 });
        assert_eq!(keys(&plain, doc! { "t": "shop" }).unwrap(), (bson!([["shop", 1.1]]), vec![0, 0]));
        let two = bson!([["coffe", 1.25], ["shop", (2.0 / 3.0)]]);
        assert_eq!(keys(&plain, doc! { "t": "coffee shop coffee" }).unwrap(), (two, vec![1, 0]));
        assert_eq!(keys(&plain, doc! { "t": "the", "u": "x" }).unwrap().0, bson!([]));
        let compound = index(doc! { "p": -1, "_fts": "text", "_ftsx": 1, "s.x": 1 });
        let found = keys(&compound, doc! { "t": "shop", "p": 7, "s": { "x": "y" } }).unwrap().0;
        assert_eq!(found, bson!([[7, "shop", 1.1, "y"]]));
        assert_eq!(keys(&compound, doc! { "t": "shop", "s": 5 }).unwrap().0, bson!([[null, "shop", 1.1, null]]));
        let error = keys(&compound, doc! { "t": "shop", "s": { "x": [1] } }).unwrap_err();
        assert_eq!(error.code().number(), 201);
        let long = "x".repeat(400);
        let Bson::Array(found) = keys(&plain, doc! { "t": &long }).unwrap().0 else { panic!() };
        assert_eq!(found[0].as_array().unwrap()[0].as_str().unwrap().len(), MAX_TERM);
        assert_ne!(indexed_term(&long), indexed_term(&format!("{long}y")));
    }
}
