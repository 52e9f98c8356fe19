//! Stopped at every step: a conversion, a change of form and the way back go on from wherever they were cut off.

use super::station::{DAYS, ELSEWHERE, HOURS};
use crate::harness::run;
use crate::life::dying::Dying;
use crate::life::village::Village;
use bson::doc;
use document::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use testing::Data;

const READINGS: i32 = 24;

/// One life that is cut off after so many operations: converts, changes and drops as far as it comes.
async fn cut_off(folder: Data, after: i64) -> (Data, bool) {
    let left = Arc::new(AtomicI64::new(after));
    let killer = left.clone();
    let village = Village::open(folder, |inner| Arc::new(Dying { inner, left: killer, shared: false })).await.unwrap();
    village.life.limit_hosts(9);
    let all = async {
        village.apply(HOURS).await?;
        village.apply(DAYS).await?;
        village.apply(ELSEWHERE).await?;
        village.ask("drop", doc! { "rule": "sensor_data.bucket" }).await?;
        Ok::<_, Error>(())
    };
    let finished = all.await.is_ok();
    left.store(0, Ordering::Relaxed);
    (village.close().await, finished)
}

#[test]
fn whatever_was_cut_off_goes_on_and_nothing_is_lost() {
    run(async {
        let mut tried = 0;
        // Some of the steps: opening a store takes its time.
        for after in (4..).step_by(7) {
            let village = Village::new().await;
            village.measure(READINGS).await;
            let (folder, finished) = cut_off(village.close().await, after).await;
            let village = Village::open(folder, |backend| backend).await.unwrap();
            village.life.settle("shop").await.unwrap();
            village.assert_readings(0..READINGS, &format!("after {after}")).await;
            village.assert_clean().await;
            // From wherever it is, to another form and back.
            village.apply(HOURS).await.unwrap();
            village.assert_readings(0..READINGS, &format!("applied after {after}")).await;
            assert_eq!(village.collections().await, ["sensor_data:view", "sensor_hours"], "after {after}");
            village.close().await;
            tried += 1;
            if finished {
                break;
            }
        }
        assert!(tried > 20, "{tried}");
    });
}

#[test]
fn a_conversion_that_was_stopped_goes_on_from_where_it_was() {
    run(async {
        const MANY: i32 = 3_000;
        let village = Village::new().await;
        village.measure(MANY).await;
        village.life.limit_hosts(7);
        let declaration = crate::life::village::declared(HOURS);
        village.ask("apply", doc! { "declaration": declaration, "wait": false }).await.unwrap();
        let position = loop {
            let row = village.find("pleach.catalog", doc! { "_id": "sensor_data.bucket" }).await.remove(0);
            let shape = row.get_document("shape").unwrap();
            assert_ne!(row.get_str("state").unwrap(), "on", "it was over before anybody looked");
            if let Ok(moved) = shape.get_document("moved") {
                break moved.get_i32("position").unwrap();
            }
            tokio::task::yield_now().await;
        };
        let village = village.reopen().await;
        // Everything before it was moved, in whatever part it was stopped.
        let aside = village.find("pleach.aside.sensor_data", doc! { "_id": { "$lt": position } }).await;
        assert!(aside.is_empty() && position > 0, "{position}: {aside:?}");
        village.life.settle("shop").await.unwrap();
        village.assert_readings(0..MANY, "after the stop").await;
        village.assert_clean().await;
        let row = village.find("pleach.catalog", doc! { "_id": "sensor_data.bucket" }).await.remove(0);
        assert!(!row.get_document("shape").unwrap().contains_key("moved"), "{row}");
        village.close().await;
    });
}
