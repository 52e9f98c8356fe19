//! The one projection, used by `find` and `$project`: inclusion, exclusion, computed fields, `$slice`, `$elemMatch`, positional.

use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::{Details, Filter};
use crate::pipeline::expr::Names;
use crate::raw::Doc;

/// A compiled projection.
#[derive(Clone, Debug)]
pub struct Projection {}

impl Projection {
    /// The projection of `find` and `findAndModify`: `filter` serves the positional `$`.
    pub fn parse_find(_spec: &Doc<'_>, _filter: &Filter, _names: &mut Names) -> Result<Projection> {
        Err(Error::not_implemented("projection"))
    }

    /// The projection of `$project`.
    pub fn parse_stage(_spec: &Doc<'_>, _names: &mut Names) -> Result<Projection> {
        Err(Error::not_implemented("projection"))
    }

    /// The computed fields of `$addFields` and `$set`: everything else stays.
    pub fn parse_add_fields(_spec: &Doc<'_>, _names: &mut Names) -> Result<Projection> {
        Err(Error::not_implemented("$addFields"))
    }

    /// The paths that `$unset` takes away.
    pub fn parse_unset(_paths: &[&str]) -> Result<Projection> {
        Err(Error::not_implemented("$unset"))
    }

    pub fn apply(&self, _doc: &Doc<'_>, _details: &Details, _env: &Env) -> Result<Doc<'static>> {
        Err(Error::not_implemented("projection"))
    }

    /// The top-level paths it needs of a document, if that is less than all: what a covering index must hold.
    pub fn reads(&self) -> Option<Vec<crate::value::Path>> {
        None
    }

    /// Whether what is at `path`, and below, is the same after it as before.
    pub fn keeps(&self, _path: &crate::value::Path) -> bool {
        false
    }
}
