//! The references of sampled documents, each with what stands beside it, and the documents that they lead to.

use super::copies::Pair;
use super::row::{Paths, Row};
use crate::reader::{Bound, Reader};
use crate::relation::{Relation, Source};
use crate::values::{at, hash};
use document::filter::Filter;
use document::op::Find;
use document::{Doc, DocWriter, Result, Value};
use hashbrown::HashMap;

/// So many references of the items of one array are followed.
const MOST_ITEMS: usize = 100;
/// So many sources are read at once, and so many bytes of them.
const VALUES_PER_READ: usize = 200;
const BYTES_PER_READ: u64 = 16 << 20;

/// A reference in a document.
pub struct Reference {
    pub document: usize,
    pub value: Value<'static>,
    /// What is beside it: the document, the element of the array, or the elements of arrays of the same length.
    pub host: Doc<'static>,
}

/// The references of some documents, at most so many.
pub fn references<'d>(
    documents: impl IntoIterator<Item = &'d Doc<'static>>,
    relation: &Relation,
    most: usize,
) -> Vec<Reference> {
    let mut all = Vec::new();
    for (document, doc) in documents.into_iter().enumerate() {
        let mut add = |value: Value<'_>, host: Doc<'static>| {
            if !value.is_nullish() {
                all.push(Reference { document, value: value.into_owned(), host });
            }
        };
        below(doc, &relation.path, relation.ends_in_array, &mut add);
        if all.len() >= most {
            break;
        }
    }
    all.truncate(most);
    all
}

/// The part of the path that leads to the innermost array of documents, with what is left of it: `items` and `product.id`. Without
/// one, all of it is left.
pub fn split<'p>(doc: &Doc<'_>, path: &'p str) -> (&'p str, &'p str) {
    let mut place = 0;
    for (dot, _) in path.match_indices('.') {
        let above = path.get(..dot).unwrap_or_default();
        if leads_to_array(doc, above) {
            place = dot + 1;
        }
    }
    (path.get(..place.saturating_sub(1)).unwrap_or_default(), path.get(place..).unwrap_or_default())
}

fn leads_to_array(doc: &Doc<'_>, path: &str) -> bool {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match (doc.get(first), rest) {
        (Some(Value::Array(_)), "") => true,
        (Some(Value::Document(inner)), rest) if !rest.is_empty() => leads_to_array(&inner, rest),
        (Some(Value::Array(items)), rest) => {
            items.iter().find_map(|item| match item {
                Value::Document(inner) => Some(leads_to_array(&inner, rest)),
                _ => None,
            }) == Some(true)
        }
        _ => false,
    }
}

fn below(doc: &Doc<'_>, path: &str, is_list: bool, add: &mut dyn FnMut(Value<'_>, Doc<'static>)) {
    let owned = || doc.borrow().into_owned();
    if is_list {
        return of_list(doc, path, add);
    }
    let mut place = 0;
    loop {
        let dot = path.get(place..).and_then(|rest| rest.find('.')).map(|dot| place + dot);
        let above = path.get(..dot.unwrap_or(path.len())).unwrap_or_default();
        match (at(doc, above), dot) {
            (Some(Value::Array(items)), Some(dot)) => {
                let rest = path.get(dot + 1..).unwrap_or_default();
                for item in items.iter().take(MOST_ITEMS) {
                    if let Value::Document(inner) = &item {
                        below(inner, rest, false, add);
                    }
                }
                return;
            }
            (Some(value), None) => return add(value, owned()),
            (Some(_), Some(dot)) => place = dot + 1,
            (None, _) => return,
        }
    }
}

/// An array of plain ids: beside each are the elements at the same place of the arrays that are as long.
fn of_list(doc: &Doc<'_>, path: &str, add: &mut dyn FnMut(Value<'_>, Doc<'static>)) {
    let Some(Value::Array(ids)) = at(doc, path) else { return };
    let length = ids.count();
    let beside: Vec<(String, Vec<Value<'_>>)> = doc
        .iter()
        .filter_map(|(name, value)| match value {
            Value::Array(items) if items.count() == length && name.as_str() != path => {
                Some((name.as_str().to_owned(), items.iter().map(Value::into_owned).collect()))
            }
            _ => None,
        })
        .collect();
    for (place, id) in ids.iter().take(MOST_ITEMS).enumerate() {
        let mut host = DocWriter::new();
        for (name, items) in &beside {
            if let Some(item @ Value::Document(_)) = items.get(place) {
                host.append(name, item);
            }
        }
        add(id, host.finish());
    }
}

/// The documents that references lead to, by the hash of their key: from the sample if it is all there is, else read by index.
pub async fn sources(
    reader: &Reader<'_>,
    parent: &Source<'_>,
    key: &str,
    references: &[Reference],
    may_use_sample: bool,
) -> Result<HashMap<u64, Doc<'static>>> {
    let mut wanted: HashMap<u64, &Value<'static>> = HashMap::new();
    for reference in references {
        wanted.insert(hash(&reference.value), &reference.value);
    }
    let mut found = HashMap::new();
    let mut take = |doc: &Doc<'static>| {
        if let Some(key) = at(doc, key).map(|value| hash(&value)).filter(|key| wanted.contains_key(key)) {
            found.insert(key, doc.clone());
        }
    };
    if parent.is_whole && may_use_sample {
        parent.sample.iter().for_each(&mut take);
        return Ok(found);
    }
    if !parent.is_whole && !parent.statistics.is_indexed(key) {
        return Ok(found);
    }
    let mut values: Vec<(u64, Value<'static>)> = wanted.iter().map(|(key, value)| (*key, (*value).clone())).collect();
    values.sort_by_key(|(key, _)| *key);
    for chunk in values.chunks(VALUES_PER_READ) {
        let filter = Filter::among(key, chunk.iter().map(|(_, value)| value.clone()).collect());
        let bound = Bound { documents: VALUES_PER_READ as u64 * 2, bytes: BYTES_PER_READ };
        let read = reader.find(Find::matching(parent.ns.clone(), filter), bound).await?;
        read.iter().for_each(&mut take);
        if reader.cancel.is_set() {
            break;
        }
    }
    Ok(found)
}

/// References that lead to a document, as rows to compare. Rows of sources are shared by the references to them.
pub fn pairs(
    references: &[Reference],
    sources: &HashMap<u64, Doc<'static>>,
    host_paths: &mut Paths,
    source_paths: &mut Paths,
) -> (Vec<Pair>, Vec<Row>, Vec<u64>) {
    let (mut pairs, mut rows, mut keys) = (Vec::new(), Vec::new(), Vec::new());
    let mut places: HashMap<u64, usize> = HashMap::new();
    for reference in references {
        let key = hash(&reference.value);
        let Some(doc) = sources.get(&key) else { continue };
        let source = *places.entry(key).or_insert_with(|| {
            rows.push(Row::of(doc, source_paths));
            keys.push(key);
            rows.len() - 1
        });
        pairs.push(Pair { document: reference.document, host: Row::of(&reference.host, host_paths), source });
    }
    (pairs, rows, keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Document, doc};

    fn relation(path: &str, ends_in_array: bool) -> Relation {
        Relation {
            from: "a".into(),
            path: path.into(),
            is_many: false,
            arrays: 0,
            ends_in_array,
            to: "b".into(),
            key: "_id".into(),
            checked: 0,
            found: 0,
            beyond_chance: 1.0,
            confidence: 1.0,
        }
    }

    fn seen(doc: Document, path: &str, ends_in_array: bool) -> Vec<(Value<'static>, Document)> {
        let all = references(&[Doc::from(doc)], &relation(path, ends_in_array), 100);
        all.into_iter().map(|it| (it.value, Document::try_from(&it.host).unwrap())).collect()
    }

    #[test]
    fn references_are_seen_with_what_is_beside_them() {
        let plain = doc! { "_id": 1, "by": { "id": 7, "name": "x" } };
        assert_eq!(seen(plain.clone(), "by.id", false), [(Value::Int32(7), plain)]);
        let items = doc! { "items": [{ "p": { "id": 1 }, "n": "a" }, { "n": "b" }, { "p": { "id": 2 } }] };
        let expected =
            [(Value::Int32(1), doc! { "p": { "id": 1 }, "n": "a" }), (Value::Int32(2), doc! { "p": { "id": 2 } })];
        assert_eq!(seen(items.clone(), "items.p.id", false), expected);
        assert_eq!(split(&Doc::from(items), "items.p.id"), ("items", "p.id"));
        let tags = doc! { "tagIds": [5, 6], "tags": [{ "label": "a" }, { "label": "b" }], "other": [1] };
        let expected = [
            (Value::Int32(5), doc! { "tags": { "label": "a" } }),
            (Value::Int32(6), doc! { "tags": { "label": "b" } }),
        ];
        assert_eq!(seen(tags, "tagIds", true), expected);
        assert_eq!(seen(doc! { "by": null }, "by", false), []);
    }
}
