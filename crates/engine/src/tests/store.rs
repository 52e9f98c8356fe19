//! The store itself: batches, ranges, opening again, closing.

use crate::store::write_log;
use crate::store::{Store, StoreOptions};
use bytes::Bytes;

#[test]
fn batches_are_seen_whole_and_ranges_from_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
    let space = store.space("a").unwrap();
    let before = store.snapshot();
    let mut batch = store.batch(3);
    for key in ["a", "b", "c"] {
        batch.put(&space, Bytes::from(key), Bytes::from_static(b"1"));
    }
    store.commit(batch).unwrap();
    assert_eq!(before.get(&space, b"a").unwrap(), None);
    let now = store.snapshot();
    let keys: Vec<Bytes> = now.range(&space, b"a", b"c", false).map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, ["a", "b"]);
    let back: Vec<Bytes> = now.range(&space, b"a", b"d", true).map(|entry| entry.unwrap().0).collect();
    assert_eq!(back, ["c", "b", "a"]);
    assert_eq!(now.range(&space, b"c", b"a", false).count(), 0);
    assert!(space.latest_since(b"a", &before).unwrap().unwrap().1);
    assert!(!space.latest_since(b"a", &now).unwrap().unwrap().1);
}

#[test]
fn what_was_committed_is_there_after_reopening() {
    let folder = tempfile::tempdir().unwrap();
    {
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        let space = store.space("a").unwrap();
        let mut batch = store.batch(1);
        batch.put(&space, Bytes::from_static(b"k"), Bytes::from_static(b"v"));
        store.commit(batch).unwrap();
    }
    let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
    assert_eq!(store.names(), ["a"]);
    let space = store.space("a").unwrap();
    assert_eq!(store.snapshot().get(&space, b"k").unwrap().unwrap(), "v");
}

#[test]
fn closing_leaves_no_log_behind_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let value = |number: u32| Bytes::from(format!("{number}-{}", "x".repeat(1_000)));
    let key = |number: u32| Bytes::from(number.to_be_bytes().to_vec());
    let write = |store: &Store, numbers: std::ops::Range<u32>| {
        for name in ["a", "b"] {
            let space = store.space(name).unwrap();
            let mut batch = store.batch(numbers.len());
            for number in numbers.clone() {
                batch.put(&space, key(number), value(number));
            }
            store.commit(batch).unwrap();
        }
    };
    for round in 0..3 {
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        write(&store, round * 1_000..(round + 1) * 1_000);
        assert!(write_log::bytes(folder.path()) > 1 << 20);
        store.close().unwrap();
        assert!(write_log::bytes(folder.path()) < 64 << 10);
        assert_eq!(store.snapshot().get(&store.space("b").unwrap(), &key(5)).unwrap(), Some(value(5)));
        let mut late = store.batch(1);
        late.put(&store.space("a").unwrap(), key(9), value(0));
        assert!(store.commit(late).is_err());
    }
    // A little is left in the log, and replayed behind what was written out.
    let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
    write(&store, 7..8);
    write(&store, 3_000..3_001);
    store.sync().unwrap();
    drop(store);
    let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
    let now = store.snapshot();
    for name in ["a", "b"] {
        let space = store.space(name).unwrap();
        for number in 0..3_001 {
            assert_eq!(now.get(&space, &key(number)).unwrap(), Some(value(number)), "{name} {number}");
        }
    }
}
