//! A filter on an array that more owners match than are carried to where hosts are stored (SEMANTICS R18): each host that may match is
//! joined with one item of its overflow for each question, by the overflow's index, and tested there.

use crate::mql::{call, list, object};
use crate::rule::Outlier;
use crate::shapes::outlier::filter::{OverflowQuestion, rewritten, superset};
use document::filter::{Filter, Node, Test};
use document::op::{Aggregate, Namespace, ReadOp, SortSpec};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Result, Value};
use std::sync::Arc;

/// The stages that give the hosts which match, as they are stored.
pub(super) fn joined(outliers: &[Arc<Outlier>], filter: &Filter, questions: &[OverflowQuestion]) -> Result<Pipeline> {
    let name = |number: usize| format!("_pleach_{number}");
    let mut stages = vec![call("$match", Value::Document(superset(outliers, filter).source))];
    for (number, OverflowQuestion { outlier, filter }) in questions.iter().enumerate() {
        let first = list([
            call("$match", Value::Document(filter.source.clone())),
            call("$limit", Value::Int32(1)),
            call("$project", object([("_id", Value::Int32(1))])),
        ]);
        stages.push(call(
            "$lookup",
            object([
                ("from", Value::from(&*outlier.overflow.collection)),
                ("localField", Value::from("_id")),
                ("foreignField", Value::from(&*outlier.owner)),
                ("pipeline", first),
                ("as", Value::string(name(number))),
            ]),
        ));
    }
    let found = (0..questions.len()).map(|number| Node::field(&format!("{}._id", name(number)), Test::Exists));
    let filter = rewritten(outliers, filter, found)?;
    stages.push(call("$match", Value::Document(filter.source)));
    let names = (0..questions.len()).map(|number| Value::string(name(number)));
    stages.push(call("$unset", list(names)));
    Pipeline::parse(&stages.into_iter().collect(), &mut Names::new())
}

/// Reads the `_id`s of the hosts that match: of all, or of the first in an order.
pub(super) fn ids(
    ns: &Namespace,
    filter: &Filter,
    joined: Pipeline,
    only: Option<Option<&SortSpec>>,
) -> Result<ReadOp> {
    let first = Pipeline::of_query(&Filter::all(), only.flatten(), 0, only.map(|_| 1));
    let shown = [call("$project", object([("_id", Value::Int32(1))]))].into_iter().collect();
    let shown = Pipeline::parse(&shown, &mut Names::new())?;
    Ok(ReadOp::Aggregate(Aggregate {
        ns: ns.clone(),
        collectionless: false,
        pipeline: joined.then(first).then(shown),
        hint: None,
        allow_disk_use: true,
        collation: filter.collation.clone(),
    }))
}
