//! Reading: find, aggregate, count and distinct as cursors; and the documents that an update or a delete works on.

use crate::catalog::Collection;
use crate::view::{DOCUMENTS, ReadView, document, index_prefix};
use bytes::Bytes;
use document::filter::{Details, Filter};
use document::op::{Hint, SortSpec};
use document::{Doc, Env, Result};
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
