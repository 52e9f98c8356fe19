//! Pipelines that give the logical documents of all places of a collection.

use crate::mql::{call, list, object};
use crate::rule::read::Dialect;
use crate::shapes::unpack::unpack_natively;
use crate::shapes::{Place, Stack};
use document::filter::Node;
use document::op::SortSpec;
use document::pipeline::{Leading, Pipeline};
use document::{Result, Value};

/// The order and the number of the documents that are wanted first, where a place can tell them without its neighbours.
fn first_of(place: &Place, leading: &Leading) -> Option<(SortSpec, u64)> {
    let (shape, sort, limit) = (&place.shape, leading.sort.as_ref()?, leading.limit?);
    let mut tests = Vec::new();
    leading.filter.root.each_required(&mut |node| tests.push(node));
    let is_kept = |node: &&Node| matches!(node, Node::Field { path, .. } if shape.keeps(path));
    let is_told =
        shape.is_row_by_row() && tests.iter().all(is_kept) && sort.keys.iter().all(|key| shape.keeps(&key.path));
    is_told.then(|| (sort.clone(), leading.skip.saturating_add(limit)))
}

/// The logical documents among which are those that match, as code.
pub(super) fn native(stack: &Stack, leading: &Leading) -> Result<Pipeline> {
    let mut all: Option<Pipeline> = None;
    for place in &stack.places {
        let shape = place.shape.clone();
        let first = first_of(place, leading);
        let (sort, limit) = first.as_ref().map_or((None, None), |(sort, limit)| (Some(sort), Some(*limit)));
        let found = Pipeline::of_query(&shape.push(&leading.filter), sort, 0, limit);
        let found = if shape.is_plain() { found } else { found.then(unpack_natively(shape)) };
        all = Some(match all {
            None => found,
            Some(before) => before.then(Pipeline::union_with(&place.stored.collection, found)?),
        });
    }
    Ok(all.unwrap_or_default())
}

/// Those of one place, for a real MongoDB.
pub(super) fn of_place(place: &Place, leading: &Leading) -> Vec<Value<'static>> {
    let pushed = place.shape.push(&leading.filter);
    let matching = (!pushed.is_all()).then(|| call("$match", Value::Document(pushed.source)));
    let first = first_of(place, leading).into_iter().flat_map(|(sort, limit)| {
        let limit = Value::Int64(i64::try_from(limit).unwrap_or(i64::MAX));
        let keys: Vec<(String, i32)> =
            sort.keys.iter().map(|key| (key.path.dotted(), if key.descending { -1 } else { 1 })).collect();
        let keys = object(keys.iter().map(|(path, direction)| (&**path, Value::Int32(*direction))));
        [call("$sort", keys), call("$limit", limit)]
    });
    let view = place.shape.view(Dialect::MongoDb);
    matching.into_iter().chain(first).chain(view.iter()).collect()
}

/// The same for a real MongoDB.
pub(super) fn as_mql(stack: &Stack, leading: &Leading) -> Vec<Value<'static>> {
    let mut all: Vec<Value<'static>> = Vec::new();
    for (at, place) in stack.places.iter().enumerate() {
        let stages = of_place(place, leading);
        match at {
            0 => all.extend(stages),
            _ => {
                let union = [("coll", Value::from(&*place.stored.collection)), ("pipeline", list(stages))];
                all.push(call("$unionWith", object(union)));
            }
        }
    }
    all
}
