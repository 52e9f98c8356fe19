//! Room on the disk: what a drop frees is free while the server runs.

use super::harness::{Bench, context, delete_op, insert, ns, run, update_op};
use crate::background::free_log;
use crate::store::disk_space::DiskSpace;
use bson::doc;
use document::backend::{Backend, Session};
use document::op::{AdminOp, Capture, WriteOp, Written};
use document::{Code, Result};
use std::path::Path;
use std::time::Duration;

/// What the files under a folder take.
fn bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes(&entry.path()),
        _ => entry.metadata().map_or(0, |about| about.len()),
    };
    entries.map(size).sum()
}

#[test]
fn a_dropped_collection_leaves_the_disk_though_small_ones_are_only_in_the_log() {
    run(async {
        let bench = Bench::new();
        let tables = bench.path().join("store/keyspaces");
        let until = async |what: &str, done: &dyn Fn() -> bool| {
            for _ in 0..1_000 {
                if done() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            panic!("{what}; the tables have {} bytes", bytes(&tables));
        };
        // The catalog and the state have a few entries in the same part of the log, and are far from being written out.
        // Noise: the log is compressed.
        let noise: Vec<u8> = (0..12_500).flat_map(|_| rand::random::<[u8; 8]>()).collect();
        let filler = bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: noise };
        for batch in 0..16 {
            let documents = (0..50).map(|n| doc! { "_id": batch * 50 + n, "filler": filler.clone() }).collect();
            bench.did(insert(documents)).await;
        }
        until("the collection is not written out", &|| bytes(&tables) > 60 << 20).await;
        bench.admin(AdminOp::Drop { ns: ns() }).await.unwrap();
        let store = &bench.engine.inner.core.store;
        assert!(store.has_full_log(), "nothing holds on to the collection: the test shows nothing");
        until("the collection is still on the disk", &|| {
            tokio::task::block_in_place(|| free_log(&bench.engine.inner)).unwrap();
            bytes(&tables) < 5 << 20 && !store.has_full_log()
        })
        .await;
    });
}

/// The errors of statements as that of the write.
fn whole(written: Result<Written>) -> Result<()> {
    written?.errors.pop().map_or(Ok(()), |failed| Err(failed.error))
}

#[test]
fn a_delete_is_taken_on_a_scarce_disk_with_what_a_rule_adds_to_it() {
    run(async {
        let bench = Bench::new();
        bench.did(insert((0..10).map(|n| doc! { "_id": n, "filler": "x".repeat(100), "count": 10 }).collect())).await;
        let core = &bench.engine.inner.core;
        let pretend = |space| {
            *core.disk.pretended.lock() = Some(space);
            core.disk.look(&core.store, 0);
        };
        let transaction = async |ops: &[WriteOp]| -> Result<()> {
            let mut session = Session::default();
            bench.engine.begin(&mut session, &context()).await?;
            for op in ops {
                whole(bench.write_at(&mut session, op).await)?;
            }
            session.transaction.take().unwrap().commit(&context()).await
        };
        let (one, count) = (doc! { "_id": 0 }, doc! { "$set": { "count": 9_i64 } });
        let (delete, counted) = (delete_op(one.clone(), false), update_op(doc! { "_id": 5 }, count, false, false));
        let large = insert(vec![doc! { "_id": "large", "filler": "x".repeat(100_000) }]);
        pretend(DiskSpace::Scarce);
        let refused = whole(bench.write(insert(vec![doc! { "_id": 20 }])).await);
        assert_eq!(refused.unwrap_err().code(), Code::OutOfDiskSpace);
        transaction(&[delete.clone(), counted.clone()]).await.unwrap();
        let adds = update_op(doc! { "_id": 6 }, doc! { "$set": { "more": 1 } }, false, false);
        for refused in [vec![adds], vec![delete_op(doc! { "_id": 1 }, false), large]] {
            assert_eq!(transaction(&refused).await.unwrap_err().code(), Code::OutOfDiskSpace);
        }
        let mut ours = context();
        ours.sent.makes_room = true;
        let row = insert(vec![doc! { "_id": "row" }]);
        whole(bench.engine.write(&mut Session::default(), &ours, &row, &Capture::Nothing).await).unwrap();
        pretend(DiskSpace::Gone);
        assert_eq!(
            transaction(&[delete_op(doc! { "_id": 2 }, false), counted]).await.unwrap_err().code(),
            Code::OutOfDiskSpace
        );
        pretend(DiskSpace::Enough);
        bench.did(insert(vec![doc! { "_id": 20 }])).await;
    });
}
