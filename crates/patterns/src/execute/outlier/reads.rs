//! A client's read whose filter tests an outlier array: the overflow is asked for owners first, then stored documents are read, both
//! in one moment (SEMANTICS R24). The array and its count are those of newest documents.

use crate::active::{CollectionRules, Rules};
use crate::execute::access::Access;
use crate::execute::executor::Executor;
use crate::execute::outlier::many_owners;
use crate::execute::outlier::owners::{Matching, asked, matching, of_rows, query};
use crate::execute::read::{open_behind, versioned, versioned_views};
use crate::shapes::outlier::filter::{is_about, rewritten};
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::filter::Filter;
use document::op::{Context, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::{Array, Result, Value};
use std::sync::Arc;

/// The rules of the collection of a read, if its filter tests an array that may overflow.
pub(crate) fn concerned<'r>(rules: &'r Rules, op: &ReadOp) -> Option<&'r Arc<CollectionRules>> {
    let local = rules.of(op.ns()).filter(|local| !local.outliers.is_empty())?;
    let is_concerned = match op {
        ReadOp::Find(op) => is_about(&local.outliers, &op.filter),
        ReadOp::Count(op) => is_about(&local.outliers, &op.filter),
        ReadOp::Distinct(op) => is_about(&local.outliers, &op.filter),
        ReadOp::Aggregate(op) => is_about(&local.outliers, &op.pipeline.split().leading.filter),
    };
    is_concerned.then_some(local)
}

/// Opens a cursor over stored documents that match as if each array were whole.
pub(crate) async fn open(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    op: ReadOp,
    rules: &Rules,
    local: &CollectionRules,
) -> Result<Box<dyn Cursor>> {
    let (filter, op) = taken_apart(op, context)?;
    let (inner, lenses) = (&*executor.inner, rules.lenses());
    if asked(&local.outliers, &filter).is_empty() {
        let filter = rewritten(&local.outliers, &filter, [])?;
        return versioned_views::open(inner, lenses, session, context, put_together(op, filter)).await;
    }
    if session.transaction.is_some() {
        return in_transaction(executor, session, context, (rules, local), &filter, op).await;
    }
    let mut own = session.sibling();
    executor.inner.begin(&mut own, context).await?;
    let cursor = in_transaction(executor, &mut own, context, (rules, local), &filter, op).await?;
    Ok(Box::new(InOneMoment { own, cursor }))
}

async fn in_transaction(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    (rules, local): (&Rules, &CollectionRules),
    filter: &Filter,
    op: ReadOp,
) -> Result<Box<dyn Cursor>> {
    let (inner, lenses) = (&*executor.inner, rules.lenses());
    match known(executor, session, context, local, filter).await? {
        Matching::Filter(filter) => {
            versioned_views::open(inner, lenses, session, context, put_together(op, filter)).await
        }
        Matching::Join(stages) => {
            let op = put_together(op, Filter::all());
            open_behind(inner, lenses, session, context, stages, &op, filter.collation.clone()).await
        }
    }
}

/// The documents that a statement about many is about, by what its filter says of an array; `None` if it says nothing.
pub(crate) async fn matching_ids(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    ns: &Namespace,
    filter: &Filter,
) -> Result<Option<Vec<Value<'static>>>> {
    let rules = executor.rules();
    let Some(local) = rules.of(ns).filter(|local| is_about(&local.outliers, filter)) else { return Ok(None) };
    let stages = match known(executor, session, context, local, filter).await? {
        Matching::Filter(filter) => Pipeline::of_query(&filter, None, 0, None),
        Matching::Join(stages) => stages,
    };
    let (inner, ids) = (&*executor.inner, many_owners::ids(ns, filter, stages, None)?);
    let cursor = versioned::open(inner, rules.lenses(), session, context, ids).await?;
    Ok(Some(of_rows(&Access { backend: inner, session, context }.drained(cursor).await?)))
}

pub(super) async fn known(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    local: &CollectionRules,
    filter: &Filter,
) -> Result<Matching> {
    let (questions, mut owners) = (asked(&local.outliers, filter), Vec::new());
    for question in &questions {
        let mut at = Access { backend: &*executor.inner, session, context };
        owners.push(of_rows(&at.all(query(question)?).await?));
    }
    matching(&local.outliers, filter, &questions, owners)
}

/// The filter of a read, and the read without it. Of a pipeline, what its first stages ask for.
pub(super) fn taken_apart(op: ReadOp, context: &Context) -> Result<(Filter, ReadOp)> {
    Ok(match op {
        ReadOp::Find(op) => (op.filter.clone(), ReadOp::Find(op)),
        ReadOp::Count(op) => (op.filter.clone(), ReadOp::Count(op)),
        ReadOp::Distinct(op) => (op.filter.clone(), ReadOp::Distinct(op)),
        ReadOp::Aggregate(mut op) => {
            let mut names = versioned::variables(context)?;
            let stages = op.pipeline.source.clone().unwrap_or_else(Array::empty);
            let (mut filter, mut taken) = (Filter::all(), 0);
            for stage in stages.iter() {
                let Value::Document(stage) = stage else { break };
                let Some(Value::Document(matched)) = stage.get("$match") else { break };
                filter = filter.and(Filter::parse(&matched, &mut names)?);
                taken += 1;
            }
            op.pipeline = Pipeline::parse(&stages.iter().skip(taken).collect(), &mut names)?;
            (filter, ReadOp::Aggregate(op))
        }
    })
}

pub(super) fn put_together(op: ReadOp, filter: Filter) -> ReadOp {
    match op {
        ReadOp::Find(op) => ReadOp::Find(document::op::Find { filter, ..op }),
        ReadOp::Count(op) => ReadOp::Count(document::op::Count { filter, ..op }),
        ReadOp::Distinct(op) => ReadOp::Distinct(document::op::Distinct { filter, ..op }),
        ReadOp::Aggregate(op) => {
            let pipeline = Pipeline::of_query(&filter, None, 0, None).then(op.pipeline);
            ReadOp::Aggregate(document::op::Aggregate { pipeline, ..op })
        }
    }
}

/// A cursor in a transaction of its own, which ends with it.
pub(crate) struct InOneMoment {
    pub(crate) own: Session,
    pub(crate) cursor: Box<dyn Cursor>,
}

impl Cursor for InOneMoment {
    fn next<'a>(&'a mut self, _: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(async move {
            let batch = self.cursor.next(&mut self.own, context, limit).await?;
            if batch.exhausted
                && let Some(transaction) = self.own.transaction.take()
            {
                transaction.abort();
            }
            Ok(batch)
        })
    }
}
