//! `explain` of a logical name: how many buckets are read, and by which command.

use super::shop::*;
use crate::harness::*;
use bson::{Document, doc};
use document::Doc;
use document::backend::{Backend, Session};
use document::op::{AdminOp, Explained, ReadOp, Verbosity};

async fn explained(world: &World, op: ReadOp) -> Document {
    let (op, verbosity) = (Explained::Read(op), Verbosity::ExecutionStats);
    let told = world.layer.explain(&mut Session::default(), &context(), op, verbosity).await.unwrap();
    Document::try_from(&told).unwrap()
}

#[test]
fn only_the_buckets_of_series_and_time_are_read() {
    let hour = 3_600_000;
    let documents: Vec<Document> = (0..200)
        .map(|n| doc! { "_id": n, "sensorId": n % 4, "ts": at(START + i64::from(n / 4) * hour / 2), "temp": n })
        .collect();
    run(async {
        let world = world(sensors(DB), documents).await;
        let index = Doc::from(doc! { "key": { "sensorId": 1, "hour": 1 }, "name": "series" });
        let index = AdminOp::CreateIndexes { ns: ns(STORED), indexes: vec![index] };
        world.opened.backend.admin(&mut Session::default(), &context(), index).await.unwrap();
        let date = doc! { "$gte": at(START + 3 * hour), "$lt": at(START + 5 * hour) };
        let query = doc! { "sensorId": 2, "ts": date };
        let told = explained(&world, Query::all(query.clone()).op(ns(LOGICAL))).await;
        let stats = told.get_document("executionStats").unwrap();
        let pleach = told.get_document("pleach").unwrap();
        assert_eq!(told.get_document("queryPlanner").unwrap().get_str("namespace").unwrap(), "shop.stored");
        let examined = pleach.get_document("buckets").unwrap().get_i64("examined").unwrap();
        assert_eq!(stats.get_i32("totalDocsExamined").map(i64::from).unwrap(), examined);
        assert_eq!(pleach.get_array("rules").unwrap(), &vec!["logical.bucket".into()]);
        assert_eq!(pleach.get("figures"), Some(&bson::Bson::Null));
        let step = pleach.get_array("steps").unwrap()[0].as_document().unwrap();
        assert_eq!(step.get_document("command").unwrap().get_str("aggregate").unwrap(), "stored");
        let stages = [doc! { "$match": query }, doc! { "$project": { "temp": 1 } }];
        let told = explained(&world, aggregate(ns(LOGICAL), &stages)).await;
        assert!(told.get_array("stages").is_ok(), "{told}");
        let buckets = told.get_document("pleach").unwrap().get_document("buckets").unwrap();
        assert_eq!(buckets.get_i64("examined").unwrap(), examined);
        assert_eq!(examined, 2, "buckets for two hours of one sensor");
    });
}
