//! Array marks of an index: per key, one bit for each part of its path that some document has an array at. Never cleared.
//!
//! A mark is set in memory by the writer of the first such document, before anybody can see it, and stands in the collection's
//! record when that write is committed. Between the two, and if the write never is, other writers still have to bring the
//! record with them: so it is also kept which marks are recorded.

use document::{Array, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The marks of one index, shared by all its versions.
#[derive(Clone, Debug)]
pub(crate) struct Marks(Arc<[Mark]>);

#[derive(Debug, Default)]
struct Mark {
    seen: AtomicU64,
    /// Those of `seen` that the catalog's record has, as far as the committer has come.
    recorded: AtomicU64,
}

impl Marks {
    /// No marks, for an index of so many keys.
    pub(crate) fn none(keys: usize) -> Marks {
        Marks((0..keys).map(|_| Mark::default()).collect())
    }

    /// Takes the marks of a record.
    pub(crate) fn load(&self, record: &Array<'_>) {
        for (mark, bits) in self.0.iter().zip(record.iter()) {
            if let Value::Int64(bits) = bits {
                mark.seen.store(bits.cast_unsigned(), Ordering::Relaxed);
                mark.recorded.store(bits.cast_unsigned(), Ordering::Relaxed);
            }
        }
    }

    /// The marks for a record that is being committed.
    pub(crate) fn record(&self) -> Array<'static> {
        let bits = |mark: &Mark| {
            let seen = mark.seen.load(Ordering::Acquire);
            mark.recorded.store(seen, Ordering::Release);
            Value::Int64(seen.cast_signed())
        };
        self.0.iter().map(bits).collect()
    }

    pub(crate) fn of(&self, key: usize) -> u64 {
        self.0.get(key).map_or(0, |mark| mark.seen.load(Ordering::Acquire))
    }

    pub(crate) fn any(&self) -> bool {
        self.0.iter().any(|mark| mark.seen.load(Ordering::Acquire) != 0)
    }

    /// Adds marks; true if the record has to be written with the documents that need them.
    pub(crate) fn add(&self, marks: &[u64]) -> bool {
        let mut unrecorded = false;
        for (mark, bits) in self.0.iter().zip(marks) {
            if mark.seen.load(Ordering::Acquire) & bits != *bits {
                mark.seen.fetch_or(*bits, Ordering::AcqRel);
            }
            unrecorded |= mark.recorded.load(Ordering::Acquire) & bits != *bits;
        }
        unrecorded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_asked_for_until_it_is_recorded() {
        let marks = Marks::none(2);
        assert!(!marks.add(&[0, 0]));
        assert!(marks.add(&[0, 1]));
        assert!(marks.add(&[0, 1]), "the first write may never be committed");
        assert_eq!((marks.of(0), marks.of(1), marks.any()), (0, 1, true));
        let record = marks.record();
        assert!(!marks.add(&[0, 1]));
        assert!(marks.add(&[0, 2]));
        let loaded = Marks::none(2);
        loaded.load(&record);
        assert!(!loaded.add(&[0, 1]));
    }
}
