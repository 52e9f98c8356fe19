//! Newest documents as clients of an older version see them, as a stage of a pipeline that runs in this process.

use crate::rule::Lens;
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
