//! Whole buckets that expire by an index of theirs, where fields are kept from their readings: a logical delete of each of these
//! (SEMANTICS R34).

use crate::execute::access::find;
use crate::execute::retry::RetryWindow;
use crate::execute::run::{abort, commit};
use crate::layer::Executor;
use crate::layer::multi::among;
use crate::layer::shaped::write::steps::Steps;
use crate::shapes::Stack;
use document::backend::Session;
use document::filter::Filter;
use document::op::{Context, Delete, DeleteStatement, Find, WriteOp, Written};
use document::{Result, Value};
use std::sync::Arc;

/// So many buckets go in one transaction.
const BUCKETS: u64 = 100;

/// Deletes the stored documents that match, part by part, each with what follows from it.
pub(crate) async fn expire(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    op: &Delete,
    shaped: &Arc<Stack>,
) -> Result<Written> {
    let mut total = Written::default();
    for statement in &op.statements {
        let mut attempts = RetryWindow::new(context);
        loop {
            match part(executor, client, context, op, &statement.filter, shaped).await {
                Ok(0) => break,
                Ok(deleted) => {
                    total.n += deleted;
                    attempts = RetryWindow::new(context);
                }
                Err(error) => attempts.again(error, context).await?,
            }
        }
    }
    Ok(total)
}

async fn part(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    op: &Delete,
    filter: &Filter,
    shaped: &Arc<Stack>,
) -> Result<u64> {
    let mut session = client.sibling();
    let jobs = executor.jobs_so_far();
    executor.inner.begin(&mut session, context).await?;
    let mut steps = Steps::new(executor, &mut session, context, shaped);
    let expired = steps.find(Find { limit: Some(BUCKETS), ..find(&op.ns, filter.clone()) }).await?;
    let ids: Vec<Value<'static>> = expired.iter().filter_map(|stored| stored.get("_id")).collect();
    if ids.is_empty() {
        abort(&mut session);
        return Ok(0);
    }
    let statements = vec![DeleteStatement::all(filter.clone().and(among(&ids)))];
    let written = steps.write(&WriteOp::Delete(Delete::of(op.ns.clone(), statements))).await?;
    steps.follow().await?;
    let mut no_turns = executor.lines.take(Vec::new()).await;
    commit(executor, &mut session, context, &mut no_turns, jobs).await?;
    Ok(written.n)
}
