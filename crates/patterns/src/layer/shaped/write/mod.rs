//! Writes to a logical name whose documents are stored in buckets (SEMANTICS R14–R17), in and outside clients' transactions.
//!
//! What is one statement on one stored document goes there as that, under the client's own session and statement numbers
//! ([`single_statement`]): it is exactly-once because that is. Everything else runs in a transaction of our own whose retry record
//! answers for the client's statements ([`attempt`]). Which way a statement goes is decided by the command and the rule
//! alone, never by what is stored: so a command that is sent again goes the same way and finds its record.

mod attempt;
mod candidates;
mod expire;
mod explain;
mod images;
mod insert;
mod multi;
pub(crate) mod open_buckets;
mod place;
pub(crate) mod refused;
mod resend_after_move;
mod rewrite;
mod single_statement;
mod slots;
mod statement;
mod steps;

use crate::execute::digits;
use crate::layer::{Executor, bulk, statements};
use crate::shapes::Stack;
use attempt::Part;
use document::backend::Session;
use document::op::{Context, WriteError, WriteOp, Written};
use document::{Doc, Error, Result, Value};
pub(crate) use expire::expire;
pub(crate) use explain::{explain, plan};
use multi::Many;
use single_statement::{CommandOptions, SingleStatement};
use std::sync::Arc;
use steps::{Steps, Stop};

/// Runs a client's write on a logical name.
pub(crate) async fn run(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    shaped: &Arc<Stack>,
) -> Result<Written> {
    let op = &*digits::write(shaped, op, context)?;
    match (op, session.transaction.is_some()) {
        (WriteOp::Insert(insert), false) => insert::run(executor, session, context, insert, shaped).await,
        (WriteOp::Insert(insert), true) => insert::joined(executor, session, context, insert, shaped).await,
        (_, false) => outside(executor, session, context, op, shaped).await,
        (_, true) => joined(executor, session, context, op, shaped).await,
    }
}

/// The statements of a command outside a client's transaction.
async fn outside(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    shaped: &Arc<Stack>,
) -> Result<Written> {
    let (how, count) = (how(op), statements::count(op));
    let mut total = Written::default();
    let mut at = 0;
    while at < count && (total.errors.is_empty() || !how.ordered) {
        if let Some(error) = refusal(op, at) {
            total.errors.push(WriteError { index: at, error });
            at += 1;
            continue;
        }
        let ones = ones(op, shaped, at);
        if let (Some(target), false) = (insert::only_side(shaped), ones.is_empty()) {
            let ids: Vec<i32> = ones.iter().map(|one| how.statement_id(one.at)).collect();
            at += ones.len();
            let before = resend_after_move::recorded(executor, session, context, shaped, &ids).await?;
            let left = ones.into_iter().filter(|one| !before.retried.contains(&how.statement_id(one.at))).collect();
            statements::add(&mut total, before, 0);
            statements::add(
                &mut total,
                single_statement::all(executor, session, context, target, left, &how).await?,
                0,
            );
        } else if let Some(many) = Many::of(op, at) {
            match changed(executor, session, context, shaped, &many).await? {
                Ok(written) => statements::add(&mut total, written, 0),
                Err(error) => total.errors.push(WriteError { index: at, error }),
            }
            at += 1;
        } else {
            let end = end(op, shaped, at);
            let part = Part::Statements { op, range: at..end, how: &how };
            statements::add(&mut total, told(attempt::run(executor, session, context, shaped, &part).await)?, 0);
            at = end;
        }
    }
    Ok(total)
}

/// A statement about many readings. As in MongoDB, one that fails on the way says nothing of what it did before.
async fn changed(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    shaped: &Arc<Stack>,
    many: &Many<'_>,
) -> Result<Result<Written, Error>> {
    let mut own = session.sibling();
    let picked = match many.pick(&mut Steps::new(executor, &mut own, context, shaped)).await {
        Ok(picked) => picked,
        Err(Stop::Statement { error, .. }) => return Ok(Err(error)),
        Err(Stop::Command(error)) => return Err(error),
    };
    let chunks = if picked.is_empty() { vec![picked.as_slice()] } else { multi::chunks(&picked) };
    let mut total = Written::default();
    for chunk in chunks {
        let mut attempt = attempt::run(executor, &mut own, context, shaped, &Part::Some { many, picked: chunk }).await;
        if let (Err(Stop::Statement { .. }), true) = (&attempt, multi::count(chunk) > 1) {
            // One of them cannot be written, so none is: each by itself, and those before it stay changed.
            for one in multi::one_by_one(chunk) {
                let part = Part::Some { many, picked: &[one] };
                attempt = attempt::run(executor, &mut own, context, shaped, &part).await;
                match &mut attempt {
                    Ok(written) if written.errors.is_empty() => statements::add(&mut total, std::mem::take(written), 0),
                    _ => break,
                }
            }
        }
        match attempt {
            Ok(mut written) => match written.errors.pop() {
                Some(failed) => return Ok(Err(failed.error)),
                None => statements::add(&mut total, written, 0),
            },
            Err(Stop::Statement { error, .. }) => return Ok(Err(error)),
            Err(Stop::Command(error)) => return Err(error),
        }
    }
    if let Some(error) = own.concern_error.take() {
        session.concern_error = Some(error);
    }
    Ok(Ok(total))
}

/// The statements of a command in the client's own transaction: what fails, fails it (SEMANTICS R5).
async fn joined(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    shaped: &Arc<Stack>,
) -> Result<Written> {
    let (how, count) = (how(op), statements::count(op));
    let mut total = Written::default();
    let mut at = 0;
    while at < count && total.errors.is_empty() {
        if let Some(error) = refusal(op, at) {
            return Ok(statements::failed(at, error));
        }
        let ones = ones(op, shaped, at);
        if let (Some(target), false) = (insert::only_side(shaped), ones.is_empty()) {
            at += ones.len();
            statements::add(
                &mut total,
                single_statement::all(executor, session, context, target, ones, &how).await?,
                0,
            );
            continue;
        }
        let mut steps = Steps::new(executor, session, context, shaped);
        statements::add(&mut total, told(followed(&mut steps, op, at).await)?, 0);
        at += 1;
    }
    Ok(total)
}

/// The statement and what follows from it.
async fn followed(steps: &mut Steps<'_>, op: &WriteOp, at: usize) -> Result<Written, Stop> {
    let written = one(steps, op, at).await?;
    steps.follow().await.map_err(Stop::of(at))?;
    Ok(written)
}

async fn one(steps: &mut Steps<'_>, op: &WriteOp, at: usize) -> Result<Written, Stop> {
    match Many::of(op, at) {
        Some(many) => many.at_once(steps).await,
        None => statement::run(steps, op, at).await,
    }
}

fn told(outcome: Result<Written, Stop>) -> Result<Written> {
    match outcome {
        Ok(written) => Ok(written),
        Err(Stop::Statement { at, error }) => Ok(statements::failed(at, error)),
        Err(Stop::Command(error)) => Err(error),
    }
}

/// Those statements from `at` on that are one `$inc` of a slot each.
fn ones(op: &WriteOp, shaped: &Stack, at: usize) -> Vec<SingleStatement> {
    let (WriteOp::Update(op), Some((bucket, _))) = (op, insert::single_statement_side(shaped)) else {
        return Vec::new();
    };
    let statements = op.statements.iter().enumerate().skip(at);
    statements.map_while(|(at, statement)| slots::increment(bucket, statement, at)).collect()
}

/// The end of the statements from `at` on that share a transaction.
fn end(op: &WriteOp, shaped: &Stack, at: usize) -> usize {
    let (mut end, limit) = (at + 1, statements::count(op).min(at + bulk::STATEMENTS));
    let alike = |end: usize| {
        !statements::is_multi(op, end) && refusal(op, end).is_none() && ones_begin(op, shaped, end).is_none()
    };
    while end < limit && alike(end) {
        end += 1;
    }
    end
}

fn ones_begin(op: &WriteOp, shaped: &Stack, at: usize) -> Option<SingleStatement> {
    let (WriteOp::Update(op), Some((bucket, _))) = (op, insert::single_statement_side(shaped)) else { return None };
    op.statements.get(at).and_then(|statement| slots::increment(bucket, statement, at))
}

fn how(op: &WriteOp) -> CommandOptions {
    let (bypass_validation, statement_ids) = match op {
        WriteOp::Insert(op) => (op.bypass_validation, op.statement_ids.clone()),
        WriteOp::Update(op) => (op.bypass_validation, op.statement_ids.clone()),
        WriteOp::Delete(op) => (false, op.statement_ids.clone()),
        WriteOp::FindAndModify(op) => (op.bypass_validation, vec![op.statement_id]),
    };
    CommandOptions { ordered: statements::is_ordered(op), bypass_validation, statement_ids }
}

/// What no statement on a logical name may say.
fn refusal(op: &WriteOp, at: usize) -> Option<Error> {
    let (filter, hint) = match op {
        WriteOp::Insert(_) => return None,
        WriteOp::Update(op) => op.statements.get(at).map(|statement| (&statement.filter, &statement.hint))?,
        WriteOp::Delete(op) => op.statements.get(at).map(|statement| (&statement.filter, &statement.hint))?,
        WriteOp::FindAndModify(op) => (&op.filter, &op.hint),
    };
    let other = |collation: &&Doc<'static>| collation.get("locale").as_ref().and_then(Value::as_str) != Some("simple");
    match (filter.collation.as_ref().filter(other), hint) {
        (Some(_), _) => Some(refused::collation()),
        (None, Some(_)) => Some(refused::hint()),
        (None, None) => None,
    }
}
