//! A range of a space as a snapshot has it, read from the range cache where that has it and from the store where not; what
//! was read from the store goes into the cache.

use super::key_value::{Space, StoreSnapshot, StoredRange};
use super::range_cache::{BYTES, CacheLookUp, CachedEntry, CachedRange, ENTRIES};
use document::Result;
use smallvec::SmallVec;
use std::sync::Arc;

/// Fewer entries than this are not cached as a range of their own.
const LEAST: usize = 16;
/// A range that reads more than this from the store is a large scan: it neither fills the cache nor looks into it any more.
const LARGE: usize = 1_024;

type Edge = SmallVec<[u8; 64]>;

/// Keys and values in order, or backwards.
pub struct StoreRange {
    snapshot: Arc<StoreSnapshot>,
    space: Space,
    /// What is left of the range.
    from: Edge,
    to: Edge,
    reverse: bool,
    /// How many entries may still come from the store before this is a large scan.
    small: usize,
    run: Run,
}

enum Run {
    /// Nothing is open.
    Between,
    /// The entries from the first place to the second are left.
    Cached(Arc<CachedRange>, usize, usize),
    Stored {
        range: StoredRange,
        /// Where it ends: at a cached range or with the whole range.
        end: Edge,
        gathered: Option<Gathered>,
    },
    Done,
}

/// Entries of the store on their way into the cache.
struct Gathered {
    edge: Edge,
    entries: Vec<CachedEntry>,
    bytes: usize,
}

impl Gathered {
    fn new(edge: Edge) -> Gathered {
        Gathered { edge, entries: Vec::new(), bytes: 0 }
    }
}

impl StoreRange {
    pub(crate) fn new(
        snapshot: &Arc<StoreSnapshot>,
        space: &Space,
        from: &[u8],
        to: &[u8],
        reverse: bool,
    ) -> StoreRange {
        StoreRange {
            snapshot: snapshot.clone(),
            space: space.clone(),
            from: Edge::from_slice(from),
            to: Edge::from_slice(to),
            reverse,
            small: LARGE,
            run: Run::Between,
        }
    }

    /// Opens what comes next: a cached range, or the store up to the next one.
    fn open(&mut self) -> Run {
        if self.from >= self.to {
            return Run::Done;
        }
        let edge = if self.reverse { &self.to } else { &self.from };
        let found = if self.small == 0 {
            CacheLookUp::Newer
        } else {
            self.space.range_cache().find(edge, self.reverse, self.snapshot.position())
        };
        let (mut from, mut to) = (&self.from[..], &self.to[..]);
        let gathered = match &found {
            CacheLookUp::Cached(cached) => return Run::Cached(cached.clone(), cached.place(from), cached.place(to)),
            CacheLookUp::Newer => None,
            CacheLookUp::Gap(until) => {
                match until {
                    Some(until) if self.reverse => from = from.max(until),
                    Some(until) => to = to.min(until),
                    None => {}
                }
                Some(Gathered::new(edge.clone()))
            }
        };
        let range = self.snapshot.stored(&self.space, from, to);
        Run::Stored { range, end: Edge::from_slice(if self.reverse { from } else { to }), gathered }
    }

    /// Goes on behind `edge`.
    fn reach(&mut self, edge: &[u8]) {
        let end = if self.reverse { &mut self.to } else { &mut self.from };
        *end = Edge::from_slice(edge);
        self.run = Run::Between;
    }

    /// Caches what was gathered up to `end`.
    fn settle(&self, gathered: &Gathered, end: &[u8]) {
        let (from, to) = if self.reverse { (end, &gathered.edge[..]) } else { (&gathered.edge[..], end) };
        let position = self.snapshot.position();
        if self.reverse {
            let entries: Vec<CachedEntry> = gathered.entries.iter().rev().cloned().collect();
            self.space.range_cache().insert(from, to, position, &entries);
        } else {
            self.space.range_cache().insert(from, to, position, &gathered.entries);
        }
    }

    /// Keeps an entry of the store for the cache.
    fn gather(&mut self, entry: &CachedEntry) {
        let Run::Stored { gathered, .. } = &mut self.run else { return };
        let Some(mut held) = gathered.take() else { return };
        self.small -= 1;
        let bytes = entry.0.len() + entry.1.len();
        if bytes > BYTES {
            // Too large for the cache: the next range begins behind it.
            if held.entries.len() >= LEAST {
                let end = before(&entry.0, self.reverse);
                self.settle(&held, &end);
            }
            held = Gathered::new(behind(&entry.0, self.reverse));
        } else {
            held.entries.push(entry.clone());
            held.bytes += bytes;
            if held.entries.len() >= ENTRIES || held.bytes >= BYTES {
                let end = behind(&entry.0, self.reverse);
                self.settle(&held, &end);
                held = Gathered::new(end);
            }
        }
        if let (Run::Stored { gathered, .. }, true) = (&mut self.run, self.small > 0) {
            *gathered = Some(held);
        }
    }
}

/// The edge of a range that goes on behind `key`.
fn behind(key: &[u8], reverse: bool) -> Edge {
    let mut edge = Edge::from_slice(key);
    if !reverse {
        edge.push(0);
    }
    edge
}

/// The edge of a range that ends before `key`.
fn before(key: &[u8], reverse: bool) -> Edge {
    behind(key, !reverse)
}

impl Iterator for StoreRange {
    type Item = Result<CachedEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match &mut self.run {
                Run::Cached(cached, first, last) => {
                    if first < last {
                        let at = if self.reverse {
                            *last -= 1;
                            *last
                        } else {
                            *first += 1;
                            *first - 1
                        };
                        return cached.entries.get(at).cloned().map(Ok);
                    }
                    let edge = if self.reverse { cached.from.clone() } else { cached.to.clone() };
                    self.reach(&edge);
                }
                Run::Stored { range, end, gathered } => match range.next(self.reverse) {
                    Some(Ok(entry)) => {
                        if gathered.is_some() {
                            self.gather(&entry);
                        }
                        return Some(Ok(entry));
                    }
                    Some(Err(error)) => {
                        self.run = Run::Done;
                        return Some(Err(error));
                    }
                    None => {
                        let (end, gathered) = (std::mem::take(end), gathered.take());
                        let at_cached = end != *(if self.reverse { &self.from } else { &self.to });
                        if let Some(gathered) = gathered.filter(|held| at_cached || held.entries.len() >= LEAST) {
                            self.settle(&gathered, &end);
                        }
                        self.reach(&end);
                    }
                },
                Run::Between => self.run = self.open(),
                Run::Done => return None,
            }
        }
    }
}

impl Drop for StoreRange {
    fn drop(&mut self) {
        if let Run::Stored { gathered: Some(held), .. } = &self.run
            && held.entries.len() >= LEAST
            && let Some((last, _)) = held.entries.last()
        {
            self.settle(held, &behind(last, self.reverse));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StoreOptions};
    use bytes::Bytes;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Step {
        /// Keys and whether they are put or removed.
        Write(Vec<(u16, bool)>),
        /// A range in the newest snapshot but so many, of which so many entries are read.
        Read {
            from: u16,
            to: u16,
            reverse: bool,
            take: usize,
            back: usize,
        },
        Get(u16, usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = 0u16..400;
        prop_oneof![
            proptest::collection::vec((key.clone(), prop::bool::weighted(0.7)), 1..8).prop_map(Step::Write),
            (key.clone(), key.clone(), any::<bool>(), 1usize..300, 0usize..3)
                .prop_map(|(from, to, reverse, take, back)| Step::Read { from, to, reverse, take, back }),
            (key, 0usize..3).prop_map(|(key, back)| Step::Get(key, back)),
        ]
    }

    fn key(number: u16) -> Bytes {
        Bytes::copy_from_slice(&[&[1][..], &number.to_be_bytes()].concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn every_snapshot_reads_what_it_has_whatever_is_in_the_cache(steps in proptest::collection::vec(step(), 1..80), memory in 0u64..200_000) {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path(), StoreOptions { range_cache_bytes: memory, ..StoreOptions::default() }).unwrap();
            let space = store.space("a").unwrap();
            let mut model: BTreeMap<Bytes, Bytes> = BTreeMap::new();
            let mut batch = store.batch(300);
            for number in 0..300 {
                batch.put(&space, key(number), Bytes::from(vec![0; 20]));
                model.insert(key(number), Bytes::from(vec![0; 20]));
            }
            let mut states = vec![(store.commit(batch).unwrap(), model.clone())];
            for (at, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Write(keys) => {
                        let mut batch = store.batch(keys.len());
                        for (number, put) in keys {
                            if put {
                                // Now and then one that is too large for the cache.
                                let value = Bytes::from(vec![1; if number % 50 == 0 { BYTES + 1 } else { at }]);
                                batch.put(&space, key(number), value.clone());
                                model.insert(key(number), value);
                            } else {
                                batch.remove(&space, key(number));
                                model.remove(&key(number));
                            }
                        }
                        states.push((store.commit(batch).unwrap(), model.clone()));
                    }
                    Step::Read { from, to, reverse, take, back } => {
                        let (snapshot, model) = &states[states.len().saturating_sub(back + 1)];
                        let (from, to) = (key(from), key(to));
                        let seen: Vec<CachedEntry> =
                            snapshot.range(&space, &from, &to, reverse).take(take).collect::<Result<_>>().unwrap();
                        let mut expected: Vec<CachedEntry> =
                            model.iter().filter(|(k, _)| **k >= from && **k < to).map(|(k, v)| (k.clone(), v.clone())).collect();
                        if reverse {
                            expected.reverse();
                        }
                        expected.truncate(take);
                        prop_assert_eq!(seen, expected);
                    }
                    Step::Get(number, back) => {
                        let (snapshot, model) = &states[states.len().saturating_sub(back + 1)];
                        prop_assert_eq!(snapshot.get(&space, &key(number)).unwrap(), model.get(&key(number)).cloned());
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_range_read_is_read_again_from_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        let space = store.space("a").unwrap();
        let mut batch = store.batch(3_000);
        for number in 0..3_000 {
            batch.put(&space, key(number), Bytes::from_static(b"v"));
        }
        let snapshot = store.commit(batch).unwrap();
        let covered = |from: u16, to: u16| {
            (from..to).filter(|number| space.range_cache().get(&key(*number), snapshot.position()).is_some()).count()
        };
        assert_eq!(snapshot.range(&space, &key(100), &key(3_000), false).take(100).count(), 100);
        assert_eq!((covered(0, 100), covered(100, 200), covered(200, 3_000)), (0, 100, 0));
        // A few entries are not worth it, except where they close a gap.
        assert_eq!(snapshot.range(&space, &key(500), &key(600), false).take(3).count(), 3);
        assert_eq!(covered(500, 600), 0);
        assert_eq!(snapshot.range(&space, &key(95), &key(110), true).count(), 15);
        assert_eq!(covered(95, 100), 0);
        assert_eq!(snapshot.range(&space, &key(95), &key(110), false).count(), 15);
        assert_eq!(covered(95, 100), 5);
        // Nor does a large scan fill the memory.
        assert_eq!(snapshot.range(&space, &key(0), &key(3_000), false).count(), 3_000);
        assert_eq!(covered(2_000, 3_000), 0);
    }
}
