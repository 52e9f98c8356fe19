//! A client's write: passed on as it is, run as a plan of the rules that it concerns, or translated by the shape that its
//! collection has.

use crate::active::route::Role;
use crate::active::{CollectionRules, Rules};
use crate::execute::attempt::Attempt;
use crate::execute::client_statement::{execute, namespace};
use crate::execute::client_work::ClientWork;
use crate::execute::executor::Executor;
use crate::execute::run::{Outcome, run_statements};
use crate::execute::{digits, direct, statements, versioned_write};
use crate::layer::bulk::Target;
use crate::layer::refused::bookkeeping;
use crate::layer::{bulk, logical_names, named_collection, owned, switchover_wait};
use crate::rule::Stack;
use crate::shapes::outlier::filter::is_about;
use document::Result;
use document::backend::Session;
use document::filter::Filter;
use document::op::{Capture, Context, Modify, UpdateStatement, WriteOp, Written};
use std::borrow::Cow;
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
    // Held for the whole write: a change of rules waits for writes that work by the old ones.
    let rules = switchover_wait::until_free(executor, session, context, ns).await?;
    // What a client inserts is of the version that is the newest now, whatever comes before it is stored.
    let numbered;
    let op = match (op, rules.lenses().of(ns)) {
        (WriteOp::Insert(insert), Some(lens)) => {
            numbered = WriteOp::Insert(versioned_write::inserted(lens, insert, context)?);
            &numbered
        }
        _ => op,
    };
    match rules.role(ns.by_ref()) {
        Role::Logical(shaped) if shaped.is_virtual() => Err(logical_names::items(ns, shaped)),
        Role::Logical(shaped) => {
            named_collection::before_write(executor, session.relay.as_ref(), op).await?;
            let (op, stack) = (digits::write(shaped, op, context)?, shaped.clone());
            planned(executor, session, context, &op, rules, Target::Stacked(&stack)).await
        }
        // Whole buckets expire, by an index of theirs.
        Role::Stored(shaped) if context.sent.expiry && shaped.is_source => match op {
            WriteOp::Delete(_) => expire(executor, session, context, op, shaped).await,
            _ => Err(logical_names::stored(ns, shaped)),
        },
        Role::Stored(_) if context.sent.expiry && matches!(op, WriteOp::Delete(_)) => {
            executor.inner.write(session, context, op, capture).await
        }
        Role::Stored(shaped) => Err(logical_names::stored(ns, shaped)),
        Role::Named(local) if concerns(local, op) => {
            let local = local.clone();
            planned(executor, session, context, op, rules, Target::Plain(&local)).await
        }
        Role::Bookkeeping => Err(bookkeeping(ns)),
        Role::Named(_) | Role::Free => {
            versioned_write::write(&*executor.inner, rules.lenses(), session, context, op, capture).await
        }
    }
}

/// A write that rules concern.
async fn planned(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    rules: Arc<Rules>,
    target: Target<'_>,
) -> Result<Written> {
    if session.transaction.is_none() {
        return bulk::run(executor, session, context, op, target).await;
    }
    // The client's own transaction: all steps run in it, and what fails, fails it (SEMANTICS R5).
    let op = match target {
        Target::Plain(local) => owned::rewritten(local, op)?,
        Target::Stacked(_) => Cow::Borrowed(op),
    };
    if let Some((index, error)) = target.refused(&op, 0) {
        return Ok(statements::failed(index, error));
    }
    let Some(stack) = target.stack() else {
        return joined(executor, session, context, &ClientWork::of(&op), &rules).await;
    };
    let (count, mut total, mut at) = (statements::count(&op), Written::default(), 0);
    while at < count && total.errors.is_empty() {
        let is_direct = |at: usize| direct::statements(stack, &op, at, true);
        let direct = is_direct(at);
        if !direct.is_empty() {
            at = direct.end;
            statements::add(&mut total, direct::run(executor, session, context, stack, &op, direct).await?, 0);
            continue;
        }
        let end = (at + 1..count).find(|end| !is_direct(*end).is_empty()).unwrap_or(count);
        let part = statements::part(&op, at..end);
        let written = joined(executor, session, context, &ClientWork::through(&part, Some(stack)), &rules).await?;
        statements::add(&mut total, written, at);
        at = end;
    }
    Ok(total)
}

/// Statements in the client's own transaction.
async fn joined(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    work: &ClientWork<'_>,
    rules: &Arc<Rules>,
) -> Result<Written> {
    let mut run = Attempt::new(executor, session, context, rules.clone());
    match execute(&mut run, work).await {
        Ok(written) if !written.errors.is_empty() => Ok(written),
        Ok(written) => {
            if let Some(failed) = std::mem::take(&mut run.refused).into_iter().next() {
                return Ok(statements::failed(failed.index, failed.error));
            }
            run.finish().await?;
            Ok(written)
        }
        Err(error) if crate::execute::retry::is_of_command(&error) => Err(error),
        Err(error) => Ok(statements::failed(0, error)),
    }
}

/// Whole stored documents expire, part by part, each with what follows for the fields that are kept from what it holds.
async fn expire(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    stack: &Arc<Stack>,
) -> Result<Written> {
    let mut total = Written::default();
    for at in 0..statements::count(op) {
        let statement = statements::part(op, at..at + 1);
        loop {
            match run_statements(executor, session, context, &ClientWork::through(&statement, Some(stack))).await? {
                Outcome::Done(written) if written.n == 0 => break,
                Outcome::Done(written) => statements::add(&mut total, written, 0),
                Outcome::Failed { error, .. } => return Err(error),
            }
        }
    }
    Ok(total)
}

/// Whether a write must be planned.
pub(super) fn concerns(local: &CollectionRules, op: &WriteOp) -> bool {
    match op {
        WriteOp::Insert(_) => local.is_kept(),
        WriteOp::Delete(_) => local.watches_deletes(),
        WriteOp::Update(op) => {
            let tests = |filter: &Filter| is_about(&local.outliers, filter);
            let is_followed = |statement: &UpdateStatement| {
                statement.upsert || local.concerns(&statement.update) || tests(&statement.filter)
            };
            local.is_kept() && op.statements.iter().any(is_followed)
        }
        WriteOp::FindAndModify(op) => match &op.action {
            Modify::Remove => local.watches_deletes(),
            Modify::Update { update, upsert, .. } => {
                local.is_kept() && (*upsert || local.concerns(update) || is_about(&local.outliers, &op.filter))
            }
        },
    }
}
