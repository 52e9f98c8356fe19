//! `explain` of a write that rules concern, for a client: the plan is shown if the client may read all that is in it.

use crate::execute::executor::Executor;
use crate::front::rights;
use crate::layer::explain::{plan, stored, with_plan};
use crate::life::explain::checked;
use document::backend::Session;
use document::op::{Context, Explained, Verbosity};
use document::{Doc, Result};
use std::sync::Arc;

pub(super) async fn explain(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: Explained,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    if let Explained::Write(write) = &op
        && executor.rules().shaped(write.ns()).is_some()
    {
        rights::before_explain(executor, session.relay.clone(), write).await?;
    }
    let (stored, planned) = stored(executor, session, context, op, verbosity).await?;
    let Some(write) = planned else { return Ok(stored) };
    let rights = rights::before_explain(executor, session.relay.clone(), &write).await?;
    let plan = plan(executor, session, context, &write).await;
    let plan = checked(&rights, &executor.rules(), write.ns(), plan)?;
    Ok(with_plan(&stored, &plan))
}
