//! Which hosts have an item that passes: asked of the overflow before a filter is asked of stored documents.

use crate::active::CollectionRules;
use crate::execute::access::aggregate;
use crate::execute::attempt::Attempt;
use crate::execute::outlier::many_owners;
use crate::mql::{call, document, field, object};
use crate::rule::Outlier;
use crate::shapes::outlier::filter::{OverflowQuestion, is_about, is_owner, questions, rewritten};
use document::filter::{Filter, Node, Test};
use document::op::{Namespace, ReadOp, SortSpec};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Doc, Result, Value};
use std::sync::Arc;

/// More owners than that are not carried to where hosts are stored.
pub(crate) const MOST_OWNERS: usize = 10_000;

/// What is known of a filter on whole arrays.
pub(crate) enum Matching {
    /// It is this one on stored documents.
    Filter(Filter),
    /// Very many owners have such an item: the hosts are joined with their overflow where they are stored.
    Join(Pipeline),
}

/// What the answers of the overflow make of a filter.
pub(crate) fn matching(
    outliers: &[Arc<Outlier>],
    filter: &Filter,
    questions: &[OverflowQuestion],
    owners: Vec<Vec<Value<'static>>>,
) -> Result<Matching> {
    match owners.iter().any(|owners| owners.len() > MOST_OWNERS) {
        true => many_owners::joined(outliers, filter, questions).map(Matching::Join),
        false => rewritten(outliers, filter, owners.into_iter().map(is_owner)).map(Matching::Filter),
    }
}

/// The filter on stored documents that means the client's on whole arrays, by what the attempt's transaction sees. Where very many
/// owners are concerned it names the documents that match: the first of them, if `only` one is wanted.
pub(super) async fn stored_filter(
    attempt: &mut Attempt<'_>,
    local: &CollectionRules,
    ns: &Namespace,
    filter: &Filter,
    only: Option<Option<&SortSpec>>,
) -> Result<Filter> {
    if !is_about(&local.outliers, filter) {
        return Ok(filter.clone());
    }
    let (questions, mut owners) = (asked(&local.outliers, filter), Vec::new());
    for question in &questions {
        let rules = local.rule_of(&question.outlier);
        owners.push(of_rows(&attempt.read(&rules, query(question)?).await?));
    }
    match matching(&local.outliers, filter, &questions, owners)? {
        Matching::Filter(filter) => Ok(filter),
        Matching::Join(stages) => {
            let ids = many_owners::ids(ns, filter, stages, only)?;
            let rules: Vec<_> = local.outliers.iter().flat_map(|outlier| local.rule_of(outlier)).collect();
            Ok(Filter::among("_id", of_rows(&attempt.read(&rules, ids).await?)))
        }
    }
}

/// The questions; a filter that names its hosts asks about these.
pub(crate) fn asked(outliers: &[Arc<Outlier>], filter: &Filter) -> Vec<OverflowQuestion> {
    let mut all = questions(outliers, filter);
    let mut named: Option<Test> = None;
    filter.root.each_required_field(&mut |path, test| {
        if path.parts.len() == 1 && path.first() == "_id" && matches!(test, Test::Eq(_) | Test::In(_)) {
            named = named.take().or_else(|| Some(test.clone()));
        }
    });
    if let Some(test) = named {
        for question in &mut all {
            let owner = Filter::from_node(Node::field(&question.outlier.owner, test.clone()));
            question.filter = owner.and(question.filter.clone());
        }
    }
    all
}

/// Reads the owners, each once, but one more than are carried at most.
pub(crate) fn query(question: &OverflowQuestion) -> Result<ReadOp> {
    let group = object([("_id", field(&question.outlier.owner))]);
    let limit = Value::Int64(i64::try_from(MOST_OWNERS + 1).unwrap_or(i64::MAX));
    let stages = [
        call("$match", Value::Document(question.filter.source.borrow())),
        call("$group", group),
        call("$limit", limit),
    ];
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
pub(crate) fn by_index(descending: bool) -> SortSpec {
    let path = document::value::Path::new(crate::rule::outlier::INDEX);
    SortSpec { keys: vec![document::op::SortKey { path, descending }] }
}

/// `{ $set: { item } }`
pub(super) fn set_item(outlier: &Outlier, item: &Value<'_>) -> Result<document::update::Update> {
    let set = document([("$set", object([(&*outlier.item, item.borrow())]))]);
    document::update::Update::parse(&Value::Document(set), &[], &mut Names::new())
}
