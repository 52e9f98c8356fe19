//! Drift that was provoked behind the layer's back is found, with document, stored and expected value, and repaired.

use super::village::{COUNT, SUM, Village};
use crate::harness::{delete, insert, run, update};
use bson::{Bson, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn drift_is_found_and_repaired() {
    run(async {
        let village = Village::new().await;
        village.fill(4, 8).await;
        village.apply(COUNT).await.unwrap();
        village.behind(insert("reviews", vec![doc! { "productId": 1 }])).await;
        village.behind(update("products", doc! { "_id": 2 }, doc! { "$unset": { "reviewCount": 1 } }, &[])).await;
        village.behind(update("products", doc! { "_id": 3 }, doc! { "$set": { "reviewCount": "many" } }, &[])).await;
        let report = village.ask("audit", doc! {}).await.unwrap();
        assert_eq!((report.get_i64("checked").unwrap(), report.get_i64("drifted").unwrap()), (4, 3));
        // What is missing is left out.
        let entry = |id: i32, stored: Option<Bson>, expected: i32| {
            let mut entry =
                doc! { "rule": "products.reviewCount", "collection": "products", "_id": id, "field": "reviewCount" };
            entry.extend(stored.map(|stored| ("stored".to_owned(), stored)));
            entry.extend(doc! { "expected": expected, "database": "shop" });
            Bson::from(entry)
        };
        let drift = vec![entry(1, Some(Bson::Int32(2)), 3), entry(2, None, 2), entry(3, Some("many".into()), 2)];
        assert_eq!(report.get_array("drift").unwrap(), &drift);
        let few = village.ask("audit", doc! { "examples": 1 }).await.unwrap();
        assert_eq!((few.get_array("drift").unwrap().len(), few.get_i64("drifted").unwrap()), (1, 3));
        let repaired = village.ask("repair", doc! {}).await.unwrap();
        assert_eq!(repaired.get_array("drift").unwrap(), &drift);
        village.assert_clean().await;
        village.close().await;
    });
}

#[test]
fn repair_overwrites_no_newer_write() {
    run(async {
        let village = Village::new().await;
        village.fill(60, 240).await;
        village.apply(COUNT).await.unwrap();
        let both = COUNT.replace(" } } } }", " }, total: { sum: n, from: reviews, by: productId } } } }");
        village.apply(&both).await.unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let clients = village.clients(0..3, 60, &stop);
        for round in 0..10 {
            let wrong = doc! { "$set": { "reviewCount": -5, "total": round } };
            village.behind(update("products", doc! { "_id": { "$lt": 40 } }, wrong, &["multi"])).await;
            village.ask("repair", doc! {}).await.unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.unwrap();
        }
        village.assert_clean().await;
        village.close().await;
    });
}

#[test]
fn a_run_without_rules_makes_an_audit_due() {
    run(async {
        let village = Village::new().await;
        village.fill(4, 8).await;
        village.apply(SUM).await.unwrap();
        assert_eq!(village.life.audits_due().await.unwrap(), Vec::<String>::new());
        assert_eq!(village.life.switch_off().await.unwrap(), 1);
        village.behind(delete("reviews", doc! { "_id": 1 }, false)).await;
        let village = village.reopen().await;
        assert_eq!(village.life.audits_due().await.unwrap(), ["shop"]);
        assert_eq!(village.ask("audit", doc! {}).await.unwrap().get_i64("drifted").unwrap(), 1);
        assert_eq!(village.life.audits_due().await.unwrap(), ["shop"]);
        village.ask("repair", doc! {}).await.unwrap();
        assert_eq!(village.life.audits_due().await.unwrap(), Vec::<String>::new());
        village.close().await;
    });
}
