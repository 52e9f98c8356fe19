//! What a client of a collection that is stored in another form needs: the right to the name that it uses, whatever it may do
//! where the documents are stored (SEMANTICS R37).

use crate::execute::executor::Executor;
use crate::execute::rights::discreet::discreet;
use crate::execute::rights::{Rights, named, named_read, privilege_cache};
use crate::shapes::Stack;
use document::backend::Relay;
use document::op::{ReadOp, WriteOp};
use document::{Code, Result};
use std::sync::Arc;

/// Fails unless the client may write to the collection that it names, whatever it may do where the documents are stored.
pub(super) async fn before_write(executor: &Executor, line: Option<&Arc<dyn Relay>>, op: &WriteOp) -> Result<()> {
    let suffices = |rights: &Rights| rights.clone().naming([op.ns().clone()]).need_to_send(op);
    privilege_cache::rights(executor, line, &named(op), suffices).await.map(drop)
}

/// Whether the client of a read may read the collections where the documents are stored. If not, it reads the view, by MongoDB's own
/// rules. Fails unless it may read the collection that it asks for.
pub(super) async fn sees_stored(
    executor: &Executor,
    line: Option<&Arc<dyn Relay>>,
    op: &ReadOp,
    shaped: &Stack,
) -> Result<bool> {
    let ns = op.ns();
    let suffices = |rights: &Rights| rights.clone().naming([ns.clone()]).need("find", ns);
    let rights = privilege_cache::rights(executor, line, &named_read(op), suffices).await?;
    Ok(shaped.places.iter().all(|place| rights.may("find", &place.stored)))
}

/// The outcome of a read of a collection that is stored in another form, as the client may see it.
pub(super) async fn of_read<T>(
    executor: &Executor,
    line: Option<Arc<dyn Relay>>,
    op: &ReadOp,
    outcome: Result<T>,
) -> Result<T> {
    match (outcome, line) {
        (Err(error), Some(line)) if error.code() == Code::Unauthorized => {
            let rights = Rights::of(&*executor.inner, Some(&line), &named_read(op)).await?;
            Err(discreet(&rights, &executor.rules(), op.ns(), error))
        }
        (outcome, _) => outcome,
    }
}
