//! One field of a document by a dotted path that goes through documents only, never into arrays: how `$unwind` and `$lookup`
//! read and write their fields.

use crate::raw::{Doc, DocWriter, kind};
use crate::value::path::Part;
use crate::value::{Path, Value};

/// The value at `parts`; missing if an array or a scalar is on the way.
pub(super) fn get<'a>(doc: &Doc<'a>, parts: &[Part]) -> Value<'a> {
    match parts.split_first() {
        None => Value::Missing,
        Some((last, [])) => doc.get(&last.name).unwrap_or(Value::Missing),
        Some((first, rest)) => match doc.get(&first.name) {
            Some(Value::Document(inner)) => get(&inner, rest),
            _ => Value::Missing,
        },
    }
}

/// `doc` with `value` at `parts`, in the place of what was there, else at the end. Whatever is on the way and is no document
/// becomes one. A missing value removes the field.
pub(super) fn with(doc: &Doc<'_>, parts: &[Part], value: &Value<'_>) -> Doc<'static> {
    with_or_place(doc, parts, value, false)
}

/// As [`with`]; a field that is removed leaves its place if `places`.
pub(super) fn with_or_place(doc: &Doc<'_>, parts: &[Part], value: &Value<'_>, places: bool) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 64);
    copy_with(&mut writer, doc, parts, value, places);
    writer.finish()
}

fn copy_with(writer: &mut DocWriter, doc: &Doc<'_>, parts: &[Part], value: &Value<'_>, places: bool) {
    let Some((first, rest)) = parts.split_first() else { return };
    let mut found = false;
    let doc = doc.borrow();
    let mut fields = doc.iter();
    while let Some((name, of_kind, bytes)) = fields.next_slot() {
        if found || name.as_bytes() != first.name.as_bytes() {
            writer.append_raw(name.as_str(), of_kind, bytes.as_slice());
            continue;
        }
        found = true;
        let inner = if of_kind == kind::DOCUMENT { Doc(bytes) } else { Doc::empty() };
        put(writer, &first.name, &inner, rest, value, places);
    }
    if !found {
        put(writer, &first.name, &Doc::empty(), rest, value, places);
    }
}

fn put(writer: &mut DocWriter, name: &str, inner: &Doc<'_>, rest: &[Part], value: &Value<'_>, places: bool) {
    if rest.is_empty() {
        writer.append_or_place(name, value, places);
        return;
    }
    writer.start_document(name);
    copy_with(writer, inner, rest, value, places);
    writer.end();
}

/// Whether setting `set` leaves what is at `path` as it is. Arrays and scalars on the way to `set` become documents, so that
/// only another top-level field is safe.
pub(super) fn leaves(set: &Path, path: &Path) -> bool {
    set.first() != path.first()
}

/// As [`with`], but what is changed moves to the end, on every level.
pub(super) fn at_end(doc: &Doc<'_>, parts: &[Part], value: &Value<'_>) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 64);
    copy_at_end(&mut writer, doc, parts, value);
    writer.finish()
}

fn copy_at_end(writer: &mut DocWriter, doc: &Doc<'_>, parts: &[Part], value: &Value<'_>) {
    let Some((first, rest)) = parts.split_first() else { return };
    let (doc, mut inner) = (doc.borrow(), Doc::empty());
    let mut fields = doc.iter();
    while let Some((name, of_kind, bytes)) = fields.next_raw() {
        if name.as_bytes() != first.name.as_bytes() {
            writer.append_raw(name.as_str(), of_kind, bytes.as_slice());
        } else if of_kind == kind::DOCUMENT {
            inner = Doc(bytes);
        }
    }
    if rest.is_empty() {
        writer.append(&first.name, value);
        return;
    }
    writer.start_document(&first.name);
    copy_at_end(writer, &inner, rest, value);
    writer.end();
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{bson, doc};

    #[test]
    fn fields_are_set_through_documents_only() {
        let check = |doc: bson::Document, path: &str, value: Value<'static>, expected: bson::Document| {
            assert_eq!(with(&Doc::from(doc), &Path::new(path).parts, &value), Doc::from(expected), "{path}");
        };
        check(doc! { "a": 1, "b": 1 }, "a", Value::Int32(2), doc! { "a": 2, "b": 1 });
        check(doc! { "a": 1 }, "b", Value::Int32(2), doc! { "a": 1, "b": 2 });
        check(doc! { "a": { "x": 1, "y": 1 } }, "a.x", Value::Int32(2), doc! { "a": { "x": 2, "y": 1 } });
        check(doc! { "a": [1], "c": 3 }, "a.b.c", Value::Int32(2), doc! { "a": { "b": { "c": 2 } }, "c": 3 });
        check(doc! { "a": { "x": 1 }, "b": 1 }, "a.x", Value::Missing, doc! { "a": {}, "b": 1 });
    }

    #[test]
    fn a_changed_field_may_move_to_the_end() {
        let doc = Doc::from(doc! { "a": { "x": 1, "y": 1 }, "b": 1 });
        let moved = at_end(&doc, &Path::new("a.x").parts, &Value::Int32(2));
        assert_eq!(moved, Doc::from(doc! { "b": 1, "a": { "y": 1, "x": 2 } }));
    }

    #[test]
    fn arrays_are_not_walked() {
        let doc = Doc::from(doc! { "a": { "b": [ { "c": 1 } ] } });
        assert_eq!(get(&doc, &Path::new("a.b").parts), Value::from(bson!([{ "c": 1 }])));
        assert!(get(&doc, &Path::new("a.b.c").parts).is_missing());
        assert!(get(&doc, &Path::new("a.b.0").parts).is_missing());
    }
}
