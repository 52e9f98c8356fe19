//! Collections, views and indexes.

use super::harness::*;
use bson::doc;
use document::op::{AdminOp, Namespace};
use document::{Doc, Value};

fn index(spec: bson::Document) -> AdminOp {
    AdminOp::CreateIndexes { ns: ns(), indexes: vec![Doc::from(spec)] }
}

#[test]
fn indexes_are_built_kept_up_and_dropped() {
    let bench = Bench::new();
    run(async {
        let documents = (0..2_500).map(|id| doc! {"_id": id, "a": id % 7, "u": id}).collect();
        bench.did(insert(documents)).await;
        let made = bench.admin(index(doc! {"key": {"a": 1}, "name": "a_1"})).await.unwrap();
        assert_eq!(made[0].get_i32("numIndexesAfter").unwrap(), 2);
        bench.admin(index(doc! {"key": {"u": 1}, "name": "u_1", "unique": true})).await.unwrap();
        bench.did(insert(vec![doc! {"_id": -1, "a": [1, 2, 3], "u": -1}])).await;
        bench.did(delete_op(doc! {"_id": 5}, false)).await;
        let checked = bench.admin(AdminOp::Validate { ns: ns(), full: true }).await.unwrap();
        assert!(checked[0].get_bool("valid").unwrap(), "{checked:?}");
        assert_eq!(*checked[0].get_document("keysPerIndex").unwrap(), doc! {"_id_": 2500, "a_1": 2502, "u_1": 2500});
        let written = bench.write(insert(vec![doc! {"_id": "x", "u": 7}])).await.unwrap();
        let message = "E11000 duplicate key error collection: db.c index: u_1 dup key: { u: 7 }";
        assert_eq!(only_error(&written), (11000, message.to_owned()));
    });
    let bench = bench.reopen();
    run(async {
        let collection = bench.engine.catalog().get(&ns()).unwrap().clone();
        assert_eq!(collection.indexes.len(), 3);
        assert_eq!(collection.index("a_1").unwrap().multikey(0), 1);
        let dropped =
            bench.admin(AdminOp::DropIndexes { ns: ns(), which: Value::from("a_1").into_owned() }).await.unwrap();
        assert_eq!(dropped[0], doc! {"nIndexesWas": 3});
        let checked = bench.admin(AdminOp::Validate { ns: ns(), full: true }).await.unwrap();
        assert_eq!(*checked[0].get_document("keysPerIndex").unwrap(), doc! {"_id_": 2500, "u_1": 2500});
    });
}

#[test]
fn compaction_leaves_what_is_there_and_frees_what_is_not() {
    let bench = Bench::new();
    run(async {
        bench.did(insert((0..1_000).map(|id| doc! {"_id": id, "a": "x".repeat(100)}).collect())).await;
        bench.admin(index(doc! {"key": {"a": 1}, "name": "a_1"})).await.unwrap();
        bench.did(delete_op(doc! {"_id": {"$gte": 10}}, true)).await;
        let compacted = bench.admin(AdminOp::Compact { ns: ns() }).await.unwrap();
        assert!(compacted[0].get_i32("bytesFreed").unwrap() > 50_000, "{compacted:?}");
        bench.did(insert(vec![doc! {"_id": 10, "a": "y"}])).await;
        let missing = Namespace::new("db", "missing");
        let error = bench.admin(AdminOp::Compact { ns: missing }).await.unwrap_err();
        assert_eq!(told(&error), (26, "collection does not exist".to_owned()));
    });
    let bench = bench.reopen();
    run(async {
        let checked = bench.admin(AdminOp::Validate { ns: ns(), full: true }).await.unwrap();
        assert!(checked[0].get_bool("valid").unwrap(), "{checked:?}");
        assert_eq!(*checked[0].get_document("keysPerIndex").unwrap(), doc! {"_id_": 11, "a_1": 11});
    });
}

#[test]
fn a_unique_index_over_duplicates_is_not_made() {
    let bench = Bench::new();
    run(async {
        for count in [3, 1_500] {
            bench.did(insert((0..count).map(|id| doc! {"_id": format!("{count} {id}"), "a": id / 2}).collect())).await;
            let error = bench.admin(index(doc! {"key": {"a": 1}, "name": "a_1", "unique": true})).await.unwrap_err();
            assert_eq!(error.code().number(), 11000);
            assert!(error.message().starts_with("Index build failed: "), "{error}");
            assert!(error.message().ends_with("index: a_1 dup key: { a: 0 }"), "{error}");
            assert_eq!(bench.engine.catalog().get(&ns()).unwrap().indexes.len(), 1);
        }
    });
}

#[test]
fn existing_indexes_conflict_as_in_mongodb() {
    let bench = Bench::new();
    run(async {
        bench.admin(index(doc! {"key": {"a": 1}, "name": "a_1"})).await.unwrap();
        let again = bench.admin(index(doc! {"key": {"a": 1}, "name": "a_1"})).await.unwrap();
        assert_eq!(again[0], doc! {"numIndexesBefore": 2, "numIndexesAfter": 2, "note": "all indexes already exist"});
        let code = async |spec| bench.admin(index(spec)).await.unwrap_err().code().number();
        assert_eq!(code(doc! {"key": {"a": 1}, "name": "other"}).await, 85);
        assert_eq!(code(doc! {"key": {"b": 1}, "name": "a_1"}).await, 86);
        assert_eq!(code(doc! {"key": {"a": 1}, "name": "a_1", "unique": true}).await, 86);
        assert_eq!(code(doc! {"key": {"a": "hashed"}, "name": "h"}).await, 238);
    });
}

#[test]
fn collections_come_and_go_and_change_their_names() {
    let bench = Bench::new();
    let other = Namespace::new("db", "other");
    run(async {
        bench.did(insert(vec![doc! {"_id": 1}])).await;
        let error = bench.admin(AdminOp::Create { ns: ns(), options: Default::default() }).await.unwrap_err();
        assert_eq!(told(&error), (48, "Collection db.c already exists.".to_owned()));
        bench.admin(AdminOp::Create { ns: other.clone(), options: Default::default() }).await.unwrap();
        let rename = |drop_target| AdminOp::Rename { from: ns(), to: other.clone(), drop_target };
        assert_eq!(told(&bench.admin(rename(false)).await.unwrap_err()), (48, "target namespace exists".to_owned()));
        bench.admin(rename(true)).await.unwrap();
        assert!(bench.find(doc! {}).await.is_empty());
        let back = AdminOp::Rename { from: other.clone(), to: ns(), drop_target: false };
        bench.admin(back).await.unwrap();
        assert_eq!(bench.find(doc! {}).await.len(), 1);
        let dropped = bench.admin(AdminOp::Drop { ns: ns() }).await.unwrap();
        assert_eq!(dropped[0], doc! {"nIndexesWas": 1, "ns": "db.c"});
        assert_eq!(told(&bench.admin(AdminOp::Drop { ns: ns() }).await.unwrap_err()), (26, "ns not found".to_owned()));
        bench.did(insert(vec![doc! {"_id": 2}])).await;
    });
    let bench = bench.reopen();
    run(async {
        assert_eq!(bench.find(doc! {}).await, [doc! {"_id": 2}]);
        bench.admin(AdminOp::DropDatabase { db: "db".to_owned() }).await.unwrap();
        assert!(bench.engine.catalog().databases().is_empty());
    });
    let bench = bench.reopen();
    assert!(bench.engine.catalog().databases().is_empty());
}
