//! Who answers a read or a write: the backend as it is, a plan of the rules that it concerns, or the shape that its collection has.

use super::{Shared, admin, bulk, owned, restore, rights, shaped, slice, switchover_wait, timeseries};
use crate::rules::route::Role;
use crate::rules::{Local, Rules};
use crate::run::Run;
use crate::run::statement::{execute, namespace};
use document::backend::{Answer, Cursor, Session};
use document::op::{Capture, Context, Modify, Namespace, ReadOp, WriteOp, Written};
use document::{Code, Error, Result};
use std::sync::Arc;

pub(super) fn read<'a>(
    shared: &'a Arc<Shared>,
    session: &'a mut Session,
    context: &'a Context,
    op: ReadOp,
) -> Answer<'a, Box<dyn Cursor>> {
    if let ReadOp::Aggregate(aggregate) = &op
        && let Err((target, error)) = admin::check_sink(shared, &shared.rules(), aggregate)
    {
        let line = session.relay.clone();
        return Box::pin(async move { Err(rights::refuse_sink(shared, line, op.ns(), &target, error).await) });
    }
    let rules = shared.rules();
    if !rules.holds_any() && shaped::of_read(&rules, &op).is_none() {
        // The rules are held until the cursor is open: a collection that is renamed meanwhile would seem to be empty.
        return Box::pin(async move {
            let cursor = shared.inner.read(session, context, op).await;
            drop(rules);
            cursor
        });
    }
    drop(rules);
    Box::pin(async move {
        let rules = switchover_wait::until_read(shared, session, context, &op).await?;
        match shaped::of_read(&rules, &op) {
            Some(shaped) => {
                let line = session.relay.clone();
                let sees_stored = rights::sees_stored(shared, line.as_ref(), &op, shaped).await?;
                let op = timeseries::hinted(shared, context, op).await?;
                let outcome = match !sees_stored && shaped.sides.len() == 1 {
                    true => shared.inner.read(session, context, op.clone()).await,
                    false => shaped::read::open(shared, session, context, &op, shaped).await,
                };
                rights::of_read(shared, line, &op, outcome).await
            }
            None => shared.inner.read(session, context, op).await,
        }
    })
}

pub(super) async fn write(
    shared: &Arc<Shared>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    shared.lease.check()?;
    let ns = namespace(op);
    restore::until_over(shared, session, ns).await;
    // Held for the whole write: who changes the rules waits for those that work by the old ones.
    let rules = switchover_wait::until_free(shared, session, context, ns).await?;
    match rules.role(ns.by_ref()) {
        Role::Logical(shaped) => {
            rights::before_shaped_write(shared, session.relay.as_ref(), op).await?;
            shaped::write::run(shared, session, context, op, shaped).await
        }
        // Whole buckets expire, by an index of theirs.
        Role::Stored(_) if context.sent.expiry && matches!(op, WriteOp::Delete(_)) => {
            shared.inner.write(session, context, op, capture).await
        }
        Role::Stored(shaped) => match restore::buckets(shared, session, context, op, shaped).await? {
            Some(written) => Ok(written),
            None => Err(shaped::write::refused::stored(ns, shaped)),
        },
        Role::Named(local) if concerns(local, op) => {
            let local = local.clone();
            planned(shared, session, context, op, rules, &local).await
        }
        Role::Bookkeeping => {
            drop(rules);
            let taken = match op {
                WriteOp::Insert(insert) => restore::insert(shared, session, context, insert).await?,
                _ => None,
            };
            taken.ok_or_else(|| bookkeeping(ns))
        }
        Role::Named(_) | Role::Free => shared.inner.write(session, context, op, capture).await,
    }
}

/// A write that rules concern.
async fn planned(
    shared: &Arc<Shared>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    rules: Arc<Rules>,
    local: &Arc<Local>,
) -> Result<Written> {
    if session.transaction.is_none() {
        return bulk::run(shared, session, context, op, local).await;
    }
    // The client's own transaction: all steps run in it, and what fails, fails it (SEMANTICS R5).
    let op = owned::rewritten(local, op)?;
    if let Some((index, error)) = owned::refused(local, &op, 0) {
        return Ok(slice::failed(index, error));
    }
    let mut run = Run::new(shared, session, context, rules);
    match execute(&mut run, &op).await {
        Ok(written) if !written.errors.is_empty() => Ok(written),
        Ok(written) => {
            run.finish().await?;
            Ok(written)
        }
        Err(error) if crate::retry::is_of_command(&error) => Err(error),
        Err(error) => Ok(slice::failed(0, error)),
    }
}

/// Whether a write must be planned.
pub(super) fn concerns(local: &Local, op: &WriteOp) -> bool {
    match op {
        WriteOp::Insert(_) => local.is_kept(),
        WriteOp::Delete(_) => !local.sourced.is_empty(),
        WriteOp::Update(op) => {
            local.is_kept()
                && op.statements.iter().any(|statement| statement.upsert || local.concerns(&statement.update))
        }
        WriteOp::FindAndModify(op) => match &op.action {
            Modify::Remove => !local.sourced.is_empty(),
            Modify::Update { update, upsert, .. } => local.is_kept() && (*upsert || local.concerns(update)),
        },
    }
}

pub(super) fn bookkeeping(ns: &Namespace) -> Error {
    Error::new(Code::InvalidNamespace, format!("'{ns}' belongs to Pleach: clients may read it, but not write to it"))
        .with_hint("use the `pleach` commands (apply, drop, repair) instead")
}
