//! Opening: what is refused, and what is put right.

use super::harness::*;
use crate::{Engine, Options};
use bson::doc;
use bytes::Bytes;
use document::op::AdminOp;

#[test]
fn a_journal_that_lost_its_end_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    Engine::open(folder.path(), options()).unwrap().close();
    crate::store::synced::SyncedFile::open(folder.path()).unwrap().record(1_000);
    let error = Engine::open(folder.path(), options()).unwrap_err();
    assert!(error.message().contains("but 1000 had been synced"), "{error}");
    std::fs::remove_file(folder.path().join("synced")).unwrap();
    Engine::open(folder.path(), options()).unwrap().close();
}

#[test]
fn a_newer_format_is_refused_by_both_numbers() {
    let folder = tempfile::tempdir().unwrap();
    Engine::open(folder.path(), options()).unwrap().close();
    {
        let store = crate::store::Store::open(&folder.path().join("store"), Default::default()).unwrap();
        let catalog = store.space("catalog").unwrap();
        let mut batch = store.batch(1);
        batch.put(&catalog, Bytes::from_static(b"f"), Bytes::from_static(&[0, 0, 0, 9]));
        store.commit(batch).unwrap();
    }
    let error = Engine::open(folder.path(), options()).unwrap_err();
    let message = "the data folder has format 9; this version reads format 1";
    assert_eq!(told(&error), (12, message.to_owned()));
}

#[test]
fn the_folder_belongs_to_one_engine() {
    let folder = tempfile::tempdir().unwrap();
    let first = Options { address: Some("127.0.0.1:27017".to_owned()), ..options() };
    let engine = Engine::open(folder.path(), first).unwrap();
    let error = Engine::open(folder.path(), options()).unwrap_err();
    assert!(error.message().ends_with("(listening on 127.0.0.1:27017)"), "{error}");
    engine.close();
}

#[test]
fn spaces_of_dropped_collections_go_and_the_clock_goes_on() {
    let bench = Bench::new();
    let time = run(async {
        for _ in 0..3 {
            bench.did(insert(vec![doc! {"_id": 1}])).await;
            bench.admin(AdminOp::Drop { ns: ns() }).await.unwrap();
        }
        bench.did(insert(vec![doc! {"_id": 2}])).await;
        bench.engine.inner.core.clock.committed()
    });
    let bench = bench.reopen();
    run(async {
        assert_eq!(bench.find(doc! {}).await, [doc! {"_id": 2}]);
        bench.did(insert(vec![doc! {"_id": 3}])).await;
        assert!(bench.engine.inner.core.clock.committed() > time);
    });
    let bench = bench.reopen().reopen();
    let spaces = bench.engine.inner.core.store.names();
    // Three of the engine's own, one in use, four ready, and at most the three that were emptied.
    assert!(spaces.len() <= 11, "{spaces:?}");
}
