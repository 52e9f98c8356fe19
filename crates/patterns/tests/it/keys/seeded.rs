//! Roll-ups over orders that were there before: seeded in two walks, under load, killed and resumed; audited and repaired.

use crate::harness::{Opened, context, delete, insert, run, update};
use crate::keys::orders::{BY, apply_under_load, cut_off_everywhere, fill, order};
use crate::life::several::{LONG, Process};
use crate::life::village::{Village, declared};
use bson::{Bson, doc};
use document::Error;
use document::backend::{Backend, Session};
use document::op::Capture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

fn rules() -> String {
    format!(
        "{{ days: {{ computed: {{ orders: {{ count: orders, {BY} }}, revenue: {{ sum: total, from: orders, {BY} }} }} }} }}"
    )
}

/// By a key that no index serves.
const WORDS: &str = "{ words: { computed: { n: { count: texts, by: { $toLower: $word }, create: true } } } }";

/// Each day is there exactly if it has orders.
async fn assert_right(village: &Village) {
    village.assert_clean().await;
    for day in village.find("days", doc! {}).await {
        assert!(day.get_i32("orders").unwrap() > 0 || day.contains_key("note"), "{day}");
    }
    let counted: i64 =
        village.find("days", doc! {}).await.iter().map(|day| i64::from(day.get_i32("orders").unwrap())).sum();
    assert_eq!(counted, i64::try_from(village.find("orders", doc! {}).await.len()).unwrap());
}

#[test]
fn a_roll_up_is_seeded_from_its_source() {
    run(async {
        let village = Village::new().await;
        fill(&village, 300).await;
        village.behind(insert("days", vec![doc! {"_id": "mine", "note": 1, "orders": 77}])).await;
        village.life.limit_hosts(20);
        village.overwrite(&rules()).await.unwrap();
        assert_eq!(village.find("days", doc! {}).await.len(), 34);
        let mine = village.find("days", doc! {"_id": "mine"}).await.remove(0);
        assert_eq!((mine.get("orders"), mine.get("revenue")), (Some(&0.into()), Some(&0.into())));
        assert_right(&village).await;
        village.write(delete("orders", doc! {"_id": {"$gte": 100}}, true)).await;
        village.write(insert("orders", vec![order(1_000)])).await;
        assert_right(&village).await;
        // The catalog remembers; another form begins anew.
        let village = village.reopen().await;
        let large = rules().replace("count: orders,", "count: orders, where: { total: { $gte: 50 } },");
        village.overwrite(&large).await.unwrap();
        village.assert_clean().await;
        village.ask("drop", doc! {"rule": "days.orders"}).await.unwrap();
        let day = village.find("days", doc! {"revenue": {"$gt": 0}}).await.remove(0);
        assert!(day.get_document("_pleach").unwrap().get("orders").is_none(), "{day}");
        village.close().await;
    });
}

#[test]
fn seeding_under_load_counts_each_document_once() {
    run(async {
        let village = Village::new().await;
        fill(&village, 2_000).await;
        village.life.limit_hosts(200);
        apply_under_load(&village, &rules(), 2_000).await;
        assert_right(&village).await;
        village.close().await;
    });
}

async fn life(village: &Village, _: &AtomicI64) -> Result<(), Error> {
    village.apply(&rules()).await?;
    let write = insert("orders", vec![order(5_000)]);
    village.front.write(&mut Session::default(), &context(), &write, &Capture::Nothing).await?;
    Ok(())
}

#[test]
fn whatever_was_cut_off_is_counted_once() {
    run(async {
        cut_off_everywhere(40, 9, life, async |village| {
            village.write(insert("orders", vec![order(6_000), order(-1)])).await;
            village.life.settle("shop").await.unwrap();
            village.ask("apply", doc! {"declaration": declared(&rules())}).await.unwrap();
            assert_right(village).await;
        })
        .await;
    });
}

#[test]
fn an_audit_names_documents_that_should_exist_and_a_repair_makes_them() {
    run(async {
        let village = Village::new().await;
        fill(&village, 60).await;
        village.behind(insert("texts", ["Oak", "oak", "Elm"].iter().map(|word| doc! {"word": *word}).collect())).await;
        village.apply(&both()).await.unwrap();
        village.assert_clean().await;
        village.behind(delete("days", doc! {"_id.region": 0}, true)).await;
        village.behind(delete("words", doc! {"_id": "oak"}, false)).await;
        village.behind(update("words", doc! {"_id": "elm"}, doc! {"$set": {"n": 9}}, &[])).await;
        let report = village.ask("audit", doc! {}).await.unwrap();
        assert_eq!(report.get_i64("drifted").ok(), Some(2 * 11 + 2), "{report}");
        let drift = report.get_array("drift").unwrap().iter().filter_map(Bson::as_document);
        let oak = drift.clone().find(|drift| drift.get("_id") == Some(&"oak".into())).unwrap();
        assert_eq!((oak.get("stored"), oak.get("expected")), (None, Some(&2.into())), "{oak}");
        village.ask("repair", doc! {}).await.unwrap();
        assert_right(&village).await;
        assert_eq!(village.find("words", doc! {"_id": "oak"}).await.remove(0).get("n"), Some(&2.into()));
        village.close().await;
    });
}

fn both() -> String {
    let days = rules();
    let days = days.strip_suffix('}').unwrap();
    format!("{days}, {}", WORDS.strip_prefix('{').unwrap())
}

#[test]
fn two_processes_count_each_document_once() {
    run(async {
        let engine = Opened::engine();
        let (first, second) = (Process::start(&engine, LONG).await, Process::start(&engine, LONG).await);
        first.village.fill(20, 500).await;
        first.village.life.limit_hosts(50);
        let stop = Arc::new(AtomicBool::new(false));
        let mut clients = first.village.clients(0..2, 20, &stop);
        clients.extend(second.village.clients(2..4, 20, &stop));
        let rules = "{ totals: { computed: { reviews: { count: reviews, by: productId, create: true }, n: { sum: n, from: reviews, by: { $concat: [$kind, '!'] }, create: true } } } }";
        first.village.apply(rules).await.unwrap();
        second.village.assert_clean().await;
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            assert!(client.await.unwrap() > 5);
        }
        first.village.assert_clean().await;
        first.village.behind(delete("totals", doc! {"_id": "good!"}, false)).await;
        assert_eq!(first.village.ask("audit", doc! {}).await.unwrap().get_i64("drifted").ok(), Some(1));
        first.village.ask("repair", doc! {}).await.unwrap();
        assert!(second.village.assert_clean().await > 20);
        first.village.life.close().await;
        second.village.life.close().await;
        engine.close();
    });
}
