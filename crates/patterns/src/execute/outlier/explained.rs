//! `explain` of a read whose filter tests an outlier array: what is asked of the overflow, and of the stored documents then.

use crate::active::CollectionRules;
use crate::execute::executor::Executor;
use crate::execute::outlier::owners::{Matching, asked, query};
use crate::execute::outlier::reads::{known, put_together, taken_apart};
use crate::execute::plan::{Action, Plan, Step};
use crate::execute::read::put_behind;
use crate::rule::Rule;
use crate::shapes::outlier::filter::{is_owner, rewritten};
use document::backend::Session;
use document::filter::Filter;
use document::op::{Context, Namespace, ReadOp};
use document::{Result, Value};
use std::sync::Arc;

/// The steps, without running anything: the owners that are found stand as a text in the last.
pub(crate) fn plan(local: &CollectionRules, op: &ReadOp, context: &Context) -> Result<Plan> {
    let (filter, op) = taken_apart(op.clone(), context)?;
    let (mut steps, mut answers) = (Vec::new(), Vec::new());
    for (number, question) in asked(&local.outliers, &filter).iter().enumerate() {
        let rules: Vec<Arc<Rule>> = local.rule_of(&question.outlier).iter().map(|kept| kept.rule.clone()).collect();
        steps.push(Step { rules, action: Action::Read(query(question)?), documents: None });
        answers.push(is_owner(vec![Value::string(format!("the owners that step {} finds", number + 1))]));
    }
    let stored = rewritten(&local.outliers, &filter, answers)?;
    let rules = local.outliers.iter().flat_map(|outlier| local.rule_of(outlier)).map(|kept| kept.rule.clone());
    let rules = rules.collect();
    steps.push(Step { rules, action: Action::Read(put_together(op, stored)), documents: None });
    Ok(Plan::of(steps))
}

/// The collections that are read besides the one that is asked for.
pub(crate) fn overflows(local: &CollectionRules, op: &ReadOp, context: &Context) -> Result<Vec<Namespace>> {
    let (filter, _) = taken_apart(op.clone(), context)?;
    Ok(asked(&local.outliers, &filter).into_iter().map(|question| question.outlier.overflow.clone()).collect())
}

/// The read of stored documents that the client's becomes, by what the overflow has now.
pub(crate) async fn stored(
    executor: &Executor,
    session: &mut Session,
    context: &Context,
    local: &CollectionRules,
    op: ReadOp,
) -> Result<ReadOp> {
    let (filter, op) = taken_apart(op, context)?;
    let mut own = session.sibling();
    executor.inner.begin(&mut own, context).await?;
    let known = known(executor, &mut own, context, local, &filter).await;
    if let Some(transaction) = own.transaction.take() {
        transaction.abort();
    }
    match known? {
        Matching::Filter(filter) => Ok(put_together(op, filter)),
        Matching::Join(stages) => {
            let op = put_together(op, Filter::all());
            put_behind(&*executor.inner, context, stages, &op, filter.collation.clone())
        }
    }
}
