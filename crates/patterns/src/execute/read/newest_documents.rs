//! Stored documents of any version as newest ones: as a stage of a pipeline that runs in this process, and behind a find.

use crate::active::seen_old::SeenOld;
use crate::execute::read::find_projection::FindProjection;
use crate::rule::Lens;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::filter::Filter;
use document::op::{Context, Namespace};
use document::pipeline::{Pipeline, Rows, Run, Stage, Stream};
use document::value::Path;
use document::{Doc, Env, Result};
use std::sync::Arc;

/// The pipeline of that one stage; its source says the same in MQL.
pub(super) fn stage(lens: &Arc<Lens>) -> Pipeline {
    Pipeline {
        stages: vec![Arc::new(ToNewest(lens.clone()))],
        sink: None,
        source: Some(lens.view().clone()),
        reads_score: false,
    }
}

#[derive(Debug)]
struct ToNewest(Arc<Lens>);

impl Stage for ToNewest {
    fn name(&self) -> &'static str {
        "$_internalPleachNewest"
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(NewestDocuments { lens: self.0.clone(), input, env: run.env.clone() }))
    }

    fn one_to_one(&self) -> bool {
        true
    }

    fn keeps(&self, path: &Path) -> bool {
        !self.0.changes(path)
    }
}

struct NewestDocuments {
    lens: Arc<Lens>,
    input: Rows,
    env: Env,
}

impl Stream for NewestDocuments {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        match self.input.next()? {
            Some(doc) => Ok(Some(self.lens.up(&doc, &self.env)?.unwrap_or(doc))),
            None => Ok(None),
        }
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}

/// What a find still has to do with the stored documents that it finds.
pub(super) struct FoundDocuments {
    pub(super) lens: Arc<Lens>,
    /// What newest documents must match; `None` if the stored ones were asked for exactly this.
    pub(super) filter: Option<Filter>,
    pub(super) skip: u64,
    pub(super) limit: Option<u64>,
    pub(super) projection: Option<FindProjection>,
    /// Where old documents are noted that are to be written back.
    pub(super) seen: Option<(Namespace, Arc<SeenOld>)>,
}

impl FoundDocuments {
    /// The document as it is shown; `None` if it does not match or is skipped.
    pub(super) fn shown(&mut self, stored: Doc<'static>, env: &Env) -> Result<Option<Doc<'static>>> {
        let brought_up = self.lens.up(&stored, env)?;
        let is_old = brought_up.is_some();
        let newest = brought_up.unwrap_or(stored);
        if let Some(filter) = &self.filter
            && !filter.matches(&newest, env)?
        {
            return Ok(None);
        }
        if let (true, Some((ns, seen)), Some(id)) = (is_old, &self.seen, newest.get("_id")) {
            seen.note(ns, id);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(None);
        }
        match &self.projection {
            Some(projection) => projection.apply(&newest, env).map(Some),
            None => Ok(Some(newest)),
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
            while !self.is_over {
                let batch = self.cursor.next(session, context, limit).await?;
                self.is_over = batch.exhausted;
                for stored in batch.documents {
                    if self.found.limit == Some(0) {
                        self.is_over = true;
                        break;
                    }
                    if let Some(shown) = self.found.shown(stored, &context.env)? {
                        self.found.limit = self.found.limit.map(|left| left - 1);
                        documents.push(shown);
                    }
                }
                self.is_over |= self.found.limit == Some(0);
                if !documents.is_empty() {
                    break;
                }
            }
            Ok(Batch { documents, exhausted: self.is_over })
        })
    }
}
