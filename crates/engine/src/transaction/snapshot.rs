//! What a reader sees: a snapshot of the store and, in a transaction, its own writes laid over it.

use crate::store::range::StoreRange;
use crate::store::{Space, StoreSnapshot};
use bytes::Bytes;
use document::Result;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// One consistent state of the data. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ReadSnapshot {
    store_snapshot: Arc<StoreSnapshot>,
    overlay: Option<Overlay>,
}

impl ReadSnapshot {
    pub fn new(store_snapshot: Arc<StoreSnapshot>) -> ReadSnapshot {
        ReadSnapshot { store_snapshot, overlay: None }
    }

    pub fn with_overlay(store_snapshot: Arc<StoreSnapshot>, overlay: Overlay) -> ReadSnapshot {
        ReadSnapshot { store_snapshot, overlay: (!overlay.is_empty()).then_some(overlay) }
    }

    pub fn store_snapshot(&self) -> &Arc<StoreSnapshot> {
        &self.store_snapshot
    }

    pub fn get(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>> {
        match self.overlay.as_ref().and_then(|overlay| overlay.get(space, key)) {
            Some(written) => Ok(written),
            None => self.store_snapshot.get(space, key),
        }
    }

    /// Keys and values from `from` (inclusive) to `to` (exclusive), or backwards. The iterator owns what it needs.
    pub fn range(&self, space: &Space, from: &[u8], to: &[u8], reverse: bool) -> SnapshotRange {
        let stored = self.store_snapshot.range(space, from, to, reverse);
        let written =
            self.overlay.as_ref().and_then(|overlay| overlay.spaces.get(&space.id())).map(|written| Written {
                map: written.clone(),
                next: if reverse {
                    Bound::Excluded(Bytes::copy_from_slice(to))
                } else {
                    Bound::Included(Bytes::copy_from_slice(from))
                },
                end: Bytes::copy_from_slice(if reverse { from } else { to }),
            });
        SnapshotRange { stored, held: None, written, reverse }
    }
}

/// A transaction's writes: an ordered map per space, where nothing means removed. Cloning shares the maps.
#[derive(Clone, Debug, Default)]
pub struct Overlay {
    spaces: HashMap<u64, Arc<BTreeMap<Bytes, Option<Bytes>>>, foldhash::fast::FixedState>,
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    pub fn put(&mut self, space: &Space, key: Bytes, value: Bytes) {
        self.write(space, key, Some(value));
    }

    pub fn remove(&mut self, space: &Space, key: Bytes) {
        self.write(space, key, None);
    }

    fn write(&mut self, space: &Space, key: Bytes, value: Option<Bytes>) {
        Arc::make_mut(self.spaces.entry(space.id()).or_default()).insert(key, value);
    }

    /// What was written to `key`, if anything was.
    pub fn get(&self, space: &Space, key: &[u8]) -> Option<Option<Bytes>> {
        self.spaces.get(&space.id())?.get(key).cloned()
    }

    /// The writes of one space.
    pub fn take(&mut self, space: &Space) -> BTreeMap<Bytes, Option<Bytes>> {
        self.spaces.remove(&space.id()).map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    pub fn range(&self, space: &Space, from: &[u8], to: &[u8]) -> impl Iterator<Item = (&Bytes, &Option<Bytes>)> {
        let bounds = (Bound::Included(from), Bound::Excluded(to));
        self.spaces.get(&space.id()).filter(|_| from < to).into_iter().flat_map(move |map| map.range::<[u8], _>(bounds))
    }
}

/// The writes of one space from where the range stands.
struct Written {
    map: Arc<BTreeMap<Bytes, Option<Bytes>>>,
    next: Bound<Bytes>,
    end: Bytes,
}

impl Written {
    fn peek(&self, reverse: bool) -> Option<(&Bytes, &Option<Bytes>)> {
        let next = match &self.next {
            Bound::Included(key) => Bound::Included(&**key),
            Bound::Excluded(key) => Bound::Excluded(&**key),
            Bound::Unbounded => Bound::Unbounded,
        };
        let position = match &self.next {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => return None,
        };
        if reverse {
            (*self.end < **position)
                .then(|| self.map.range::<[u8], _>((Bound::Included(&*self.end), next)).next_back())?
        } else {
            (*position < self.end).then(|| self.map.range::<[u8], _>((next, Bound::Excluded(&*self.end))).next())?
        }
    }
}

/// A range of the store merged with a transaction's writes.
pub struct SnapshotRange {
    stored: StoreRange,
    /// An entry of the store that comes after the next written one.
    held: Option<(Bytes, Bytes)>,
    written: Option<Written>,
    reverse: bool,
}

impl SnapshotRange {
    fn next_stored(&mut self) -> Option<Result<(Bytes, Bytes)>> {
        match self.held.take() {
            Some(entry) => Some(Ok(entry)),
            None => self.stored.next(),
        }
    }
}

impl Iterator for SnapshotRange {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let stored = match self.next_stored() {
                Some(Err(error)) => return Some(Err(error)),
                Some(Ok(entry)) => Some(entry),
                None => None,
            };
            let Some(written) = &mut self.written else { return stored.map(Ok) };
            let Some((key, value)) = written.peek(self.reverse).map(|(key, value)| (key.clone(), value.clone())) else {
                self.written = None;
                return stored.map(Ok);
            };
            match stored {
                Some((stored_key, stored_value)) if stored_key != key && (stored_key < key) != self.reverse => {
                    return Some(Ok((stored_key, stored_value)));
                }
                Some((stored_key, _)) if stored_key == key => {}
                Some(later) => self.held = Some(later),
                None => {}
            }
            written.next = Bound::Excluded(key.clone());
            if let Some(value) = value {
                return Some(Ok((key, value)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StoreOptions};
    use proptest::prelude::*;

    fn key(number: u8) -> Bytes {
        Bytes::from(vec![1, number])
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_range_is_the_store_with_the_overlay_laid_over_it(
            stored in proptest::collection::btree_set(0u8..40, 0..20),
            written in proptest::collection::btree_map(0u8..40, any::<bool>(), 0..20),
            from in 0u8..40, to in 0u8..41, reverse: bool,
        ) {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
            let space = store.space("a").unwrap();
            let mut batch = store.batch(0);
            let mut model = BTreeMap::new();
            for number in &stored {
                batch.put(&space, key(*number), Bytes::from_static(b"s"));
                model.insert(key(*number), Bytes::from_static(b"s"));
            }
            store.commit(batch).unwrap();
            let mut overlay = Overlay::default();
            for (number, kept) in &written {
                if *kept {
                    overlay.put(&space, key(*number), Bytes::from_static(b"w"));
                    model.insert(key(*number), Bytes::from_static(b"w"));
                } else {
                    overlay.remove(&space, key(*number));
                    model.remove(&key(*number));
                }
            }
            let snapshot = ReadSnapshot::with_overlay(store.snapshot(), overlay);
            let mut expected: Vec<(Bytes, Bytes)> =
                model.into_iter().filter(|(k, _)| *k >= key(from) && *k < key(to)).collect();
            if reverse {
                expected.reverse();
            }
            let seen: Vec<(Bytes, Bytes)> =
                snapshot.range(&space, &key(from), &key(to), reverse).collect::<Result<_>>().unwrap();
            prop_assert_eq!(seen, expected);
        }
    }
}
