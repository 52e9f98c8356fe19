//! A table of so many entries at most. Where it is full, those that were worth least lately make room, some at once, so that new entries
//! have time to become worth more.

use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An entry of such a table.
pub(super) trait Counted {
    /// How much would be lost with it; `now` is in seconds, by the same clock as its last use.
    fn worth(&self, now: u64) -> u64;
    /// It is in the table no more: whoever holds it must look it up again.
    fn retire(&self);
}

/// The part of a full table that makes room.
const PART: usize = 16;

pub(super) struct Bounded<T> {
    limit: usize,
    entries: Mutex<HashMap<u64, Arc<T>>>,
    evicted: AtomicU64,
}

impl<T: Counted> Bounded<T> {
    pub(super) fn new(limit: usize) -> Bounded<T> {
        Bounded { limit, entries: Mutex::default(), evicted: AtomicU64::new(0) }
    }

    /// The entry of that key, made if it is not there.
    pub(super) fn entry(&self, key: u64, now: u64, make: impl FnOnce() -> T) -> Arc<T> {
        let mut entries = self.entries.lock();
        if let Some(found) = entries.get(&key) {
            return found.clone();
        }
        if entries.len() >= self.limit {
            let evicted = make_room(&mut entries, self.limit.div_ceil(PART), now);
            self.evicted.fetch_add(evicted, Ordering::Relaxed);
        }
        let made = Arc::new(make());
        entries.insert(key, made.clone());
        made
    }

    pub(super) fn all(&self) -> Vec<Arc<T>> {
        self.entries.lock().values().cloned().collect()
    }

    /// How many entries had to make room since the server was started.
    pub(super) fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }
}

fn make_room<T: Counted>(entries: &mut HashMap<u64, Arc<T>>, count: usize, now: u64) -> u64 {
    let mut worth: Vec<(u64, u64)> = entries.iter().map(|(key, entry)| (entry.worth(now), *key)).collect();
    worth.sort_unstable();
    let mut evicted = 0;
    for (_, key) in worth.into_iter().take(count) {
        if let Some(entry) = entries.remove(&key) {
            entry.retire();
            evicted += 1;
        }
    }
    evicted
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Number(u64, AtomicU64);

    impl Counted for Number {
        fn worth(&self, _: u64) -> u64 {
            self.0
        }

        fn retire(&self) {
            self.1.store(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_least_valuable_make_room() {
        let table = Bounded::new(32);
        let made: Vec<_> = (0..32).map(|key| table.entry(key, 0, || Number(100 - key, AtomicU64::new(0)))).collect();
        assert_eq!(table.evicted(), 0);
        table.entry(99, 0, || Number(1, AtomicU64::new(0)));
        assert_eq!((table.all().len(), table.evicted()), (31, 2));
        let retired: Vec<u64> =
            made.iter().filter(|number| number.1.load(Ordering::Relaxed) == 1).map(|number| number.0).collect();
        assert_eq!(retired, [70, 69]);
        assert_eq!(table.entry(0, 0, || Number(0, AtomicU64::new(0))).0, 100, "the same entry again");
    }
}
