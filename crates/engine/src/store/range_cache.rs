//! The range cache: runs of consecutive entries of a space, kept in memory as its newest state has them. What ranges have read
//! is read again from here, whatever older versions the store still has to pass over.
//!
//! Invariants. (1) A cached range has every entry between its ends, as of its position and up to the last batch: the one who
//! commits writes each batch into the cache before anybody can see it. (2) A snapshot older than the last change of a cached
//! range does not use it. (3) A range is taken in only if nothing was written to the space since the snapshot that it was
//! read in.

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A cached range is made of at most so many entries …
pub(crate) const ENTRIES: usize = 64;
/// … and about so many bytes.
pub(crate) const BYTES: usize = 16 << 10;
/// A range that has grown to so many times that is let go.
const GROWTH: usize = 2;
/// What an entry and a range take beside their bytes.
const ENTRY_COST: usize = size_of::<CachedEntry>();
const RANGE_COST: usize = 192;

pub(crate) type CachedEntry = (Bytes, Bytes);
/// A key and its new value; `None` if it was removed.
pub(crate) type Written = (Bytes, Option<Bytes>);

/// All entries from `from` (inclusive) to `to` (exclusive).
#[derive(Clone, Debug)]
pub(crate) struct CachedRange {
    pub(crate) from: Bytes,
    pub(crate) to: Bytes,
    /// The position from which on snapshots see it so.
    since: u64,
    pub(crate) entries: Vec<CachedEntry>,
    cost: usize,
}

impl CachedRange {
    /// Copies the entries together: they may be slices of large blocks.
    fn pack(from: &[u8], to: &[u8], since: u64, entries: &[CachedEntry]) -> CachedRange {
        let length = |(key, value): &CachedEntry| key.len() + value.len();
        let bytes: usize = entries.iter().map(length).sum();
        let mut buffer = Vec::with_capacity(bytes);
        for (key, value) in entries {
            buffer.extend_from_slice(key);
            buffer.extend_from_slice(value);
        }
        let mut rest = Bytes::from(buffer);
        let packed =
            entries.iter().map(|(key, value)| (rest.split_to(key.len()), rest.split_to(value.len()))).collect();
        let mut range = CachedRange {
            from: Bytes::copy_from_slice(from),
            to: Bytes::copy_from_slice(to),
            since,
            entries: packed,
            cost: 0,
        };
        range.cost = RANGE_COST + bytes + entries.len() * ENTRY_COST;
        range
    }

    /// The place of the first entry that is not before `key`.
    pub(crate) fn place(&self, key: &[u8]) -> usize {
        self.entries.partition_point(|(other, _)| **other < *key)
    }

    fn write(&mut self, key: &Bytes, value: Option<&Bytes>, position: u64) {
        self.since = position;
        let at = self.place(key);
        let there = self.entries.get_mut(at).filter(|(other, _)| other == key);
        match (there, value) {
            (Some(entry), Some(value)) => {
                self.cost = (self.cost + value.len()).saturating_sub(entry.1.len());
                entry.1 = value.clone();
            }
            (Some(_), None) => {
                let (key, value) = self.entries.remove(at);
                self.cost = self.cost.saturating_sub(key.len() + value.len() + ENTRY_COST);
            }
            (None, Some(value)) => {
                self.cost += key.len() + value.len() + ENTRY_COST;
                self.entries.insert(at, (key.clone(), value.clone()));
            }
            (None, None) => {}
        }
    }

    fn fits(&self, other: &CachedRange) -> bool {
        self.entries.len() + other.entries.len() <= ENTRIES && self.cost + other.cost <= BYTES + ENTRIES * ENTRY_COST
    }

    /// With the range that begins where this one ends.
    fn join(mut self, next: &CachedRange) -> CachedRange {
        self.to = next.to.clone();
        self.since = self.since.max(next.since);
        self.entries.extend_from_slice(&next.entries);
        self.cost += next.cost.saturating_sub(RANGE_COST);
        self
    }

    fn is_overgrown(&self) -> bool {
        self.entries.len() > GROWTH * ENTRIES || self.cost > GROWTH * (BYTES + ENTRIES * ENTRY_COST)
    }
}

/// What a range finds where it stands.
#[derive(Debug)]
pub(crate) enum CacheLookUp {
    Cached(Arc<CachedRange>),
    /// No cached range from here to there, or none at all on the way.
    Gap(Option<Bytes>),
    /// A cached range that the snapshot is too old for.
    Newer,
}

/// The cached ranges of one space.
#[derive(Debug)]
pub(crate) struct RangeCache {
    state: RwLock<State>,
    /// Whether there are any, for callers that need no exact answer.
    any: AtomicBool,
    memory: Arc<Memory>,
}

#[derive(Debug, Default)]
struct State {
    ranges: BTreeMap<Bytes, Slot>,
    /// The position of the last batch that wrote to the space.
    written: u64,
}

#[derive(Debug)]
struct Slot {
    range: Arc<CachedRange>,
    /// Since the last look for something to let go.
    used: AtomicBool,
}

impl State {
    /// The range that has `key`.
    fn around(&self, key: &[u8]) -> Option<&Slot> {
        let (_, slot) = self.ranges.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        (*slot.range.to > *key).then_some(slot)
    }

    fn before(&self, key: &[u8]) -> Option<&Slot> {
        self.ranges.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key))).next_back().map(|(_, slot)| slot)
    }

    fn from(&self, key: &[u8]) -> Option<&Slot> {
        self.ranges.range::<[u8], _>((Bound::Included(key), Bound::Unbounded)).next().map(|(_, slot)| slot)
    }
}

impl RangeCache {
    pub(crate) fn new(memory: &Arc<Memory>) -> Arc<RangeCache> {
        Arc::new(RangeCache { state: RwLock::default(), any: AtomicBool::new(false), memory: memory.clone() })
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// What there is from `edge` on, or backwards: just before `edge`.
    pub(crate) fn find(&self, edge: &[u8], reverse: bool, position: u64) -> CacheLookUp {
        if !self.any() {
            return CacheLookUp::Gap(None);
        }
        let state = self.state.read();
        let (slot, inside) = if reverse {
            let slot = state.before(edge);
            (slot, slot.is_some_and(|slot| *slot.range.to >= *edge))
        } else {
            match state.around(edge) {
                Some(slot) => (Some(slot), true),
                None => (state.from(edge), false),
            }
        };
        match slot {
            None => CacheLookUp::Gap(None),
            Some(slot) if slot.range.since > position => CacheLookUp::Newer,
            Some(slot) if inside => {
                slot.used.store(true, Ordering::Relaxed);
                CacheLookUp::Cached(slot.range.clone())
            }
            Some(slot) => CacheLookUp::Gap(Some(if reverse { slot.range.to.clone() } else { slot.range.from.clone() })),
        }
    }

    /// What is under `key`, if that is known here.
    pub(crate) fn get(&self, key: &[u8], position: u64) -> Option<Option<Bytes>> {
        if !self.any() {
            return None;
        }
        let state = self.state.read();
        let slot = state.around(key).filter(|slot| slot.range.since <= position)?;
        slot.used.store(true, Ordering::Relaxed);
        let entry = slot.range.entries.get(slot.range.place(key)).filter(|(other, _)| **other == *key);
        Some(entry.map(|(_, value)| value.clone()))
    }

    /// Takes in all entries of a range, as the snapshot at `position` has them.
    pub(crate) fn insert(self: &Arc<Self>, from: &[u8], to: &[u8], position: u64, entries: &[CachedEntry]) {
        if from >= to {
            return;
        }
        let range = CachedRange::pack(from, to, position, entries);
        let mut state = self.state.write();
        let overlaps = state.around(from).is_some() || state.from(from).is_some_and(|next| *next.range.from < *to);
        if state.written > position || overlaps {
            return;
        }
        let mut cost = range.cost;
        let mut range = range;
        if let Some(before) = state.before(from).filter(|before| *before.range.to == *from && before.range.fits(&range))
        {
            let before = before.range.clone();
            cost = cost.saturating_sub(RANGE_COST);
            range = CachedRange::clone(&before).join(&range);
        }
        if let Some(next) = state.from(to).filter(|next| *next.range.from == *to && range.fits(&next.range)) {
            let next = next.range.clone();
            cost = cost.saturating_sub(RANGE_COST);
            state.ranges.remove(&next.from);
            range = range.join(&next);
        }
        let start = range.from.clone();
        state.ranges.insert(start.clone(), Slot { range: Arc::new(range), used: AtomicBool::new(false) });
        self.any.store(true, Ordering::Release);
        self.memory.used.fetch_add(cost, Ordering::Relaxed);
        drop(state);
        self.memory.remember(self, start);
    }

    /// Lays a batch over the ranges that is visible from `position` on. Without `written`, which is not known then, ranges
    /// that came in meanwhile go.
    pub(crate) fn apply(&self, written: Option<&[Written]>, position: u64) {
        let mut state = self.state.write();
        state.written = position;
        if state.ranges.is_empty() {
            return;
        }
        let Some(written) = written else {
            let freed: usize = state.ranges.values().map(|slot| slot.range.cost).sum();
            state.ranges.clear();
            self.any.store(false, Ordering::Release);
            self.memory.sub(freed);
            return;
        };
        for (key, value) in written {
            let upto = (Bound::Unbounded, Bound::Included(&**key));
            let Some((_, slot)) = state.ranges.range_mut::<[u8], _>(upto).next_back() else { continue };
            if *slot.range.to <= **key {
                continue;
            }
            let range = Arc::make_mut(&mut slot.range);
            let before = range.cost;
            range.write(key, value.as_ref(), position);
            let (after, overgrown) = (range.cost, range.is_overgrown());
            self.memory.used.fetch_add(after, Ordering::Relaxed);
            self.memory.sub(before);
            if overgrown {
                let from = range.from.clone();
                state.ranges.remove(&from);
                self.memory.sub(after);
            }
        }
    }

    /// Lets the range that begins there go, unless it was used since the last time; says whether it stays.
    fn age(&self, from: &[u8]) -> Aged {
        let mut state = self.state.write();
        let Some(slot) = state.ranges.get(from) else { return Aged::Gone(0) };
        if slot.used.swap(false, Ordering::Relaxed) {
            return Aged::Stays;
        }
        let freed = slot.range.cost;
        state.ranges.remove(from);
        Aged::Gone(freed)
    }

    fn has(&self, from: &[u8]) -> bool {
        self.state.read().ranges.contains_key(from)
    }
}

impl Drop for RangeCache {
    fn drop(&mut self) {
        self.memory.sub(self.state.get_mut().ranges.values().map(|slot| slot.range.cost).sum());
    }
}

enum Aged {
    Stays,
    Gone(usize),
}

/// What all range caches of a store may take.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    used: AtomicUsize,
    /// Ranges in the order in which they are looked at when too much is used; some may be gone.
    queue: Mutex<VecDeque<(Weak<RangeCache>, Bytes)>>,
}

impl Memory {
    pub(crate) fn new(limit: usize) -> Arc<Memory> {
        Arc::new(Memory { limit, used: AtomicUsize::new(0), queue: Mutex::default() })
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn sub(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Lets other ranges go if a new one was too much.
    fn remember(&self, cache: &Arc<RangeCache>, from: Bytes) {
        let mut queue = self.queue.lock();
        queue.push_back((Arc::downgrade(cache), from));
        // Every range costs more than this, so that most of a longer queue is of ranges that are gone.
        if queue.len() > 2 * self.limit / RANGE_COST + ENTRIES {
            queue.retain(|(cache, from)| cache.upgrade().is_some_and(|cache| cache.has(from)));
        }
        let mut looks = queue.len() * 2;
        while self.used() > self.limit && looks > 0 {
            looks -= 1;
            let Some((cache, from)) = queue.pop_front() else { return };
            let Some(of) = cache.upgrade() else { continue };
            match of.age(&from) {
                Aged::Stays => queue.push_back((cache, from)),
                Aged::Gone(freed) => self.sub(freed),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn entries(text: &str) -> Vec<CachedEntry> {
        text.split_whitespace().map(|key| (bytes(key), bytes(&key.to_uppercase()))).collect()
    }

    fn keys(found: CacheLookUp) -> String {
        match found {
            CacheLookUp::Cached(range) => range.entries.iter().map(|(key, _)| String::from_utf8_lossy(key)).collect(),
            other => format!("{other:?}"),
        }
    }

    fn range_cache() -> Arc<RangeCache> {
        RangeCache::new(&Memory::new(1 << 20))
    }

    #[test]
    fn ranges_are_found_from_both_sides_and_gaps_end_at_them() {
        let cache = range_cache();
        cache.insert(b"d", b"h", 5, &entries("d e g"));
        for (edge, reverse, position, expected) in [
            ("d", false, 5, "deg"),
            ("g", false, 9, "deg"),
            ("h", false, 5, "Gap(None)"),
            ("a", false, 5, "Gap(Some(b\"d\"))"),
            ("d", false, 4, "Newer"),
            ("h", true, 5, "deg"),
            ("e", true, 5, "deg"),
            ("d", true, 5, "Gap(None)"),
            ("z", true, 5, "Gap(Some(b\"h\"))"),
            ("h", true, 4, "Newer"),
        ] {
            assert_eq!(keys(cache.find(edge.as_bytes(), reverse, position)), expected, "{edge} {reverse} {position}");
        }
        assert_eq!(cache.get(b"e", 5), Some(Some(bytes("E"))));
        assert_eq!(cache.get(b"f", 5), Some(None));
        assert_eq!(cache.get(b"e", 4), None);
        assert_eq!(cache.get(b"h", 5), None);
    }

    #[test]
    fn batches_change_ranges_for_who_comes_later() {
        let cache = range_cache();
        cache.insert(b"a", b"m", 5, &entries("a c e"));
        let CacheLookUp::Cached(held) = cache.find(b"a", false, 5) else { panic!() };
        let written =
            [(bytes("b"), Some(bytes("B"))), (bytes("c"), None), (bytes("e"), Some(bytes("!"))), (bytes("z"), None)];
        cache.apply(Some(&written), 7);
        assert_eq!(held.entries, entries("a c e"));
        assert!(matches!(cache.find(b"a", false, 6), CacheLookUp::Newer));
        assert_eq!(keys(cache.find(b"a", false, 7)), "abe");
        assert_eq!(cache.get(b"e", 7), Some(Some(bytes("!"))));
        // What was read before the batch is not taken in any more.
        cache.insert(b"n", b"p", 6, &entries("n o"));
        assert_eq!(cache.get(b"n", 9), None);
        // A batch that did not look at the cache throws them away.
        cache.apply(None, 8);
        assert_eq!(cache.get(b"a", 8), None);
        assert_eq!(cache.memory.used(), 0);
    }

    #[test]
    fn neighbours_are_joined_and_overlaps_left_out() {
        let cache = range_cache();
        cache.insert(b"a", b"c", 5, &entries("a b"));
        cache.insert(b"e", b"g", 6, &entries("e"));
        cache.insert(b"b", b"e", 6, &entries("b c"));
        assert_eq!(cache.get(b"c", 6), None);
        cache.insert(b"c", b"e", 6, &entries("d"));
        assert_eq!(keys(cache.find(b"b", false, 6)), "abde");
        assert!(matches!(cache.find(b"a", false, 5), CacheLookUp::Newer));
    }

    #[test]
    fn memory_is_bounded_and_given_back() {
        let memory = Memory::new(20_000);
        let spaces = [RangeCache::new(&memory), RangeCache::new(&memory)];
        for number in 0..200_u32 {
            for cache in &spaces {
                let from = number.to_be_bytes();
                let to = [&from[..], &[0]].concat();
                cache.insert(&from, &to, 1, &[(Bytes::copy_from_slice(&from), Bytes::from(vec![1; 3_000]))]);
                // The first one is used all the time.
                cache.get(&0_u32.to_be_bytes(), 1);
            }
        }
        assert!(memory.used() <= 20_000 && memory.used() > 10_000, "{}", memory.used());
        assert!(spaces[0].get(&0_u32.to_be_bytes(), 1).is_some());
        assert!(memory.queue.lock().len() < 20);
        drop(spaces);
        assert_eq!(memory.used(), 0);
    }
}
