//! `count`: without a filter from the collection's own count, else by entries where these are enough.

use super::pipeline::Source;
use super::rows::{self, Window};
use crate::access::Query;
use crate::scan::Want;
use document::op::Count;
use document::pipeline::{Pipeline, Stream};
use document::{Doc, DocWriter, Result, Value};

pub(crate) fn count(source: &Source, op: &Count) -> Result<Doc<'static>> {
    let moment = source.present.moment()?;
    let window = Window { skip: op.skip, limit: op.limit };
    let number = match moment.catalog.get(&op.ns) {
        None => 0,
        Some(found) if found.view().is_some() => {
            let pipeline = Pipeline::of_query(&op.filter, None, op.skip, op.limit);
            drained(&mut *source.run(&op.ns, pipeline, op.hint.as_ref())?)?
        }
        Some(collection) if is_known(op) => {
            let behind = collection.count().saturating_sub(op.skip);
            op.limit.map_or(behind, |limit| limit.min(behind))
        }
        Some(collection) => {
            let limit = window.reach();
            let query = Query { hint: op.hint.as_ref(), limit, ..Query::new(&op.filter, &source.env) };
            drained(&mut *rows::find(&source.present, collection, query, window, Want::Count)?.0)?
        }
    };
    let mut writer = DocWriter::new();
    writer.append("n", &Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)));
    Ok(writer.finish())
}

/// Whether a collection knows the answer.
pub(super) fn is_known(op: &Count) -> bool {
    op.filter.is_all() && op.hint.is_none()
}

fn drained(rows: &mut dyn Stream) -> Result<u64> {
    let mut number = 0;
    while rows.next()?.is_some() {
        number += 1;
    }
    Ok(number)
}
