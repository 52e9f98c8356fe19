//! Deferred work (SEMANTICS R13): a job says which key of which rule is to be made true again, never what with.

use crate::active::ActiveRule;
use crate::execute::access::Access;
use crate::execute::attempt::Attempt;
use crate::execute::deferred::{JobAction, need_to_put_off};
use crate::execute::evaluate::Evaluator;
use crate::execute::host_queue;
use crate::execute::plan::Action;
use crate::mql;
use crate::rule::fence::fence_key;
use crate::rule::{key, names};
use document::backend::Session;
use document::filter::Filter;
use document::op::{Capture, UpdateOp, UpdateStatement, WriteOp};
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Result, Value};
use std::sync::Arc;

/// Puts a job into the outbox, in the transaction of what causes it.
pub(crate) async fn enqueue(
    run: &mut Attempt<'_>,
    kept: &Arc<ActiveRule>,
    value: &Value<'_>,
    action: JobAction,
) -> Result<()> {
    need_to_put_off(run.executor, run.session.relay.as_ref(), &run.rules, kept, action).await?;
    if !run.enqueued.insert(fence_key(&kept.rule, value)) {
        return Ok(());
    }
    run.touched.push(host_queue::hash(&kept.rule.host, &key::bytes(value)));
    run.pass(std::slice::from_ref(kept), || Action::Job { key: value.clone().into_owned() }).await?;
    if run.trace.is_some() {
        count(run, kept, value).await?;
    }
    let op = upsert(kept, value, run.context.env.now)?;
    let retry = run.session.retry.take();
    let written = write(run, &op).await;
    run.session.retry = retry;
    written
}

/// Notes what the job will change, by what the transaction sees.
async fn count(run: &mut Attempt<'_>, kept: &Arc<ActiveRule>, value: &Value<'_>) -> Result<()> {
    let evaluator = Evaluator::new(&kept.rule)?;
    let mut at = Access { backend: &*run.executor.inner, session: run.session, context: run.context };
    let ids = evaluator.changed_by_job(&mut at, &value.clone().into_owned()).await?;
    if let Some(trace) = &mut run.trace {
        trace.note_later(&kept.rule.host, &ids);
    }
    Ok(())
}

async fn write(run: &mut Attempt<'_>, op: &WriteOp) -> Result<()> {
    let session: &mut Session = run.session;
    let mut written = run.executor.inner.write(session, run.context, op, &Capture::Nothing).await?;
    run.executor.jobs_added();
    match written.errors.is_empty() {
        true => Ok(()),
        false => Err(written.errors.remove(0).error),
    }
}

/// `{ _id: { rule, key } }`, its generation counted up; `since` is when it was put there.
fn upsert(kept: &Arc<ActiveRule>, value: &Value<'_>, now: i64) -> Result<WriteOp> {
    let id = mql::object([("rule", Value::from(&*kept.rule.name)), ("key", value.borrow())]);
    let change = mql::object([
        ("$inc", mql::object([("gen", Value::Int64(1))])),
        ("$setOnInsert", mql::object([("since", Value::DateTime(now))])),
    ]);
    let statement = UpdateStatement {
        filter: Filter::equality("_id", &id),
        update: Update::parse(&change, &[], &mut Names::new())?,
        multi: false,
        upsert: true,
        hint: None,
    };
    Ok(WriteOp::Update(UpdateOp::of(names::outbox(&kept.rule.host.db), vec![statement])))
}
