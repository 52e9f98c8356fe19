//! A place in a list of ranges of keys, from one entry to the next.
//!
//! To begin a range is to seek in the store, which costs as much as reading many entries. So where ranges stand in order, one iterator
//! runs through all of them: it passes the few entries between two, and seeks only where there are many.

use super::access::ranges::KeyRange;
use super::scan::{Row, SeenKeys};
use crate::store::Space;
use crate::transaction::snapshot::{ReadSnapshot, SnapshotRange};
use bytes::Bytes;
use document::Result;
use std::collections::VecDeque;

/// So many entries between two ranges are passed before the next range is sought.
const PASSED: u32 = 8;

pub(super) struct Cursor {
    /// How many ranges are behind.
    pub(super) begun: usize,
    pub(super) open: Option<SnapshotRange>,
    pub(super) last: Option<Bytes>,
    pub(super) seen: Option<SeenKeys>,
    /// An entry that was read too early.
    pub(super) ahead: Option<(Bytes, Bytes)>,
    /// Rows of entries that were cut, in order by their documents.
    pub(super) gathered: VecDeque<Row>,
    /// Whether each range ends before the next begins; looked at once.
    in_order: Option<bool>,
    /// How often an iterator was opened in the store.
    #[cfg(test)]
    pub(super) opened: usize,
}

impl Cursor {
    pub(super) fn new(may_repeat: bool) -> Cursor {
        Cursor {
            begun: 0,
            open: None,
            last: None,
            seen: may_repeat.then(SeenKeys::default),
            ahead: None,
            gathered: VecDeque::new(),
            in_order: None,
            #[cfg(test)]
            opened: 0,
        }
    }

    /// The next key and value. `seeks` counts the ranges that are begun.
    pub(super) fn next(
        &mut self,
        ranges: &[KeyRange],
        reverse: bool,
        snapshot: &ReadSnapshot,
        space: &Space,
        seeks: &mut u64,
    ) -> Result<Option<(Bytes, Bytes)>> {
        if let Some(entry) = self.ahead.take() {
            return Ok(Some(entry));
        }
        // A range that was passed on the way is counted already.
        let (mut passed, mut is_counted) = (0, false);
        loop {
            let Some(open) = &mut self.open else {
                let Some(range) = at(ranges, reverse, self.begun) else { return Ok(None) };
                *seeks += u64::from(!std::mem::take(&mut is_counted));
                passed = 0;
                self.open = Some(self.opened(ranges, range, reverse, snapshot, space));
                continue;
            };
            let Some(entry) = open.next().transpose()? else {
                // What runs through all ranges has come to the end of them.
                let behind = if self.is_in_order(ranges) { ranges.len() } else { self.begun + 1 };
                *seeks += (behind - self.begun - 1) as u64;
                (self.open, self.last, self.begun) = (None, None, behind);
                continue;
            };
            while at(ranges, reverse, self.begun).is_some_and(|range| is_behind(range, reverse, &entry.0)) {
                self.last = None;
                self.begun += 1;
                *seeks += u64::from(self.begun < ranges.len());
            }
            match at(ranges, reverse, self.begun) {
                Some(range) if *range.from <= *entry.0 && *entry.0 < *range.to => return Ok(Some(entry)),
                Some(_) if passed < PASSED => passed += 1,
                _ => (self.open, is_counted) = (None, true),
            }
        }
    }

    /// From where the cursor stands in a range to the end of all ranges, or of this one if they do not stand in order.
    fn opened(
        &mut self,
        ranges: &[KeyRange],
        range: &KeyRange,
        reverse: bool,
        snapshot: &ReadSnapshot,
        space: &Space,
    ) -> SnapshotRange {
        #[cfg(test)]
        {
            self.opened += 1;
        }
        let end = if self.is_in_order(ranges) { at(ranges, !reverse, 0).unwrap_or(range) } else { range };
        match (&self.last, reverse) {
            (None, true) => snapshot.range(space, &end.from, &range.to, true),
            (None, false) => snapshot.range(space, &range.from, &end.to, false),
            (Some(last), true) => snapshot.range(space, &end.from, last, true),
            (Some(last), false) => {
                let behind = [last, &[0][..]].concat();
                snapshot.range(space, &behind, &end.to, false)
            }
        }
    }

    fn is_in_order(&mut self, ranges: &[KeyRange]) -> bool {
        *self.in_order.get_or_insert_with(|| {
            let pairs = ranges.iter().zip(ranges.iter().skip(1));
            pairs.into_iter().all(|(one, next)| one.to <= next.from)
        })
    }
}

/// The range so many places behind the first, or before the last.
fn at(ranges: &[KeyRange], reverse: bool, place: usize) -> Option<&KeyRange> {
    let at = if reverse { ranges.len().checked_sub(place + 1)? } else { place };
    ranges.get(at)
}

/// Whether a key lies beyond a range.
fn is_behind(range: &KeyRange, reverse: bool, key: &[u8]) -> bool {
    if reverse { *key < *range.from } else { *key >= *range.to }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StoreOptions};

    fn key(number: u32) -> Vec<u8> {
        [&[1][..], &number.to_be_bytes()].concat()
    }

    fn range(from: u32, to: u32) -> KeyRange {
        KeyRange { from: key(from), to: key(to) }
    }

    /// What a cursor reads, how many ranges it has begun, and how often it sought in the store.
    fn read(
        stored: impl Iterator<Item = u32>,
        ranges: &[KeyRange],
        reverse: bool,
        pause: bool,
    ) -> (Vec<u32>, u64, usize) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        let space = store.space("a").unwrap();
        let mut batch = store.batch(0);
        stored.for_each(|number| batch.put(&space, key(number).into(), Bytes::from_static(b"v")));
        store.commit(batch).unwrap();
        let snapshot = ReadSnapshot::new(store.snapshot());
        let (mut cursor, mut found, mut seeks) = (Cursor::new(false), Vec::new(), 0);
        while let Some((key, _)) = cursor.next(ranges, reverse, &snapshot, &space, &mut seeks).unwrap() {
            found.push(u32::from_be_bytes(key[1..].try_into().unwrap()));
            cursor.last = Some(key);
            if pause {
                cursor.open = None;
            }
        }
        (found, seeks, cursor.opened)
    }

    #[test]
    fn ranges_that_are_next_to_each_other_are_read_without_seeks() {
        let ranges: Vec<KeyRange> = (0..1_000).map(|n| range(n * 4, n * 4 + 2)).collect();
        let expected: Vec<u32> = (0..4_000).filter(|n| n % 4 < 2).collect();
        for reverse in [false, true] {
            let (mut found, seeks, opened) = read(0..5_000, &ranges, reverse, false);
            if reverse {
                found.reverse();
            }
            assert_eq!((found == expected, seeks, opened), (true, 1_000, 1), "{reverse}");
            // Ranges without entries are passed by the first entry behind them.
            let (found, seeks, opened) = read((0..5_000).filter(|n| n % 1_000 == 0), &ranges, reverse, false);
            assert_eq!((found.len(), seeks), (4, 1_000), "{reverse}");
            assert!(opened <= 2, "{opened}");
        }
    }

    #[test]
    fn ranges_far_from_each_other_are_sought() {
        let ranges: Vec<KeyRange> = (0..10).map(|n| range(n * 1_000, n * 1_000 + 1)).collect();
        for reverse in [false, true] {
            let (mut found, seeks, opened) = read(0..10_000, &ranges, reverse, false);
            if reverse {
                found.reverse();
            }
            assert_eq!(found, (0..10).map(|n| n * 1_000).collect::<Vec<_>>());
            assert_eq!((seeks, opened), (10, 10), "{reverse}");
        }
    }

    #[test]
    fn what_is_read_does_not_depend_on_pauses_and_order() {
        let some = || [range(5, 9), range(9, 9), range(9, 12), range(40, 41), range(41, 60), range(90, 95)];
        let mut mixed = some().to_vec();
        mixed.swap(0, 3);
        for ranges in [some().to_vec(), mixed] {
            for (reverse, pause) in [(false, false), (false, true), (true, false), (true, true)] {
                let (found, ..) = read(0..100, &ranges, reverse, pause);
                let all = |range: &KeyRange| {
                    (0..100).filter(|n| *range.from <= *key(*n) && *key(*n) < *range.to).collect::<Vec<u32>>()
                };
                let mut expected: Vec<u32> = ranges.iter().flat_map(all).collect();
                if reverse {
                    expected.reverse();
                }
                assert_eq!(found, expected, "{ranges:?} {reverse} {pause}");
            }
        }
    }
}
