//! Runs of consecutive entries of a space, kept in memory as its newest state has them: what ranges have read is read again
//! from here, whatever older versions the store still has to pass over.
//!
//! Invariants. (1) A leaf has every entry between its ends, as of its position and up to the last batch: the one who commits
//! writes each batch into the leaves before anybody can see it. (2) A snapshot older than a leaf's last change does not use
//! it. (3) A leaf is taken in only if nothing was written to the space since the snapshot that it was read in.

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// A leaf is made of at most so many entries …
pub(crate) const ENTRIES: usize = 64;
/// … and about so many bytes.
pub(crate) const BYTES: usize = 16 << 10;
/// A leaf that has grown to so many times that is let go.
const GROWTH: usize = 2;
/// What an entry and a leaf take beside their bytes.
const ENTRY_COST: usize = size_of::<Entry>();
const LEAF_COST: usize = 192;

pub(crate) type Entry = (Bytes, Bytes);
/// A key and its new value; nothing if it was removed.
pub(crate) type Written = (Bytes, Option<Bytes>);

/// All entries from `from` (inclusive) to `to` (exclusive).
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) from: Bytes,
    pub(crate) to: Bytes,
    /// The position from which on snapshots see it so.
    since: u64,
    pub(crate) entries: Vec<Entry>,
    cost: usize,
}

impl Leaf {
    /// Copies the entries together: they may be slices of large blocks.
    fn pack(from: &[u8], to: &[u8], since: u64, entries: &[Entry]) -> Leaf {
        let length = |(key, value): &Entry| key.len() + value.len();
        let bytes: usize = entries.iter().map(length).sum();
        let mut buffer = Vec::with_capacity(bytes);
        for (key, value) in entries {
            buffer.extend_from_slice(key);
            buffer.extend_from_slice(value);
        }
        let mut rest = Bytes::from(buffer);
        let packed =
            entries.iter().map(|(key, value)| (rest.split_to(key.len()), rest.split_to(value.len()))).collect();
        let mut leaf = Leaf {
            from: Bytes::copy_from_slice(from),
            to: Bytes::copy_from_slice(to),
            since,
            entries: packed,
            cost: 0,
        };
        leaf.cost = LEAF_COST + bytes + entries.len() * ENTRY_COST;
        leaf
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

    fn fits(&self, other: &Leaf) -> bool {
        self.entries.len() + other.entries.len() <= ENTRIES && self.cost + other.cost <= BYTES + ENTRIES * ENTRY_COST
    }

    /// With the leaf that begins where this one ends.
    fn join(mut self, next: &Leaf) -> Leaf {
        self.to = next.to.clone();
        self.since = self.since.max(next.since);
        self.entries.extend_from_slice(&next.entries);
        self.cost += next.cost.saturating_sub(LEAF_COST);
        self
    }

    fn is_overgrown(&self) -> bool {
        self.entries.len() > GROWTH * ENTRIES || self.cost > GROWTH * (BYTES + ENTRIES * ENTRY_COST)
    }
}

/// What a range finds where it stands.
#[derive(Debug)]
pub(crate) enum Found {
    Leaf(Arc<Leaf>),
    /// No leaf from here to there, or none at all on the way.
    Gap(Option<Bytes>),
    /// A leaf that the snapshot is too old for.
    Newer,
}

/// The leaves of one space.
#[derive(Debug)]
pub(crate) struct Leaves {
    state: RwLock<State>,
    /// Whether there are any, for those who need not know exactly.
    any: AtomicBool,
    memory: Arc<Memory>,
}

#[derive(Debug, Default)]
struct State {
    leaves: BTreeMap<Bytes, Kept>,
    /// The position of the last batch that wrote to the space.
    written: u64,
}

#[derive(Debug)]
struct Kept {
    leaf: Arc<Leaf>,
    /// Since the last look for something to let go.
    used: AtomicBool,
}

impl State {
    /// The leaf that has `key`.
    fn around(&self, key: &[u8]) -> Option<&Kept> {
        let (_, kept) = self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        (*kept.leaf.to > *key).then_some(kept)
    }

    fn before(&self, key: &[u8]) -> Option<&Kept> {
        self.leaves.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key))).next_back().map(|(_, kept)| kept)
    }

    fn from(&self, key: &[u8]) -> Option<&Kept> {
        self.leaves.range::<[u8], _>((Bound::Included(key), Bound::Unbounded)).next().map(|(_, kept)| kept)
    }
}

impl Leaves {
    pub(crate) fn new(memory: &Arc<Memory>) -> Arc<Leaves> {
        Arc::new(Leaves { state: RwLock::default(), any: AtomicBool::new(false), memory: memory.clone() })
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// What there is from `edge` on, or backwards: just before `edge`.
    pub(crate) fn find(&self, edge: &[u8], reverse: bool, position: u64) -> Found {
        if !self.any() {
            return Found::Gap(None);
        }
        let state = self.state.read();
        let (kept, inside) = if reverse {
            let kept = state.before(edge);
            (kept, kept.is_some_and(|kept| *kept.leaf.to >= *edge))
        } else {
            match state.around(edge) {
                Some(kept) => (Some(kept), true),
                None => (state.from(edge), false),
            }
        };
        match kept {
            None => Found::Gap(None),
            Some(kept) if kept.leaf.since > position => Found::Newer,
            Some(kept) if inside => {
                kept.used.store(true, Ordering::Relaxed);
                Found::Leaf(kept.leaf.clone())
            }
            Some(kept) => Found::Gap(Some(if reverse { kept.leaf.to.clone() } else { kept.leaf.from.clone() })),
        }
    }

    /// What is under `key`, if that is known here.
    pub(crate) fn get(&self, key: &[u8], position: u64) -> Option<Option<Bytes>> {
        if !self.any() {
            return None;
        }
        let state = self.state.read();
        let kept = state.around(key).filter(|kept| kept.leaf.since <= position)?;
        kept.used.store(true, Ordering::Relaxed);
        let entry = kept.leaf.entries.get(kept.leaf.place(key)).filter(|(other, _)| **other == *key);
        Some(entry.map(|(_, value)| value.clone()))
    }

    /// Takes in all entries of a range, as the snapshot at `position` has them.
    pub(crate) fn insert(self: &Arc<Self>, from: &[u8], to: &[u8], position: u64, entries: &[Entry]) {
        if from >= to {
            return;
        }
        let leaf = Leaf::pack(from, to, position, entries);
        let mut state = self.state.write();
        let overlaps = state.around(from).is_some() || state.from(from).is_some_and(|next| *next.leaf.from < *to);
        if state.written > position || overlaps {
            return;
        }
        let mut cost = leaf.cost;
        let mut leaf = leaf;
        if let Some(before) = state.before(from).filter(|before| *before.leaf.to == *from && before.leaf.fits(&leaf)) {
            let before = before.leaf.clone();
            cost = cost.saturating_sub(LEAF_COST);
            leaf = Leaf::clone(&before).join(&leaf);
        }
        if let Some(next) = state.from(to).filter(|next| *next.leaf.from == *to && leaf.fits(&next.leaf)) {
            let next = next.leaf.clone();
            cost = cost.saturating_sub(LEAF_COST);
            state.leaves.remove(&next.from);
            leaf = leaf.join(&next);
        }
        let start = leaf.from.clone();
        state.leaves.insert(start.clone(), Kept { leaf: Arc::new(leaf), used: AtomicBool::new(false) });
        self.any.store(true, Ordering::Release);
        self.memory.used.fetch_add(cost, Ordering::Relaxed);
        drop(state);
        self.memory.remember(self, start);
    }

    /// Lays a batch over the leaves that is visible from `position` on. Without `written`, which is not known then, leaves
    /// that came in meanwhile go.
    pub(crate) fn apply(&self, written: Option<&[Written]>, position: u64) {
        let mut state = self.state.write();
        state.written = position;
        if state.leaves.is_empty() {
            return;
        }
        let Some(written) = written else {
            let freed: usize = state.leaves.values().map(|kept| kept.leaf.cost).sum();
            state.leaves.clear();
            self.any.store(false, Ordering::Release);
            self.memory.sub(freed);
            return;
        };
        for (key, value) in written {
            let upto = (Bound::Unbounded, Bound::Included(&**key));
            let Some((_, kept)) = state.leaves.range_mut::<[u8], _>(upto).next_back() else { continue };
            if *kept.leaf.to <= **key {
                continue;
            }
            let leaf = Arc::make_mut(&mut kept.leaf);
            let before = leaf.cost;
            leaf.write(key, value.as_ref(), position);
            let (after, overgrown) = (leaf.cost, leaf.is_overgrown());
            self.memory.used.fetch_add(after, Ordering::Relaxed);
            self.memory.sub(before);
            if overgrown {
                let from = leaf.from.clone();
                state.leaves.remove(&from);
                self.memory.sub(after);
            }
        }
    }

    /// Lets the leaf that begins there go, unless it was used since the last time; says whether it stays.
    fn age(&self, from: &[u8]) -> Aged {
        let mut state = self.state.write();
        let Some(kept) = state.leaves.get(from) else { return Aged::Gone(0) };
        if kept.used.swap(false, Ordering::Relaxed) {
            return Aged::Stays;
        }
        let freed = kept.leaf.cost;
        state.leaves.remove(from);
        Aged::Gone(freed)
    }

    fn has(&self, from: &[u8]) -> bool {
        self.state.read().leaves.contains_key(from)
    }
}

impl Drop for Leaves {
    fn drop(&mut self) {
        self.memory.sub(self.state.get_mut().leaves.values().map(|kept| kept.leaf.cost).sum());
    }
}

enum Aged {
    Stays,
    Gone(usize),
}

/// What all leaves of a store may take.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: usize,
    used: AtomicUsize,
    /// Leaves in the order in which they are looked at when too much is used; some may be gone.
    queue: Mutex<VecDeque<(Weak<Leaves>, Bytes)>>,
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

    /// Lets other leaves go if a new one was too much.
    fn remember(&self, leaves: &Arc<Leaves>, from: Bytes) {
        let mut queue = self.queue.lock();
        queue.push_back((Arc::downgrade(leaves), from));
        // Every leaf costs more than this, so that most of a longer queue is of leaves that are gone.
        if queue.len() > 2 * self.limit / LEAF_COST + ENTRIES {
            queue.retain(|(leaves, from)| leaves.upgrade().is_some_and(|leaves| leaves.has(from)));
        }
        let mut looks = queue.len() * 2;
        while self.used() > self.limit && looks > 0 {
            looks -= 1;
            let Some((leaves, from)) = queue.pop_front() else { return };
            let Some(of) = leaves.upgrade() else { continue };
            match of.age(&from) {
                Aged::Stays => queue.push_back((leaves, from)),
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

    fn entries(text: &str) -> Vec<Entry> {
        text.split_whitespace().map(|key| (bytes(key), bytes(&key.to_uppercase()))).collect()
    }

    fn keys(found: Found) -> String {
        match found {
            Found::Leaf(leaf) => leaf.entries.iter().map(|(key, _)| String::from_utf8_lossy(key)).collect(),
            other => format!("{other:?}"),
        }
    }

    fn leaves() -> Arc<Leaves> {
        Leaves::new(&Memory::new(1 << 20))
    }

    #[test]
    fn leaves_are_found_from_both_sides_and_gaps_end_at_them() {
        let leaves = leaves();
        leaves.insert(b"d", b"h", 5, &entries("d e g"));
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
            assert_eq!(keys(leaves.find(edge.as_bytes(), reverse, position)), expected, "{edge} {reverse} {position}");
        }
        assert_eq!(leaves.get(b"e", 5), Some(Some(bytes("E"))));
        assert_eq!(leaves.get(b"f", 5), Some(None));
        assert_eq!(leaves.get(b"e", 4), None);
        assert_eq!(leaves.get(b"h", 5), None);
    }

    #[test]
    fn batches_change_leaves_for_who_comes_later() {
        let leaves = leaves();
        leaves.insert(b"a", b"m", 5, &entries("a c e"));
        let Found::Leaf(held) = leaves.find(b"a", false, 5) else { panic!() };
        let written =
            [(bytes("b"), Some(bytes("B"))), (bytes("c"), None), (bytes("e"), Some(bytes("!"))), (bytes("z"), None)];
        leaves.apply(Some(&written), 7);
        assert_eq!(held.entries, entries("a c e"));
        assert!(matches!(leaves.find(b"a", false, 6), Found::Newer));
        assert_eq!(keys(leaves.find(b"a", false, 7)), "abe");
        assert_eq!(leaves.get(b"e", 7), Some(Some(bytes("!"))));
        // What was read before the batch is not taken in any more.
        leaves.insert(b"n", b"p", 6, &entries("n o"));
        assert_eq!(leaves.get(b"n", 9), None);
        // A batch that did not look at the leaves throws them away.
        leaves.apply(None, 8);
        assert_eq!(leaves.get(b"a", 8), None);
        assert_eq!(leaves.memory.used(), 0);
    }

    #[test]
    fn neighbours_are_joined_and_overlaps_left_out() {
        let leaves = leaves();
        leaves.insert(b"a", b"c", 5, &entries("a b"));
        leaves.insert(b"e", b"g", 6, &entries("e"));
        leaves.insert(b"b", b"e", 6, &entries("b c"));
        assert_eq!(leaves.get(b"c", 6), None);
        leaves.insert(b"c", b"e", 6, &entries("d"));
        assert_eq!(keys(leaves.find(b"b", false, 6)), "abde");
        assert!(matches!(leaves.find(b"a", false, 5), Found::Newer));
    }

    #[test]
    fn memory_is_bounded_and_given_back() {
        let memory = Memory::new(20_000);
        let spaces = [Leaves::new(&memory), Leaves::new(&memory)];
        for number in 0..200_u32 {
            for leaves in &spaces {
                let from = number.to_be_bytes();
                let to = [&from[..], &[0]].concat();
                leaves.insert(&from, &to, 1, &[(Bytes::copy_from_slice(&from), Bytes::from(vec![1; 3_000]))]);
                // The first one is used all the time.
                leaves.get(&0_u32.to_be_bytes(), 1);
            }
        }
        assert!(memory.used() <= 20_000 && memory.used() > 10_000, "{}", memory.used());
        assert!(spaces[0].get(&0_u32.to_be_bytes(), 1).is_some());
        assert!(memory.queue.lock().len() < 20);
        drop(spaces);
        assert_eq!(memory.used(), 0);
    }
}
