//! The way that every shape can be read: the pushed filter, the unpacking, then what was asked.

use crate::execute::read::union;
use crate::rule::read::{ReadPlan, ReadRequest};
use crate::shapes::Stack;
use document::backend::Facts;
use document::filter::Filter;
use document::op::Namespace;
use document::pipeline::{Leading, Pipeline};
use document::{Array, Result};

/// One pipeline over all places: as code where it runs, else as MQL, without a projection that only a find can say.
pub(super) fn plan(stack: &Stack, request: &ReadRequest, facts: Facts) -> Result<ReadPlan> {
    let leading = request.pipeline.split().leading;
    let pipeline = match facts.runs_our_code && !request.for_people {
        true => union::native(stack, &leading)?.then(request.native()),
        false => Pipeline { source: Some(as_mql(stack, request, &leading)), ..Pipeline::default() },
    };
    let pushed = stack.places.first().map_or_else(Filter::all, |place| place.shape.push(&leading.filter));
    Ok(ReadPlan::new(request.aggregate(first_stored(stack), pipeline), pushed))
}

/// Where new documents are stored.
pub(super) fn first_stored(stack: &Stack) -> &Namespace {
    stack.places.first().map_or(&stack.logical, |place| &place.stored)
}

fn as_mql(stack: &Stack, request: &ReadRequest, leading: &Leading) -> Array<'static> {
    let all = union::as_mql(stack, leading);
    let projection = request.projection.as_ref().and_then(|projection| projection.source.clone());
    let rest = [request.source(), projection.unwrap_or_else(Array::empty)];
    all.into_iter().chain(rest.iter().flat_map(|stages| stages.iter())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::read::request::ParsedRead;
    use crate::shapes::Place;
    use bson::{Document, doc};
    use document::op::{Find, ReadOp};
    use document::pipeline::expr::Names;
    use document::project::Projection;
    use document::{Doc, Value};
    use std::sync::Arc;
    use std::time::Instant;

    /// A collection that is half converted.
    fn stack() -> Stack {
        let text =
            "{ database: shop, collections: { data: { bucket: { into: hours, time: ts, by: [s], every: hour } } } }";
        let rule = Arc::new(crate::declare::from_yaml("rules", text).into_result().unwrap().rules.remove(0));
        let bucket = rule.bucket().unwrap().clone();
        let places = vec![Place::of_bucket(&bucket), Place::plain(Namespace::new("shop", "aside"))];
        Stack { logical: rule.host.clone(), rule, places, since: Instant::now(), is_source: false }
    }

    fn find(filter: Document, projection: Document) -> ParsedRead {
        let filter = Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap();
        let projection = Projection::parse_find(&Doc::from(projection), &filter, &mut Names::new()).unwrap();
        let find = Find { projection: Some(Arc::new(projection)), ..Find::matching(stack().logical, filter) };
        ParsedRead::of(&ReadOp::Find(find), &testing::context()).unwrap()
    }

    fn names(plan: &ReadPlan) -> Vec<String> {
        let ReadOp::Aggregate(op) = &plan.op else { panic!("{:?}", plan.op) };
        let name = |stage: Value<'_>| match stage {
            Value::Document(stage) => stage.iter().next().map(|(name, _)| name.to_string()).unwrap_or_default(),
            other => panic!("{other:?}"),
        };
        match &op.pipeline.source {
            Some(stages) => stages.iter().map(name).collect(),
            None => op.pipeline.stages.iter().map(|stage| stage.name().to_owned()).collect(),
        }
    }

    #[test]
    fn both_places_are_read_by_one_pipeline() {
        let asked = find(doc! { "s": 1, "temp": 5 }, doc! { "temp": 1 });
        let stack = stack();
        let made = plan(&stack, &asked.request, Facts::MONGODB).unwrap();
        assert_eq!(names(&made), ["$match", "$unwind", "$replaceWith", "$unionWith", "$match", "$project"]);
        assert_eq!(made.op.ns(), &Namespace::new("shop", "hours"));
        assert_eq!(made.pushed.source, Doc::from(doc! { "s": { "$eq": 1 } }));
        let made = plan(&stack, &asked.request, Facts::EMBEDDED).unwrap();
        assert_eq!(names(&made), ["$match", "$_internalPleachExpand", "$unionWith", "$match", "$project"]);
    }

    #[test]
    fn a_projection_that_only_a_find_can_say_is_left_to_the_end() {
        let asked = find(doc! { "s": 1 }, doc! { "list": { "$slice": 1 } });
        assert!(asked.only_in_find.is_some());
        let made = plan(&stack(), &asked.request, Facts::MONGODB).unwrap();
        assert!(!names(&made).contains(&"$project".to_owned()));
        let made = plan(&stack(), &asked.request, Facts::EMBEDDED).unwrap();
        assert!(names(&made).contains(&"$project".to_owned()));
    }
}
