//! Clients read and write all the time while their collection is brought into other forms.

use super::station::{BEGIN, DAYS, ELSEWHERE, HOURS};
use crate::harness::{context, delete, insert, run, update};
use crate::life::village::Village;
use bson::{DateTime, Document, doc};
use document::backend::{Backend, Session};
use document::op::{Capture, WriteOp};
use pleach_patterns::ClientFront;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

async fn write(layer: &ClientFront, op: WriteOp) -> u64 {
    let written = layer.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    written.n
}

/// One client with readings of its own: gives what must be there at the end.
async fn client(layer: ClientFront, number: i32, stop: Arc<AtomicBool>) -> BTreeMap<i32, f64> {
    let mut mine: BTreeMap<i32, f64> = BTreeMap::new();
    let mut made = 0;
    while !stop.load(Ordering::Relaxed) {
        let id = 100_000 * (number + 1) + made;
        let ts = DateTime::from_millis(BEGIN + i64::from(made) * 61_000);
        match made % 4 {
            2 => {
                let change = doc! { "$set": { "temp": f64::from(made) } };
                assert_eq!(write(&layer, update("sensor_data", doc! { "_id": id - 1 }, change, &[])).await, 1, "{id}");
                mine.insert(id - 1, f64::from(made));
            }
            3 => {
                assert_eq!(write(&layer, delete("sensor_data", doc! { "_id": id - 3 }, false)).await, 1, "{id}");
                mine.remove(&(id - 3));
            }
            _ => {
                let reading = doc! { "_id": id, "sensorId": number, "ts": ts, "temp": 0.5 };
                write(&layer, insert("sensor_data", vec![reading])).await;
                mine.insert(id, 0.5);
            }
        }
        made += 1;
    }
    mine
}

/// A client that counts: what was there from the beginning is there at every moment, once.
async fn reader(village: &Village, readings: i32, stop: &AtomicBool) -> i32 {
    let mut looks = 0;
    while !stop.load(Ordering::Relaxed) {
        let found = village.find("sensor_data", doc! { "_id": { "$lt": 100_000 } }).await;
        assert_eq!(found.len(), usize::try_from(readings).unwrap(), "look {looks}");
        looks += 1;
        tokio::task::yield_now().await;
    }
    looks
}

#[test]
fn nothing_is_lost_or_seen_twice_under_load() {
    run(async {
        let village = Village::new().await;
        village.measure(600).await;
        village.life.limit_hosts(50);
        let stop = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> =
            (0..3).map(|number| tokio::spawn(client(village.front.clone(), number, stop.clone()))).collect();
        let changes = async {
            for rules in [HOURS, DAYS, ELSEWHERE] {
                village.apply(rules).await.unwrap();
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            village.ask("drop", doc! { "rule": "sensor_data.bucket" }).await.unwrap();
            village.apply(HOURS).await.unwrap();
            stop.store(true, Ordering::Relaxed);
        };
        let ((), looks) = tokio::join!(changes, reader(&village, 600, &stop));
        assert!(looks > 3, "{looks}");
        let mut expected: BTreeMap<i32, f64> = BTreeMap::new();
        for client in clients {
            expected.extend(client.await.unwrap());
        }
        assert!(expected.len() > 50, "{}", expected.len());
        let found: Vec<Document> = village.find("sensor_data", doc! { "_id": { "$gte": 100_000 } }).await;
        assert_eq!(found.len(), expected.len());
        for reading in found {
            let id = reading.get_i32("_id").unwrap();
            assert_eq!(expected.get(&id), reading.get_f64("temp").ok().as_ref(), "{reading}");
        }
        village.assert_clean().await;
        village.close().await;
    });
}
