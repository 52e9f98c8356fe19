//! Reads through the backend: cursors over many batches, transactions, views, joins, counts and distinct values.

use super::harness::*;
use bson::{Bson, bson, doc};
use document::backend::{Backend, BatchLimit, Session};
use document::op::*;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Doc, Value};

fn aggregate_op(collection: &str, stages: Bson) -> ReadOp {
    let Value::Array(stages) = Value::from(stages) else { panic!("stages are an array") };
    let pipeline = Pipeline::parse(&stages, &mut Names::new()).unwrap();
    let ns = Namespace::new("db", collection);
    ReadOp::Aggregate(Aggregate {
        ns,
        collectionless: false,
        pipeline,
        hint: None,
        allow_disk_use: false,
        collation: None,
    })
}

fn ids(docs: &[bson::Document]) -> Vec<i32> {
    docs.iter().map(|doc| doc.get_i32("_id").unwrap()).collect()
}

#[test]
fn a_cursor_goes_on_behind_its_last_key_whatever_was_written_meanwhile() {
    run(async {
        let bench = Bench::new();
        bench.did(insert((0..10).map(|n| doc! {"_id": n * 10, "a": n % 3}).collect())).await;
        bench.index(doc! {"a": 1}, "a_1").await;
        for query in [doc! {}, doc! {"_id": {"$gte": 0}}, doc! {"a": {"$gte": 0}}] {
            let (context, mut session) = (context(), Session::default());
            let limit = BatchLimit { documents: 3, bytes: 16 << 20 };
            let mut cursor = bench.engine.read(&mut session, &context, ReadOp::Find(find_op(query))).await.unwrap();
            let first = cursor.next(&mut session, &context, limit).await.unwrap();
            assert_eq!(first.documents.len(), 3);
            bench.did(delete_op(doc! {"_id": 90}, false)).await;
            bench.did(insert(vec![doc! {"_id": 95, "a": 2}])).await;
            let mut rest = Vec::new();
            loop {
                let batch = cursor.next(&mut session, &context, limit).await.unwrap();
                rest.extend(batch.documents.iter().map(|doc| bson::Document::try_from(doc).unwrap()));
                if batch.exhausted {
                    break;
                }
            }
            assert_eq!(rest.len(), 7);
            assert!(ids(&rest).contains(&95) && !ids(&rest).contains(&90));
            bench.did(delete_op(doc! {"_id": 95}, false)).await;
            bench.did(insert(vec![doc! {"_id": 90, "a": 0}])).await;
        }
    });
}

#[test]
fn a_transaction_reads_its_own_writes_by_every_plan() {
    run(async {
        let bench = Bench::new();
        bench.did(insert((0..6).map(|n| doc! {"_id": n, "a": n % 2}).collect())).await;
        bench.index(doc! {"a": 1}, "a_1").await;
        let mut session = bench.begin().await;
        bench.write_at(&mut session, &insert(vec![doc! {"_id": 10, "a": 1}])).await.unwrap();
        bench.write_at(&mut session, &delete_op(doc! {"_id": 3}, false)).await.unwrap();
        let change = doc! {"$set": {"a": 1}};
        bench.write_at(&mut session, &update_op(doc! {"_id": 0}, change, false, false)).await.unwrap();
        for query in [doc! {"a": 1}, doc! {"a": {"$gt": 0}, "_id": {"$gte": 0}}, doc! {"$or": [{"a": 1}, {"_id": 99}]}]
        {
            let mut inside = ids(&bench.read(&mut session, ReadOp::Find(find_op(query.clone())), 2).await.unwrap());
            inside.sort_unstable();
            assert_eq!(inside, [0, 1, 5, 10], "{query}");
            let outside = bench.read(&mut Session::default(), ReadOp::Find(find_op(query)), 2).await.unwrap();
            assert_eq!(outside.len(), 3);
        }
        bench.commit(&mut session).await.unwrap();
        assert_eq!(bench.find(doc! {"a": 1}).await.len(), 4);
    });
}

#[test]
fn views_are_read_through_each_other_and_joined() {
    run(async {
        let bench = Bench::new();
        bench.did(insert((0..6).map(|n| doc! {"_id": n, "a": n}).collect())).await;
        let view = |name: &str, on: &str, stages: Bson| {
            let Value::Array(pipeline) = Value::from(stages) else { panic!("stages are an array") };
            AdminOp::CreateView { ns: Namespace::new("db", name), on: on.to_owned(), pipeline }
        };
        bench.admin(view("v", "c", bson!([{"$match": {"a": {"$gt": 1}}}]))).await.unwrap();
        bench.admin(view("w", "v", bson!([{"$set": {"b": {"$multiply": ["$a", 2]}}}]))).await.unwrap();
        let mut session = Session::default();
        let of_view = Find { ns: Namespace::new("db", "w"), ..find_op(doc! {"b": {"$lt": 10}}) };
        let found = bench.read(&mut session, ReadOp::Find(of_view), 1).await.unwrap();
        assert_eq!(found[0], doc! {"_id": 2, "a": 2, "b": 4});
        assert_eq!(ids(&found), [2, 3, 4]);
        let joined = bson!([
            {"$match": {"_id": 3}},
            {"$lookup": {"from": "w", "localField": "a", "foreignField": "_id", "as": "found"}},
        ]);
        let found = bench.read(&mut session, aggregate_op("c", joined), 10).await.unwrap();
        assert_eq!(found, [doc! {"_id": 3, "a": 3, "found": [{"_id": 3, "a": 3, "b": 6}]}]);
        let count = Count { ns: Namespace::new("db", "w"), filter: filter(doc! {}), skip: 1, limit: None, hint: None };
        assert_eq!(bench.read(&mut session, ReadOp::Count(count), 1).await.unwrap(), [doc! {"n": 3i64}]);
    });
}

#[test]
fn limits_counts_and_distinct_values_with_and_without_an_index() {
    run(async {
        let bench = Bench::new();
        let docs = (0..40).map(|n| match n % 4 {
            0 => doc! {"_id": n, "a": n % 8},
            1 => doc! {"_id": n, "a": ["x", n % 8]},
            2 => doc! {"_id": n},
            _ => doc! {"_id": n, "a": null},
        });
        bench.did(insert(docs.collect())).await;
        let mut session = Session::default();
        for pass in 0..2 {
            let distinct = Distinct { ns: ns(), key: Path::new("a"), filter: filter(doc! {}), hint: None };
            let found = bench.read(&mut session, ReadOp::Distinct(distinct), 1).await.unwrap();
            let mut values: Vec<String> =
                found[0].get_array("values").unwrap().iter().map(|value| value.to_string()).collect();
            values.sort();
            assert_eq!(values, ["\"x\"", "0", "1", "4", "5", "null"], "pass {pass}");
            let count =
                |query, skip, limit| ReadOp::Count(Count { ns: ns(), filter: filter(query), skip, limit, hint: None });
            for (op, expected) in [
                (count(doc! {}, 0, None), 40i64),
                (count(doc! {}, 38, Some(5)), 2),
                (count(doc! {"a": "x"}, 0, None), 10),
                (count(doc! {"a": {"$gte": 0}}, 3, None), 17),
                (count(doc! {"a": null}, 0, Some(4)), 4),
            ] {
                assert_eq!(bench.read(&mut session, op, 1).await.unwrap(), [doc! {"n": expected}], "pass {pass}");
            }
            let limited = Find { skip: 2, limit: Some(3), ..find_op(doc! {"a": {"$in": [0, 4]}}) };
            let found = bench.read(&mut session, ReadOp::Find(limited), 2).await.unwrap();
            assert_eq!(found.len(), 3, "pass {pass}");
            bench.index(doc! {"a": 1}, "a_1").await;
        }
    });
}

#[test]
fn explain_names_the_index_and_what_it_read() {
    run(async {
        let bench = Bench::new();
        bench.did(insert((0..20).map(|n| doc! {"_id": n, "a": n % 5, "b": n}).collect())).await;
        bench.index(doc! {"a": 1, "b": -1}, "a_1_b_-1").await;
        let find = Find {
            sort: Some(document::pipeline::sort_spec::parse(&Doc::from(doc! {"b": 1})).unwrap()),
            limit: Some(2),
            ..find_op(doc! {"a": 1, "b": {"$gt": 3}})
        };
        let op = Explained::Read(ReadOp::Find(find));
        let mut session = Session::default();
        let context = context();
        let told = bench.engine.explain(&mut session, &context, op, Verbosity::ExecutionStats).await.unwrap();
        let told = bson::Document::try_from(&told).unwrap();
        let winning = told.get_document("queryPlanner").unwrap().get_document("winningPlan").unwrap();
        assert_eq!(winning.get_str("stage").unwrap(), "LIMIT");
        let fetch = winning.get_document("inputStage").unwrap();
        assert_eq!(fetch.get_str("stage").unwrap(), "FETCH");
        let entries = fetch.get_document("inputStage").unwrap();
        assert_eq!(entries.get_str("direction").unwrap(), "backward");
        assert_eq!(entries.get_document("indexBounds").unwrap(), &doc! {"a": ["[1, 1]"], "b": ["(3, inf.0]"]});
        let stats = told.get_document("executionStats").unwrap();
        let figures = ["nReturned", "totalKeysExamined", "totalDocsExamined"].map(|name| stats.get_i32(name).unwrap());
        assert_eq!(figures, [2, 2, 2]);
    });
}

#[test]
fn a_missing_collection_is_empty() {
    run(async {
        let bench = Bench::new();
        let mut session = Session::default();
        assert!(bench.read(&mut session, ReadOp::Find(find_op(doc! {"a": 1})), 1).await.unwrap().is_empty());
        let counted = bson!([{"$group": {"_id": null, "n": {"$sum": 1}}}]);
        assert!(bench.read(&mut session, aggregate_op("c", counted), 1).await.unwrap().is_empty());
    });
}

#[test]
fn an_index_that_gets_arrays_between_two_batches_neither_doubles_nor_mistakes() {
    run(async {
        let bench = Bench::new();
        bench.index(doc! {"a": 1}, "a_1").await;
        bench.did(insert((0..6).map(|n| doc! {"_id": n, "a": n * 10}).collect())).await;
        // Without arrays the entries prove this.
        let find =
            Find { hint: Some(Hint::Name("a_1".into())), ..find_op(doc! {"a": {"$lte": 40, "$not": {"$gt": 100}}}) };
        let (mut session, context) = (Session::default(), context());
        let mut cursor = bench.engine.read(&mut session, &context, ReadOp::Find(find)).await.unwrap();
        let two = BatchLimit { documents: 2, bytes: 16 << 20 };
        let first = cursor.next(&mut session, &context, two).await.unwrap();
        assert_eq!(first.documents.len(), 2);
        bench.did(insert(vec![doc! {"_id": 7, "a": [25, 26, 27]}, doc! {"_id": 8, "a": [28, 101]}])).await;
        let mut rest = Vec::new();
        loop {
            let batch = cursor.next(&mut session, &context, two).await.unwrap();
            rest.extend(batch.documents.iter().map(|doc| doc.get("_id").unwrap().into_owned()));
            if batch.exhausted {
                break;
            }
        }
        assert_eq!(rest, [2, 7, 3, 4].map(Value::Int32));
    });
}

#[test]
fn return_key_gives_the_entries_in_place_of_the_documents() {
    run(async {
        let bench = Bench::new();
        bench.index(doc! {"a.x": 1, "b": -1}, "a.x_1_b_-1").await;
        bench
            .did(insert(vec![
                doc! {"_id": 1, "a": {"x": 5}, "b": "x"},
                doc! {"_id": 2, "a": {"x": [1, 2]}, "b": "y"},
                doc! {"_id": 3, "b": "z"},
            ]))
            .await;
        let check = async |query: bson::Document, expected: Vec<bson::Document>| {
            let find = Find { return_key: true, ..find_op(query.clone()) };
            let found = bench.read(&mut Session::default(), ReadOp::Find(find), 2).await.unwrap();
            assert_eq!(found, expected, "{query}");
        };
        check(doc! {"a.x": {"$gt": 0}}, vec![doc! {"a.x": 1, "b": "y"}, doc! {"a.x": 5, "b": "x"}]).await;
        check(doc! {"a.x": {"$gt": 0}, "c": null}, vec![doc! {"a.x": 1, "b": "y"}, doc! {"a.x": 5, "b": "x"}]).await;
        check(doc! {"_id": 1}, vec![doc! {"_id": 1}]).await;
        check(doc! {}, vec![doc! {}, doc! {}, doc! {}]).await;
    });
}
