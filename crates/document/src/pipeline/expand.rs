//! A stage that a layer above provides as code: each document becomes several. No client can write it; for a backend that is
//! a real MongoDB, the stages that say the same are its source.

use super::{Pipeline, Rows, Run, Stage, Stream};
use crate::env::Env;
use crate::error::Result;
use crate::raw::{Array, Doc};
use crate::value::Path;
use std::fmt::Debug;
use std::sync::Arc;

/// What such a stage does.
pub trait Expand: Debug + Send + Sync {
    /// Appends to `documents` what `doc` becomes, in order.
    fn expand(&self, doc: &Doc<'_>, documents: &mut Vec<Doc<'static>>) -> Result<()>;

    /// See [`Stage::keeps`].
    fn keeps(&self, _path: &Path) -> bool {
        false
    }
}

impl Pipeline {
    /// The pipeline that does what `expand` does; `source` says the same in stages.
    pub fn expanding(expand: Arc<dyn Expand>, source: Array<'static>) -> Pipeline {
        Pipeline { stages: vec![Arc::new(Expanding(expand))], sink: None, source: Some(source), reads_score: false }
    }
}

#[derive(Debug)]
struct Expanding(Arc<dyn Expand>);

impl Stage for Expanding {
    fn name(&self) -> &'static str {
        "$_internalPleachExpand"
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        let expand = Arc::clone(&self.0);
        Ok(Box::new(Expanded { expand, input, env: run.env.clone(), ready: Vec::new().into_iter() }))
    }

    fn keeps(&self, path: &Path) -> bool {
        self.0.keeps(path)
    }
}

struct Expanded {
    expand: Arc<dyn Expand>,
    input: Rows,
    env: Env,
    ready: std::vec::IntoIter<Doc<'static>>,
}

impl Stream for Expanded {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        loop {
            if let Some(doc) = self.ready.next() {
                return Ok(Some(doc));
            }
            // One document may become thousands, or none.
            (self.env.interrupt)()?;
            let Some(doc) = self.input.next()? else { return Ok(None) };
            let mut documents = Vec::new();
            self.expand.expand(&doc, &mut documents)?;
            self.ready = documents.into_iter();
        }
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}
