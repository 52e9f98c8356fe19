//! Which hosts have an item that passes: asked of the overflow before a filter is asked of stored documents.

use crate::active::CollectionRules;
use crate::execute::access::aggregate;
use crate::execute::attempt::Attempt;
use crate::mql::{call, document, field, object};
use crate::rule::Outlier;
use crate::shapes::outlier::filter::{OverflowQuestion, is_about, questions, rewritten};
use document::filter::{Filter, Node};
use document::op::ReadOp;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Doc, Result, Value};
use std::sync::Arc;

/// The filter on stored documents that means the client's on whole arrays, by what the attempt's transaction sees.
pub(super) async fn stored_filter(
    attempt: &mut Attempt<'_>,
    local: &CollectionRules,
    filter: &Filter,
) -> Result<Filter> {
    if !is_about(&local.outliers, filter) {
        return Ok(filter.clone());
    }
    let mut owners = Vec::new();
    for question in asked(&local.outliers, filter) {
        let rules = local.rule_of(&question.outlier);
        owners.push(of_rows(&attempt.read(&rules, query(&question)?).await?));
    }
    rewritten(&local.outliers, filter, owners)
}

/// The questions; a filter that names one host asks about that one.
pub(crate) fn asked(outliers: &[Arc<Outlier>], filter: &Filter) -> Vec<OverflowQuestion> {
    let mut all = questions(outliers, filter);
    if let Some(id) = filter.root.required_equality("_id") {
        for question in &mut all {
            let owner = Filter::from_node(Node::equality(&question.outlier.owner, id));
            question.filter = owner.and(question.filter.clone());
        }
    }
    all
}

/// Reads the owners, each once.
pub(crate) fn query(question: &OverflowQuestion) -> Result<ReadOp> {
    let group = object([("_id", field(&question.outlier.owner))]);
    let stages = [call("$match", Value::Document(question.filter.source.borrow())), call("$group", group)];
    let pipeline = Pipeline::parse(&stages.into_iter().collect(), &mut Names::new())?;
    Ok(aggregate(&question.outlier.overflow, pipeline))
}

pub(crate) fn of_rows(rows: &[Doc<'static>]) -> Vec<Value<'static>> {
    rows.iter().filter_map(|row| row.get("_id")).collect()
}

/// `{ owner: … }`: all of the overflow of a host.
pub(crate) fn of_owner(outlier: &Outlier, owner: &Value<'_>) -> Filter {
    Filter::equality(&outlier.owner, owner)
}

/// How many items of a host are in the overflow: where its count does not say.
pub(super) async fn count(attempt: &mut Attempt<'_>, outlier: &Outlier, owner: &Value<'_>) -> Result<u64> {
    let stages = [call("$match", Value::Document(of_owner(outlier, owner).source)), call("$count", Value::from("n"))];
    let pipeline = Pipeline::parse(&stages.into_iter().collect(), &mut Names::new())?;
    let rows = attempt.read(&[], aggregate(&outlier.overflow, pipeline)).await?;
    let number = rows.first().and_then(|row| row.get("n")?.as_i64_exact());
    Ok(number.and_then(|number| u64::try_from(number).ok()).unwrap_or_default())
}

/// `{ index: 1 }` or `{ index: -1 }`.
pub(crate) fn by_index(descending: bool) -> document::op::SortSpec {
    let path = document::value::Path::new(crate::rule::outlier::INDEX);
    document::op::SortSpec { keys: vec![document::op::SortKey { path, descending }] }
}

/// `{ $set: { item } }`
pub(super) fn set_item(outlier: &Outlier, item: &Value<'_>) -> Result<document::update::Update> {
    let set = document([("$set", object([(&*outlier.item, item.borrow())]))]);
    document::update::Update::parse(&Value::Document(set), &[], &mut Names::new())
}
