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
    attempt: &mut Attempt<'_>,
    kept: &Arc<ActiveRule>,
    value: &Value<'_>,
    action: JobAction,
) -> Result<()> {
    need_to_put_off(attempt.executor, attempt.session.relay.as_ref(), &attempt.rules, kept, action).await?;
    if !attempt.enqueued.insert(fence_key(&kept.rule, value)) {
        return Ok(());
    }
    attempt.touched.push(host_queue::hash(&kept.rule.host, &key::bytes(value)));
    attempt.pass(std::slice::from_ref(kept), || Action::Job { key: value.clone().into_owned() }).await?;
    if attempt.trace.is_some() {
        count(attempt, kept, value).await?;
    }
    let op = upsert(kept, value, attempt.context.env.now)?;
    let retry = attempt.session.retry.take();
    let written = write(attempt, &op).await;
    attempt.session.retry = retry;
    written
}

/// Notes what the job will change, by what the transaction sees.
async fn count(attempt: &mut Attempt<'_>, kept: &Arc<ActiveRule>, value: &Value<'_>) -> Result<()> {
    let evaluator = Evaluator::new(&kept.rule)?;
    let mut at = Access { backend: &*attempt.executor.inner, session: attempt.session, context: attempt.context };
    let ids = evaluator.changed_by_job(&mut at, &value.clone().into_owned()).await?;
    if let Some(trace) = &mut attempt.trace {
        trace.note_later(&kept.rule.host, &ids);
    }
    Ok(())
}

async fn write(attempt: &mut Attempt<'_>, op: &WriteOp) -> Result<()> {
    let session: &mut Session = attempt.session;
    let mut written = attempt.executor.inner.write(session, attempt.context, op, &Capture::Nothing).await?;
    attempt.executor.jobs_added();
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
