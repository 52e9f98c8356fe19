//! Documents that a conversion does not give back as they were: kept, and put back by `drop --restore`.

use crate::harness::{delete, insert, run, update};
use crate::life::dying::Dying;
use crate::life::village::Village;
use bson::{DateTime, Document, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const BEGIN: i64 = 1_709_251_200_000;
const DAY: i64 = 86_400_000;

const BY_TIME: &str =
    "{ data: { bucket: { into: hours, time: ts, by: [s], every: hour, at_most: 10, reading_id: time } } }";
const BY_TIME_AND_DAY: &str =
    "{ data: { bucket: { into: days, time: ts, by: [s, kind], every: day, at_most: 50, reading_id: time } } }";
const CUT: &str = "{ data: { bucket: { into: hours, time: ts, by: [s], every: hour, at_most: 10, unit: { minute: m }, inexact: truncate } } }";
const SLOTS: &str = "{ data: { bucket: { time: ts, by: [s], every: month, slot: day, sum: { n: n, m: m } } } }";
const QUARTERS: &str = "{ data: { bucket: { into: quarters, time: ts, by: [s], every: quarter, slot: day, sum: { n: a, m: b }, layout: field_names } } }";

fn reading(number: i32) -> Document {
    let ts = DateTime::from_millis(BEGIN + i64::from(number) * 97_001);
    doc! { "_id": format!("r{number:03}"), "ts": ts, "kind": "k", "s": number % 3, "n": f64::from(number) / 3.0 }
}

fn event(number: i32) -> Document {
    let ts = DateTime::from_millis(BEGIN + i64::from(number) * DAY / 5 + 7);
    let mut event = doc! { "_id": number, "ts": ts, "s": number % 2, "n": f64::from(number) / 7.0 };
    if number % 3 == 0 {
        event.insert("m", number);
    }
    event
}

async fn all(village: &Village) -> Vec<String> {
    sorted(village.find("data", doc! {}).await.into_iter())
}

fn sorted(documents: impl Iterator<Item = Document>) -> Vec<String> {
    let in_order = |one: Document| {
        let mut fields: Vec<_> = one.into_iter().collect();
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        fields.into_iter().collect::<Document>().to_string()
    };
    let mut all: Vec<String> = documents.map(in_order).collect();
    all.sort();
    all
}

async fn restore(village: &Village) -> Document {
    village.ask("drop", doc! { "rule": "data.bucket", "restore": true }).await.unwrap()
}

#[test]
fn every_document_comes_back_as_it_was_from_every_form() {
    run(async {
        for (make, forms) in [
            (reading as fn(i32) -> Document, vec![BY_TIME]),
            (reading, vec![CUT]),
            (reading, vec![BY_TIME, BY_TIME_AND_DAY]),
            (
                reading,
                vec![BY_TIME, "{ data: { bucket: { into: days, time: ts, by: [s], every: day, at_most: 50 } } }"],
            ),
            (event, vec![SLOTS]),
            (event, vec![SLOTS, QUARTERS]),
        ] {
            let village = Village::new().await;
            village.behind(insert("data", (0..60).map(make).collect())).await;
            village.life.limit_hosts(7);
            for form in &forms {
                village.overwrite(form).await.unwrap();
            }
            assert_ne!(all(&village).await, sorted((0..60).map(make)), "{forms:?}");
            let status = village.ask("status", doc! {}).await.unwrap();
            let rule = status.get_array("rules").unwrap()[0].as_document().unwrap();
            assert!(rule.get_document("kept").unwrap().get_i64("documents").unwrap() >= 59, "{forms:?} {rule}");
            assert!(rule.get_document("seeded").unwrap().get_i64("moved").unwrap() > 0, "{rule}");
            let answer = restore(&village).await;
            assert!(!answer.contains_key("kept"), "{answer}");
            assert_eq!(all(&village).await, sorted((0..60).map(make)), "{forms:?}");
            assert!(village.find("pleach.replaced", doc! {}).await.is_empty());
            assert!(village.find("pleach.catalog", doc! {}).await.is_empty());
            village.close().await;
        }
    });
}

#[test]
fn numbers_of_a_series_come_back_with_their_types() {
    run(async {
        const STORED: &str = "{ data: { bucket: { into: hours, time: ts, by: [s], every: hour, at_most: 3 } } }";
        let series: [bson::Bson; 6] = [1.into(), 1.0.into(), 1_i64.into(), 1_i64.into(), 2.0.into(), 1.into()];
        let before: Vec<Document> = (0..12_i32)
            .map(|number| {
                let ts = DateTime::from_millis(BEGIN + i64::from(number) * 1_000);
                let s = series[usize::try_from(number).unwrap() % series.len()].clone();
                doc! { "_id": number, "s": s, "ts": ts, "n": number }
            })
            .collect();
        for (form, part) in [(STORED, 500), (STORED, 2), (BY_TIME, 500), (BY_TIME, 2), (SLOTS, 500)] {
            let village = Village::new().await;
            village.life.limit_hosts(part);
            village.behind(insert("data", before.clone())).await;
            village.overwrite(form).await.unwrap();
            let answer = restore(&village).await;
            assert!(!answer.contains_key("kept"), "{answer}");
            assert_eq!(village.find("data", doc! {}).await, before, "{form}, {part}");
            assert!(village.find("pleach.replaced", doc! {}).await.is_empty());
            village.close().await;
        }
    });
}

#[test]
fn nothing_is_kept_where_nothing_is_lost() {
    run(async {
        let village = Village::new().await;
        village.behind(insert("data", (0..60).map(reading).collect())).await;
        let form = "{ data: { bucket: { into: days, time: ts, by: [s], every: day, at_most: 50 } } }";
        village.overwrite(form).await.unwrap();
        let status = village.ask("status", doc! {}).await.unwrap();
        let rule = status.get_array("rules").unwrap()[0].as_document().unwrap().clone();
        assert!(!rule.contains_key("kept"), "{rule}");
        restore(&village).await;
        assert_eq!(all(&village).await, sorted((0..60).map(reading)));
        village.close().await;
    });
}

#[test]
fn what_clients_changed_and_deleted_since_stays_so() {
    run(async {
        let village = Village::new().await;
        village.behind(insert("data", (0..6).map(reading).collect())).await;
        village.overwrite(BY_TIME).await.unwrap();
        let seen = |number: i32| {
            let one = reading(number);
            doc! { "s": one.get_i32("s").unwrap(), "ts": *one.get_datetime("ts").unwrap() }
        };
        village.write(delete("data", seen(1), false)).await;
        village.write(update("data", seen(2), doc! { "$set": { "n": 99 } }, &[])).await;
        let new = DateTime::from_millis(BEGIN + 5);
        village.write(insert("data", vec![doc! { "ts": new, "s": 1, "n": 1 }])).await;
        let answer = restore(&village).await;
        assert_eq!(answer.get_document("kept").unwrap().get_i64("documents").unwrap(), 1, "{answer}");
        let mut expected: Vec<Document> = [0, 2, 3, 4, 5].into_iter().map(reading).collect();
        expected[1].insert("n", 99);
        let derived = doc! { "s": 1, "ts": new };
        let mut found = village.find("data", doc! {}).await;
        found.sort_by_key(|one| one.get_str("_id").unwrap_or("z").to_owned());
        let ids: Vec<_> = found.iter().map(|one| one.get("_id").unwrap().clone()).collect();
        assert_eq!(ids.last().unwrap().as_document().unwrap(), &derived);
        found.pop();
        assert_eq!(found, expected);
        village.ask("forget", doc! { "rule": "data.bucket" }).await.unwrap();
        assert!(village.find("pleach.replaced", doc! {}).await.is_empty());
        village.close().await;
    });
}

#[test]
fn a_slot_that_was_changed_comes_back_as_one_document() {
    run(async {
        let village = Village::new().await;
        village.behind(insert("data", (0..20).map(event).collect())).await;
        village.overwrite(SLOTS).await.unwrap();
        let late = DateTime::from_millis(BEGIN + 100);
        village.write(insert("data", vec![doc! { "ts": late, "s": 0, "n": 1000 }])).await;
        let slots = village.find("data", doc! {}).await;
        let changed = slots.iter().find(|slot| slot.get_f64("n").unwrap_or_default() > 999.0).unwrap().clone();
        // Events 0, 2 and 4 are in that slot.
        let answer = restore(&village).await;
        assert_eq!(answer.get_document("kept").unwrap().get_i64("documents").unwrap(), 3, "{answer}");
        let expected = (0..20).filter(|number| ![0, 2, 4].contains(number)).map(event).chain([changed]);
        assert_eq!(all(&village).await, sorted(expected));
        village.close().await;
    });
}

#[test]
fn wherever_it_is_cut_off_nothing_is_lost() {
    run(async {
        for (make, form) in [(reading as fn(i32) -> Document, BY_TIME), (event, SLOTS)] {
            let mut tried = 0;
            for after in (6..).step_by(9) {
                let village = Village::new().await;
                village.behind(insert("data", (0..30).map(make).collect())).await;
                let left = Arc::new(AtomicI64::new(after));
                let killer = left.clone();
                let around = |inner| -> Arc<dyn document::backend::Backend> {
                    Arc::new(Dying { inner, left: killer, shared: false })
                };
                let village = Village::open(village.close().await, around).await.unwrap();
                village.life.limit_hosts(9);
                let applied = village.overwrite(form).await.is_ok();
                let dropped = village.ask("drop", doc! { "rule": "data.bucket", "restore": true }).await.is_ok();
                left.store(0, Ordering::Relaxed);
                let village = Village::open(village.close().await, |backend| backend).await.unwrap();
                village.life.settle("shop").await.unwrap();
                if !village.states().await.is_empty() {
                    restore(&village).await;
                }
                assert_eq!(all(&village).await, sorted((0..30).map(make)), "{form} after {after}");
                assert!(village.find("pleach.replaced", doc! {}).await.is_empty(), "{form} after {after}");
                village.close().await;
                tried += 1;
                if applied && dropped {
                    break;
                }
            }
            assert!(tried > 5, "{tried}");
        }
    });
}
