//! Stopped at every step: an apply, a change and a drop go on from wherever they were cut off.

use super::dying::Dying;
use super::village::{COUNT, SUM, Village, declared};
use crate::harness::{context, insert, run};
use bson::doc;
use document::Error;
use document::backend::{Backend, Session};
use document::op::Capture;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// One life that is cut off after so many operations: applies, changes and drops as far as it comes.
async fn cut_off(folder: tempfile::TempDir, after: i64) -> (tempfile::TempDir, bool) {
    let left = Arc::new(AtomicI64::new(after));
    let killer = left.clone();
    // A store that dies while it is being opened has done nothing yet.
    let path = folder;
    let village = Village::open(path, |inner| Arc::new(Dying { inner, left: killer, shared: false })).await;
    let village = match village {
        Ok(village) => village,
        Err(_) => return (tempfile::tempdir().unwrap(), false),
    };
    let all = async {
        village.apply(COUNT).await?;
        let write = insert("reviews", vec![doc! { "productId": 1, "n": 5, "kind": "good" }]);
        village.layer.write(&mut Session::default(), &context(), &write, &Capture::Nothing).await?;
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
