//! Unpacking as a stage of a pipeline: [`ReadShape::decode`] as code, the view's stages for a real MongoDB.

use crate::rule::read::{Dialect, ReadShape};
use document::pipeline::{Expand, Pipeline};
use document::value::Path;
use document::{Array, Doc, Result};
use std::sync::Arc;

/// Stored documents in, logical documents out.
pub(crate) fn unpack(shape: Arc<dyn ReadShape>) -> Pipeline {
    let view = shape.view(Dialect::MongoDb);
    Pipeline::expanding(Arc::new(Unpack(shape)), view)
}

/// The same for a backend that runs the code: nothing is said in stages.
pub(crate) fn unpack_natively(shape: Arc<dyn ReadShape>) -> Pipeline {
    Pipeline { source: None, ..Pipeline::expanding(Arc::new(Unpack(shape)), Array::empty()) }
}

#[derive(Debug)]
struct Unpack(Arc<dyn ReadShape>);

impl Expand for Unpack {
    fn expand(&self, doc: &Doc<'_>, documents: &mut Vec<Doc<'static>>) -> Result<()> {
        self.0.decode(doc, &mut |logical| {
            documents.push(logical);
            Ok(())
        })
    }

    fn keeps(&self, path: &Path) -> bool {
        self.0.keeps(path)
    }
}
