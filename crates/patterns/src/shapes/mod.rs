//! The forms in which collections are stored, one folder each. A [`crate::rule::shape::Shape`] says how logical documents are stored
//! and how they are found again; [`evaluate`] does for all of them what a shape does not say as a statement of its own.

pub mod bucket;
pub(crate) mod evaluate;
pub(crate) mod hex;
pub(crate) mod outlier;
pub mod plain;
pub(crate) mod refused;
pub(crate) mod unpack;

pub use crate::rule::Stack;
pub use crate::rule::shape::Place;

use crate::rule::RegistryEntry;
use crate::rule::shape::StoredReads;
use document::backend::Answer;
use document::op::Find;
use document::{Doc, DocWriter, Env, Value};

/// All shapes but the plain one, sorted by name: what is listed is proven by all proofs and crash runs.
pub const SHAPES: &[RegistryEntry] = &[bucket::registered::ENTRY];

/// The forms of arrays whose documents stay where they are: proven by all proofs and crash runs, too.
pub const OUTLIERS: &[RegistryEntry] = &[outlier::registered::ENTRY];

/// The document with an `_id`, as the first field if it has none.
pub(crate) fn with_id(doc: &Doc<'static>, env: &Env) -> Doc<'static> {
    if doc.contains("_id") {
        return doc.clone();
    }
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 20);
    writer.append("_id", &Value::ObjectId((env.new_id)()));
    for (name, value) in doc.iter() {
        writer.append(name.as_str(), &value);
    }
    writer.finish()
}

/// All documents of a read.
pub(crate) fn find<'a>(at: &'a mut (dyn StoredReads + 'a), find: Find) -> Answer<'a, Vec<Doc<'static>>> {
    Box::pin(async move {
        let mut found = Vec::new();
        at.each(find, &mut |doc| {
            found.push(doc);
            Ok(true)
        })
        .await?;
        Ok(found)
    })
}
