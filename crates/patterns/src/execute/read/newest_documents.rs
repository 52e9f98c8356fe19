//! Stored documents of any version as newest ones, as a stage of a pipeline that runs in this process.

use crate::rule::Lens;
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
