//! What a find still has to do with the documents that it finds where they are stored in several versions: it makes each one of the
//! version that is asked for, drops those that do not match then, skips, counts, and shows what was asked.

use crate::active::seen_old::SeenOld;
use crate::execute::read::find_projection::FindProjection;
use crate::rule::Lens;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::filter::Filter;
use document::op::{Context, Namespace};
use document::{Doc, Env, Result};
use std::sync::Arc;

/// The version in which documents are shown.
pub(super) enum ShownVersion {
    /// What is found is of any version.
    Newest(Arc<Lens>),
    /// What is found is of the newest.
    Older(Arc<Lens>, i32),
}

impl ShownVersion {
    /// The document in that version; `None` if it is as it was found.
    pub(super) fn of(&self, found: &Doc<'static>, env: &Env) -> Result<Option<Doc<'static>>> {
        match self {
            ShownVersion::Newest(lens) => lens.up(found, env),
            ShownVersion::Older(lens, version) => lens.seen(found, *version, env).map(Some),
        }
    }
}

pub(super) struct FoundDocuments {
    pub(super) version: ShownVersion,
    /// What documents of that version must match; `None` if those that are found were asked for exactly this.
    pub(super) filter: Option<Filter>,
    pub(super) skip: u64,
    pub(super) limit: Option<u64>,
    pub(super) projection: Option<FindProjection>,
    /// Where old documents are noted that are to be written back.
    pub(super) seen: Option<(Namespace, Arc<SeenOld>)>,
}

impl FoundDocuments {
    /// The document as it is shown; `None` if it does not match or is skipped.
    pub(super) fn shown(&mut self, found: Doc<'static>, env: &Env) -> Result<Option<Doc<'static>>> {
        let other = self.version.of(&found, env)?;
        let is_old = other.is_some();
        let document = other.unwrap_or(found);
        if let Some(filter) = &self.filter
            && !filter.matches(&document, env)?
        {
            return Ok(None);
        }
        if let (true, Some((ns, seen)), Some(id)) = (is_old, &self.seen, document.get("_id")) {
            seen.note(ns, id);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(None);
        }
        match &self.projection {
            Some(projection) => projection.apply(&document, env).map(Some),
            None => Ok(Some(document)),
        }
    }

    pub(super) fn behind(self, cursor: Box<dyn Cursor>) -> Box<dyn Cursor> {
        Box::new(FoundCursor { found: self, cursor, is_over: false })
    }
}

struct FoundCursor {
    found: FoundDocuments,
    cursor: Box<dyn Cursor>,
    is_over: bool,
}

impl Cursor for FoundCursor {
    fn next<'a>(&'a mut self, session: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(async move {
            let mut documents = Vec::new();
            while !self.is_over && documents.is_empty() {
                let batch = self.cursor.next(session, context, limit).await?;
                self.is_over = batch.exhausted;
                for found in batch.documents {
                    if self.found.limit == Some(0) {
                        break;
                    }
                    if let Some(shown) = self.found.shown(found, &context.env)? {
                        self.found.limit = self.found.limit.map(|left| left - 1);
                        documents.push(shown);
                    }
                }
                self.is_over |= self.found.limit == Some(0);
            }
            Ok(Batch { documents, exhausted: self.is_over })
        })
    }
}
