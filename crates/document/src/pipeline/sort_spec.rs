//! Sort patterns: parsing `{ a: 1, "b.c": -1 }`, the sort key of a document, and the order of two keys.
//!
//! A missing field sorts as null, an empty array as undefined. A document with an array on a sorted path has one key per
//! element, over all paths together as in an index, and takes the least of them in the order of the pattern: so
//! ascending it sorts by its least element, descending by its greatest.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::op::{SortKey, SortSpec};
use crate::raw::Doc;
use crate::text::carried;
use crate::value::expand::{self, Refused, Visit, walk};
use crate::value::path::Part;
use crate::value::{Path, Value, order, show};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// As in a compound index.
const MAX_KEYS: usize = 32;

/// One value per key of the pattern; never missing.
pub type SortKeyValues<'a> = SmallVec<[Value<'a>; 2]>;

/// Parses a pattern of `find` or `$sort`. One without keys is for the caller to judge: `find` takes it, `$sort` does not.
pub fn parse(spec: &Doc<'_>) -> Result<SortSpec> {
    let mut keys = Vec::new();
    for (name, value) in spec.iter() {
        let descending = match &value {
            Value::Document(meta) if is_text_score(meta) => {
                keys.push(SortKey::by_score());
                continue;
            }
            Value::Document(meta) => return Err(refuse_meta(meta)),
            number if number.is_number() => direction(number).ok_or_else(|| {
                Error::new(Code::Location(15975), "$sort key ordering must be 1 (for ascending) or -1 (for descending)")
            })?,
            other => {
                return Err(Error::new(
                    Code::Location(15974),
                    format!("Illegal key in $sort specification: {name}: {}", show::element(other)),
                ));
            }
        };
        keys.push(SortKey { path: Path::field_path(name.as_str())?, descending });
    }
    if keys.len() > MAX_KEYS {
        return Err(Error::new(Code::Location(13103), "too many compound keys"));
    }
    Ok(SortSpec { keys })
}

/// Whether it is descending; nothing unless it is 1 or -1. Doubles count as what they are cut to.
fn direction(number: &Value<'_>) -> Option<bool> {
    let cut = match number {
        Value::Double(double) => Value::Double(double.trunc()),
        other => other.borrow(),
    };
    [(1, false), (-1, true)]
        .into_iter()
        .find(|(one, _)| order::equal(&cut, &Value::Int32(*one)))
        .map(|(_, descending)| descending)
}

/// `{ $meta: "textScore" }`.
fn is_text_score(meta: &Doc<'_>) -> bool {
    let mut fields = meta.iter();
    matches!((fields.next(), fields.next()), (Some((name, what)), None) if name.as_str() == "$meta" && what.as_str() == Some("textScore"))
}

fn refuse_meta(meta: &Doc<'_>) -> Error {
    let Some((name, what)) = meta.iter().next().filter(|(name, _)| name.as_str() == "$meta") else {
        return Error::new(Code::Location(17312), "$meta is the only expression supported by $sort right now");
    };
    if meta.iter().count() > 1 {
        return Error::failed_to_parse("Cannot have additional keys in a $meta sort specification");
    }
    match what.as_str() {
        Some("randVal" | "searchScore" | "geoNearDistance" | "searchHighlights") => {
            Error::not_implemented("sorting by $meta")
        }
        _ => Error::new(Code::Location(31138), format!("Illegal $meta sort: {name}: {}", show::element(&what))),
    }
}

/// The order of two keys under the pattern.
pub fn compare(spec: &SortSpec, left: &[Value<'_>], right: &[Value<'_>]) -> Ordering {
    for ((key, a), b) in spec.keys.iter().zip(left).zip(right) {
        match order::compare(a, b) {
            Ordering::Equal => {}
            order => return if key.descending { order.reverse() } else { order },
        }
    }
    Ordering::Equal
}

/// The key that `doc` sorts by.
pub fn key<'a>(spec: &SortSpec, doc: &Doc<'a>) -> Result<SortKeyValues<'a>> {
    let mut values = SortKeyValues::new();
    for key in &spec.keys {
        match walk(doc, &key.path.parts) {
            (Value::Array(_), _) if !is_id_alone(spec) => return least_key(spec, doc),
            (Value::Missing, _) => values.push(absent(key, doc)),
            (value, _) => values.push(value),
        }
    }
    Ok(values)
}

/// What a key that is no field of the document sorts by.
fn absent<'a>(key: &SortKey, doc: &Doc<'_>) -> Value<'a> {
    match carried::score(doc) {
        Some(score) if key.is_by_score() => Value::Double(score),
        _ => Value::Null,
    }
}

/// Sorted by `_id` alone, an array (which only a stage can have put there) is one value.
fn is_id_alone(spec: &SortSpec) -> bool {
    matches!(spec.keys.as_slice(), [key] if matches!(key.path.parts.as_slice(), [part] if &*part.name == "_id"))
}

fn least_key<'a>(spec: &SortSpec, doc: &Doc<'a>) -> Result<SortKeyValues<'a>> {
    let paths: SmallVec<[&[Part]; 2]> = spec.keys.iter().map(|key| &*key.path.parts).collect();
    let mut least = Least { spec, values: None };
    expand::expand(doc, &paths, &mut least).map_err(|refused| match refused {
        Refused::Parallel { .. } => Error::bad_value("cannot sort with keys that are parallel arrays"),
        Refused::Ambiguous(error) => error,
    })?;
    let mut values = least.values.unwrap_or_default();
    // The score is the same for all elements.
    for (key, value) in spec.keys.iter().zip(&mut values).filter(|(key, _)| key.is_by_score()) {
        *value = absent(key, doc);
    }
    Ok(values)
}

struct Least<'a, 's> {
    spec: &'s SortSpec,
    values: Option<SortKeyValues<'a>>,
}

impl<'a> Visit<'a> for Least<'a, '_> {
    fn combination(&mut self, values: &[Value<'a>], _missing: usize) {
        if self.values.as_ref().is_none_or(|least| compare(self.spec, values, least) == Ordering::Less) {
            self.values = Some(values.iter().cloned().collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson, doc};

    /// Sorts the documents stably and gives their places.
    fn sorted(spec: bson::Document, docs: &[bson::Document]) -> Result<Vec<usize>> {
        let spec = parse(&Doc::from(spec))?;
        let docs: Vec<Doc<'static>> = docs.iter().map(Doc::from).collect();
        let keys = docs.iter().map(|doc| key(&spec, doc)).collect::<Result<Vec<_>>>()?;
        let mut places: Vec<usize> = (0..docs.len()).collect();
        places.sort_by(|a, b| compare(&spec, &keys[*a], &keys[*b]));
        Ok(places)
    }

    fn of(values: Bson) -> Vec<bson::Document> {
        values.as_array().unwrap().iter().map(|value| doc! { "a": value.clone() }).collect()
    }

    #[test]
    fn arrays_sort_by_their_least_key() {
        let check = |spec, docs: &[bson::Document], expected: &[usize]| {
            assert_eq!(sorted(spec, docs).unwrap(), expected, "{docs:?}");
        };
        let mut docs = of(bson!([null, [], [3, 1], 2, [[1]]]));
        docs.insert(1, doc! {});
        check(doc! { "a": 1 }, &docs, &[2, 0, 1, 3, 4, 5]);
        check(doc! { "a": -1 }, &docs, &[5, 3, 4, 0, 1, 2]);
        let pairs = of(bson!([[{ "b": 1, "c": 9 }, { "b": 2, "c": 0 }], [{ "b": 1, "c": 5 }]]));
        check(doc! { "a.b": 1, "a.c": 1 }, &pairs, &[1, 0]);
        check(doc! { "a.b": 1, "a.c": -1 }, &pairs, &[0, 1]);
        let through = of(bson!([[{ "b": 1 }, 5], { "b": null }, 5, [], [[]], [[{ "b": 3 }]], [{ "b": [] }]]));
        check(doc! { "a.b": 1 }, &through, &[6, 0, 1, 2, 3, 4, 5]);
        let inner = of(bson!([{ "b": [1, 2] }, [{ "b": [3, 4] }], [{ "b": [0, 9] }, { "b": 5 }]]));
        check(doc! { "a.b": 1 }, &inner, &[2, 0, 1]);
        check(doc! { "a.b": -1 }, &inner, &[2, 1, 0]);
    }

    #[test]
    fn an_array_as_the_only_id_is_one_value() {
        let docs = [doc! { "_id": [5] }, doc! { "_id": 1 }, doc! { "_id": { "a": 1 } }];
        assert_eq!(sorted(doc! { "_id": 1 }, &docs).unwrap(), [1, 2, 0]);
        assert_eq!(sorted(doc! { "_id": 1, "a": 1 }, &docs).unwrap(), [1, 0, 2]);
    }

    #[test]
    fn numbers_in_a_path_are_positions() {
        let docs = of(bson!([[5, 1], [3, 9], [[7, 1], 2], [[2, 8], 2], { "0": 4 }, [[[1]]], [[], 1]]));
        assert_eq!(sorted(doc! { "a.0": 1 }, &docs).unwrap(), [6, 1, 4, 0, 3, 2, 5]);
        assert_eq!(sorted(doc! { "a.0": -1 }, &docs).unwrap(), [5, 2, 3, 0, 4, 1, 6]);
        let docs = of(bson!([[{ "b": 5 }, { "b": 1 }], [{ "b": 3 }, { "b": 9 }], [{ "b": [7, 1] }], [[{ "b": 4 }]]]));
        assert_eq!(sorted(doc! { "a.0.b": 1 }, &docs).unwrap(), [2, 1, 3, 0]);
        let docs = of(bson!([[5, 1], [3, 9], [4, 0]]));
        assert_eq!(sorted(doc! { "a": 1, "a.0": 1 }, &docs).unwrap(), [2, 0, 1]);
    }

    #[test]
    fn errors_are_mongodbs() {
        let check = |spec: bson::Document, docs: &[bson::Document], code: i32, message: &str| {
            let error = sorted(spec, docs).unwrap_err();
            assert_eq!((error.code().number(), error.message()), (code, message));
        };
        check(doc! { "a": "x" }, &[], 15974, "Illegal key in $sort specification: a: \"x\"");
        check(doc! { "a": [1] }, &[], 15974, "Illegal key in $sort specification: a: [ 1 ]");
        let ordering = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
        check(doc! { "a": 0 }, &[], 15975, ordering);
        check(doc! { "a": "1.5".parse::<bson::Decimal128>().unwrap() }, &[], 15975, ordering);
        check(doc! { "a": f64::NAN }, &[], 15975, ordering);
        check(doc! { "a": {} }, &[], 17312, "$meta is the only expression supported by $sort right now");
        check(doc! { "a": { "$meta": 1 } }, &[], 31138, "Illegal $meta sort: $meta: 1");
        check(doc! { "": 1 }, &[], 40352, "FieldPath cannot be constructed with empty string");
        let many: bson::Document = (0..33).map(|n| (format!("a{n}"), Bson::Int32(1))).collect();
        check(many, &[], 13103, "too many compound keys");
        let parallel = [doc! { "a": [1, 2], "b": [1, 2] }];
        check(doc! { "a": 1, "b": 1 }, &parallel, 2, "cannot sort with keys that are parallel arrays");
        let ambiguous = "Ambiguous field name found in array (do not use numeric field names in embedded elements in an \
                         array), field: '0' for array: { 0: { 0: 5 }, 1: { b: 1 } }";
        check(doc! { "a.0": 1 }, &of(bson!([[{ "0": 5 }, { "b": 1 }]])), 16746, ambiguous);
    }

    #[test]
    fn directions_are_cut_doubles() {
        let spec = parse(&Doc::from(doc! { "a": 1.5, "b": -1.0, "c": -1i64 })).unwrap();
        assert_eq!(spec.keys.iter().map(|key| key.descending).collect::<Vec<_>>(), [false, true, true]);
    }
}
