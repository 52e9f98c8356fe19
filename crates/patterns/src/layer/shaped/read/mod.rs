//! Reads of a logical name: the stored documents are taken apart, then what was asked of the readings follows.
//!
//! On the embedded store all of it is one pipeline over the stored collection. A real MongoDB gets the same as MQL. Where that
//! would need its JavaScript (bytes as hex digits), and where the buckets asked for are few ([`extent`]), the stored documents
//! are read there and the rest is run here.

mod explain;
mod extent;
mod find_projection;
mod in_order;
mod local_pipeline;
mod plan;
mod read_request;
mod result;
mod snapshot;
mod summaries;
mod union;

pub(in crate::layer) use explain::{explain, planned};

use crate::layer::Executor;
use crate::layer::shaped::digits;
use crate::shapes::Stack;
use document::Result;
use document::backend::{Cursor, Session};
use document::op::{Context, ReadOp};
use plan::{Check, Plan};

/// Opens a cursor over logical documents.
pub(crate) async fn open(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    op: &ReadOp,
    shaped: &Stack,
) -> Result<Box<dyn Cursor>> {
    let op = digits::read(&executor.rules(), op, context)?;
    let plan = Plan::new(shaped, &op, context, executor.inner.facts().runs_our_code)?;
    run(executor, session, context, plan).await
}

async fn run(executor: &Executor, session: &mut Session, context: &Context, plan: Plan) -> Result<Box<dyn Cursor>> {
    let held;
    let context = match plan.two_sided && session.transaction.is_none() {
        true => {
            held = snapshot::context(context);
            &held
        }
        false => context,
    };
    let mut cursor = executor.inner.read(session, context, plan.op).await?;
    let mut first = None;
    match plan.otherwise {
        Some((Check::Exact, other)) => match summaries::settled(cursor, session, context).await? {
            Some(settled) => cursor = settled,
            None => return Box::pin(run(executor, session, context, *other)).await,
        },
        Some((Check::Few, other)) => {
            let batch = local_pipeline::first(&mut *cursor, session, context, plan.first).await?;
            if !batch.exhausted {
                drop(cursor);
                return Box::pin(run(executor, session, context, *other)).await;
            }
            first = Some(batch);
        }
        None => {}
    }
    if let Some(pipeline) = plan.here {
        let first = match first {
            Some(first) => first,
            None => local_pipeline::first(&mut *cursor, session, context, plan.first).await?,
        };
        cursor = local_pipeline::start(cursor, first, &pipeline, context)?;
    }
    Ok(result::finished(cursor, plan.finish))
}
