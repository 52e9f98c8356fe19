//! From bounds to bytes: the ranges of keys to read, in the order of the index, and what to check on each key in them.
//!
//! Leading keys that are single values multiply out to ranges; the first other key ends a range; what is said about the keys
//! behind it is checked on the entry, without reading the document.

use super::interval::{Cut, Intervals};
use crate::store::keys::{DOCUMENTS, KEPT_FIELDS, PREFIX, after_prefix, index_prefix};
use document::Value;
use document::value::key;
use smallvec::SmallVec;

/// More ranges than this are not made: the bounds that would make them are checked on the entries.
const MAX_RANGES: usize = 100_000;

/// What follows an encoded value is never this: so all its keys are below.
const AFTER: u8 = 0xFF;
/// An inverted text may go on with 0x00, which belongs to greater texts; all that follows an encoding is above 0x01.
const BEFORE_DESCENDING: u8 = 0x01;

/// Keys from `from` (inclusive) to `to` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

/// The part of an index to read.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// In the order of the index.
    pub ranges: Vec<KeyRange>,
    pub checks: Vec<Check>,
    /// A bound was too long for the index: what is found may not belong.
    pub inexact: bool,
    /// Whether each range holds one value for all keys of the index: no document twice in it.
    pub points: bool,
}

/// The encoded values that a key of an entry may have.
#[derive(Clone, Debug)]
pub struct Check {
    pub at: usize,
    descending: bool,
    intervals: Vec<(Edge, Edge)>,
}

#[derive(Clone, Debug)]
struct Edge {
    bytes: Vec<u8>,
    inclusive: bool,
}

/// The bytes of an index's bounds. `descending` has one flag per key.
pub fn ranges(index: u32, bounds: &[Intervals], descending: &[bool]) -> Ranges {
    let mut prefixes = vec![index_prefix(index).to_vec()];
    let mut found = Ranges { points: true, ..Ranges::default() };
    let direction = |at: usize| descending.get(at).copied().unwrap_or(false);
    for (at, intervals) in bounds.iter().enumerate() {
        let count = prefixes.len().saturating_mul(intervals.as_slice().len());
        let too_many = at > 0 && count > MAX_RANGES;
        if intervals.all_points() && !too_many {
            prefixes = prefixes.iter().flat_map(|prefix| extended(prefix, intervals, direction(at))).collect();
            continue;
        }
        found.points = false;
        found.ranges = match too_many {
            true => prefixes.into_iter().filter_map(|prefix| whole_prefix(prefix, direction(at - 1))).collect(),
            false => prefixes.iter().flat_map(|prefix| within(prefix, intervals, direction(at))).collect(),
        };
        let checked_from = if too_many { at } else { at + 1 };
        found.checks = (checked_from..bounds.len())
            .filter_map(|at| Some((at, bounds.get(at).filter(|bounds| !bounds.is_full())?)))
            .map(|(at, intervals)| Check::new(at, intervals, direction(at)))
            .collect();
        return found.cut(index);
    }
    let last = direction(bounds.len().saturating_sub(1));
    found.ranges = prefixes.into_iter().filter_map(|prefix| whole_prefix(prefix, last)).collect();
    found.cut(index)
}

/// One prefix longer by each of the values, in the order of the index.
fn extended(prefix: &[u8], points: &Intervals, descending: bool) -> Vec<Vec<u8>> {
    let longer = |value: &Value<'_>| {
        let mut bytes = prefix.to_vec();
        append(value, descending, &mut bytes);
        bytes
    };
    let points = points.as_slice().iter().filter_map(|interval| interval.as_point());
    if descending { points.rev().map(longer).collect() } else { points.map(longer).collect() }
}

fn append(value: &Value<'_>, descending: bool, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    key::encode(value, bytes);
    if descending {
        key::invert_from(bytes, start);
    }
}

/// All keys that begin with these values, the last of which is `descending` or not.
fn whole_prefix(mut from: Vec<u8>, descending: bool) -> Option<KeyRange> {
    if from.len() == PREFIX {
        let to = after_prefix(&from)?;
        return Some(KeyRange { from, to });
    }
    let mut to = from.clone();
    to.push(AFTER);
    if descending {
        from.push(BEFORE_DESCENDING);
    }
    Some(KeyRange { from, to })
}

fn within(prefix: &[u8], intervals: &Intervals, descending: bool) -> Vec<KeyRange> {
    let place = |cut: &Cut| {
        let mut bytes = prefix.to_vec();
        append(&cut.value, descending, &mut bytes);
        match (cut.after != descending, descending) {
            (true, _) => bytes.push(AFTER),
            (false, true) => bytes.push(BEFORE_DESCENDING),
            (false, false) => {}
        }
        bytes
    };
    let range = |interval: &super::interval::Interval| match descending {
        false => KeyRange { from: place(&interval.from), to: place(&interval.to) },
        true => KeyRange { from: place(&interval.to), to: place(&interval.from) },
    };
    let intervals = intervals.as_slice().iter();
    if descending { intervals.rev().map(range).collect() } else { intervals.map(range).collect() }
}

impl Ranges {
    /// Long fields are cut in an index, so long bounds are cut too, to something wider. Documents have their whole `_id`.
    fn cut(mut self, index: u32) -> Ranges {
        const LONGEST: usize = PREFIX + KEPT_FIELDS;
        if index == DOCUMENTS {
            return self;
        }
        for range in &mut self.ranges {
            if range.from.len() > LONGEST || range.to.len() > LONGEST {
                self.inexact = true;
                range.from.truncate(LONGEST);
                if range.to.len() > LONGEST {
                    range.to.truncate(LONGEST);
                    range.to = after_prefix(&range.to).unwrap_or_default();
                }
            }
        }
        if self.inexact {
            self.points = false;
            self.join();
        }
        self
    }

    /// Cut ranges may overlap.
    fn join(&mut self) {
        let mut joined: Vec<KeyRange> = Vec::with_capacity(self.ranges.len());
        for range in std::mem::take(&mut self.ranges) {
            match joined.last_mut() {
                Some(last) if range.from <= last.to => last.to = range.to.max(std::mem::take(&mut last.to)),
                _ => joined.push(range),
            }
        }
        self.ranges = joined;
    }
}

impl Check {
    fn new(at: usize, intervals: &Intervals, descending: bool) -> Check {
        let edge = |cut: &Cut, inclusive| {
            let mut bytes = Vec::new();
            key::encode(&cut.value, &mut bytes);
            Edge { bytes, inclusive }
        };
        let both = |interval: &super::interval::Interval| {
            (edge(&interval.from, !interval.from.after), edge(&interval.to, interval.to.after))
        };
        Check { at, descending, intervals: intervals.as_slice().iter().map(both).collect() }
    }

    /// Whether an encoded value of the key is allowed.
    pub fn allows(&self, encoded: &[u8]) -> bool {
        if self.descending {
            // By itself, an inverted text that goes on behind a NUL would compare as greater.
            let ascending: SmallVec<[u8; 64]> = encoded.iter().map(|byte| !byte).collect();
            return self.allows_ascending(&ascending);
        }
        self.allows_ascending(encoded)
    }

    fn allows_ascending(&self, encoded: &[u8]) -> bool {
        self.intervals.iter().any(|(low, high)| {
            let above = if low.inclusive { *encoded >= *low.bytes } else { *encoded > *low.bytes };
            let below = if high.inclusive { *encoded <= *high.bytes } else { *encoded < *high.bytes };
            above && below
        })
    }
}

/// Where keys with these values begin, one value for each key of the index.
pub fn place_values(index: u32, values: &[Value<'_>], descending: &[bool]) -> Vec<u8> {
    let mut bytes = index_prefix(index).to_vec();
    for (value, descending) in values.iter().zip(descending) {
        append(value, *descending, &mut bytes);
    }
    if descending.last() == Some(&true) {
        bytes.push(BEFORE_DESCENDING);
    }
    bytes.truncate(PREFIX + KEPT_FIELDS);
    bytes
}
