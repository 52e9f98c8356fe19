//! Clients' commands with their hex digits as logical documents have them: asks the shapes where these are.

use crate::active::Rules;
use crate::shapes::Stack;
use crate::shapes::hex::Digits;
use document::backend::{Class, Head};
use document::op::{Context, Namespace, ReadOp, WriteOp};
use document::{Doc, Result};
use std::borrow::Cow;

/// The digits in documents of a collection; `None` if there are none.
fn of_stack(stack: &Stack) -> Option<Digits> {
    let shape = stack.places.iter().map(|place| &place.shape).find(|shape| !shape.is_plain())?;
    let in_any_case = stack.places.iter().any(|place| place.shape.is_plain());
    Some(Digits::new(shape.hex_paths()?, in_any_case))
}

/// The digits in documents of a collection and, for a pipeline, in those of the collections that its stages may read beside it.
/// Returns `None` if there are none.
fn of_read(rules: &Rules, ns: &Namespace, is_pipeline: bool) -> Option<Digits> {
    let own = rules.shaped(ns).and_then(|stack| of_stack(stack));
    if !is_pipeline {
        return own;
    }
    let stacks = rules.all_shaped().filter(|stack| stack.logical.db == ns.db);
    let others: Vec<(String, Digits)> =
        stacks.filter_map(|stack| Some((stack.logical.collection.to_string(), of_stack(stack)?))).collect();
    (!others.is_empty()).then(|| own.unwrap_or_else(Digits::none).beside(others))
}

/// The command that is passed on in place of a client's read whose filter or stages are about digits. Returns `None` if it says the
/// same.
pub(crate) fn command(rules: &Rules, command: &Head<'_>) -> Option<Doc<'static>> {
    if !matches!(command.class, Class::Aggregate | Class::Find | Class::Count | Class::Distinct) {
        return None;
    }
    let ns = Namespace::new(command.db, command.target.unwrap_or_default());
    of_read(rules, &ns, command.class == Class::Aggregate)?.command(command)
}

/// The read with its digits in lower case; the same read if it says the same.
pub(crate) fn read<'o>(rules: &Rules, op: &'o ReadOp, context: &Context) -> Result<Cow<'o, ReadOp>> {
    match of_read(rules, op.ns(), matches!(op, ReadOp::Aggregate(_))) {
        Some(digits) => digits.read(op, context),
        None => Ok(Cow::Borrowed(op)),
    }
}

/// The same for a read that is handed on.
pub(crate) fn read_owned(rules: &Rules, op: ReadOp, context: &Context) -> Result<ReadOp> {
    match read(rules, &op, context)? {
        Cow::Owned(rewritten) => Ok(rewritten),
        Cow::Borrowed(_) => Ok(op),
    }
}

/// The write with its digits in lower case; the same write if it says the same.
pub(crate) fn write<'o>(stack: &Stack, op: &'o WriteOp, context: &Context) -> Result<Cow<'o, WriteOp>> {
    let digits = if matches!(op, WriteOp::Insert(_)) { None } else { of_stack(stack) };
    match digits {
        Some(digits) => digits.write(op, context),
        None => Ok(Cow::Borrowed(op)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::State;
    use bson::{Bson, Document, doc};
    use document::Value;
    use document::filter::Filter;
    use document::op::{Aggregate, Find};
    use document::pipeline::Pipeline;
    use document::pipeline::expr::Names;

    fn rules() -> Rules {
        let text = "{ database: shop, collections: { data: { bucket: { into: hours, time: ts, by: [{ field: key, as: hex }], \
                    every: hour } } } }";
        let rule = crate::declare::from_yaml("rules", text).into_result().unwrap().rules.remove(0);
        Rules::new(vec![(std::sync::Arc::new(rule), State::On).into()], None).unwrap()
    }

    fn find(collection: &str) -> ReadOp {
        let filter = Filter::parse(&Doc::from(doc! { "key": "AB", "name": "AB" }), &mut Names::new()).unwrap();
        ReadOp::Find(Find::matching(Namespace::new("shop", collection), filter))
    }

    fn aggregate(collection: &str, stages: Vec<Document>) -> ReadOp {
        let Value::Array(stages) = Value::from(Bson::from(stages)) else { panic!("no stages") };
        let pipeline = Pipeline::parse(&stages, &mut Names::new()).unwrap();
        let ns = Namespace::new("shop", collection);
        ReadOp::Aggregate(Aggregate {
            ns,
            collectionless: false,
            pipeline,
            hint: None,
            allow_disk_use: true,
            collation: None,
        })
    }

    #[test]
    fn a_filter_is_rewritten_where_its_own_collection_has_digits() {
        let (rules, context) = (rules(), testing::context());
        let ReadOp::Find(lower) = read_owned(&rules, find("data"), &context).unwrap() else { panic!() };
        assert_eq!(lower.filter.source, Doc::from(doc! { "key": "ab", "name": "AB" }));
        assert!(matches!(read(&rules, &find("others"), &context).unwrap(), Cow::Borrowed(_)));
    }

    #[test]
    fn a_pipeline_is_rewritten_where_it_reads_a_collection_that_has_digits() {
        let (rules, context) = (rules(), testing::context());
        let inner = doc! { "$match": { "key": "AB" } };
        let join = doc! { "$lookup": { "from": "data", "pipeline": [inner.clone()], "as": "of" } };
        let op = read_owned(&rules, aggregate("others", vec![inner.clone(), join]), &context).unwrap();
        let lower = doc! { "$lookup": { "from": "data", "pipeline": [{ "$match": { "key": "ab" } }], "as": "of" } };
        assert_eq!(op.to_command(), aggregate("others", vec![inner.clone(), lower]).to_command());
        let alone = aggregate("others", vec![inner]);
        assert!(matches!(read(&rules, &alone, &context).unwrap(), Cow::Borrowed(_)));
    }
}
