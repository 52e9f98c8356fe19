//! Pipelines that give the logical documents of all sides.

use crate::mql::call;
use crate::shapes::bucket::Dialect;
use crate::shapes::{Place, Stack};
use document::filter::Filter;
use document::pipeline::Pipeline;
use document::{Array, Result, Value};

/// What a filter on logical documents lets be asked of the stored ones: a superset.
pub(super) fn pushed(side: &Place, filter: &Filter) -> Filter {
    side.shape.push(filter)
}

/// The logical documents of all sides among which are those that match, run natively.
pub(super) fn native(shaped: &Stack, filter: &Filter) -> Result<Pipeline> {
    let mut all: Option<Pipeline> = None;
    for side in &shaped.places {
        let found = Pipeline::of_query(&pushed(side, filter), None, 0, None);
        let found = match side.bucket() {
            None => found,
            Some(bucket) => found.then(bucket.unpack_here()),
        };
        all = Some(match all {
            None => found,
            Some(before) => before.then(Pipeline::union_with(&side.stored.collection, found)?),
        });
    }
    Ok(all.unwrap_or_default())
}

/// The same as MQL.
pub(super) fn said(shaped: &Stack, filter: &Filter, dialect: Dialect) -> Array<'static> {
    let mut all: Vec<Value<'static>> = Vec::new();
    for (at, side) in shaped.places.iter().enumerate() {
        let pushed = pushed(side, filter);
        let mut stages = Vec::new();
        if !pushed.is_all() {
            stages.push(call("$match", Value::Document(pushed.source)));
        }
        if let Some(bucket) = side.bucket() {
            stages.extend(bucket.view(dialect).iter());
        }
        if at == 0 {
            all = stages;
            continue;
        }
        let union = crate::mql::object([
            ("coll", Value::from(&*side.stored.collection)),
            ("pipeline", crate::mql::list(stages)),
        ]);
        all.push(call("$unionWith", union));
    }
    all.into_iter().collect()
}
