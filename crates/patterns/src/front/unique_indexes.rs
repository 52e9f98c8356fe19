//! Unique indexes on paths that differ between the versions of documents (SEMANTICS R19): what is stored in an older version has its value
//! under another path, or of another type, so that the index would not see it.

use crate::execute::access::Access;
use crate::execute::executor::Executor;
use crate::rule::lens::unique_key;
use document::backend::Session;
use document::op::{AdminOp, Context, Find};
use document::{Code, Error, Result};
use std::sync::Arc;

/// Fails if the command makes such an index while documents are stored in an older version.
pub(super) async fn check(executor: &Arc<Executor>, context: &Context, op: &AdminOp) -> Result<()> {
    let AdminOp::CreateIndexes { ns, indexes } = op else { return Ok(()) };
    let rules = executor.rules();
    let Some(lens) = rules.lenses().of(ns) else { return Ok(()) };
    let Some(path) = indexes.iter().find_map(|index| unique_key(index, |path| lens.changes(path))) else {
        return Ok(());
    };
    let mut own = Session::default();
    let mut at = Access { backend: &*executor.inner, session: &mut own, context };
    let old = Find { limit: Some(1), ..Find::matching(ns.clone(), lens.old()) };
    if at.find(old).await?.is_empty() {
        return Ok(());
    }
    let message = format!(
        "a unique index on `{path}` would not see documents of '{ns}' that are stored in an older version: a step changes `{path}`"
    );
    Err(Error::new(Code::CannotCreateIndex, message)
        .with_hint("make it when `pleach status` shows that all documents are of the newest version"))
}
