//! Values put into a document at dotted paths, as `$set` in a pipeline does it: in the place of what was there, else at the
//! end; whatever is on the way and is no document becomes one; through an array, into each element.

pub use crate::rule::field::PathValue as Entry;
use document::raw::kind;
use document::{Doc, DocWriter, Value};

/// `doc` with all `entries`, in one copy. No path leads to or through another.
pub fn put(doc: &Doc<'_>, entries: &[Entry<'_>]) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 128);
    copy(&mut writer, doc, entries);
    writer.finish()
}

fn copy(writer: &mut DocWriter, doc: &Doc<'_>, entries: &[Entry<'_>]) {
    let doc = doc.borrow();
    let mut fields = doc.iter();
    while let Some((name, of_kind, bytes)) = fields.next_raw() {
        let mut inner = below(entries, name.as_str()).peekable();
        if inner.peek().is_none() {
            writer.append_raw(name.as_str(), of_kind, bytes.as_slice());
            continue;
        }
        let inner: Vec<Entry<'_>> = inner.collect();
        let current = match of_kind {
            kind::DOCUMENT => Value::Document(Doc::trusted(bytes.as_slice())),
            kind::ARRAY => Value::Array(document::Array::trusted(bytes.as_slice())),
            _ => Value::Missing,
        };
        write(writer, name.as_str(), &current, &inner);
    }
    for (at, (path, _)) in entries.iter().enumerate() {
        let Some(first) = path.first() else { continue };
        let earlier = entries.get(..at).unwrap_or_default();
        if doc.contains(&first.name) || below(earlier, &first.name).next().is_some() {
            continue;
        }
        let inner: Vec<Entry<'_>> = below(entries, &first.name).collect();
        write(writer, &first.name, &Value::Missing, &inner);
    }
}

/// What the entries say about the field `name`: the rest of their paths.
fn below<'e>(entries: &'e [Entry<'e>], name: &str) -> impl Iterator<Item = Entry<'e>> {
    entries.iter().filter_map(move |(path, value)| match path.split_first() {
        Some((first, rest)) if &*first.name == name => Some((rest, value.borrow())),
        _ => None,
    })
}

fn write(writer: &mut DocWriter, name: &str, current: &Value<'_>, entries: &[Entry<'_>]) {
    if let Some((_, value)) = entries.iter().find(|(rest, _)| rest.is_empty()) {
        writer.append(name, value);
        return;
    }
    match current {
        Value::Array(array) => {
            writer.start_array(name);
            for (index, item) in array.iter().enumerate() {
                let index = index.to_string();
                match &item {
                    Value::Document(_) | Value::Array(_) => write(writer, &index, &item, entries),
                    _ => write(writer, &index, &Value::Missing, entries),
                }
            }
            writer.end();
        }
        Value::Document(inner) => {
            writer.start_document(name);
            copy(writer, inner, entries);
            writer.end();
        }
        _ => {
            writer.start_document(name);
            copy(writer, &Doc::empty(), entries);
            writer.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson, doc};
    use document::pipeline::Pipeline;
    use document::pipeline::expr::Names;
    use document::value::Path;
    use document::{Array, Env};

    /// Puts, and compares with what `$set` gives.
    #[track_caller]
    fn check(doc: bson::Document, set: bson::Document) {
        let doc = Doc::from(doc);
        let Value::Array(stages) = Value::from(bson!([{ "$set": set.clone() }])) else { unreachable!() };
        let stages: Array<'static> = stages;
        let pipeline = Pipeline::parse_update(&stages, &mut Names::new()).unwrap();
        let paths: Vec<(Path, Value<'static>)> = set
            .into_iter()
            .map(|(path, value)| {
                let gone = value == Bson::String("$$REMOVE".to_owned());
                (Path::new(&path), if gone { Value::Missing } else { Value::from(value) })
            })
            .collect();
        let entries: Vec<Entry<'_>> = paths.iter().map(|(path, value)| (&path.parts[..], value.borrow())).collect();
        assert_eq!(put(&doc, &entries), pipeline.transform(&doc, &Env::fixed()).unwrap());
    }

    #[test]
    fn as_set_does() {
        check(doc! { "_id": 1, "a": 1, "z": 1 }, doc! { "a": 2 });
        check(doc! { "_id": 1, "z": 1 }, doc! { "a": 2, "b": 3 });
        check(doc! { "_id": 1 }, doc! { "a.b": 2, "a.c": 3, "x": 1, "a.d.e": 1 });
        check(doc! { "_id": 1, "a": { "b": 1, "x": 1 }, "z": 1 }, doc! { "a.b": 2, "a.c": 3 });
        check(doc! { "_id": 1, "a": 5 }, doc! { "a.b": 2 });
        check(doc! { "_id": 1, "a": [{ "b": 1 }, 7, [{ "q": 1 }]] }, doc! { "a.b": 2 });
        check(doc! { "_id": 1, "a": { "b": 1 }, "z": 1 }, doc! { "a.b": "$$REMOVE", "z": "$$REMOVE" });
        check(doc! { "_id": 1, "a": null }, doc! { "a.b.c": 1, "n": null });
    }
}
