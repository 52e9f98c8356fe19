//! Pipelines that give the logical documents of all places of a collection.

use crate::mql::{call, list, object};
use crate::rule::read::Dialect;
use crate::shapes::Stack;
use crate::shapes::unpack::unpack_natively;
use document::filter::Filter;
use document::pipeline::Pipeline;
use document::{Result, Value};

/// The logical documents among which are those that match, as code.
pub(super) fn native(stack: &Stack, filter: &Filter) -> Result<Pipeline> {
    let mut all: Option<Pipeline> = None;
    for place in &stack.places {
        let shape = place.shape.clone();
        let found = Pipeline::of_query(&shape.push(filter), None, 0, None);
        let found = if shape.is_plain() { found } else { found.then(unpack_natively(shape)) };
        all = Some(match all {
            None => found,
            Some(before) => before.then(Pipeline::union_with(&place.stored.collection, found)?),
        });
    }
    Ok(all.unwrap_or_default())
}

/// The same for a real MongoDB.
pub(super) fn as_mql(stack: &Stack, filter: &Filter) -> Vec<Value<'static>> {
    let mut all: Vec<Value<'static>> = Vec::new();
    for (at, place) in stack.places.iter().enumerate() {
        let shape = place.shape.clone();
        let pushed = shape.push(filter);
        let matching = (!pushed.is_all()).then(|| call("$match", Value::Document(pushed.source)));
        let view = shape.view(Dialect::MongoDb);
        let stages = matching.into_iter().chain(view.iter());
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
