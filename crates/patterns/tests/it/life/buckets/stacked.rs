//! Fields that are kept from a bucketed collection (SEMANTICS R34): they react to readings, whatever these are stored in.

use super::station::{BEGIN, DAYS, ELSEWHERE, HOURS};
use crate::harness::{context, delete, find_and_modify, insert, modify, run, update};
use crate::life::village::{Village, declared};
use bson::{Bson, DateTime, Document, bson, doc};
use document::backend::{Backend, Session};
use document::op::{AdminOp, Capture, Context, Sent, WriteOp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const FIELDS: &str = "sensors: { computed: { readingCount: { count: sensor_data, by: sensorId }, total: { sum: temp, from: sensor_data, by: sensorId }, mean: { avg: temp, from: sensor_data, by: sensorId, where: { ok: true } }, doubled: { expr: { $multiply: [$total, 2] } } } }, alarms: { extended_reference: { reading: { from: sensor_data, by: readingId, fields: [temp, ts], when_deleted: unset } } }";

/// The rules of the buckets, with fields that are kept from their readings.
fn with_fields(buckets: &str) -> String {
    let buckets = buckets.strip_suffix('}').unwrap().trim_end();
    format!("{buckets}, {FIELDS} }}")
}

fn reading(id: i32, sensor: i32, minute: i64, temp: impl Into<Bson>) -> Document {
    let ts = DateTime::from_millis(BEGIN + minute * 60_000);
    doc! { "_id": id, "sensorId": sensor, "ts": ts, "temp": temp.into(), "ok": id % 2 == 0 }
}

async fn sensor(village: &Village, id: i32) -> Document {
    village.find("sensors", doc! { "_id": id }).await.remove(0)
}

#[track_caller]
fn is(sensor: &Document, count: i32, total: impl Into<Bson>) {
    assert_eq!(
        (sensor.get("readingCount"), sensor.get("total")),
        (Some(&Bson::Int32(count)), Some(&total.into())),
        "{sensor}"
    );
}

async fn populated() -> Village {
    let village = Village::new().await;
    village.apply(&with_fields(HOURS)).await.unwrap();
    village.write(insert("sensors", vec![doc! { "_id": 1 }, doc! { "_id": 2 }])).await;
    village.write(insert("alarms", vec![doc! { "_id": 1, "readingId": 7 }])).await;
    village
}

#[test]
fn fields_react_to_every_way_a_reading_is_written() {
    run(async {
        let village = populated().await;
        village.write(insert("sensor_data", vec![reading(7, 1, 0, 5)])).await;
        is(&sensor(&village, 1).await, 1, 5);
        let alarm = village.find("alarms", doc! {}).await.remove(0);
        assert_eq!(alarm.get_document("reading").unwrap().get_i32("temp").unwrap(), 5, "{alarm}");
        let many = (10..40).map(|id| reading(id, 1 + id % 2, i64::from(id) * 7, 2)).collect();
        village.write(insert("sensor_data", many)).await;
        is(&sensor(&village, 1).await, 16, 35);
        is(&sensor(&village, 2).await, 15, 30);
        village.write(update("sensor_data", doc! { "_id": 7 }, doc! { "$inc": { "temp": 1.5 } }, &[])).await;
        is(&sensor(&village, 1).await, 16, 36.5);
        let alarm = village.find("alarms", doc! {}).await.remove(0);
        assert_eq!(alarm.get_document("reading").unwrap().get_f64("temp").unwrap(), 6.5, "{alarm}");
        // Another series, another period.
        village.write(update("sensor_data", doc! { "_id": 7 }, doc! { "$set": { "sensorId": 2 } }, &[])).await;
        is(&sensor(&village, 1).await, 15, 30);
        is(&sensor(&village, 2).await, 16, 36.5);
        let later = DateTime::from_millis(BEGIN + 86_400_000);
        village.write(update("sensor_data", doc! { "_id": 7 }, doc! { "$set": { "ts": later } }, &[])).await;
        is(&sensor(&village, 2).await, 16, 36.5);
        village.write(update("sensor_data", doc! { "sensorId": 2 }, doc! { "$set": { "temp": 1 } }, &["multi"])).await;
        is(&sensor(&village, 2).await, 16, 16);
        village.write(delete("sensor_data", doc! { "_id": 10 }, false)).await;
        village.write(delete("sensor_data", doc! { "sensorId": 2 }, true)).await;
        is(&sensor(&village, 1).await, 14, 28);
        is(&sensor(&village, 2).await, 0, 0);
        let alarm = village.find("alarms", doc! {}).await.remove(0);
        assert!(!alarm.contains_key("reading"), "{alarm}");
        let upsert = find_and_modify(
            "sensor_data",
            doc! { "_id": 7, "sensorId": 2, "ts": later },
            modify(bson!({ "$set": { "temp": 3 } }), true),
        );
        village.write(upsert).await;
        is(&sensor(&village, 2).await, 1, 3);
        assert_eq!(sensor(&village, 2).await.get_i32("doubled").unwrap(), 6);
        // A host that comes later is evaluated from readings.
        village.write(insert("sensor_data", vec![reading(50, 3, 5, 4), reading(51, 3, 6, 6)])).await;
        village.write(insert("sensors", vec![doc! { "_id": 3 }])).await;
        is(&sensor(&village, 3).await, 2, 10);
        assert!(village.assert_clean().await > 0);
        village.close().await;
    });
}

#[test]
fn a_transaction_sees_its_effects_and_takes_them_back() {
    run(async {
        let village = populated().await;
        let context = context();
        for keep in [false, true] {
            let mut session = Session::default();
            village.front.begin(&mut session, &context).await.unwrap();
            for op in [
                insert("sensor_data", vec![reading(7, 1, 0, 5), reading(8, 1, 1, 5)]),
                update("sensor_data", doc! { "_id": 8 }, doc! { "$set": { "temp": 1 } }, &[]),
                delete("sensor_data", doc! { "_id": 7 }, false),
            ] {
                let written = village.front.write(&mut session, &context, &op, &Capture::Nothing).await.unwrap();
                assert!(written.errors.is_empty(), "{:?}", written.errors);
            }
            is(&sensor(&village, 1).await, 0, 0);
            match keep {
                true => session.transaction.take().unwrap().commit(&context).await.unwrap(),
                false => session.transaction.take().unwrap().abort(),
            }
        }
        is(&sensor(&village, 1).await, 1, 1);
        village.assert_clean().await;
        village.close().await;
    });
}

#[test]
fn a_refused_statement_changes_nothing_and_names_its_place() {
    run(async {
        let village = populated().await;
        let huge = |id: i32, temp: f64| reading(id, 1, i64::from(id), temp);
        village.write(insert("sensor_data", vec![huge(1, 1e300)])).await;
        let op = insert("sensor_data", vec![huge(2, 1.0)]);
        let written = village.front.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
        assert_eq!(written.errors.iter().map(|failed| failed.index).collect::<Vec<_>>(), [0], "{:?}", written.errors);
        assert!(written.errors[0].error.message().contains("34 digits"), "{:?}", written.errors);
        assert_eq!(village.find("sensor_data", doc! {}).await.len(), 1);
        village.assert_clean().await;
        village.close().await;
    });
}

#[test]
fn whole_buckets_that_expire_take_their_readings_out_of_fields() {
    run(async {
        let village = populated().await;
        let hours = |hour: i32| (0..5).map(move |n| reading(hour * 10 + n, 1, i64::from(hour * 60 + n), 2)).collect();
        for hour in 0..4 {
            village.write(insert("sensor_data", hours(hour))).await;
        }
        is(&sensor(&village, 1).await, 20, 40);
        let old = DateTime::from_millis(BEGIN + 2 * 3_600_000);
        let op = delete("sensor_hours", doc! { "hour": { "$lt": old } }, true);
        let expiring = Context { sent: Sent { expiry: true, ..Sent::default() }, ..context() };
        let written = village.front.write(&mut Session::default(), &expiring, &op, &Capture::Nothing).await.unwrap();
        assert_eq!(written.n, 2);
        is(&sensor(&village, 1).await, 10, 20);
        village.assert_clean().await;
        village.close().await;
    });
}

#[test]
fn a_rule_is_retired_whose_source_becomes_a_view() {
    run(async {
        let village = Village::new().await;
        let days = "days: { computed: { hottest: { max: temp, from: sensor_data, by: { $dateTrunc: { date: $ts, unit: day } }, create: true } } }";
        village.apply(&format!("{{ {days} }}")).await.unwrap();
        // A client drops the database: the rule stays declared, its index is no more.
        let drop = AdminOp::DropDatabase { db: "shop".to_owned() };
        village.front.admin(&mut Session::default(), &context(), drop).await.unwrap();
        let declaration = declared(&with_fields(HOURS));
        village.ask("apply", doc! { "declaration": declaration, "remove": true }).await.unwrap();
        assert!(!village.states().await.iter().any(|(rule, _)| rule == "days.hottest"), "{:?}", village.states().await);
        village.close().await;
    });
}

/// One client with readings of its own; all of its writes succeed.
async fn client(village: Arc<Village>, number: i32, stop: Arc<AtomicBool>) -> (i32, i32) {
    let (mut made, mut count, mut total) = (0, 0, 0);
    let write = async |op: WriteOp| {
        let written = village.front.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
        assert!(written.errors.is_empty(), "{:?}", written.errors);
        assert_eq!(written.n, 1);
    };
    while !stop.load(Ordering::Relaxed) {
        let id = 100_000 * (number + 1) + made;
        match made % 4 {
            2 => {
                write(update("sensor_data", doc! { "_id": id - 1 }, doc! { "$set": { "temp": 7 } }, &[])).await;
                total += 5;
            }
            3 => {
                write(delete("sensor_data", doc! { "_id": id - 3 }, false)).await;
                (count, total) = (count - 1, total - 2);
            }
            _ => {
                write(insert("sensor_data", vec![reading(id, number, i64::from(made), 2)])).await;
                (count, total) = (count + 1, total + 2);
            }
        }
        made += 1;
    }
    (count, total)
}

#[test]
fn fields_stay_true_while_their_source_changes_its_form() {
    run(async {
        let village = Village::new().await;
        village.behind(insert("sensor_data", (0..300).map(|id| reading(id, id % 3, i64::from(id), 2)).collect())).await;
        village.behind(insert("sensors", (0..3).map(|id| doc! { "_id": id }).collect())).await;
        village.life.limit_hosts(50);
        let village = Arc::new(village);
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> =
            (0..3).map(|number| tokio::spawn(client(village.clone(), number, stop.clone()))).collect();
        village.apply(&format!("{{ {FIELDS} }}")).await.unwrap();
        for rules in [HOURS, DAYS, ELSEWHERE] {
            village.apply(&with_fields(rules)).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        village.ask("drop", doc! { "rule": "sensor_data.bucket" }).await.unwrap();
        village.apply(&with_fields(HOURS)).await.unwrap();
        stop.store(true, Ordering::Relaxed);
        for (number, client) in clients.into_iter().enumerate() {
            let (count, total) = client.await.unwrap();
            is(&sensor(&village, i32::try_from(number).unwrap()).await, 100 + count, 200 + total);
        }
        village.assert_clean().await;
        let village = Arc::into_inner(village).unwrap();
        village.close().await;
    });
}

#[test]
fn slots_are_documents_that_fields_count() {
    run(async {
        let village = Village::new().await;
        let rules = "{ events: { bucket: { time: date, by: [key], every: month, slot: day, sum: { approved: a }, layout: field_names } }, keys: { computed: { days: { count: events, by: key }, approved: { sum: approved, from: events, by: key } } } }";
        village.apply(rules).await.unwrap();
        village.write(insert("keys", vec![doc! { "_id": "a" }])).await;
        let event = |day: i64, approved: i32| doc! { "key": "a", "date": DateTime::from_millis(BEGIN + day * 86_400_000 + 5), "approved": approved };
        village.write(insert("events", vec![event(0, 1), event(0, 2), event(1, 3)])).await;
        let key = async || village.find("keys", doc! {}).await.remove(0);
        let shown = |key: &Document| (key.get_i32("days").unwrap(), key.get_i32("approved").unwrap());
        assert_eq!(shown(&key().await), (2, 6));
        let day = DateTime::from_millis(BEGIN);
        village
            .write(update("events", doc! { "key": "a", "date": day }, doc! { "$inc": { "approved": 4 } }, &["upsert"]))
            .await;
        assert_eq!(shown(&key().await), (2, 10));
        village.write(delete("events", doc! { "key": "a", "date": day }, false)).await;
        assert_eq!(shown(&key().await), (1, 3));
        village.assert_clean().await;
        village.close().await;
    });
}

#[test]
fn readings_that_fields_are_kept_from_do_not_go_with_their_rule() {
    run(async {
        let village = populated().await;
        for leaving in ["with_data", "keep_buckets"] {
            let error = village.ask("drop", doc! { "rule": "sensor_data.bucket", leaving: true }).await.unwrap_err();
            assert_eq!(error.code().number(), 96, "{error}");
            assert!(error.message().contains("reads its readings"), "{error}");
        }
        village.ask("drop", doc! { "rule": "sensor_data.bucket" }).await.unwrap();
        village.write(insert("sensor_data", vec![reading(7, 1, 0, 5)])).await;
        is(&sensor(&village, 1).await, 1, 5);
        village.assert_clean().await;
        village.close().await;
    });
}
