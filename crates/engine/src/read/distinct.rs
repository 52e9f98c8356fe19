//! `distinct`: the different values of a path, arrays on the way and at its end taken apart.

use super::distinct_scan;
use super::pipeline::ReadSource;
use super::rows::{self, Window};
use super::summary::{Summary, keys_of};
use crate::catalog::{Collection, Index};
use crate::index::access::{Query, text};
use crate::index::scan::Want;
use crate::transaction::snapshot::ReadSnapshot;
use document::op::Distinct;
use document::pipeline::{Pipeline, Rows, empty};
use document::value::Path;
use document::value::distinct::{Values, each_value};
use document::{Doc, Env, Result, Value};
use std::sync::Arc;

pub(crate) fn distinct(source: &ReadSource, op: &Distinct) -> Result<Doc<'static>> {
    let moment = source.present.moment()?;
    let mut values = Values::default();
    let indexed = moment.catalog.get(&op.ns).and_then(|collection| Some((collection, distinct_index(collection, op)?)));
    if let Some((collection, index)) = indexed {
        index.used();
        let keys = distinct_scan::scan(&moment.snapshot, collection, &index, &op.key.parts, &source.env, &mut values)?;
        if let Some(examined) = source.present.examined() {
            examined.planned(&Arc::new(Summary(format!("DISTINCT_SCAN {}", keys_of(&index)).into())));
            examined.add(0, keys);
        }
        return Ok(values.finish());
    }
    let found = moment.catalog.get(&op.ns);
    let bound = text::bind(found.map(|found| &**found), &op.ns, &op.filter, op.hint.as_ref())?;
    let filter = bound.as_ref().unwrap_or(&op.filter);
    let mut rows: Rows = match found {
        None => empty(),
        Some(found) if found.view().is_some() => {
            let pipeline = Pipeline::of_query(&op.filter, None, 0, None);
            source.run(&op.ns, pipeline, op.hint.as_ref())?
        }
        Some(collection) => {
            let query = Query { hint: op.hint.as_ref(), ..Query::new(filter, &source.env) };
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
    snapshot: &ReadSnapshot,
    collection: &Collection,
    index: &Index,
    path: &Path,
    env: &Env,
) -> Result<(u64, u64)> {
    let mut values = Values::default();
    let examined = distinct_scan::scan(snapshot, collection, index, &path.parts, env, &mut values)?;
    Ok((u64::try_from(values.len()).unwrap_or(u64::MAX), examined))
}
