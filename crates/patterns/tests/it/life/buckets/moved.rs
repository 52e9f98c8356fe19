//! Readings that are there become buckets, other buckets, and documents of their own again; nothing is lost on any way.

use super::station::{DAYS, ELSEWHERE, HOURS, reading};
use crate::harness::{insert, run, update};
use crate::life::village::{Village, declared, told};
use bson::{Bson, Document, doc};
use document::op::{Insert, WriteOp};

async fn kinds(village: &Village, rules: &str) -> Vec<String> {
    let plan = village.ask("plan", doc! { "declaration": declared(rules) }).await.unwrap();
    let steps = plan.get_array("steps").unwrap();
    steps.iter().map(|step| step.as_document().unwrap().get_str("kind").unwrap().to_owned()).collect()
}

#[test]
fn a_new_collection_is_a_view_over_buckets_at_once() {
    run(async {
        let village = Village::new().await;
        assert_eq!(kinds(&village, HOURS).await, ["create", "index", "view"]);
        village.apply(HOURS).await.unwrap();
        assert_eq!(kinds(&village, HOURS).await, Vec::<String>::new());
        assert_eq!(village.collections().await, ["sensor_data:view", "sensor_hours"]);
        assert_eq!(village.states().await, [("sensor_data.bucket".to_owned(), "on".to_owned())]);
        assert_eq!(village.assert_clean().await, 0);
        // The catalog remembers.
        let village = village.reopen().await;
        assert_eq!(village.states().await, [("sensor_data.bucket".to_owned(), "on".to_owned())]);
        village.ask("drop", doc! { "rule": "sensor_data.bucket" }).await.unwrap();
        assert_eq!(village.collections().await, ["sensor_data"]);
        village.close().await;
    });
}

#[test]
fn readings_become_buckets_and_documents_again() {
    run(async {
        let village = Village::new().await;
        village.measure(237).await;
        village.life.limit_hosts(40);
        let steps = ["rename", "create", "index", "view", "move", "view", "drop"];
        assert_eq!(kinds(&village, HOURS).await, steps);
        village.apply(HOURS).await.unwrap();
        assert_eq!(village.collections().await, ["sensor_data:view", "sensor_hours"]);
        village.assert_readings(0..237, "in hours").await;
        let buckets = village.assert_clean().await;
        let health = village.health().await;
        assert_eq!(health.get_i64("buckets").unwrap(), buckets, "{health}");
        assert_eq!(health.get_i64("readings").unwrap(), 237, "{health}");
        // 237 readings, 97 s apart, of three sensors: 37 to the hour, 12 or 13 of each sensor.
        assert!(health.get_i64("splits").unwrap() > 10, "{health}");
        for (rules, what) in [(DAYS, "in days"), (ELSEWHERE, "elsewhere"), (HOURS, "in hours again")] {
            village.apply(rules).await.unwrap();
            village.assert_readings(0..237, what).await;
            village.assert_clean().await;
        }
        assert_eq!(village.collections().await, ["sensor_data:view", "sensor_hours"]);
        village.ask("drop", doc! { "rule": "sensor_data.bucket" }).await.unwrap();
        assert_eq!(village.collections().await, ["sensor_data"]);
        village.assert_readings(0..237, "as they were").await;
        village.write(update("sensor_data", doc! { "_id": 5 }, doc! { "$set": { "temp": 1 } }, &[])).await;
        village.close().await;
    });
}

#[test]
fn buckets_may_stay_and_be_taken_over_again_or_go_with_the_data() {
    run(async {
        let village = Village::new().await;
        village.measure(50).await;
        village.apply(HOURS).await.unwrap();
        village.ask("drop", doc! { "rule": "sensor_data.bucket", "keep_buckets": true }).await.unwrap();
        assert_eq!(village.states().await, []);
        assert_eq!(village.collections().await, ["sensor_data:view", "sensor_hours"]);
        village.assert_readings(0..50, "kept").await;
        village.apply(HOURS).await.unwrap();
        village.assert_readings(0..50, "taken over").await;
        village.assert_clean().await;
        let error = village.ask("drop", doc! { "rule": "sensor_data.bucket", "keep_buckets": true, "with_data": true });
        assert!(told(&error.await.unwrap_err()).contains("contradict"));
        village.ask("drop", doc! { "rule": "sensor_data.bucket", "with_data": true }).await.unwrap();
        assert_eq!(village.collections().await, Vec::<String>::new());
        village.close().await;
    });
}

/// Inserts a document that has its time twice: only the mover sees that, so `apply` begins.
fn twice_timed(id: i32) -> WriteOp {
    let at = document::Value::DateTime(super::station::BEGIN);
    let mut twice = document::DocWriter::new();
    twice.append("_id", &document::Value::Int32(id)).append("sensorId", &document::Value::Int32(1));
    twice.append("ts", &at).append("ts", &at);
    match insert("sensor_data", Vec::new()) {
        WriteOp::Insert(op) => WriteOp::Insert(Insert { documents: vec![twice.finish()], ..op }),
        other => other,
    }
}

#[test]
fn what_does_not_fit_is_named_and_stays() {
    run(async {
        let village = Village::new().await;
        village.measure(30).await;
        village.behind(twice_timed(100)).await;
        village.life.limit_hosts(7);
        let error = village.apply(HOURS).await.unwrap_err();
        assert!(error.message().contains("_id 100"), "{error}");
        let status = village.ask("status", doc! {}).await.unwrap();
        let rule = status.get_array("rules").unwrap()[0].as_document().unwrap().clone();
        assert!(rule.get_str("problem").unwrap().contains("do not fit"), "{rule}");
        // All are there, and all others are moved.
        assert_eq!(village.readings().await.len(), 31);
        assert_eq!(village.find("pleach.aside.sensor_data", doc! {}).await.len(), 1);
        // The way back.
        village.ask("drop", doc! { "rule": "sensor_data.bucket" }).await.unwrap();
        assert_eq!(village.readings().await.len(), 31);
        assert_eq!(village.collections().await, ["sensor_data"]);
        village.behind(crate::harness::delete("sensor_data", doc! { "_id": 100 }, false)).await;
        village.apply(HOURS).await.unwrap();
        village.assert_readings(0..30, "without it").await;
        village.close().await;
    });
}

#[test]
fn what_was_mended_meanwhile_is_not_told_again() {
    run(async {
        let village = Village::new().await;
        village.measure(30).await;
        village.behind(twice_timed(100)).await;
        village.apply(HOURS).await.unwrap_err();
        village.write(crate::harness::delete("sensor_data", doc! { "_id": 100 }, false)).await;
        village.apply(HOURS).await.unwrap();
        village.assert_readings(0..30, "mended").await;
        village.close().await;
    });
}

#[test]
fn one_reading_of_a_time_where_that_is_declared() {
    run(async {
        let village = Village::new().await;
        let twice = Document::from_iter(reading(3).into_iter().map(|(name, value)| match name.as_str() {
            "_id" => (name, Bson::Int32(500)),
            _ => (name, value),
        }));
        village.measure(20).await;
        village.behind(insert("sensor_data", vec![twice])).await;
        let rules = HOURS.replace("at_most: 10", "at_most: 2, reading_id: time");
        let error = village.apply(&rules).await.unwrap_err();
        assert!(error.message().contains("the `_id` of 21 documents of sensor_data would be lost"), "{error}");
        let error = village.overwrite(&rules).await.unwrap_err();
        assert!(error.message().contains("_id 500: there is another reading"), "{error}");
        assert_eq!(village.states().await, []);
        village.close().await;
    });
}

#[test]
fn what_nobody_would_keep_is_refused_before_anything_is_done() {
    run(async {
        let village = Village::new().await;
        village.measure(3).await;
        for (index, what) in [
            (doc! { "key": { "ts": 1 }, "name": "old", "expireAfterSeconds": 5 }, "expire by its index old"),
            (doc! { "key": { "temp": 1 }, "name": "only", "unique": true }, "its index only is unique"),
        ] {
            let name = index.get_str("name").unwrap().to_owned();
            let ns = crate::harness::ns("sensor_data");
            let op = document::op::AdminOp::CreateIndexes { ns: ns.clone(), indexes: vec![index.into()] };
            village.define(op).await;
            let error = village.apply(HOURS).await.unwrap_err();
            assert!(error.message().contains(what), "{error}");
            village.define(document::op::AdminOp::DropIndexes { ns, which: document::Value::string(name) }).await;
        }
        village.behind(insert("sensor_hours", vec![doc! { "_id": 1 }])).await;
        let error = village.apply(HOURS).await.unwrap_err();
        assert!(error.message().contains("there are documents already"), "{error}");
        village.assert_readings(0..3, "untouched").await;
        village.close().await;
    });
}

#[test]
fn the_health_of_very_many_buckets_is_that_of_some_and_is_looked_at_now_and_then() {
    run(async {
        let village = Village::new().await;
        village.apply(HOURS).await.unwrap();
        // One reading an hour: each is a bucket of its own.
        let sparse = |number: i32| {
            let ts = bson::DateTime::from_millis(super::station::BEGIN + i64::from(number) * 3_600_000);
            doc! { "_id": number, "sensorId": 1, "ts": ts, "temp": 1.5 }
        };
        for part in 0..3 {
            let readings = (part * 1_000..(part + 1) * 1_000).map(sparse).collect();
            village.write(insert("sensor_data", readings)).await;
        }
        let health = village.health().await;
        assert_eq!(
            (health.get_i64("buckets").unwrap(), health.get_i64("sampled").unwrap()),
            (3_000, 1_000),
            "{health}"
        );
        assert_eq!(
            (health.get_i64("readings").unwrap(), health.get_i64("sparse").unwrap()),
            (3_000, 3_000),
            "{health}"
        );
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        let again = village.health().await;
        assert!(again.get_i64("age_ms").unwrap() > health.get_i64("age_ms").unwrap(), "{health} {again}");
        village.close().await;
    });
}
