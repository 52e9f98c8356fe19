//! Reading: find, aggregate, count and distinct as cursors; and the documents that an update or a delete works on.

use crate::catalog::Collection;
use crate::engine::Engine;
use crate::view::{DOCUMENTS, ReadView, document, index_prefix};
use bytes::Bytes;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::filter::{Details, Filter};
use document::op::{Context, Hint, ReadOp, SortSpec};
use document::{Doc, Env, Error, Result};
use std::sync::Arc;

/// Which documents a writing statement works on, and in which order.
#[derive(Clone, Copy)]
pub struct Matching<'a> {
    pub filter: &'a Filter,
    pub sort: Option<&'a SortSpec>,
    pub hint: Option<&'a Hint>,
    pub env: &'a Env,
}

/// A document, the key it is stored under, and what matching it told.
#[derive(Clone, Debug)]
pub struct Found {
    pub key: Bytes,
    pub doc: Doc<'static>,
    pub details: Details,
}

/// The matching documents of `collection`, each once, as `view` shows them.
pub fn matching(
    view: &ReadView,
    collection: &Arc<Collection>,
    query: Matching<'_>,
) -> Result<Box<dyn Iterator<Item = Result<Found>> + Send>> {
    let range = view.range(collection.space()?, &index_prefix(DOCUMENTS), &index_prefix(DOCUMENTS + 1), false);
    let (filter, env) = (query.filter.clone(), query.env.clone());
    Ok(Box::new(range.filter_map(move |entry| {
        let found = entry.and_then(|(key, value)| {
            let doc = document(value)?;
            let mut details = Details::default();
            let matches = filter.matches_with(&doc, &env, &mut details)?;
            Ok(matches.then_some(Found { key, doc, details }))
        });
        found.transpose()
    })))
}

/// Opens a cursor.
pub(crate) fn open(engine: &Engine, session: &mut Session, _context: &Context, op: ReadOp) -> Result<Box<dyn Cursor>> {
    let ReadOp::Find(op) = op else { return Err(Error::not_implemented("this read")) };
    let moment = engine.moment(session)?;
    let mut rows: Box<dyn Iterator<Item = Result<Found>> + Send> = match moment.catalog.get(&op.ns) {
        None => Box::new(std::iter::empty()),
        Some(collection) => {
            let query =
                Matching { filter: &op.filter, sort: op.sort.as_ref(), hint: op.hint.as_ref(), env: &_context.env };
            match crate::write::by_id(&op.filter) {
                Some(id) => {
                    let key = crate::keys::document_key(id);
                    let doc = moment.view.get(collection.space()?, &key)?.map(document).transpose()?;
                    Box::new(doc.map(|doc| Ok(Found { key, doc, details: Details::default() })).into_iter())
                }
                None => matching(&moment.view, collection, query)?,
            }
        }
    };
    let mut documents = std::collections::VecDeque::new();
    let limit = op.limit.map_or(usize::MAX, |limit| limit as usize);
    for found in rows.by_ref().skip(op.skip as usize).take(limit) {
        documents.push_back(found?.doc);
    }
    Ok(Box::new(All(documents)))
}

struct All(std::collections::VecDeque<Doc<'static>>);

impl Cursor for All {
    fn next<'a>(&'a mut self, _: &'a mut Session, _: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        let count = limit.documents.min(self.0.len());
        let documents = self.0.drain(..count).collect();
        let exhausted = self.0.is_empty();
        Box::pin(async move { Ok(Batch { documents, exhausted }) })
    }
}
