//! `system.profile` as clients see it: a collection that can be read, listed and dropped. Its documents are those that the profiler kept.

use super::COLLECTION;
use crate::dispatch::Call;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::filter::{Details, Filter};
use document::op::{Context, Count, Distinct, Find, Hint};
use document::pipeline::{from_documents, sorted};
use document::value::distinct::{Values, each_value};
use document::{Blob, Code, Doc, DocWriter, Env, Error, Result, Value};
use std::collections::VecDeque;

/// The documents of the command's collection, oldest first; `None` if it is another one.
pub(crate) fn entries(call: &Call<'_>) -> Option<Vec<Doc<'static>>> {
    if call.client.relay.is_some() || call.request.target.as_str() != Some(COLLECTION) {
        return None;
    }
    Some(call.server.profiler.entries(call.db()).unwrap_or_default())
}

/// What a find gives of them.
pub(crate) fn find(entries: Vec<Doc<'static>>, op: &Find, env: &Env) -> Result<Box<dyn Cursor>> {
    let mut found = matching(entries, &op.filter, env)?;
    if matches!(op.hint, Some(Hint::Natural { descending: true })) {
        found.reverse();
    }
    let mut rows = from_documents(found);
    if let Some(sort) = &op.sort {
        rows = sorted(rows, sort.clone(), None, env);
    }
    let skip = usize::try_from(op.skip).unwrap_or(usize::MAX);
    let limit = op.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let (mut passed, mut given) = (0, VecDeque::new());
    while given.len() < limit
        && let Some(doc) = rows.next()?
    {
        passed += 1;
        if passed <= skip {
            continue;
        }
        given.push_back(match &op.projection {
            Some(projection) => {
                let mut details = Details::default();
                op.filter.matches_with(&doc, env, &mut details)?;
                projection.apply(&doc, &details, env)?
            }
            None => doc,
        });
    }
    Ok(Box::new(Given(given)))
}

/// What a count says of them: `{ n }`.
pub(crate) fn count(entries: Vec<Doc<'static>>, op: &Count, env: &Env) -> Result<Doc<'static>> {
    let found = u64::try_from(matching(entries, &op.filter, env)?.len()).unwrap_or(u64::MAX);
    let behind = found.saturating_sub(op.skip);
    let number = op.limit.map_or(behind, |limit| limit.min(behind));
    let mut writer = DocWriter::new();
    writer.append("n", &Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)));
    Ok(writer.finish())
}

/// What a distinct says of them: `{ values }`.
pub(crate) fn distinct(entries: Vec<Doc<'static>>, op: &Distinct, env: &Env) -> Result<Doc<'static>> {
    let mut values = Values::default();
    for doc in matching(entries, &op.filter, env)? {
        each_value(&Value::Document(doc.borrow()), &op.key.parts, &mut |value| values.add(value))?;
    }
    Ok(values.finish())
}

/// The row of `listCollections`, if the collection is there.
pub(crate) fn listed(call: &Call<'_>, filter: &Filter, name_only: bool) -> Result<Option<Doc<'static>>> {
    let Some(uuid) = call.server.profiler.uuid(call.db()).filter(|_| call.client.relay.is_none()) else {
        return Ok(None);
    };
    let mut row = DocWriter::new();
    row.append("name", &Value::from(COLLECTION)).append("type", &Value::from("collection"));
    if !name_only {
        row.start_document("options").append("capped", &Value::Bool(true));
        row.append("size", &Value::Int32(i32::try_from(super::bounded_entries::BYTES).unwrap_or_default())).end();
        row.start_document("info").append("readOnly", &Value::Bool(false));
        row.append("uuid", &Value::Binary { subtype: 4, bytes: Blob::Borrowed(&uuid) }).end();
    }
    let row = row.finish();
    Ok(filter.matches(&row, &call.context.env)?.then_some(row))
}

/// Drops it, if the command names it: `{ nIndexesWas, ns }`.
pub(crate) fn dropped(call: &Call<'_>) -> Result<Option<Doc<'static>>> {
    let profiler = &call.server.profiler;
    if entries(call).is_none() {
        return Ok(None);
    }
    if profiler.settings(call.db()).setting.level > 0 {
        let message = "turn off profiling before dropping system.profile collection";
        return Err(Error::new(Code::IllegalOperation, message));
    }
    if !profiler.drop_entries(call.db()) {
        return Ok(None);
    }
    let mut writer = DocWriter::new();
    writer.append("nIndexesWas", &Value::Int32(0));
    writer.append("ns", &Value::from(format!("{}.{COLLECTION}", call.db())));
    Ok(Some(writer.finish()))
}

fn matching(entries: Vec<Doc<'static>>, filter: &Filter, env: &Env) -> Result<Vec<Doc<'static>>> {
    let mut found = Vec::new();
    for doc in entries {
        if filter.matches(&doc, env)? {
            found.push(doc);
        }
    }
    Ok(found)
}

/// A cursor over documents that are there.
struct Given(VecDeque<Doc<'static>>);

impl Cursor for Given {
    fn next<'a>(&'a mut self, _: &'a mut Session, _: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        let mut batch = Batch::default();
        let mut bytes = 0;
        while batch.documents.len() < limit.documents
            && let Some(doc) = self.0.pop_front()
        {
            bytes += doc.as_bytes().len();
            if bytes > limit.bytes && !batch.documents.is_empty() {
                self.0.push_front(doc);
                break;
            }
            batch.documents.push(doc);
        }
        batch.exhausted = self.0.is_empty();
        Box::pin(std::future::ready(Ok(batch)))
    }
}
