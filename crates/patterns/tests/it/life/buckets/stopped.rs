//! Stopped at every step: a conversion, a change of form and the way back go on from wherever they were cut off.

use super::station::{DAYS, ELSEWHERE, HOURS};
use crate::harness::run;
use crate::life::dying::Dying;
use crate::life::village::Village;
use bson::doc;
use document::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

const READINGS: i32 = 24;

/// One life that is cut off after so many operations: converts, changes and drops as far as it comes.
async fn cut_off(folder: tempfile::TempDir, after: i64) -> (tempfile::TempDir, bool) {
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
