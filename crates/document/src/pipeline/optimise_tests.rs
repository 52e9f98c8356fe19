//! An optimised pipeline gives what the pipeline as written gives; so does one that is split and put together again.

use super::testing::{Memory, parse_unoptimised, run};
use super::{Pipeline, Rows, Run, Split, from_documents, sorted};
use crate::env::Env;
use crate::error::Result;
use crate::raw::Doc;
use bson::{Bson, Document, bson};
use proptest::prelude::*;
use std::sync::Arc;

fn value() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        Just(Bson::Null),
        (0..4i32).prop_map(Bson::Int32),
        (0..4i32).prop_map(|n| Bson::Double(f64::from(n) / 2.0)),
        "[xy]{1,2}".prop_map(Bson::String),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Bson::Array),
            prop::collection::vec(("[abc]", inner), 0..3)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
        ]
    })
}

fn documents() -> impl Strategy<Value = Vec<Document>> {
    let fields = prop::collection::vec(("[abc]", value()), 0..4);
    prop::collection::vec(fields, 0..8).prop_map(|all| {
        let with_id = |(at, fields): (usize, Vec<(String, Bson)>)| {
            let mut doc = bson::doc! { "_id": i32::try_from(at).unwrap() };
            doc.extend(fields);
            doc
        };
        all.into_iter().enumerate().map(with_id).collect()
    })
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[abc]", 1 => Just("_id".to_owned()), 2 => "[abc][.][abc]", 1 => "[abc][.]0"]
}

fn condition() -> impl Strategy<Value = Bson> {
    let test = prop_oneof![
        value().prop_map(|value| bson!({ "$eq": value })),
        value().prop_map(|value| bson!({ "$ne": value })),
        (0..3i32).prop_map(|value| bson!({ "$gt": value })),
        prop::collection::vec(value(), 0..3).prop_map(|values| bson!({ "$in": values })),
        any::<bool>().prop_map(|exists| bson!({ "$exists": exists })),
    ];
    let field = (path(), test).prop_map(|(path, test)| bson!({ path: test })).boxed();
    prop_oneof![
        4 => field.clone(),
        1 => prop::collection::vec(field.clone(), 1..3).prop_map(|all| bson!({ "$and": all })),
        1 => prop::collection::vec(field, 1..3).prop_map(|any| bson!({ "$or": any })),
        1 => ("[abc]", 0..3i32).prop_map(|(path, n)| bson!({ "$expr": { "$eq": [format!("${path}"), n] } })),
        1 => Just(bson!({})),
    ]
}

fn stage() -> impl Strategy<Value = Bson> {
    let plain = || prop_oneof!["[abc]", "[abc][.][abc]"];
    prop_oneof![
        4 => condition().prop_map(|condition| bson!({ "$match": condition })),
        1 => ("[abc]", prop::bool::ANY).prop_map(|(path, up)| bson!({ "$sort": { path: if up { 1 } else { -1 }, "_id": 1 } })),
        1 => (1..5i64).prop_map(|count| bson!({ "$limit": count })),
        1 => (0..3i64).prop_map(|count| bson!({ "$skip": count })),
        2 => (plain(), any::<bool>(), prop::option::of("[abci]")).prop_map(|(path, keep, index)| {
            let mut spec = bson::doc! { "path": format!("${path}"), "preserveNullAndEmptyArrays": keep };
            spec.extend(index.map(|index| ("includeArrayIndex".to_owned(), Bson::String(index))));
            bson!({ "$unwind": spec })
        }),
        1 => (plain(), prop::bool::ANY).prop_map(|(path, include)| bson!({ "$project": { path: i32::from(include) } })),
        1 => (plain(), plain()).prop_map(|(to, from)| bson!({ "$project": { to: format!("${from}"), "_id": 1 } })),
        1 => (plain(), path()).prop_map(|(to, from)| bson!({ "$addFields": { to: format!("${from}") } })),
        1 => plain().prop_map(|path| bson!({ "$unset": path })),
        1 => (plain(), plain(), plain()).prop_map(|(local, foreign, output)| {
            bson!({ "$lookup": { "from": "d", "localField": local, "foreignField": foreign, "as": output } })
        }),
        1 => "[abc]".prop_map(|path| bson!({ "$group": { "_id": format!("${path}"), "a": { "$sum": "$a" }, "b": { "$first": "$b" } } })),
        1 => Just(bson!({ "$replaceWith": { "_id": "$_id", "a": "$b", "b": "$a" } })),
    ]
}

/// What a client would see, or the error's code.
fn outcome(result: Result<Vec<Doc<'static>>>) -> std::result::Result<Vec<Document>, i32> {
    match result {
        Ok(docs) => Ok(docs.iter().map(|doc| Document::try_from(doc).unwrap()).collect()),
        Err(error) => Err(error.code().number()),
    }
}

/// As an engine without indexes runs a split pipeline.
fn run_split(pipeline: &Pipeline, input: &[Document], others: &Memory) -> Result<Vec<Doc<'static>>> {
    let Split { leading, rest, needed } = pipeline.split();
    let run = Run { env: Env::fixed(), collections: Arc::new(others.clone()) };
    let mut matching = Vec::new();
    for doc in input.iter().map(Doc::from) {
        if leading.filter.matches(&doc, &run.env)? {
            matching.push(doc);
        }
    }
    let mut rows: Rows = from_documents(matching);
    if let Some(sort) = leading.sort {
        rows = sorted(rows, sort, leading.limit.map(|limit| limit + leading.skip), &run.env);
    }
    let (mut documents, mut left) = (Vec::new(), leading.skip);
    while let Some(doc) = rows.next()? {
        match left {
            0 => documents.push(doc),
            _ => left -= 1,
        }
    }
    documents.truncate(usize::try_from(leading.limit.unwrap_or(u64::MAX)).unwrap());
    if let Some(needed) = needed {
        let keep = |(name, _): &(&String, &Bson)| needed.iter().any(|path| path.first() == name.as_str());
        for doc in &mut documents {
            let whole = Document::try_from(&*doc).unwrap();
            *doc = Doc::from(
                whole.iter().filter(keep).map(|(name, value)| (name.clone(), value.clone())).collect::<Document>(),
            );
        }
    }
    let mut rows = rest.start(from_documents(documents), &run)?;
    let mut output = Vec::new();
    while let Some(doc) = rows.next()? {
        output.push(doc);
    }
    Ok(output)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn optimising_changes_no_result(
        input in documents(),
        foreign in documents(),
        stages in prop::collection::vec(stage(), 0..5),
    ) {
        let mut others = Memory::default();
        others.collections.insert("d".to_owned(), foreign.iter().map(Doc::from).collect());
        let Ok(written) = parse_unoptimised(Bson::Array(stages)) else { return Ok(()) };
        let expected = outcome(run(&written, &input, &others));
        // A stage that fails on a document may not see it any more.
        prop_assume!(expected.is_ok());
        let optimised = written.clone().optimised();
        prop_assert_eq!(&outcome(run(&optimised, &input, &others)), &expected);
        prop_assert_eq!(&outcome(run_split(&optimised, &input, &others)), &expected);
    }
}
