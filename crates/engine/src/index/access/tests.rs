//! Plans against those of a real server, and every plan against reading the whole collection.

use super::plan::{Plan, Source};
use super::{Chosen, Query, choose};
use crate::catalog::Collection;
use crate::index::scan::{Scan, Want};
use crate::testing::{collection, filter, keys};
use crate::transaction::snapshot::ReadSnapshot;
use bson::{Bson, doc};
use document::filter::Filter;
use document::op::{Hint, SortKey, SortSpec};
use document::pipeline::sort_spec;
use document::value::Path;
use document::{Doc, Env, Value};
use proptest::prelude::*;
use std::sync::Arc;

/// Rows of a real server's explain: collection, filter, then the index, its bounds, whether documents are tested and whether
/// entries are; or null for a scan of the collection.
#[test]
fn bounds_are_those_of_a_real_server() {
    let rows: Vec<(String, serde_json::Value, serde_json::Value)> =
        serde_json::from_str(include_str!("../../../tests/data/bounds.json")).unwrap();
    let indexes = [keys(doc! {"a": 1}), keys(doc! {"x.y": 1, "x.z": 1})];
    let plain = collection(&indexes, &[doc! {"_id": 1, "a": 1, "b": 1}]);
    let multi = collection(&indexes, &[doc! {"_id": 1, "a": [1, 2], "b": 1, "x": [{"y": 1, "z": 2}]}]);
    let mut wrong = Vec::new();
    for (name, source, expected) in rows {
        let Ok(Bson::Document(source)) = Bson::try_from(source) else { panic!("a filter is a document") };
        let Ok(filter) = Filter::parse(&Doc::from(&source), &mut Default::default()) else { continue };
        let (collection, snapshot) = if name == "plain" { &plain } else { &multi };
        let chosen = choose(collection, snapshot, Query::new(&filter, &Env::fixed()), true).unwrap();
        let plans = std::iter::once(&chosen.plan).chain(&chosen.rejected);
        let found: Vec<serde_json::Value> = plans.map(described).collect();
        // Which of several plans wins says little on one document; that the server's is among ours says enough.
        if !found.iter().any(|plan| same_plan(plan, &expected)) {
            wrong.push(format!("{name} {source}\n  expected {expected}\n  found    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

fn described(plan: &Plan) -> serde_json::Value {
    match &plan.source {
        Source::Id { .. } => "IDHACK".into(),
        Source::Index(scan) => {
            let bounds: serde_json::Map<String, serde_json::Value> = scan
                .index()
                .keys
                .iter()
                .zip(&scan.candidate.bounds)
                .map(|(key, bounds)| (key.path.dotted(), bounds.texts(scan.reverse).into()))
                .collect();
            serde_json::json!([
                &*scan.index().name,
                bounds,
                plan.residual.is_some(),
                !scan.candidate.key_tests.is_empty()
            ])
        }
        Source::Union(plans) => serde_json::json!({ "union": plans.iter().map(described).collect::<Vec<_>>() }),
        Source::Merge(merged) => {
            serde_json::json!({ "merge": merged.plans.iter().map(described).collect::<Vec<_>>() })
        }
        _ => serde_json::Value::Null,
    }
}

/// A test of the document where the server has none is only slower: we have it where its answer would depend on the index.
fn same_plan(ours: &serde_json::Value, expected: &serde_json::Value) -> bool {
    match (ours, expected) {
        (serde_json::Value::Array(ours), serde_json::Value::Array(expected)) => {
            let ours_tests = ours[2] == true || ours[3] == true;
            let expected_tests = expected[2] == true || expected[3] == true;
            ours[..2] == expected[..2] && (ours_tests || !expected_tests)
        }
        _ => ours == expected,
    }
}

/// The ids of what the plan finds, in its order.
fn run(plan: &Plan, collection: &Arc<Collection>, snapshot: &ReadSnapshot, pause: bool) -> Vec<Doc<'static>> {
    let mut scan = Scan::new(Arc::new(plan.clone()), Some(collection), &Env::fixed(), Want::Documents).unwrap();
    let mut docs = Vec::new();
    while let Some(row) = scan.next(snapshot).unwrap() {
        docs.push(row.doc);
        if pause {
            scan.pause();
        }
    }
    docs
}

fn ids(docs: &[Doc<'static>]) -> Vec<i32> {
    let mut ids: Vec<i32> = docs
        .iter()
        .map(|doc| match doc.get("_id") {
            Some(Value::Int32(id)) => id,
            other => panic!("{other:?}"),
        })
        .collect();
    ids.sort_unstable();
    ids
}

fn check_all_plans(collection: &Arc<Collection>, snapshot: &ReadSnapshot, filter: &Filter, sort: Option<&SortSpec>) {
    let env = Env::fixed();
    let whole = run(&Plan::collection(filter, false, true), collection, snapshot, false);
    let expected = ids(&whole);
    let sorted_keys = |docs: &[Doc<'static>], sort: &SortSpec| -> Vec<Vec<Value<'static>>> {
        docs.iter().map(|doc| sort_spec::key(sort, doc).unwrap().into_iter().collect()).collect()
    };
    let query = Query { sort, ..Query::new(filter, &env) };
    let Chosen { plan, rejected, .. } = choose(collection, snapshot, query, true).unwrap();
    let remembered = choose(collection, snapshot, query, false).unwrap().plan;
    let again = choose(collection, snapshot, query, false).unwrap().plan;
    for plan in [plan, remembered, again].iter().chain(&rejected) {
        for pause in [false, true] {
            let found = run(plan, collection, snapshot, pause);
            assert_eq!(ids(&found), expected, "{:?} by {}", filter.source, described(plan));
            if let (Some(sort), true) = (sort, plan.ordered) {
                let mut keys = sorted_keys(&whole, sort);
                keys.sort_by(|a, b| sort_spec::compare(sort, a, b));
                let in_order = sorted_keys(&found, sort);
                let same = keys.iter().zip(&in_order).all(|(a, b)| sort_spec::compare(sort, a, b).is_eq());
                assert!(same, "{:?} sorted {sort:?} by {}: {in_order:?}", filter.source, described(plan));
            }
        }
    }
}

#[test]
fn hints_and_bounds_by_hand() {
    let docs: Vec<bson::Document> = (0..10).map(|n| doc! {"_id": n, "a": n % 5, "b": n}).collect();
    let (collection, snapshot) = collection(&[keys(doc! {"a": 1, "b": -1}), keys(doc! {"b": 1})], &docs);
    let env = Env::fixed();
    let all = Filter::all();
    let found = |query: Query<'_>| -> Result<Vec<i32>, (i32, String)> {
        match choose(&collection, &snapshot, query, false) {
            Ok(chosen) => Ok(ids(&run(&chosen.plan, &collection, &snapshot, false))),
            Err(error) => Err((error.code().number(), error.message().to_owned())),
        }
    };
    let by_name = Hint::Name("a_1_b_-1".into());
    let by_keys = Hint::Keys(Doc::from(doc! {"a": 1.0, "b": -1i64}));
    let (min, max) = (Doc::from(doc! {"a": 1, "b": 6}), Doc::from(doc! {"a": 3, "b": 5}));
    for hint in [&by_name, &by_keys] {
        let query = Query { hint: Some(hint), min: Some(&min), max: Some(&max), ..Query::new(&all, &env) };
        // From (1, 6) up to but without (3, 5), b descending.
        assert_eq!(found(query), Ok(vec![1, 2, 6, 7, 8]));
    }
    let missing = Hint::Name("nope".into());
    let error = found(Query { hint: Some(&missing), ..Query::new(&all, &env) }).unwrap_err();
    assert_eq!(error.0, 2);
    assert!(
        error
            .1
            .ends_with("planner returned error :: caused by :: hint provided does not correspond to an existing index")
    );
    assert_eq!(found(Query { min: Some(&min), ..Query::new(&all, &env) }).unwrap_err().0, 51173);
    let short = Doc::from(doc! {"a": 1});
    assert_eq!(
        found(Query { min: Some(&short), hint: Some(&by_name), ..Query::new(&all, &env) }).unwrap_err().0,
        51174
    );
    let turned = Query { min: Some(&max), max: Some(&min), hint: Some(&by_name), ..Query::new(&all, &env) };
    assert_eq!(found(turned).unwrap_err().0, 51175);
    let natural = Hint::Natural { descending: true };
    let chosen =
        choose(&collection, &snapshot, Query { hint: Some(&natural), ..Query::new(&all, &env) }, false).unwrap();
    let first = run(&chosen.plan, &collection, &snapshot, true).remove(0);
    assert_eq!(first.get("_id"), Some(Value::Int32(9)));
}

#[test]
fn the_more_selective_index_wins() {
    let docs: Vec<bson::Document> =
        (0..500).map(|n| doc! {"_id": n, "few": n % 2, "many": n % 125, "s": "x"}).collect();
    let specs = [keys(doc! {"few": 1}), keys(doc! {"many": 1}), keys(doc! {"few": 1, "many": 1})];
    let (two, snapshot) = collection(&specs[..2], &docs);
    let (three, view_of_three) = collection(&specs, &docs);
    let name = |collection: &Arc<Collection>,
                snapshot: &ReadSnapshot,
                source: bson::Document,
                sort: Option<bson::Document>| {
        let (filter, env) = (filter(source), Env::fixed());
        let sort = sort.map(|sort| sort_spec::parse(&Doc::from(sort)).unwrap());
        let query = Query { sort: sort.as_ref(), ..Query::new(&filter, &env) };
        match choose(collection, snapshot, query, false).unwrap().plan.source {
            Source::Index(scan) => scan.index().name.to_string(),
            Source::Collection { .. } => "collection".to_owned(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(name(&two, &snapshot, doc! {"few": 1, "many": 7}, None), "many_1");
    assert_eq!(name(&two, &snapshot, doc! {"few": 1, "many": 9}, None), "many_1");
    assert_eq!(name(&three, &view_of_three, doc! {"few": 1, "many": 7}, None), "few_1_many_1");
    assert_eq!(name(&two, &snapshot, doc! {"s": "x"}, None), "collection");
    assert_eq!(name(&two, &snapshot, doc! {}, Some(doc! {"many": -1})), "many_1");
    assert_eq!(name(&two, &snapshot, doc! {"_id": 7, "few": 1}, None), "_id_");
    assert_eq!(name(&two, &snapshot, doc! {"many": 7}, Some(doc! {"few": 1})), "many_1");
}

#[test]
fn covered_documents_are_made_of_entries() {
    let docs = [doc! {"_id": 1, "a": {"b": 1i64}, "c": "x", "d": 1}, doc! {"_id": 2, "c": 2.5}];
    let (collection, snapshot) = collection(&[keys(doc! {"c": -1, "a.b": 1})], &docs);
    let (filter, env) = (filter(doc! {"c": {"$in": [2.5, "x"]}}), Env::fixed());
    let needed = [Path::new("a.b"), Path::new("c")];
    let query = Query { needed: Some(&needed), ..Query::new(&filter, &env) };
    let plan = choose(&collection, &snapshot, query, false).unwrap().plan;
    assert!(plan.is_covered());
    let found = run(&plan, &collection, &snapshot, false);
    assert_eq!(found, [Doc::from(doc! {"c": "x", "a": {"b": 1i64}}), Doc::from(doc! {"c": 2.5, "a": {"b": null}})]);
    let with_id = [Path::new("_id")];
    let query = Query { needed: Some(&with_id), ..Query::new(&filter, &env) };
    assert!(!choose(&collection, &snapshot, query, false).unwrap().plan.is_covered());
}

#[test]
fn long_values_are_found_by_what_is_left_of_them() {
    let text = |end: &str| format!("{}{end}", "long ".repeat(3000));
    let docs: Vec<bson::Document> =
        ["a", "b", "c", ""].iter().enumerate().map(|(n, end)| doc! {"_id": n as i32, "t": text(end), "n": 1}).collect();
    for spec in [keys(doc! {"t": 1}), keys(doc! {"t": -1, "n": 1}), keys(doc! {"n": 1, "t": 1})] {
        let (collection, snapshot) = collection(&[spec], &docs);
        for source in [
            doc! {"n": 1, "t": text("b")},
            doc! {"n": 1, "t": {"$gt": text("a")}},
            doc! {"n": 1, "t": {"$lte": text("a")}},
            doc! {"n": 1, "t": {"$gt": "long"}},
            doc! {"n": 1, "t": {"$in": [text("a"), text("c"), "x"]}},
            doc! {"n": 1, "t": {"$ne": text("c")}},
        ] {
            for sort in [None, Some(doc! {"t": 1}), Some(doc! {"t": -1})] {
                let sort = sort.map(|sort| sort_spec::parse(&Doc::from(sort)).unwrap());
                check_all_plans(&collection, &snapshot, &filter(source.clone()), sort.as_ref());
            }
        }
    }
}

/// A choice is kept for other values: where there is little or nothing to find it must be the one that serves where there is much.
#[test]
fn a_choice_on_little_data_serves_much() {
    let some = |key: i32, count: i32| (0..count).map(move |n| doc! {"_id": key * 1000 + n, "a": key, "b": n});
    let docs: Vec<bson::Document> = some(1, 10).chain(some(2, 300)).collect();
    let (collection, snapshot) = collection(&[keys(doc! {"a": 1, "c": 1}), keys(doc! {"a": 1, "b": 1})], &docs);
    let (env, by_b) = (Env::fixed(), SortKey { path: Path::new("b"), descending: true });
    let sort = SortSpec { keys: vec![by_b] };
    let index = |query: Query<'_>| {
        let chosen = choose(&collection, &snapshot, query, true).unwrap();
        assert_eq!(chosen.rejected.len(), 1);
        let Source::Index(scan) = &chosen.plan.source else { panic!("{:?}", chosen.plan) };
        scan.index().name.to_string()
    };
    for key in [1, 2, 3] {
        let of_key = filter(doc! {"a": key});
        assert_eq!(index(Query { sort: Some(&sort), limit: Some(5), ..Query::new(&of_key, &env) }), "a_1_b_1", "{key}");
        let one = filter(doc! {"a": key, "b": 7});
        assert_eq!(index(Query::new(&one, &env)), "a_1_b_1", "{key}");
    }
}

/// The page behind a document, ties by `_id`: two parts of one index, and neither is sorted.
#[test]
fn alternatives_that_an_index_gives_in_order_are_merged() {
    let docs: Vec<bson::Document> = (0..300).map(|n| doc! {"_id": n, "a": n % 3, "d": n / 30}).collect();
    let (collection, snapshot) = collection(&[keys(doc! {"a": 1, "d": -1, "_id": 1}), keys(doc! {"d": 1})], &docs);
    let env = Env::fixed();
    let order = sort_spec::parse(&Doc::from(doc! {"d": -1, "_id": 1})).unwrap();
    let behind = filter(doc! {"a": 1, "$or": [{"d": {"$lt": 7}}, {"d": 7, "_id": {"$gt": 220}}]});
    let query = Query { sort: Some(&order), limit: Some(10), ..Query::new(&behind, &env) };
    for explain in [true, false, false] {
        let Chosen { plan, .. } = choose(&collection, &snapshot, query, explain).unwrap();
        assert!(plan.ordered && matches!(plan.source, Source::Merge(_)), "{plan:?}");
        let mut scan = Scan::new(Arc::new(plan), Some(&collection), &env, Want::Documents).unwrap();
        let mut page = Vec::new();
        while page.len() < 10 {
            page.push(scan.next(&snapshot).unwrap().unwrap().doc.get("_id").unwrap().as_i64_exact().unwrap());
            scan.pause();
        }
        assert_eq!(page, [223, 226, 229, 232, 235, 238, 181, 184, 187, 190]);
        assert!(scan.counters().documents <= 12, "{:?}", scan.counters());
    }
    check_all_plans(&collection, &snapshot, &behind, Some(&order));
    // No index gives one of the alternatives in order.
    let other = filter(doc! {"$or": [{"a": 1, "d": 3}, {"d": {"$gt": 8}}]});
    let Chosen { plan, .. } = choose(&collection, &snapshot, Query { filter: &other, ..query }, true).unwrap();
    assert!(!matches!(plan.source, Source::Merge(_)), "{plan:?}");
    check_all_plans(&collection, &snapshot, &other, Some(&order));
}

/// Each of these would take for ever if unions were planned inside unions, or sets joined one by one.
#[test]
fn many_alternatives_are_planned() {
    let (collection, snapshot) =
        collection(&[keys(doc! {"a": 1}), keys(doc! {"b": 1})], &[doc! {"_id": 1, "a": 1, "b": 1}]);
    let alternatives = |n: i32| -> Bson {
        let either: Vec<Bson> =
            (0..10).map(|m| bson::bson!({ "a": n, "b": m })).chain([bson::bson!({ "b": n })]).collect();
        bson::bson!({ "$or": either })
    };
    let all: Vec<Bson> = (0..10).map(alternatives).collect();
    let ranges: Vec<Bson> = (0..2000).map(|n| bson::bson!({ "a": { "$gt": n * 2, "$lt": n * 2 + 1 } })).collect();
    let single: Vec<Bson> = (0..2000).map(|n| bson::bson!({ "a": { "$lt": n } })).collect();
    // With a plan for every combination this would not end.
    for source in [doc! {"$and": all}, doc! {"$or": ranges}, doc! {"$or": single}] {
        check_all_plans(&collection, &snapshot, &filter(source), None);
    }
}

fn any_field_value() -> BoxedStrategy<Bson> {
    let scalar = prop_oneof![
        Just(Bson::Null),
        (0..4i32).prop_map(Bson::Int32),
        Just(Bson::Int64(2)),
        Just(Bson::Double(2.5)),
        Just(Bson::Double(f64::NAN)),
        prop_oneof![Just("x"), Just("xy"), Just("y\0z"), Just("y"), Just("")]
            .prop_map(|text| Bson::String(text.to_owned())),
        Just(Bson::Boolean(true)),
        Just(Bson::Undefined),
        Just(Bson::MinKey),
    ];
    let inner = prop_oneof![
        4 => scalar.clone(),
        1 => proptest::collection::vec(scalar.clone(), 0..3).prop_map(Bson::Array),
    ];
    let document = proptest::collection::vec((prop_oneof![Just("b"), Just("c")], inner.clone()), 0..3)
        .prop_map(|fields| Bson::Document(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()));
    let element = prop_oneof![
        3 => scalar.clone(),
        3 => document.clone(),
        1 => proptest::collection::vec(scalar.clone(), 0..3).prop_map(Bson::Array),
    ];
    prop_oneof![
        4 => scalar,
        2 => document,
        3 => proptest::collection::vec(element, 0..4).prop_map(Bson::Array),
    ]
    .boxed()
}

fn any_test() -> BoxedStrategy<bson::Document> {
    let value = any_field_value().prop_filter("undefined is refused", |value| !mentions_undefined(value));
    let name = prop_oneof![Just("$eq"), Just("$gt"), Just("$gte"), Just("$lt"), Just("$lte"), Just("$ne")];
    let simple = prop_oneof![
        6 => (name, value.clone()).prop_map(|(name, value)| doc! {name: value}),
        2 => (prop_oneof![Just("$in"), Just("$nin")], proptest::collection::vec(value.clone(), 0..3))
            .prop_map(|(name, values)| doc! {name: values}),
        1 => any::<bool>().prop_map(|truth| doc! {"$exists": truth}),
        1 => prop_oneof![Just("string"), Just("number"), Just("int"), Just("array"), Just("null"), Just("object"), Just("bool")].prop_map(|kind| doc! {"$type": kind}),
        1 => prop_oneof![Just("^x"), Just("^xy$"), Just("y"), Just("^y.z")].prop_map(|regex| doc! {"$regex": regex}),
        1 => Just(doc! {"$mod": [2, 0]}),
        1 => (0..3i32).prop_map(|size| doc! {"$size": size}),
        1 => proptest::collection::vec(value, 1..3).prop_map(|values| doc! {"$all": values}),
    ];
    prop_oneof![
        8 => simple.clone(),
        1 => simple.clone().prop_map(|test| doc! {"$not": test}),
        1 => (simple.clone(), simple.clone()).prop_map(|(a, b)| {
            let mut both = a;
            both.extend(b);
            doc! {"$elemMatch": both}
        }),
        1 => (simple.clone(), simple).prop_map(|(b, c)| doc! {"$elemMatch": {"b": b, "c": c}}),
    ]
    .boxed()
}

fn mentions_undefined(value: &Bson) -> bool {
    match value {
        Bson::Undefined => true,
        Bson::Array(items) => items.iter().any(mentions_undefined),
        Bson::Document(doc) => doc.values().any(mentions_undefined),
        _ => false,
    }
}

fn any_filter() -> BoxedStrategy<bson::Document> {
    let path = || prop_oneof![3 => Just("a"), 2 => Just("a.b"), 2 => Just("a.c"), 2 => Just("d"), 1 => Just("a.0")];
    let fields = proptest::collection::vec((path(), any_test()), 1..3)
        .prop_map(|tests| {
            let all: Vec<Bson> = tests.into_iter().map(|(path, test)| Bson::Document(doc! {path: test})).collect();
            doc! {"$and": all}
        })
        .boxed();
    prop_oneof![
        4 => fields.clone(),
        1 => (fields.clone(), fields.clone()).prop_map(|(a, b)| doc! {"$or": [a, b]}),
        1 => (fields.clone(), fields.clone(), fields.clone())
            .prop_map(|(a, b, c)| doc! {"$and": [{"$or": [a, b]}, c]}),
        1 => (path(), any_test(), any_test()).prop_map(|(path, a, b)| doc! {"$or": [{path: a}, {path: b}]}),
        1 => (path(), any_test()).prop_map(|(path, test)| doc! {"$nor": [{path: test}]}),
    ]
    .boxed()
}

fn index_specs() -> Vec<bson::Document> {
    vec![
        keys(doc! {"a": 1}),
        keys(doc! {"a": -1, "d": 1}),
        keys(doc! {"a.b": 1}),
        keys(doc! {"a.b": 1, "a.c": -1}),
        keys(doc! {"d": 1, "a": 1}),
        keys(doc! {"d": -1, "a.b": -1}),
        keys(doc! {"a.0": 1}),
        doc! {"key": {"d": 1}, "sparse": true, "name": "sparse"},
        doc! {"key": {"a.b": 1, "d": 1}, "sparse": true, "name": "sparse two"},
        doc! {"key": {"d": 1}, "partialFilterExpression": {"d": {"$gt": 0}}, "name": "partial"},
        doc! {"key": {"a": 1}, "partialFilterExpression": {"d": {"$exists": true}}, "name": "partial exists"},
    ]
}

fn any_sort() -> BoxedStrategy<Option<bson::Document>> {
    let way = || prop_oneof![Just(1i32), Just(-1i32)];
    prop_oneof![
        2 => Just(None),
        1 => (prop_oneof![Just("a"), Just("a.b"), Just("d"), Just("_id")], way())
            .prop_map(|(path, way)| Some(doc! {path: way})),
        1 => (way(), way()).prop_map(|(a, d)| Some(doc! {"a": a, "d": d})),
        1 => (way(), way()).prop_map(|(d, b)| Some(doc! {"d": d, "a.b": b})),
    ]
    .boxed()
}

fn has_no_parallel_arrays(doc: &bson::Document) -> bool {
    index_specs().iter().all(|spec| {
        let index = crate::catalog::Index::from_spec(1, Doc::from(spec.clone()), true).unwrap();
        crate::index::entries(&index, &Doc::from(doc), &[], &Env::fixed()).is_ok()
    })
}

/// An array found by its position is indexed whole: its elements are looked at in the document.
#[test]
fn elements_of_an_array_found_by_its_position() {
    let docs = [doc! {"_id": 0, "a": [[2.5]], "d": null}];
    let (collection, snapshot) = collection(&index_specs(), &docs);
    for source in [
        doc! {"a.0": {"$elemMatch": {"$gt": 2}}},
        doc! {"$or": [{"a.0": 0}, {"a.0": {"$elemMatch": {"$gt": 2}}}]},
        doc! {"$or": [{"a.0": {"$all": [0]}}, {"a.0": {"$elemMatch": {"$gt": 2, "$nin": []}}}]},
    ] {
        check_all_plans(&collection, &snapshot, &filter(source), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: std::env::var("PLAN_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200), ..ProptestConfig::default() })]

    /// Any filter gives the same documents with every index that can be used as with none, in the same order.
    #[test]
    fn every_plan_finds_the_same(
        docs in proptest::collection::vec((any_field_value(), any_field_value(), 0..4), 0..12),
        filters in proptest::collection::vec((any_filter(), any_sort()), 12),
    ) {
        let docs: Vec<bson::Document> = docs
            .into_iter()
            .enumerate()
            .map(|(n, (a, d, which))| {
                let mut doc = doc! {"_id": n as i32};
                if which != 1 { doc.insert("a", a); }
                if which != 2 { doc.insert("d", d); }
                doc
            })
            .filter(has_no_parallel_arrays)
            .collect();
        let (collection, snapshot) = collection(&index_specs(), &docs);
        for (source, sort) in filters {
            let filter = filter(source);
            let sort = sort.map(|sort| sort_spec::parse(&Doc::from(sort)).unwrap());
            let sortable = sort.as_ref().filter(|sort| docs.iter().all(|doc| sort_spec::key(sort, &Doc::from(doc)).is_ok()));
            check_all_plans(&collection, &snapshot, &filter, sortable);
        }
    }
}
