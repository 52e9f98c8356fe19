//! Waiting for a collection that is being renamed. That is no transaction: a command between its steps would find no collection.
//!
//! Whoever works by earlier rules, a client's open transaction above all, is not held: the renaming waits for them.

use crate::active::Rules;
use crate::execute::executor::Executor;
use crate::execute::retry::RetryWindow;
use crate::layer::open_transactions::OpenTransactions;
use document::Result;
use document::backend::Session;
use document::op::{AdminOp, Context, Namespace, ReadOp};
use std::sync::Arc;

/// Waits until nobody renames the collection. Returns the rules that say so: as long as they are held, it is not renamed.
pub(crate) async fn until_free(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    ns: &Namespace,
) -> Result<Arc<Rules>> {
    match session.transaction.is_some() {
        true => Ok(executor.rules()),
        false => until(executor, context, |rules| !rules.is_switching(ns)).await,
    }
}

/// The same for all that a read may look at: a pipeline can name any collection.
pub(super) async fn until_read(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    op: &ReadOp,
) -> Result<Arc<Rules>> {
    match op {
        ReadOp::Find(op) => until_free(executor, session, context, &op.ns).await,
        ReadOp::Count(op) => until_free(executor, session, context, &op.ns).await,
        ReadOp::Distinct(op) => until_free(executor, session, context, &op.ns).await,
        ReadOp::Aggregate(_) if session.transaction.is_some() => Ok(executor.rules()),
        ReadOp::Aggregate(_) => until(executor, context, |rules| !rules.any_switching()).await,
    }
}

/// The same for work on whole collections.
pub(crate) async fn until_defined(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    op: &AdminOp,
) -> Result<Arc<Rules>> {
    match op {
        AdminOp::Create { ns, .. }
        | AdminOp::CreateView { ns, .. }
        | AdminOp::Drop { ns }
        | AdminOp::CollMod { ns, .. }
        | AdminOp::CreateIndexes { ns, .. }
        | AdminOp::ListIndexes { ns }
        | AdminOp::DropIndexes { ns, .. } => until_free(executor, session, context, ns).await,
        AdminOp::Rename { .. } | AdminOp::DropDatabase { .. } | AdminOp::ListCollections { .. } => {
            until(executor, context, |rules| !rules.any_switching()).await
        }
        _ => Ok(executor.rules()),
    }
}

/// A transaction begins while nothing is renamed; one that began earlier goes on.
pub(super) async fn until_begun(
    executor: &Executor,
    transactions: &OpenTransactions,
    session: &mut Session,
    context: &Context,
) -> Result<Arc<Rules>> {
    if let (Some(joined), Some(id)) = (session.joined, session.id)
        && transactions.began_before(
            &(id, session.relay.as_ref().and_then(|relay| relay.user())),
            joined.number,
            &executor.rules(),
        )
    {
        return Ok(executor.rules());
    }
    until(executor, context, |rules| !rules.any_switching()).await
}

pub(super) async fn until(
    executor: &Executor,
    context: &Context,
    is_free: impl Fn(&Arc<Rules>) -> bool,
) -> Result<Arc<Rules>> {
    let rules = executor.rules();
    if is_free(&rules) {
        return Ok(rules);
    }
    drop(rules);
    let freed = async {
        loop {
            let changed = executor.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let rules = executor.rules();
            if is_free(&rules) {
                return rules;
            }
            drop(rules);
            changed.await;
        }
    };
    RetryWindow::new(context).in_time(freed).await
}
