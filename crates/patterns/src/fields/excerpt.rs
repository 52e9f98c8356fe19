//! Some fields of a document, under names of their own: what a copy holds of its source, and a window of a child. Natively and as an
//! expression over the document.

use crate::mql::{call, document, field};
use document::pipeline::expr::field_of_document;
use document::value::Path;
use document::{Doc, DocWriter, Value};
use std::sync::Arc;

/// `(name in the excerpt, path in the document)`, in the order of the excerpt.
#[derive(Clone, Debug, PartialEq)]
pub struct Excerpt {
    pub fields: Vec<(Arc<str>, Path)>,
}

impl Excerpt {
    pub fn new(fields: Vec<(Arc<str>, Path)>) -> Excerpt {
        Excerpt { fields }
    }

    /// What the document lacks is left out.
    pub fn of(&self, doc: &Doc<'_>) -> Doc<'static> {
        let mut writer = DocWriter::new();
        for (name, path) in &self.fields {
            writer.append(name, &field_of_document(doc, &path.parts));
        }
        writer.finish()
    }

    /// As an operator: a plain document would be a nested projection.
    pub fn expression(&self) -> Value<'static> {
        let copied = self.fields.iter().map(|(name, path)| (&**name, field(&path.dotted())));
        call("$mergeObjects", Value::Document(document(copied)))
    }

    /// What it reads of the document.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.fields.iter().map(|(_, path)| path)
    }
}
