//! What a write to a logical name would do: its steps, run in a transaction that is given up, beside MongoDB's answer for the
//! buckets it looks at.

use crate::execute::digits;
use crate::execute::plan::Plan;
use crate::execute::retry::RetryWindow;
use crate::execute::run;
use crate::layer::explain::{Left, with_plan};
use crate::layer::shaped::write::candidates::holding;
use crate::layer::shaped::write::steps::{Steps, Stop};
use crate::layer::shaped::write::{followed, how, insert, ones};
use crate::layer::{Executor, statements};
use crate::shapes::Stack;
use document::backend::Session;
use document::filter::Filter;
use document::op::{Context, Explained, ReadOp, Verbosity, WriteOp};
use document::{Doc, Result};
use std::sync::Arc;

pub(crate) async fn explain(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    shaped: &Arc<Stack>,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    let op = &*digits::write(shaped, op, context)?;
    let plan = plan(executor, session, context, op, shaped).await?;
    let all = Filter::all();
    let filter = match op {
        WriteOp::Insert(_) => &all,
        WriteOp::Update(op) => op.statements.first().map_or(&all, |statement| &statement.filter),
        WriteOp::Delete(op) => op.statements.first().map_or(&all, |statement| &statement.filter),
        WriteOp::FindAndModify(op) => &op.filter,
    };
    let Some(side) = shaped.sides.first() else { return Ok(with_plan(&Doc::empty(), &plan)) };
    let read = Explained::Read(ReadOp::Find(holding(side, filter)));
    let stored = executor.inner.explain(session, context, read, verbosity).await?;
    Ok(with_plan(&stored, &plan))
}

/// The steps of a write, without keeping anything of it.
pub(crate) async fn plan(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    op: &WriteOp,
    shaped: &Arc<Stack>,
) -> Result<Plan> {
    let op = &*digits::write(shaped, op, context)?;
    let mut left = Left::of(op);
    let mut attempts = RetryWindow::new(context);
    loop {
        let mut session = client.sibling();
        executor.inner.begin(&mut session, context).await?;
        let mut steps = Steps::new(executor, &mut session, context, shaped);
        steps.trace = Some(Plan::default());
        let result = rehearsed(&mut steps, &left.op(op)).await;
        let plan = steps.trace.take().unwrap_or_default();
        run::abort(&mut session);
        match result {
            Ok(()) => return Ok(plan.with_errors(left.errors)),
            Err(Stop::Statement { at, error }) => left.fail(at, error)?,
            Err(Stop::Command(error)) => attempts.again(error, context).await?,
        }
    }
}

async fn rehearsed(steps: &mut Steps<'_>, op: &WriteOp) -> Result<(), Stop> {
    if let WriteOp::Insert(insert) = op {
        return insert::rehearsed(steps, insert).await;
    }
    for at in 0..statements::count(op) {
        let ones = ones(op, &steps.shaped.clone(), at);
        match (insert::single_statement_side(&steps.shaped.clone()), ones.into_iter().next()) {
            (Some((_, stored)), Some(first)) => {
                let statement = how(op).op(stored, vec![first.statement], Vec::new());
                let written = steps.write(&statement).await?;
                if let Some(failed) = written.errors.into_iter().next() {
                    return Err(Stop::Statement { at, error: failed.error });
                }
            }
            _ => {
                followed(steps, op, at).await?;
            }
        }
    }
    Ok(())
}
