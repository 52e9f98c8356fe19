//! `count`: without a filter from the collection's own count, else by entries where these are enough.

use super::pipeline::ReadSource;
use super::rows::{self, Window};
use super::summary::Summary;
use crate::index::access::{Query, text};
use crate::index::scan::Want;
use document::op::Count;
use document::pipeline::{Pipeline, Rows, Stream};
use document::{Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// A count that is planned.
pub(super) enum Counting {
    Known(u64),
    Rows { rows: Rows, quick: bool },
}

impl Counting {
    /// Whether it takes no time to speak of.
    pub(super) fn is_quick(&self) -> bool {
        matches!(self, Counting::Known(_) | Counting::Rows { quick: true, .. })
    }

    pub(super) fn end(self) -> Result<Doc<'static>> {
        let number = match self {
            Counting::Known(number) => number,
            Counting::Rows { mut rows, .. } => drained(&mut *rows)?,
        };
        let mut writer = DocWriter::new();
        writer.append("n", &Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)));
        Ok(writer.finish())
    }
}

pub(super) fn begin(source: &ReadSource, op: &Count) -> Result<Counting> {
    let moment = source.present.moment()?;
    let window = Window { skip: op.skip, limit: op.limit };
    Ok(match moment.catalog.get(&op.ns) {
        None => Counting::Known(0),
        Some(found) if found.view().is_some() => {
            let pipeline = Pipeline::of_query(&op.filter, None, op.skip, op.limit);
            let (rows, quick) = source.open(&op.ns, pipeline, op.hint.as_ref())?;
            Counting::Rows { rows, quick }
        }
        Some(collection) if is_known(op) => {
            if let Some(examined) = source.present.examined() {
                examined.planned(&Arc::new(Summary("RECORD_STORE_FAST_COUNT".into())));
            }
            let behind = collection.count().saturating_sub(op.skip);
            Counting::Known(op.limit.map_or(behind, |limit| limit.min(behind)))
        }
        Some(collection) => {
            let limit = window.reach();
            let bound = text::bind(Some(collection), &op.ns, &op.filter, op.hint.as_ref())?;
            let filter = bound.as_ref().unwrap_or(&op.filter);
            let query = Query { hint: op.hint.as_ref(), limit, ..Query::new(filter, &source.env) };
            let (rows, plan) = rows::find(&source.present, collection, query, window, Want::Count)?;
            Counting::Rows { rows, quick: super::is_small(collection) || super::reads_few(&plan, window) }
        }
    })
}

/// Whether a collection knows the answer.
fn is_known(op: &Count) -> bool {
    op.filter.is_all() && op.hint.is_none()
}

fn drained(rows: &mut dyn Stream) -> Result<u64> {
    let mut number = 0;
    while rows.next()?.is_some() {
        number += 1;
    }
    Ok(number)
}
