//! Documents removed while transactions are open: an insert of the same `_id` in an older transaction conflicts, as it
//! would with the newer version of a document that is there. The store does not show removals to its readers, so they are
//! noted here until no open transaction is older.

use super::locks::LockKey;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Beyond so many they are not told apart any more: every older transaction then conflicts and begins anew.
const MOST: usize = 1 << 18;

#[derive(Default)]
pub(crate) struct Removals {
    open: AtomicUsize,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    /// The position from which snapshots know of the removal.
    keys: HashMap<LockKey, u64, foldhash::fast::RandomState>,
    /// As if every document had been removed there.
    all: u64,
}

impl Removals {
    /// A transaction begins; to be called before it takes its snapshot.
    pub(crate) fn begin(&self) {
        self.open.fetch_add(1, Ordering::SeqCst);
    }

    /// A transaction ended.
    pub(crate) fn end(&self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }

    /// Forgets removals that every open transaction knows of.
    pub(crate) fn forget(&self, oldest: u64) {
        let mut noted = self.noted.lock();
        if !noted.keys.is_empty() {
            noted.keys.retain(|_, position| *position > oldest);
        }
    }

    /// Notes what a batch removed that is visible from `position` on; to be called before its locks are released.
    pub(crate) fn note(&self, keys: &[LockKey], position: u64) {
        if keys.is_empty() || self.open.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut noted = self.noted.lock();
        if noted.keys.len() + keys.len() > MOST {
            noted.keys.clear();
            noted.all = position;
            return;
        }
        noted.keys.extend(keys.iter().map(|key| (*key, position)));
    }

    /// Whether the document was removed after a snapshot at `position`.
    pub(crate) fn since(&self, key: LockKey, position: u64) -> bool {
        let noted = self.noted.lock();
        noted.all > position || noted.keys.get(&key).is_some_and(|removed| *removed > position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> LockKey {
        LockKey::entry(1, &number.to_be_bytes())
    }

    #[test]
    fn a_removal_is_known_while_an_older_transaction_is_open() {
        let removals = Removals::default();
        removals.note(&[key(1)], 5);
        assert!(!removals.since(key(1), 4), "nobody was there who could conflict");
        removals.begin();
        removals.begin();
        removals.note(&[key(1)], 7);
        assert_eq!(
            (removals.since(key(1), 6), removals.since(key(1), 7), removals.since(key(2), 6)),
            (true, false, false)
        );
        removals.end();
        removals.forget(6);
        assert!(removals.since(key(1), 6));
        removals.end();
        removals.forget(u64::MAX);
        assert!(removals.noted.lock().keys.is_empty());
    }

    #[test]
    fn too_many_are_not_told_apart() {
        let removals = Removals::default();
        removals.begin();
        let many: Vec<LockKey> = (0..u32::try_from(MOST).unwrap()).map(key).collect();
        removals.note(&many, 7);
        removals.note(&[key(0)], 8);
        assert!(removals.since(LockKey::entry(9, b"any"), 7));
        assert!(!removals.since(key(0), 8));
        assert!(removals.noted.lock().keys.is_empty());
    }
}
