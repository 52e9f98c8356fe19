//! `distinct`: the different values of a path, arrays on the way and at its end taken apart.

use super::distinct_scan;
use super::find::as_pipeline;
use super::pipeline::Source;
use super::rows::{self, Window};
use crate::access::Query;
use crate::catalog::{Collection, Index};
use crate::scan::Want;
use crate::view::ReadView;
use document::op::Distinct;
use document::pipeline::{Rows, empty};
use document::value::path::Part;
use document::value::{Path, key};
use document::{Code, Doc, DocWriter, Env, Error, Result, Value};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

const MAX_BYTES: usize = 16 << 20;

pub(crate) fn distinct(source: &Source, op: &Distinct) -> Result<Doc<'static>> {
    let moment = source.present.moment()?;
    let mut values = Values::default();
    let indexed = moment.catalog.get(&op.ns).and_then(|collection| Some((collection, distinct_index(collection, op)?)));
    if let Some((collection, index)) = indexed {
        distinct_scan::scan(&moment.view, collection, &index, &op.key.parts, &source.env, &mut values)?;
        return Ok(values.finish());
    }
    let mut rows: Rows = match moment.catalog.get(&op.ns) {
        None => empty(),
        Some(found) if found.view().is_some() => {
            let pipeline = as_pipeline(&op.filter, None, Window::default())?;
            source.run(&op.ns, pipeline, op.hint.as_ref())?
        }
        Some(collection) => {
            let query = Query { hint: op.hint.as_ref(), ..Query::new(&op.filter, &source.env) };
            rows::find(&source.present, collection, query, Window::default(), Want::Documents)?.0
        }
    };
    while let Some(doc) = rows.next()? {
        each_value(&Value::Document(doc.borrow()), &op.key.parts, &mut |value| values.add(value))?;
    }
    Ok(values.finish())
}

/// The index that answers a `distinct` by itself.
pub(crate) fn distinct_index(collection: &Collection, op: &Distinct) -> Option<Arc<Index>> {
    let alone = collection.view().is_none() && op.filter.is_all() && op.hint.is_none();
    distinct_scan::index_for(collection, &op.key.parts).filter(|_| alone)
}

/// How many different keys such an index has, and how many entries were looked at for them.
pub(crate) fn distinct_keys(
    view: &ReadView,
    collection: &Collection,
    index: &Index,
    path: &Path,
    env: &Env,
) -> Result<(u64, u64)> {
    let mut values = Values::default();
    let examined = distinct_scan::scan(view, collection, index, &path.parts, env, &mut values)?;
    Ok((u64::try_from(values.found.len()).unwrap_or(u64::MAX), examined))
}

/// Different values by their encoding: in order. Of equal ones the first that came is kept.
#[derive(Default)]
pub(super) struct Values {
    found: BTreeMap<Vec<u8>, Value<'static>>,
    /// What the reply takes, about.
    bytes: usize,
}

impl Values {
    fn finish(self) -> Doc<'static> {
        let mut writer = DocWriter::new();
        writer.append("values", &Value::Array(self.found.into_values().collect()));
        writer.finish()
    }

    pub(super) fn add(&mut self, value: &Value<'_>) -> Result<()> {
        let mut encoded = Vec::new();
        key::encode(value, &mut encoded);
        if let Entry::Vacant(vacant) = self.found.entry(encoded) {
            self.bytes += vacant.key().len();
            vacant.insert(value.borrow().into_owned());
            if self.bytes > MAX_BYTES {
                return Err(Error::new(Code::Location(17217), "distinct too big, 16mb cap"));
            }
        }
        Ok(())
    }
}

/// A number behind an array is an index; any other name goes into its documents.
pub(super) fn each_value(
    value: &Value<'_>,
    parts: &[Part],
    visit: &mut dyn FnMut(&Value<'_>) -> Result<()>,
) -> Result<()> {
    match (value, parts.split_first()) {
        (Value::Array(array), None) => array.iter().try_for_each(|item| visit(&item)),
        (value, None) => visit(value),
        (Value::Document(doc), Some((first, rest))) => match doc.get(&first.name) {
            Some(inner) => each_value(&inner, rest, visit),
            None => Ok(()),
        },
        (Value::Array(array), Some((first, rest))) => match first.index {
            Some(index) => array.get(index).map_or(Ok(()), |item| each_value(&item, rest, visit)),
            None => array
                .iter()
                .filter(|item| matches!(item, Value::Document(_)))
                .try_for_each(|item| each_value(&item, parts, visit)),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson, doc};

    #[test]
    fn arrays_are_taken_apart() {
        let check = |path: &str, doc: bson::Document, expected: Bson| {
            let mut values = Values::default();
            let value = Value::Document(Doc::from(doc));
            each_value(&value, &Path::new(path).parts, &mut |value| values.add(value)).unwrap();
            let found = Value::Array(values.found.into_values().collect());
            assert_eq!(found, Value::from(expected), "{path}");
        };
        check("a", doc! {"a": [1, 1.0, [2, 3], null]}, bson!([null, 1, [2, 3]]));
        check("a", doc! {"a": []}, bson!([]));
        check("a", doc! {"b": 1}, bson!([]));
        check("a.b", doc! {"a": [{"b": 1}, {"b": [2, 3]}, 5, {"c": 1}]}, bson!([1, 2, 3]));
        check("a.1", doc! {"a": [5, [6, 7]]}, bson!([6, 7]));
        check("a.0.b", doc! {"a": [{"b": 1}, {"b": 2}]}, bson!([1]));
    }
}
