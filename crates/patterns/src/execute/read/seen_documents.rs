//! Newest documents as clients of an older version see them: as a stage of a pipeline, and behind a find.

use crate::execute::read::find_projection::FindProjection;
use crate::rule::Lens;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::filter::Filter;
use document::op::Context;
use document::pipeline::{Pipeline, Rows, Run, Stage, Stream};
use document::value::Path;
use document::{Doc, Env, Result};
use std::sync::Arc;

/// The pipeline of that one stage; its source says the same in MQL.
pub(super) fn stage(lens: &Arc<Lens>, version: i32) -> Pipeline {
    Pipeline {
        stages: vec![Arc::new(ToVersion { lens: lens.clone(), version })],
        sink: None,
        source: Some(lens.seen_stages(version)),
        reads_score: false,
    }
}

#[derive(Debug)]
struct ToVersion {
    lens: Arc<Lens>,
    version: i32,
}

impl Stage for ToVersion {
    fn name(&self) -> &'static str {
        "$_internalPleachVersion"
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(SeenRows { stage: self, input, env: run.env.clone() }))
    }

    fn one_to_one(&self) -> bool {
        true
    }

    fn keeps(&self, path: &Path) -> bool {
        !self.lens.changes_since(self.version, path)
    }
}

struct SeenRows {
    stage: Arc<ToVersion>,
    input: Rows,
    env: Env,
}

impl Stream for SeenRows {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let Some(doc) = self.input.next()? else { return Ok(None) };
        self.stage.lens.seen(&doc, self.stage.version, &self.env).map(Some)
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}

/// What a find still has to do with the newest documents that it finds.
pub(super) struct SeenDocuments {
    pub(super) lens: Arc<Lens>,
    pub(super) version: i32,
    /// What the client's documents must match; `None` if the newest ones were asked for exactly this.
    pub(super) left: Option<Filter>,
    pub(super) skip: u64,
    pub(super) limit: Option<u64>,
    pub(super) projection: Option<FindProjection>,
}

impl SeenDocuments {
    /// The document as it is shown; `None` if it does not match or is skipped.
    fn shown(&mut self, newest: &Doc<'static>, env: &Env) -> Result<Option<Doc<'static>>> {
        let seen = self.lens.seen(newest, self.version, env)?;
        if let Some(filter) = &self.left
            && !filter.matches(&seen, env)?
        {
            return Ok(None);
        }
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(None);
        }
        match &self.projection {
            Some(projection) => projection.apply(&seen, env).map(Some),
            None => Ok(Some(seen)),
        }
    }

    pub(super) fn behind(self, cursor: Box<dyn Cursor>) -> Box<dyn Cursor> {
        Box::new(SeenCursor { seen: self, cursor, is_over: false })
    }
}

struct SeenCursor {
    seen: SeenDocuments,
    cursor: Box<dyn Cursor>,
    is_over: bool,
}

impl Cursor for SeenCursor {
    fn next<'a>(&'a mut self, session: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(async move {
            let mut documents = Vec::new();
            while !self.is_over && documents.is_empty() {
                let batch = self.cursor.next(session, context, limit).await?;
                self.is_over = batch.exhausted;
                for newest in batch.documents {
                    if self.seen.limit == Some(0) {
                        break;
                    }
                    if let Some(shown) = self.seen.shown(&newest, &context.env)? {
                        self.seen.limit = self.seen.limit.map(|left| left - 1);
                        documents.push(shown);
                    }
                }
                self.is_over |= self.seen.limit == Some(0);
            }
            Ok(Batch { documents, exhausted: self.is_over })
        })
    }
}
