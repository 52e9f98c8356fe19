//! The documents that an update or a delete works on.

use super::rows;
use crate::catalog::Collection;
use crate::index::access::{Query, choose};
use crate::index::scan::{Row, Scan, Want};
use crate::transaction::snapshot::ReadSnapshot;
use bytes::Bytes;
use document::filter::{Details, Filter};
use document::op::{Hint, SortSpec};
use document::pipeline::sort_spec;
use document::text::carried::with_score;
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

/// A document, the key it is stored under, and what the match found.
#[derive(Clone, Debug)]
pub struct MatchedDocument {
    pub key: Bytes,
    pub doc: Doc<'static>,
    pub details: Details,
}

impl From<Row> for MatchedDocument {
    fn from(row: Row) -> MatchedDocument {
        MatchedDocument { key: row.key, doc: row.doc, details: row.details }
    }
}

/// The matching documents of `collection`, each once, as `snapshot` shows them.
pub fn matching(
    snapshot: &ReadSnapshot,
    collection: &Arc<Collection>,
    query: Matching<'_>,
) -> Result<Box<dyn Iterator<Item = Result<MatchedDocument>> + Send>> {
    // The documents themselves must not carry a score: they are to be written.
    let by_score = query.sort.is_some_and(|sort| sort.reads_score() && sort.keys.len() > 1);
    let planned =
        Query { sort: query.sort.filter(|_| !by_score), hint: query.hint, ..Query::new(query.filter, query.env) };
    let plan = Arc::new(choose(collection, snapshot, planned, false)?.plan);
    rows::used(collection, &plan);
    let examined = query.env.examined.clone();
    if let Some(examined) = &examined {
        examined.planned(&plan);
    }
    let counts_keys = plan.reads_keys();
    let ordered = plan.ordered && !by_score;
    let mut scan = Scan::new(plan, Some(collection), query.env, Want::Documents)?.with_details(query.filter);
    let snapshot = snapshot.clone();
    let mut counted = scan.counters();
    let mut found = std::iter::from_fn(move || {
        let row = scan.next(&snapshot);
        if let Some(examined) = &examined {
            let now = scan.counters();
            let keys = if counts_keys { now.keys - counted.keys } else { 0 };
            examined.add(now.documents - counted.documents, keys);
            counted = now;
        }
        row.transpose().map(|row| row.map(MatchedDocument::from))
    });
    let Some(sort) = query.sort.filter(|_| !ordered) else { return Ok(Box::new(found)) };
    // Only keys and documents that are to be changed are held: a writer holds them anyway.
    let mut keyed = found.try_fold(Vec::new(), |mut all, found| {
        let found = found?;
        let scored = found.details.text_score.filter(|_| by_score).map(|score| with_score(&found.doc, score));
        let key = sort_spec::key(sort, scored.as_ref().unwrap_or(&found.doc))?;
        let key: Vec<_> = key.into_iter().map(document::Value::into_owned).collect();
        all.push((key, found));
        Ok::<_, document::Error>(all)
    })?;
    keyed.sort_by(|(a, _), (b, _)| sort_spec::compare(sort, a, b));
    Ok(Box::new(keyed.into_iter().map(|(_, found)| Ok(found))))
}
