//! Makes the plan of a read of logical documents, and runs it.

use crate::active::Rules;
use crate::execute::digits;
use crate::execute::read::request::ParsedRead;
use crate::execute::read::result::ResultForm;
use crate::execute::read::{general, local_pipeline, one_by_one, result, snapshot};
use crate::rule::read::{ReadPlan, ReadRequest, Unless};
use crate::shapes::Stack;
use document::Result;
use document::backend::{Backend, Cursor, Facts, Session};
use document::op::{Context, ReadOp};

/// Whether several collections can be read by several commands only: in a transaction a MongoDB refuses `$unionWith`, and views that
/// have one.
pub(crate) fn takes_no_union(backend: &dyn Backend, session: &Session) -> bool {
    session.transaction.is_some() && !backend.facts().runs_our_code
}

/// Opens a cursor over logical documents.
pub(crate) async fn open(
    backend: &dyn Backend,
    rules: &Rules,
    session: &mut Session,
    context: &Context,
    op: &ReadOp,
    stack: &Stack,
) -> Result<Box<dyn Cursor>> {
    let op = digits::read(rules, op, context)?;
    let parsed = ParsedRead::of(&op, context)?;
    if stack.places.len() > 1 && takes_no_union(backend, session) {
        let cursor = one_by_one::open(backend, session, context, &parsed.request, stack).await?;
        return Ok(result::cursor(cursor, parsed.form));
    }
    let mut plan = plan(stack, &parsed.request, backend.facts())?;
    let in_snapshot;
    // All places must be read in one moment.
    let context = match stack.places.len() > 1 && session.transaction.is_none() {
        true => {
            in_snapshot = snapshot::context(context);
            &in_snapshot
        }
        false => context,
    };
    loop {
        let mut cursor = backend.read(session, context, plan.op).await?;
        let mut first = None;
        if plan.local.is_some() || plan.unless.is_some() {
            let batch = local_pipeline::first(&mut *cursor, session, context, plan.first_rows).await?;
            if let Some(unless) = plan.unless.filter(|unless| !unless.check.holds(&batch)) {
                plan = instead(unless, stack, &parsed.request, backend.facts())?;
                continue;
            }
            first = Some(batch);
        }
        let is_local = plan.local.is_some();
        if let (Some(pipeline), Some(first)) = (plan.local, first) {
            cursor = local_pipeline::start(cursor, first, &pipeline, context, None)?;
        }
        let form = match parsed.only_in_find {
            Some(projection) if !is_local && !backend.facts().runs_our_code => ResultForm::Project(projection),
            _ => parsed.form,
        };
        return Ok(result::cursor(cursor, form));
    }
}

/// The short cut of the shape that all documents have, if it knows one; else the general way.
pub(super) fn plan(stack: &Stack, request: &ReadRequest, facts: Facts) -> Result<ReadPlan> {
    if let [place] = &*stack.places
        && let Some(plan) = place.shape.clone().read(request, &place.stored, facts)?
    {
        return Ok(plan);
    }
    general::plan(stack, request, facts)
}

/// The plan that is taken after a check has failed.
pub(super) fn instead(unless: Unless, stack: &Stack, request: &ReadRequest, facts: Facts) -> Result<ReadPlan> {
    match unless.plan {
        Some(plan) => Ok(*plan),
        None => general::plan(stack, request, facts),
    }
}
