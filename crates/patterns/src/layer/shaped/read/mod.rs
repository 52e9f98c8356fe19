//! Reads of a logical name: the stored documents are taken apart, then what was asked of the readings follows.
//!
//! On the embedded store all of it is one pipeline over the stored collection. A real MongoDB gets the same as MQL; where
//! that would need its JavaScript (bytes as hex digits), the stored documents are read there and the rest is run here.

mod asked;
mod explain;
mod figures;
mod finish;
mod here;
mod in_order;
mod over;
mod plan;
mod projecting;
mod snapshot;

pub(in crate::layer) use explain::{explain, planned};

use super::super::Shared;
use crate::shape::Shaped;
use document::Result;
use document::backend::{Cursor, Session};
use document::op::{Context, ReadOp};
use plan::Plan;

/// Opens a cursor over logical documents.
pub(in crate::layer) async fn open(
    shared: &Shared,
    session: &mut Session,
    context: &Context,
    op: &ReadOp,
    shaped: &Shaped,
) -> Result<Box<dyn Cursor>> {
    let plan = Plan::new(shaped, op, context, shared.inner.abilities().forwards)?;
    run(shared, session, context, plan).await
}

async fn run(shared: &Shared, session: &mut Session, context: &Context, plan: Plan) -> Result<Box<dyn Cursor>> {
    let held;
    let context = match plan.two_sided && session.transaction.is_none() {
        true => {
            held = snapshot::context(context);
            &held
        }
        false => context,
    };
    let mut cursor = shared.inner.read(session, context, plan.op).await?;
    if let Some(exact) = plan.otherwise {
        match figures::settled(cursor, session, context).await? {
            Some(settled) => cursor = settled,
            None => return Box::pin(run(shared, session, context, *exact)).await,
        }
    }
    if let Some(pipeline) = plan.here {
        cursor = here::start(cursor, &pipeline, context)?;
    }
    Ok(finish::finished(cursor, plan.finish))
}
