//! Stopped at every step: an apply, a change and a drop go on from wherever they were cut off.

use super::dying::Dying;
use super::village::{COUNT, SUM, Village, declared};
use crate::harness::{context, insert, run};
use bson::doc;
use document::Error;
use document::backend::{Backend, Session};
use document::op::{AdminOp, Capture};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use testing::Data;

/// One life that is cut off after so many operations: applies, changes and drops as far as it comes.
async fn cut_off(folder: Data, after: i64) -> (Data, bool) {
    let left = Arc::new(AtomicI64::new(after));
    let killer = left.clone();
    // A store that dies while it is being opened has done nothing yet.
    let path = folder;
    let village = Village::open(path, |inner| Arc::new(Dying { inner, left: killer, shared: false })).await;
    let village = match village {
        Ok(village) => village,
        Err(_) => return (Data::folder(), false),
    };
    let all = async {
        village.apply(COUNT).await?;
        let write = insert("reviews", vec![doc! { "productId": 1, "n": 5, "kind": "good" }]);
        village.front.write(&mut Session::default(), &context(), &write, &Capture::Nothing).await?;
        village.apply(&COUNT.replace("by: productId", "by: productId, where: { kind: good }")).await?;
        village.ask("apply", doc! { "declaration": declared(SUM), "remove": true, "with_data": true }).await?;
        Ok::<_, Error>(())
    };
    let finished = all.await.is_ok();
    left.store(0, Ordering::Relaxed);
    (village.close().await, finished)
}

#[test]
fn whatever_was_cut_off_goes_on_from_the_catalog() {
    run(async {
        let mut tried = 0;
        // Every third step: opening a store takes its time, and neighbouring steps differ little.
        for after in (5..).step_by(3) {
            let village = Village::new().await;
            village.fill(6, 20).await;
            let (folder, finished) = cut_off(village.close().await, after).await;
            let village = Village::open(folder, |backend| backend).await.unwrap();
            // Clients write before anything goes on.
            if !village.find("products", doc! {}).await.is_empty() {
                village.write(insert("reviews", vec![doc! { "productId": 2, "n": 7, "kind": "good" }])).await;
            }
            village.life.settle("shop").await.unwrap();
            for (rule, state) in village.states().await {
                assert_eq!(state, "on", "{rule} after {after}");
            }
            village.assert_clean().await;
            village
                .ask("apply", doc! { "declaration": declared(SUM), "remove": true, "with_data": true })
                .await
                .unwrap();
            village.assert_clean().await;
            for product in village.find("products", doc! {}).await {
                assert!(!product.contains_key("reviewCount"), "{product} after {after}");
            }
            village.close().await;
            tried += 1;
            if finished {
                break;
            }
        }
        assert!(tried > 8, "{tried}");
    });
}

#[test]
fn a_database_that_is_dropped_keeps_its_rules_wherever_that_is_cut_off() {
    run(async {
        for after in (0..).step_by(2) {
            let village = Village::new().await;
            village.fill(6, 20).await;
            let folder = village.close().await;
            let left = Arc::new(AtomicI64::new(i64::MAX));
            let killer = left.clone();
            let around = |inner| -> Arc<dyn Backend> { Arc::new(Dying { inner, left: killer, shared: false }) };
            let village = Village::open(folder, around).await.unwrap();
            // Sometimes it is still being seeded.
            village.life.limit_hosts(1);
            let wait = after % 4 == 0;
            village.ask("apply", doc! { "declaration": declared(COUNT), "wait": wait }).await.unwrap();
            left.store(after, Ordering::Relaxed);
            let drop = AdminOp::DropDatabase { db: "shop".to_owned() };
            let dropped = village.front.admin(&mut Session::default(), &context(), drop).await.is_ok();
            left.store(0, Ordering::Relaxed);
            let village = Village::open(village.close().await, |backend| backend).await.unwrap();
            let review = |product: i32| insert("reviews", vec![doc! { "productId": product, "n": 7, "kind": "good" }]);
            village.write(review(1)).await;
            village.life.settle("shop").await.unwrap();
            assert_eq!(village.states().await, [("products.reviewCount".to_owned(), "on".to_owned())], "after {after}");
            village.assert_clean().await;
            if dropped {
                village.write(insert("products", vec![doc! { "_id": 1 }])).await;
                village.write(review(1)).await;
                assert_eq!(village.find("products", doc! {}).await, [doc! { "_id": 1, "reviewCount": 2 }]);
            }
            village.close().await;
            if dropped {
                assert!(after > 8, "{after}");
                break;
            }
        }
    });
}

#[test]
fn a_database_is_dropped_under_load_while_its_rule_is_seeded() {
    run(async {
        let village = Village::new().await;
        village.fill(200, 600).await;
        village.life.limit_hosts(1);
        village.ask("apply", doc! { "declaration": declared(COUNT), "wait": false }).await.unwrap();
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let clients = village.clients(0..3, 200, &stop);
        for _ in 0..3 {
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
            let drop = AdminOp::DropDatabase { db: "shop".to_owned() };
            village.front.admin(&mut Session::default(), &context(), drop).await.unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.unwrap();
        }
        village.life.settle("shop").await.unwrap();
        assert_eq!(village.states().await, [("products.reviewCount".to_owned(), "on".to_owned())]);
        village.assert_clean().await;
        village.close().await;
    });
}
