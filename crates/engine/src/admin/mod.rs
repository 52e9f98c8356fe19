//! Work on the catalog: one file per operation.

pub(crate) mod create;

use crate::engine::Engine;
use document::backend::Session;
use document::op::{AdminOp, Context};
use document::{Doc, Error, Result};

/// Runs an operation on the catalog.
pub(crate) async fn run(
    _engine: &Engine,
    _session: &mut Session,
    _context: &Context,
    _op: AdminOp,
) -> Result<Vec<Doc<'static>>> {
    Err(Error::not_implemented("this administrative command"))
}
