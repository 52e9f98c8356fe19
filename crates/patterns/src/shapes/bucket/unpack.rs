//! Unpacking as a stage of a pipeline: [`Bucket::decode`] as code, the view's stages for a real MongoDB.

use crate::shapes::bucket::{Bucket, Dialect};
use document::pipeline::{Expand, Pipeline};
use document::value::Path;
use document::{Array, Doc, Result};
use std::sync::Arc;

impl Bucket {
    /// Stored documents in, logical documents out.
    pub fn unpack(self: &Arc<Self>) -> Pipeline {
        Pipeline::expanding(Arc::new(Unpack(Arc::clone(self))), self.view(Dialect::MongoDb))
    }

    /// The same for a backend that runs the code: nothing is said in stages.
    pub(crate) fn unpack_here(self: &Arc<Self>) -> Pipeline {
        let expanding = Pipeline::expanding(Arc::new(Unpack(Arc::clone(self))), Array::empty());
        Pipeline { source: None, ..expanding }
    }
}

#[derive(Debug)]
struct Unpack(Arc<Bucket>);

impl Expand for Unpack {
    fn expand(&self, doc: &Doc<'_>, documents: &mut Vec<Doc<'static>>) -> Result<()> {
        self.0.decode(doc, &mut |logical| {
            documents.push(logical);
            Ok(())
        })
    }

    /// A series is stored beside the `_id` just as the client knows it, unless as bytes.
    fn keeps(&self, path: &Path) -> bool {
        !self.0.packed && self.0.by.iter().any(|series| !series.hex && *series.field == *path.first())
    }
}
