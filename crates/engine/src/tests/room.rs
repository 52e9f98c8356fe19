//! Room on the disk: what a drop frees is free while the server runs.

use super::harness::{Bench, insert, ns, run};
use crate::background::free_log;
use bson::doc;
use document::op::AdminOp;
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
        let store = &bench.engine.inner.ground.store;
        assert!(store.has_full_log(), "nothing holds on to the collection: the test shows nothing");
        until("the collection is still on the disk", &|| {
            tokio::task::block_in_place(|| free_log(&bench.engine.inner)).unwrap();
            bytes(&tables) < 5 << 20 && !store.has_full_log()
        })
        .await;
    });
}
