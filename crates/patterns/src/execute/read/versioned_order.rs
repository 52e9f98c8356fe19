//! A page of newest documents in the order of a path that versions move: one find per stored version, each in the order of an index
//! and no longer than the page, put together in this process. A sort behind the lens would have to see every document first.

use crate::execute::read::found_documents::FoundDocuments;
use crate::rule::Lens;
use document::backend::{Answer, Backend, Batch, BatchLimit, Cursor, Session};
use document::op::{Context, Find, ReadOp, SortSpec};
use document::pipeline::sort_spec;
use document::value::key;
use document::{Doc, Result, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// Pages are kept in memory while they are put together.
const LONGEST_PAGE: u64 = 1_000;
const STORED: BatchLimit = BatchLimit { documents: 1_000, bytes: 16 << 20 };

/// The finds, those of older versions first: a document that is brought up meanwhile is found twice and not missed.
pub(super) struct OrderedFinds {
    pub(super) finds: Vec<Find>,
    sort: SortSpec,
    skip: u64,
    limit: u64,
    found: FoundDocuments,
}

/// `None` if the find has no short page, says which index to use, or is not in an order that stored documents have.
pub(super) fn plan(lens: &Arc<Lens>, find: &Find, found: impl FnOnce() -> FoundDocuments) -> Option<OrderedFinds> {
    let (sort, limit) = (find.sort.as_ref()?, find.limit?);
    let page = find.skip.saturating_add(limit);
    let is_plain = find.hint.is_none() && find.min.is_none() && find.max.is_none() && !find.return_key;
    if page > LONGEST_PAGE || !is_plain {
        return None;
    }
    let parts = lens.ordered(&find.filter, sort)?;
    let stored = parts.into_iter().map(|part| Find {
        filter: part.filter,
        sort: Some(part.sort),
        projection: None,
        skip: 0,
        limit: Some(page),
        ..find.clone()
    });
    let found = FoundDocuments { filter: None, skip: 0, limit: None, ..found() };
    Some(OrderedFinds { finds: stored.collect(), sort: sort.clone(), skip: find.skip, limit, found })
}

impl OrderedFinds {
    pub(super) fn found(&mut self) -> &mut FoundDocuments {
        &mut self.found
    }

    pub(super) async fn open(
        mut self,
        backend: &dyn Backend,
        session: &mut Session,
        context: &Context,
    ) -> Result<Box<dyn Cursor>> {
        let mut rows: Vec<Doc<'static>> = Vec::new();
        for find in std::mem::take(&mut self.finds) {
            let mut cursor = backend.read(session, context, ReadOp::Find(find)).await?;
            loop {
                let batch = cursor.next(session, context, STORED).await?;
                rows.extend(batch.documents);
                if batch.exhausted {
                    break;
                }
            }
        }
        let documents = self.page(rows, context)?;
        Ok(Box::new(Page { documents: documents.into_iter() }))
    }

    fn page(&mut self, stored: Vec<Doc<'static>>, context: &Context) -> Result<Vec<Doc<'static>>> {
        let env = &context.env;
        let mut rows = Vec::with_capacity(stored.len());
        for stored in stored {
            let newest = self.found.version.of(&stored, env)?;
            let shown = newest.as_ref().unwrap_or(&stored);
            let key: Vec<Value<'static>> =
                sort_spec::key(&self.sort, shown)?.into_iter().map(Value::into_owned).collect();
            rows.push((key, stored));
        }
        rows.sort_by(|a, b| sort_spec::compare(&self.sort, &a.0, &b.0));
        let mut ids = HashSet::new();
        let mut page = Vec::new();
        let (skip, end) = (self.skip, self.skip.saturating_add(self.limit));
        for (_, stored) in rows {
            let at = u64::try_from(ids.len()).unwrap_or(u64::MAX);
            if at == end {
                break;
            }
            let mut id = Vec::new();
            key::encode(&stored.get("_id").unwrap_or(Value::Missing), &mut id);
            if ids.insert(id) && at >= skip {
                page.extend(self.found.shown(stored, env)?);
            }
        }
        Ok(page)
    }
}

struct Page {
    documents: std::vec::IntoIter<Doc<'static>>,
}

impl Cursor for Page {
    fn next<'a>(&'a mut self, _: &'a mut Session, _: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        let (mut documents, mut bytes) = (Vec::new(), 0);
        while documents.len() < limit.documents && (documents.is_empty() || bytes < limit.bytes) {
            let Some(doc) = self.documents.next() else { break };
            bytes += doc.as_bytes().len();
            documents.push(doc);
        }
        let exhausted = self.documents.as_slice().is_empty();
        Box::pin(std::future::ready(Ok(Batch { documents, exhausted })))
    }
}
