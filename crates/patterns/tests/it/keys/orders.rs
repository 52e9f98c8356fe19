//! Orders of days and regions for roll-ups: their clients while a rule is applied, and a life of rules that is cut off.

use crate::harness::{context, delete, insert, update};
use crate::life::dying::Dying;
use crate::life::village::Village;
use bson::{DateTime, doc};
use document::Error;
use document::backend::{Backend, Session};
use document::op::Capture;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tokio::task::JoinHandle;

pub(super) const BY: &str = "by: { day: { $dateTrunc: { date: $at, unit: day } }, region: $region }, create: true";

pub(super) fn at(number: i32) -> DateTime {
    DateTime::from_millis(1_700_000_000_000 + i64::from(number % 11) * 86_400_000)
}

pub(super) fn order(id: i32) -> bson::Document {
    doc! {"_id": id, "at": at(id), "region": id % 3, "total": id}
}

/// Orders that no rule sees.
pub(super) async fn fill(village: &Village, orders: i32) {
    village.behind(insert("orders", (0..orders).map(order).collect())).await;
}

/// Applies a declaration while three clients insert, change and delete orders, of which so many are stored already.
pub(super) async fn apply_under_load(village: &Village, rules: &str, stored: i32) {
    let stop = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..3).map(|number| client(village, number, stored, &stop)).collect();
    village.apply(rules).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await.unwrap();
    }
}

/// Does something at least twenty times.
fn client(village: &Village, number: i32, stored: i32, stop: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (layer, stop) = (village.front.clone(), stop.clone());
    tokio::spawn(async move {
        let mut made = 0;
        while !stop.load(Ordering::Relaxed) || made < 20 {
            // Some before the position of the walk, some behind it.
            let old = rand::random_range(0..stored);
            let id = if made % 2 == 0 { 10_000 * (number + 1) + made } else { -10_000 * (number + 1) - made };
            let op = match made % 4 {
                0 | 1 => insert("orders", vec![doc! {"_id": id, "at": at(made), "region": made % 4, "total": 1.5}]),
                2 => {
                    let change = doc! {"$set": {"region": made % 5}, "$inc": {"total": 1}};
                    update("orders", doc! {"_id": old}, change, &[])
                }
                _ => delete("orders", doc! {"_id": old}, false),
            };
            let written = layer.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
            assert!(written.errors.is_empty(), "{:?}", written.errors);
            made += 1;
        }
    })
}

/// One life that is cut off after so many operations of the backend. Returns whether it came to its end before.
pub(super) async fn cut_off(
    folder: testing::Data,
    after: i64,
    life: impl AsyncFnOnce(&Village, &AtomicI64) -> Result<(), Error>,
) -> (testing::Data, bool) {
    let left = Arc::new(AtomicI64::new(after));
    let killer = left.clone();
    let village = Village::open(folder, |inner| Arc::new(Dying { inner, left: killer, shared: false })).await.unwrap();
    village.life.limit_hosts(7);
    let finished = life(&village, &left).await.is_ok() && left.load(Ordering::Relaxed) > 0;
    left.store(0, Ordering::Relaxed);
    (village.close().await, finished)
}

/// Cuts the life off after ever more operations, until it comes to its end; `check` looks at what the next process makes of it.
pub(super) async fn cut_off_everywhere(
    orders: i32,
    step: usize,
    life: impl AsyncFn(&Village, &AtomicI64) -> Result<(), Error>,
    check: impl AsyncFn(&Village),
) {
    let mut tried = 0;
    for after in (6..).step_by(step) {
        let village = Village::new().await;
        fill(&village, orders).await;
        let (folder, finished) = cut_off(village.close().await, after, &life).await;
        let village = Village::open(folder, |backend| backend).await.unwrap();
        check(&village).await;
        village.close().await;
        tried += 1;
        if finished {
            break;
        }
    }
    assert!(tried > 5, "{tried}");
}
