//! `$lookup`, `$unionWith`, `$facet` and `$documents`.

use super::testing::{Memory, check, check_error, check_with, documents, parse, run};
use super::{from_documents, results};
use crate::raw::Doc;
use bson::{Bson, bson, doc};

fn others(name: &str, docs: Bson) -> Memory {
    let mut memory = Memory::default();
    memory.collections.insert(name.to_owned(), documents(docs).iter().map(Doc::from).collect());
    memory
}

/// Which of `foreign` a `$lookup` finds for a document with `local`, by their places.
fn joined(local: Option<Bson>, foreign: &[Option<Bson>]) -> Vec<i32> {
    let with = |name: &str, value: &Option<Bson>| match value {
        Some(value) => doc! { name: value.clone() },
        None => doc! {},
    };
    let docs = foreign.iter().zip(0i32..).map(|(value, at)| {
        let mut doc = doc! { "_id": at };
        doc.extend(with("x", value));
        doc
    });
    let memory = others("d", Bson::Array(docs.map(Bson::Document).collect()));
    let pipeline =
        parse(bson!([{ "$lookup": { "from": "d", "localField": "a", "foreignField": "x", "as": "r" } }])).unwrap();
    let output = run(&pipeline, &[with("a", &local)], &memory).unwrap();
    let output = bson::Document::try_from(&output[0]).unwrap();
    output.get_array("r").unwrap().iter().map(|doc| doc.as_document().unwrap().get_i32("_id").unwrap()).collect()
}

#[test]
fn fields_join_as_mongodb_joins_them() {
    let regex =
        || Bson::RegularExpression(bson::Regex { pattern: "a".try_into().unwrap(), options: "".try_into().unwrap() });
    let foreign: Vec<Option<Bson>> = vec![
        Some(bson!(1)),
        Some(bson!([1, 2])),
        Some(Bson::Null),
        None,
        Some(bson!([])),
        Some(bson!([[1]])),
        Some(bson!([null])),
        Some(bson!([[]])),
        Some(regex()),
        Some(bson!("abc")),
        Some(bson!({ "y": 1 })),
        Some(bson!([{ "y": 1 }])),
        Some(bson!(2)),
        Some(bson!([[1, 2]])),
    ];
    let check =
        |local: Option<Bson>, expected: &[i32]| assert_eq!(joined(local.clone(), &foreign), expected, "{local:?}");
    check(Some(bson!(1)), &[0, 1]);
    check(Some(bson!([1, 2])), &[0, 1, 12]);
    check(Some(Bson::Null), &[2, 3, 6]);
    check(None, &[2, 3, 6]);
    check(Some(bson!([])), &[2, 3, 6]);
    check(Some(bson!([[1]])), &[5]);
    check(Some(bson!([null])), &[2, 3, 6]);
    check(Some(bson!([[]])), &[4, 7]);
    check(Some(regex()), &[8]);
    check(Some(bson!([regex(), 1])), &[0, 1, 8]);
    check(Some(bson!({ "y": 1 })), &[10, 11]);
    check(Some(bson!(2.0)), &[1, 12]);
    check(Some(bson!([[1, 2]])), &[1, 13]);
}

#[test]
fn local_paths_walk_arrays_and_positions() {
    let memory = others(
        "d",
        bson!([{ "_id": 1, "x": 1 }, { "_id": 2, "x": 2 }, { "_id": 3, "x": [2, 3] }, { "_id": 5, "x": 5 }, { "_id": 6, "x": 6 }]),
    );
    let check = |doc: bson::Document, path: &str, expected: Bson| {
        let mut wanted = doc.clone();
        wanted.insert("r", expected);
        let lookup = bson!([
            { "$lookup": { "from": "d", "localField": path, "foreignField": "x", "as": "r", "pipeline": [{ "$replaceWith": { "i": "$_id" } }] } },
        ]);
        check_with(&memory, vec![doc], lookup, bson!([wanted]));
    };
    check(doc! { "a": [1, [2, 3]] }, "a.0", bson!([{ "i": 1 }]));
    check(doc! { "a": [1, [2, 3]] }, "a.1", bson!([{ "i": 2 }, { "i": 3 }]));
    check(doc! { "a": [{ "y": 5 }, { "y": 6 }] }, "a.y", bson!([{ "i": 5 }, { "i": 6 }]));
    check(doc! { "a": [{ "y": 5 }, { "y": 6 }] }, "a.0.y", bson!([{ "i": 5 }]));
    check(doc! { "a": [[{ "y": 5 }]] }, "a.y", bson!([]));
}

#[test]
fn pipelines_see_variables() {
    let memory = others("d", bson!([{ "_id": 1, "x": 1 }, { "_id": 2, "x": 2 }]));
    let input = || documents(bson!([{ "_id": 1, "a": 1 }, { "_id": 2, "a": 2 }, { "_id": 3 }]));
    check_with(
        &memory,
        input(),
        bson!([{ "$lookup": { "from": "d", "let": { "v": "$a" }, "pipeline": [{ "$match": { "$expr": { "$eq": ["$x", "$$v"] } } }], "as": "r" } }]),
        bson!([{ "_id": 1, "a": 1, "r": [{ "_id": 1, "x": 1 }] }, { "_id": 2, "a": 2, "r": [{ "_id": 2, "x": 2 }] }, { "_id": 3, "r": [] }]),
    );
    let asked = memory.asked.lock().unwrap().clone();
    assert!(asked[0].starts_with("d { $and: [ { x: { $eq: 1 } }"), "{asked:?}");
    check_with(
        &memory,
        documents(bson!([{ "_id": 1, "a": 1 }])),
        bson!([{ "$lookup": { "from": "d", "let": { "v": "$a" }, "as": "r", "pipeline": [
            { "$lookup": { "from": "d", "let": { "w": "$x" }, "pipeline": [{ "$replaceWith": { "v": "$$v", "w": "$$w" } }, { "$limit": 1 }], "as": "q" } },
        ] } }]),
        bson!([{ "_id": 1, "a": 1, "r": [{ "_id": 1, "x": 1, "q": [{ "v": 1, "w": 1 }] }, { "_id": 2, "x": 2, "q": [{ "v": 1, "w": 2 }] }] }]),
    );
}

#[test]
fn a_pipeline_without_variables_runs_once() {
    let memory = others("d", bson!([{ "_id": 1 }]));
    let pipeline = parse(bson!([{ "$lookup": { "from": "d", "pipeline": [], "as": "r.s" } }])).unwrap();
    let output = run(&pipeline, &documents(bson!([{ "r": 1 }, { "r": { "t": 2 } }])), &memory).unwrap();
    assert_eq!(
        output,
        documents(bson!([{ "r": { "s": [{ "_id": 1 }] } }, { "r": { "t": 2, "s": [{ "_id": 1 }] } }]))
            .iter()
            .map(Doc::from)
            .collect::<Vec<_>>()
    );
    assert_eq!(memory.asked.lock().unwrap().len(), 1);
}

#[test]
fn references_are_followed() {
    let people = bson!([
        { "_id": 1, "n": "a", "r": null }, { "_id": 2, "n": "b", "r": "a" }, { "_id": 3, "n": "c", "r": ["a", "b"] },
        { "_id": 4, "n": "d", "r": "c" }, { "_id": 5, "n": "e", "r": "zz" }, { "_id": 6, "n": null, "r": "d" }, { "_id": 7 },
    ]);
    let memory = others("c", people.clone());
    let check = |id: i32, further: bson::Document, expected: Bson| {
        let mut spec =
            doc! { "from": "c", "startWith": "$r", "connectFromField": "r", "connectToField": "n", "as": "x" };
        spec.extend(further);
        let stages = bson!([
            { "$match": { "_id": id } }, { "$graphLookup": spec }, { "$unwind": "$x" }, { "$sort": { "x._id": 1 } },
            { "$replaceWith": { "i": "$x._id", "d": "$x.d" } },
        ]);
        check_with(&memory, documents(people.clone()), stages, expected);
    };
    let deep = |depths: &[(i32, i64)]| Bson::Array(depths.iter().map(|(i, d)| bson!({ "i": *i, "d": *d })).collect());
    check(1, doc! { "depthField": "d" }, deep(&[(1, 3), (2, 3), (3, 2), (4, 1), (6, 0)]));
    check(4, doc! { "depthField": "d", "maxDepth": 1 }, deep(&[(1, 1), (2, 1), (3, 0)]));
    check(3, doc! { "maxDepth": 0 }, bson!([{ "i": 1 }, { "i": 2 }]));
    check(
        1,
        doc! { "restrictSearchWithMatch": { "_id": { "$gt": 1 } } },
        bson!([{ "i": 2 }, { "i": 3 }, { "i": 4 }, { "i": 6 }]),
    );
    check(5, doc! {}, bson!([]));
    let graph = |spec: Bson, code, message: &str| check_error(bson!([{ "$graphLookup": spec }]), code, message);
    graph(bson!({}), 9, "missing 'from' option to $graphLookup stage specification: {}");
    graph(bson!({ "maxDepth": -1 }), 40101, "maxDepth requires a nonnegative argument, found: -1");
    graph(bson!({ "x": 1 }), 40104, "Unknown argument to $graphLookup: x");
}

#[test]
fn unions_and_documents() {
    let memory = others("d", bson!([{ "_id": 9, "x": 1 }]));
    let input = || documents(bson!([{ "_id": 1 }]));
    check_with(&memory, input(), bson!([{ "$unionWith": "d" }]), bson!([{ "_id": 1 }, { "_id": 9, "x": 1 }]));
    check_with(
        &memory,
        input(),
        bson!([{ "$unionWith": { "coll": "d", "pipeline": [{ "$match": { "x": 2 } }] } }]),
        bson!([{ "_id": 1 }]),
    );
    check_with(
        &memory,
        input(),
        bson!([{ "$unionWith": { "pipeline": [{ "$documents": [{ "z": 1 }] }] } }, { "$match": { "z": 1 } }]),
        bson!([{ "z": 1 }]),
    );
    check(vec![], bson!([{ "$documents": [{ "a": { "$literal": 3 } }, {}] }]), bson!([{ "a": 3 }, {}]));
    check(
        documents(bson!([{ "a": 2 }])),
        bson!([{ "$lookup": { "pipeline": [{ "$documents": [{ "x": 1 }, { "x": 2 }] }], "localField": "a", "foreignField": "x", "as": "r" } }]),
        bson!([{ "a": 2, "r": [{ "x": 2 }] }]),
    );
}

#[test]
fn facets() {
    let input = || documents(bson!([{ "_id": 1, "a": 1 }, { "_id": 2, "a": 1 }, { "_id": 3, "a": 2 }]));
    check(
        input(),
        bson!([{ "$facet": { "n": [{ "$count": "n" }], "none": [{ "$match": { "a": 3 } }], "one": [{ "$match": { "a": 2 } }], "all": [] } }]),
        bson!([{ "n": [{ "n": 3 }], "none": [], "one": [{ "_id": 3, "a": 2 }], "all": [{ "_id": 1, "a": 1 }, { "_id": 2, "a": 1 }, { "_id": 3, "a": 2 }] }]),
    );
    check(vec![], bson!([{ "$facet": { "n": [{ "$count": "n" }] } }]), bson!([{ "n": [] }]));
}

#[test]
fn errors_are_mongodbs() {
    let lookup = |spec: Bson, code, message: &str| check_error(bson!([{ "$lookup": spec }]), code, message);
    lookup(bson!(1), 9, "the $lookup stage specification must be an object, but found int");
    lookup(bson!({}), 9, "must specify 'pipeline' when 'from' is empty");
    lookup(bson!({ "from": 1 }), 9, "$lookup 'from' field must be a string, but found int");
    lookup(bson!({ "from": "d" }), 9, "must specify 'as' field for a $lookup");
    let neither = "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified";
    lookup(bson!({ "from": "d", "as": "r", "localField": "a" }), 9, neither);
    lookup(
        bson!({ "from": "d", "as": "r", "pipeline": [], "x": 1 }),
        9,
        "$lookup argument 'x' must be a string, found x: 1: int",
    );
    lookup(
        bson!({ "from": "d", "as": "r", "pipeline": [{ "$out": "x" }] }),
        51047,
        "$out is not allowed within a $lookup's sub-pipeline",
    );
    lookup(
        bson!({ "from": "d", "as": "r", "pipeline": [], "let": { "A": 1 } }),
        9,
        "'A' starts with an invalid character for a user variable name",
    );
    let no_source = "$lookup stage without explicit collection must have a pipeline with $documents as first stage";
    lookup(bson!({ "as": "r", "pipeline": [] }), 9, no_source);
    let facet = |spec: Bson, code, message: &str| check_error(bson!([{ "$facet": spec }]), code, message);
    facet(bson!({}), 40169, "the $facet specification must be a non-empty object, but found: $facet: {}");
    facet(bson!({ "a": 1 }), 40170, "arguments to $facet must be arrays, a is type int");
    facet(bson!({ "a": [{ "$facet": { "b": [] } }] }), 40600, "$facet is not allowed to be used within a $facet stage");
    facet(
        bson!({ "a.b": [] }),
        16412,
        "FieldPath field names may not contain '.'. Consider using $getField or $setField.",
    );
    let union = |spec: Bson, code, message: &str| check_error(bson!([{ "$unionWith": spec }]), code, message);
    union(bson!(1), 9, "the $unionWith stage specification must be an object or string, but found int");
    union(bson!({ "coll": 1 }), 14, "BSON field '$unionWith.coll' is the wrong type 'int', expected type 'string'");
    check_error(bson!([{ "$documents": 1 }]), 5_858_203, "an array is expected");
    check_error(
        bson!([{ "$limit": 1 }, { "$documents": [] }]),
        40602,
        "$documents is only valid as the first stage in a pipeline",
    );
}

#[test]
fn a_result_is_at_most_16_mb() {
    let big = Doc::from(doc! { "_id": 1, "s": "x".repeat(17 << 20) });
    let mut rows = results(from_documents(vec![Doc::from(doc! { "_id": 0 }), big]));
    assert!(rows.next().unwrap().is_some());
    let error = rows.next().unwrap_err();
    let message = "BSONObj size: 17825814 (0x1100016) is invalid. Size must be between 0 and 16793600(16MB) First element: _id: 1";
    assert_eq!((error.code().number(), error.message()), (10334, message));
}

#[test]
fn nesting_and_length_are_bounded() {
    let mut stages = bson!([]);
    for _ in 0..21 {
        stages = bson!([{ "$unionWith": { "coll": "d", "pipeline": stages } }]);
    }
    check_error(stages, 232, "Maximum number of nested sub-pipelines exceeded. Limit is 20");
    let many = Bson::Array(vec![bson!({ "$limit": 1 }); 1001]);
    check_error(many, 9, "Pipeline length must be no longer than 1000 stages");
    check_error(bson!([1]), 14, "Each element of the 'pipeline' array must be an object");
    check_error(bson!([{}]), 40323, "A pipeline stage specification object must contain exactly one field.");
    check_error(bson!([{ "$x": 1 }]), 40324, "Unrecognized pipeline stage name: '$x'");
    check_error(bson!([{ "$search": {} }]), 40324, "Unrecognized pipeline stage name: '$search'");
}
