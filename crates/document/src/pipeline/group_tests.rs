//! `$group`, `$count` and `$sortByCount`.

use super::testing::{Memory, check, check_error, documents, parse, run};
use super::{Pipeline, Run, from_documents};
use crate::pipeline::expr::Names;
use crate::spill::testing::spilling;
use crate::{Doc, Env, Value};
use bson::{Bson, bson, doc};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn input() -> Vec<bson::Document> {
    documents(bson!([
        { "_id": 1, "a": 1, "b": "x" }, { "_id": 2, "a": 2.0, "b": "y" }, { "_id": 3, "a": Bson::Int64(1), "b": "x" },
        { "_id": 4, "a": null, "b": "x" }, { "_id": 5, "b": "y" }, { "_id": 6, "a": [1, 2] }, { "_id": 7, "a": 1.0, "b": "z" },
    ]))
}

#[test]
fn equal_values_of_different_types_are_one_group() {
    check(
        input(),
        bson!([{ "$group": { "_id": "$a", "n": { "$sum": 1 }, "ids": { "$push": "$_id" } } }]),
        bson!([
            { "_id": 1, "n": 3, "ids": [1, 3, 7] }, { "_id": 2.0, "n": 1, "ids": [2] },
            { "_id": null, "n": 2, "ids": [4, 5] }, { "_id": [1, 2], "n": 1, "ids": [6] },
        ]),
    );
}

#[test]
fn a_key_of_fields_keeps_missing_apart_from_null() {
    check(
        input(),
        bson!([{ "$match": { "_id": { "$gte": 4 } } }, { "$group": { "_id": { "k": "$a", "l": "$b" } } }]),
        bson!([{ "_id": { "k": null, "l": "x" } }, { "_id": { "l": "y" } }, { "_id": { "k": [1, 2] } }, { "_id": { "k": 1.0, "l": "z" } }]),
    );
    check(
        documents(bson!([{ "a": null }, {}])),
        bson!([{ "$group": { "_id": { "k": "$a" }, "n": { "$sum": 1 } } }]),
        bson!([{ "_id": { "k": null }, "n": 2 }]),
    );
    check(input(), bson!([{ "$group": { "_id": {} } }]), bson!([{ "_id": {} }]));
    check(vec![], bson!([{ "$group": { "_id": null, "n": { "$sum": 1 } } }]), bson!([]));
}

#[test]
fn a_missing_result_is_null() {
    let stages = bson!([{ "$group": { "_id": null, "f": { "$first": "$zz" }, "m": { "$min": "$zz" }, "p": { "$push": "$zz" } } }]);
    check(input(), stages, bson!([{ "_id": null, "f": null, "m": null, "p": [] }]));
}

#[test]
fn counts() {
    check(input(), bson!([{ "$count": "n" }]), bson!([{ "n": 7 }]));
    check(vec![], bson!([{ "$count": "n" }]), bson!([]));
    check(
        input(),
        bson!([{ "$sortByCount": "$b" }]),
        bson!([{ "_id": "x", "count": 3 }, { "_id": "y", "count": 2 }, { "_id": null, "count": 1 }, { "_id": "z", "count": 1 }]),
    );
}

#[test]
fn memory_is_bounded() {
    let big: Vec<_> = (0..200).map(|n| doc! { "_id": n, "s": "x".repeat(1 << 20) }).collect();
    let pipeline = parse(bson!([{ "$group": { "_id": null, "all": { "$push": "$s" } } }])).unwrap();
    let error = run(&pipeline, &big, &Memory::default()).unwrap_err();
    assert!([292, 146].contains(&error.code().number()), "{error}");
    let pipeline = parse(bson!([{ "$group": { "_id": "$s" } }])).unwrap();
    let distinct: Vec<_> = (0..200).map(|n| doc! { "s": format!("{n}{}", "x".repeat(1 << 20)) }).collect();
    assert_eq!(run(&pipeline, &distinct, &Memory::default()).unwrap_err().code().number(), 292);
}

#[test]
fn errors_are_mongodbs() {
    let group = |spec: Bson, code, message: &str| check_error(bson!([{ "$group": spec }]), code, message);
    group(bson!(1), 15947, "a group's fields must be specified in an object");
    group(bson!({}), 15955, "a group specification must include an _id");
    group(bson!({ "x": 1 }), 40234, "The field 'x' must be an accumulator object");
    group(bson!({ "_id": { "x": 1 } }), 17390, "$group does not support inclusion-style expressions");
    group(bson!({ "_id": null, "n": { "$x": 1 } }), 15952, "unknown group operator '$x'");
    check_error(bson!([{ "$count": "a.b" }]), 40160, "the count field cannot contain '.'");
    check_error(bson!([{ "$count": "_id" }]), 15948, "a group's _id may only be specified once");
    let malformed = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
    check_error(bson!([{ "$sortByCount": "a" }]), 40148, malformed);
    check_error(bson!([{ "$sortByCount": {} }]), 40147, malformed);
}

#[test]
fn groups_on_disk_are_those_in_memory() {
    let docs: Vec<bson::Document> = (0..3000i32)
        .map(|n| doc! {"_id": n, "k": n * 7 % 400, "text": "x".repeat(usize::try_from(n % 50).unwrap())})
        .collect();
    let check = |fields: bson::Document, memory: usize, spills: bool| {
        let mut spec = doc! {"_id": "$k"};
        spec.extend(fields);
        let stages = [Bson::Document(doc! {"$group": spec}), Bson::Document(doc! {"$sort": {"_id": 1}})];
        let run = |env: Env| {
            let Value::Array(stages) = Value::from(Bson::Array(stages.to_vec())) else { panic!("stages are an array") };
            let pipeline = Pipeline::parse(&stages, &mut Names::new()).unwrap();
            let input = from_documents(docs.iter().cloned().map(Doc::from).collect());
            let mut rows = pipeline.start(input, &Run { env, collections: Arc::new(Memory::default()) }).unwrap();
            let mut found = Vec::new();
            while let Some(doc) = rows.next().unwrap() {
                found.push(bson::Document::try_from(&doc).unwrap());
            }
            found
        };
        let expected = run(Env::fixed());
        assert_eq!(expected.len(), 400);
        let (env, spill) = spilling(memory);
        assert_eq!(run(env), expected, "{stages:?}");
        // One more for the sort.
        assert_eq!(spill.files.load(Ordering::Relaxed) > 2, spills, "{stages:?}");
    };
    let growing = || doc! {"all": {"$push": "$_id"}, "first": {"$first": "$_id"}, "text": {"$addToSet": "$text"}};
    check(growing(), 100 << 20, false);
    check(growing(), 40_000, true);
    check(growing(), 4_000, true);
    check(doc! {"n": {"$sum": 1}, "mean": {"$avg": "$_id"}}, 20_000, true);
    check(doc! {"n": {"$sum": 1}, "mean": {"$avg": "$_id"}}, 2_000, true);
}
