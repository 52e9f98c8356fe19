//! Roll-ups that may be late: a job makes the document of a key, keeps it and removes it (SEMANTICS R13, R35).

use crate::harness::{context, delete, insert, run, update};
use crate::keys::orders::{BY, apply_under_load, at, cut_off_everywhere, fill, order};
use crate::life::village::Village;
use bson::doc;
use document::Error;
use document::backend::{Backend, Session};
use document::op::Capture;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// One late, one in time, and one of another kind in the same documents.
fn rules() -> String {
    format!(
        "{{ days: {{ computed: {{ late: {{ sum: total, from: orders, {BY}, lag: 1ms }}, orders: {{ count: orders, {BY} }}, busy: {{ expr: {{ $gt: [$orders, 1] }} }} }} }} }}"
    )
}

/// Nothing but what is late.
fn only_late(lag: &str) -> String {
    format!("{{ days: {{ computed: {{ late: {{ count: orders, {BY}, lag: {lag} }} }} }} }}")
}

async fn drained(village: &Village) {
    for _ in 0..1_500 {
        if village.find("pleach.outbox", doc! {}).await.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the outbox does not empty: {:?}", village.find("pleach.outbox", doc! {}).await);
}

/// Exactly the days that have orders are there, each with its number.
async fn assert_right(village: &Village, field: &str) {
    drained(village).await;
    village.assert_clean().await;
    let days = village.find("days", doc! {}).await;
    let children = |day: &bson::Document| {
        day.get_document("_pleach").unwrap().get_document(field).unwrap().get_i32("children").unwrap()
    };
    assert!(days.iter().all(|day| children(day) > 0 || day.contains_key("note")), "{days:?}");
    let counted: i32 = days.iter().map(children).sum();
    assert_eq!(usize::try_from(counted).unwrap(), village.find("orders", doc! {}).await.len());
}

#[test]
fn a_job_makes_keeps_and_removes_the_document() {
    run(async {
        let village = Village::new().await;
        village.apply(&only_late("1s")).await.unwrap();
        village.write(insert("orders", vec![order(1), order(12), order(34)])).await;
        // Nothing is there yet, and that is no drift.
        assert!(village.find("days", doc! {}).await.is_empty());
        village.assert_clean().await;
        assert_right(&village, "late").await;
        let first = village.find("days", doc! {"_id.region": 1}).await.remove(0);
        assert_eq!(first.keys().collect::<Vec<_>>(), ["_id", "late", "_pleach"]);
        assert_eq!(first.get("late"), Some(&2.into()), "{first}");
        // A document that has children is not a client's to delete.
        let id = first.get("_id").unwrap().clone();
        let (code, message) = village.refused(delete("days", doc! {"_id": id.clone()}, false)).await;
        assert_eq!(code, 96, "{message}");
        assert!(message.contains("days.late") && message.contains("2 documents of orders"), "{message}");
        // What a client adds keeps it when the last child goes; otherwise it goes too.
        village.write(update("days", doc! {"_id": id.clone()}, doc! {"$set": {"note": 1}}, &[])).await;
        village.write(delete("orders", doc! {}, true)).await;
        assert_right(&village, "late").await;
        let left = village.find("days", doc! {}).await;
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].get("_id"), left[0].get("late")), (Some(&id), Some(&0.into())));
        village.write(delete("days", doc! {}, true)).await;
        // One that came and went leaves nothing.
        village.write(insert("orders", vec![order(1)])).await;
        village.write(delete("orders", doc! {}, true)).await;
        assert_right(&village, "late").await;
        assert!(village.find("days", doc! {}).await.is_empty());
        village.close().await;
    });
}

#[test]
fn seeding_and_late_changes_count_each_document_once() {
    run(async {
        let village = Village::new().await;
        fill(&village, 800).await;
        village.life.limit_hosts(50);
        apply_under_load(&village, &rules(), 800).await;
        assert_right(&village, "late").await;
        assert_right(&village, "orders").await;
        // Without lag the same rule goes on from the same state, whatever still waits.
        village.write(insert("orders", (5_000..5_040).map(order).collect())).await;
        village.apply(&rules().replace(", lag: 1ms", "")).await.unwrap();
        village.write(delete("orders", doc! {"_id": {"$gte": 5_000}}, true)).await;
        assert_right(&village, "late").await;
        village.close().await;
    });
}

/// Seeded, written to, worked off.
async fn life(village: &Village, left: &AtomicI64) -> Result<(), Error> {
    village.apply(&only_late("1ms")).await?;
    for op in [insert("orders", (5_000..5_004).map(order).collect()), delete("orders", doc! {"_id": {"$lt": 10}}, true)]
    {
        village.front.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await?;
    }
    for _ in 0..100 {
        if left.load(Ordering::Relaxed) <= 0 || village.find("pleach.outbox", doc! {}).await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

#[test]
fn a_killed_worker_is_resumed() {
    run(async {
        cut_off_everywhere(30, 11, life, async |village| {
            village.life.settle("shop").await.unwrap();
            village.apply(&only_late("1ms")).await.unwrap();
            assert_right(village, "late").await;
        })
        .await;
    });
}

#[test]
fn documents_without_a_key_are_counted() {
    run(async {
        let village = Village::new().await;
        let none = vec![
            doc! {"_id": "a", "at": "never", "region": 1},
            doc! {"_id": "b", "at": at(1), "region": [1]},
            doc! {"_id": "c", "at": [at(1)], "region": 1},
        ];
        village.behind(insert("orders", none)).await;
        village.behind(insert("orders", (0..7).map(order).collect())).await;
        let plan = village.ask("plan", doc! {"declaration": testing::declaration("shop", &rules())}).await.unwrap();
        let text = format!("{plan}");
        assert!(text.contains("3 documents of orders have no key and count nowhere, such as _id \"a\""), "{text}");
        village.apply(&rules()).await.unwrap();
        let unkeyed = async || {
            let status = village.ask("status", doc! {}).await.unwrap();
            let of = |rule: &bson::Bson| rule.as_document().and_then(|rule| rule.get_i64("unkeyed").ok());
            status.get_array("rules").unwrap().iter().map(of).collect::<Vec<_>>()
        };
        // An expression over the document itself has no key.
        assert_eq!(unkeyed().await.into_iter().flatten().collect::<Vec<_>>(), [3, 3]);
        village.write(update("orders", doc! {"_id": "b"}, doc! {"$set": {"region": 1}}, &[])).await;
        assert_eq!(unkeyed().await.into_iter().flatten().collect::<Vec<_>>(), [2, 2]);
        let audit = village.ask("audit", doc! {}).await.unwrap();
        assert!(format!("{audit}").contains("2 documents of orders have no key"), "{audit}");
        village.close().await;
    });
}
