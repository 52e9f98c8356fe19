//! A client's write: passed on as it is, run as a plan of the rules that it concerns, or translated by the shape that its
//! collection has.

use crate::active::route::Role;
use crate::active::{CollectionRules, Rules};
use crate::execute::attempt::Attempt;
use crate::execute::client_statement::{execute, namespace};
use crate::layer::{Executor, bulk, owned, restore, rights, shaped, statements, switchover_wait};
use document::backend::Session;
use document::op::{Capture, Context, Modify, Namespace, WriteOp, Written};
use document::{Code, Error, Result};
use std::sync::Arc;

pub(super) async fn write(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    executor.lease.check()?;
    let ns = namespace(op);
    restore::until_over(executor, session, ns).await;
    // Held for the whole write: who changes the rules waits for those that work by the old ones.
    let rules = switchover_wait::until_free(executor, session, context, ns).await?;
    match rules.role(ns.by_ref()) {
        Role::Logical(shaped) => {
            rights::before_shaped_write(executor, session.relay.as_ref(), op).await?;
            shaped::write::run(executor, session, context, op, shaped).await
        }
        // Whole buckets expire, by an index of theirs.
        Role::Stored(shaped) if context.sent.expiry && shaped.is_source => match op {
            WriteOp::Delete(op) => shaped::write::expire(executor, session, context, op, shaped).await,
            _ => Err(shaped::write::refused::stored(ns, shaped)),
        },
        Role::Stored(_) if context.sent.expiry && matches!(op, WriteOp::Delete(_)) => {
            executor.inner.write(session, context, op, capture).await
        }
        Role::Stored(shaped) => match restore::buckets(executor, session, context, op, shaped).await? {
            Some(written) => Ok(written),
            None => Err(shaped::write::refused::stored(ns, shaped)),
        },
        Role::Named(local) if concerns(local, op) => {
            let local = local.clone();
            planned(executor, session, context, op, rules, &local).await
        }
        Role::Bookkeeping => {
            drop(rules);
            let taken = match op {
                WriteOp::Insert(insert) => restore::insert(executor, session, context, insert).await?,
                _ => None,
            };
            taken.ok_or_else(|| bookkeeping(ns))
        }
        Role::Named(_) | Role::Free => executor.inner.write(session, context, op, capture).await,
    }
}

/// A write that rules concern.
async fn planned(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    rules: Arc<Rules>,
    local: &Arc<CollectionRules>,
) -> Result<Written> {
    if session.transaction.is_none() {
        return bulk::run(executor, session, context, op, local).await;
    }
    // The client's own transaction: all steps run in it, and what fails, fails it (SEMANTICS R5).
    let op = owned::rewritten(local, op)?;
    if let Some((index, error)) = owned::refused(local, &op, 0) {
        return Ok(statements::failed(index, error));
    }
    let mut run = Attempt::new(executor, session, context, rules);
    match execute(&mut run, &op).await {
        Ok(written) if !written.errors.is_empty() => Ok(written),
        Ok(written) => {
            run.finish().await?;
            Ok(written)
        }
        Err(error) if crate::execute::retry::is_of_command(&error) => Err(error),
        Err(error) => Ok(statements::failed(0, error)),
    }
}

/// Whether a write must be planned.
pub(super) fn concerns(local: &CollectionRules, op: &WriteOp) -> bool {
    match op {
        WriteOp::Insert(_) => local.is_kept(),
        WriteOp::Delete(_) => local.watches_deletes(),
        WriteOp::Update(op) => {
            local.is_kept()
                && op.statements.iter().any(|statement| statement.upsert || local.concerns(&statement.update))
        }
        WriteOp::FindAndModify(op) => match &op.action {
            Modify::Remove => local.watches_deletes(),
            Modify::Update { update, upsert, .. } => local.is_kept() && (*upsert || local.concerns(update)),
        },
    }
}

pub(super) fn bookkeeping(ns: &Namespace) -> Error {
    Error::new(Code::InvalidNamespace, format!("'{ns}' belongs to Pleach: clients may read it, but not write to it"))
        .with_hint("use the `pleach` commands (apply, drop, repair) instead")
}
