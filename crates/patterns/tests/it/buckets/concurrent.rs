//! Writers at the same time: nothing lost, all buckets but the last full, counts and figures exact (R16, R17).

use super::*;
use std::time::Duration;

const WRITERS: usize = 16;

/// Runs the operations of several writers at the same time.
async fn together(buckets: &Arc<Buckets>, writers: Vec<Vec<WriteOp>>) {
    let tasks: Vec<_> = writers
        .into_iter()
        .map(|ops| {
            let buckets = buckets.clone();
            tokio::spawn(async move {
                for op in ops {
                    buckets.did(op).await;
                }
            })
        })
        .collect();
    for task in tasks {
        tokio::time::timeout(Duration::from_secs(60), task).await.expect("in time").unwrap();
    }
}

/// `each` readings per writer, in batches.
async fn ingest(batch: usize, each: i64, at_most: u32) {
    let buckets = Arc::new(Buckets::new(hours(readings(at_most))));
    let all: Vec<Vec<bson::Document>> = (0..WRITERS as i64)
        .map(|writer| (0..each).map(|n| reading("a", writer * each + n, (writer * n) as i32)).collect())
        .collect();
    let ops = |mine: &Vec<bson::Document>| mine.chunks(batch).map(|part| insert(NAME, part.to_vec())).collect();
    together(&buckets, all.iter().map(ops).collect()).await;
    let counts = buckets.counts().await;
    let total: i32 = counts.iter().sum();
    assert_eq!(i64::from(total), WRITERS as i64 * each);
    assert_eq!(counts.len(), (total as usize).div_ceil(at_most as usize), "{counts:?}");
    let (_, full) = counts.split_last().unwrap();
    assert!(full.iter().all(|count| *count == at_most as i32), "{counts:?}");
    buckets.check(&all.concat()).await;
}

#[test]
fn one_by_one_into_one_series() {
    run(ingest(1, 20, 7));
}

#[test]
fn in_batches_into_one_series() {
    run(ingest(9, 36, 10));
}

#[test]
fn batches_larger_than_a_bucket() {
    run(ingest(25, 50, 10));
}

#[test]
fn one_by_one_beside_batches() {
    let buckets = Arc::new(Buckets::new(hours(readings(10))));
    run(async {
        let all: Vec<_> = (0..400).map(|n| reading("a", n, n as i32)).collect();
        let ops = all.chunks(25).enumerate().map(|(writer, mine)| match writer % 2 {
            0 => mine.iter().map(|doc| insert(NAME, vec![doc.clone()])).collect(),
            _ => mine.chunks(8).map(|part| insert(NAME, part.to_vec())).collect(),
        });
        together(&buckets, ops.collect()).await;
        let counts = buckets.counts().await;
        assert_eq!((counts.len(), counts.iter().sum::<i32>()), (40, 400), "{counts:?}");
        buckets.check(&all).await;
    });
}

#[test]
fn edits_and_deletes_beside_inserts() {
    let buckets = Arc::new(Buckets::new(hours(readings(8))));
    run(async {
        let seed: Vec<_> = (0..40).map(|n| reading("a", n, 0)).collect();
        buckets.did(insert(NAME, seed.clone())).await;
        let id = |n: usize| seed[n].get_object_id("_id").unwrap();
        let mut writers: Vec<Vec<WriteOp>> = Vec::new();
        let new: Vec<_> = (0..80).map(|n| reading("a", 1000 + n, n as i32)).collect();
        for mine in new.chunks(20) {
            writers.push(mine.iter().map(|doc| insert(NAME, vec![doc.clone()])).collect());
        }
        for _ in 0..3 {
            writers.push((0..10).map(|n| update(NAME, doc! {"_id": id(n)}, doc! {"$inc": {"temp": 1}}, &[])).collect());
        }
        writers.push((20..40).map(|n| delete(NAME, doc! {"_id": id(n)}, false)).collect());
        writers.push(vec![update(NAME, doc! {"_id": id(15)}, doc! {"$set": {"s": "b"}}, &[])]);
        together(&buckets, writers).await;
        let mut expected: Vec<_> = seed[..20].to_vec();
        expected[..10].iter_mut().for_each(|doc| drop(doc.insert("temp", 3)));
        expected[15].insert("s", "b");
        expected.extend(new);
        buckets.check(&expected).await;
    });
}

#[test]
fn slots_add_up() {
    let buckets = Arc::new(Buckets::new(slots::quarters(Layout::FieldNames, true)));
    run(async {
        let key = "AB".repeat(32);
        let inc = |day: i64| {
            let query = doc! {"s": &key, "ts": at(day * 24 * HOUR)};
            statement(query, doc! {"$inc": {"approved": 1}}, &["upsert"])
        };
        let writer = |_| (0..5).map(|_| updates(NAME, (0..6).map(inc).collect(), false)).collect();
        together(&buckets, (0..WRITERS).map(writer).collect()).await;
        let logical = buckets.logical().await;
        assert_eq!(logical.len(), 6);
        assert!(logical.iter().all(|slot| slot.get_i32("approved").unwrap() == 80), "{logical:?}");
    });
}
