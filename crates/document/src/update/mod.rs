//! Updates: operators, pipelines and replacements, parsed once, applied to raw documents.

use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::{Details, Filter};
use crate::pipeline::expr::Names;
use crate::raw::Doc;
use crate::value::Value;

/// A compiled update.
#[derive(Clone, Debug)]
pub struct Update {}

/// The result of applying an update to a document.
#[derive(Clone, Debug)]
pub enum Applied {
    Unchanged,
    Changed(Doc<'static>),
}

impl Update {
    /// `spec` is a document (operators or a replacement) or an array (a pipeline).
    pub fn parse(_spec: &Value<'_>, _array_filters: &[Doc<'_>], _names: &mut Names) -> Result<Update> {
        Err(Error::not_implemented("update"))
    }

    /// Whether it is a replacement document (refused with `multi`).
    pub fn is_replacement(&self) -> bool {
        false
    }

    /// The document after the update. `details` come from the filter's match, for the positional `$`.
    pub fn apply(&self, _doc: &Doc<'_>, _details: &Details, _env: &Env) -> Result<Applied> {
        Err(Error::not_implemented("update"))
    }

    /// The document that an upsert inserts: the filter's equalities, then the update, then `_id`.
    pub fn upsert(&self, _filter: &Filter, _env: &Env) -> Result<Doc<'static>> {
        Err(Error::not_implemented("upsert"))
    }
}
