//! Which bucket of a series and period takes the next reading, as far as this process remembers.
//!
//! A memory may be old; the statement that relies on it is not: a bucket that is full after all refuses the reading (R16). But
//! it never counts more readings than there are, unless somebody took some out: else a bucket would be left before it is full.
//! So a reading that was on its way while the bucket was looked at is not counted: the look may have counted it already.

use crate::shapes::bucket::Key;
use document::op::Namespace;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Buckets are forgotten, all of them, when so many are remembered: a guess is only a round trip.
const MOST: usize = 200_000;

/// A bucket that is not known to be full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) n: i32,
    /// At least so many readings are in it.
    pub(crate) count: u32,
    /// The bytes of those, about.
    pub(crate) bytes: usize,
}

#[derive(Default)]
pub(crate) struct OpenBuckets {
    known: Mutex<HashMap<u128, Known>>,
    looks: AtomicU64,
}

struct Known {
    open: Open,
    /// When it was last looked at.
    look: u64,
}

/// Taken before a reading is sent: which look its bucket is remembered by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// The place of a series and period in a stored collection.
pub(crate) fn place(stored: &Namespace, key: &Key) -> u128 {
    let seed = xxhash_rust::xxh3::xxh3_64_with_seed(stored.collection.as_bytes(), stored.db.len() as u64);
    xxhash_rust::xxh3::xxh3_128_with_seed(&key.bytes(), seed)
}

/// What those who wait for the bucket's turn know it by.
pub(crate) fn host(place: u128) -> u64 {
    (place >> 64) as u64 ^ place as u64
}

impl OpenBuckets {
    pub(crate) fn get(&self, place: u128) -> Option<Open> {
        self.known.lock().get(&place).map(|known| known.open)
    }

    pub(crate) fn ticket(&self, place: u128) -> Ticket {
        Ticket(self.known.lock().get(&place).map_or(0, |known| known.look))
    }

    /// A reading was added to the bucket `n`.
    pub(crate) fn added(&self, place: u128, ticket: Ticket, n: i32, bytes: usize) {
        let mut known = self.known.lock();
        let first = Open { n, count: 1, bytes };
        match known.get_mut(&place) {
            Some(have) if have.open.n == n && have.look == ticket.0 => {
                have.open.count += 1;
                have.open.bytes += bytes;
            }
            Some(have) if have.open.n >= n => {}
            _ => self.put(&mut known, place, first),
        }
    }

    /// What is known after a commit, or that nothing is.
    pub(crate) fn learn(&self, place: u128, open: Option<Open>) {
        let mut known = self.known.lock();
        let Some(open) = open else {
            known.remove(&place);
            return;
        };
        let more = known.get(&place).map(|have| have.open).filter(|have| (have.n, have.count) > (open.n, open.count));
        self.put(&mut known, place, more.unwrap_or(open));
    }

    /// What a look at the stored bucket has shown.
    pub(crate) fn seen(&self, place: u128, open: Open) {
        self.put(&mut self.known.lock(), place, open);
    }

    fn put(&self, known: &mut HashMap<u128, Known>, place: u128, open: Open) {
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(place, Known { open, look: self.looks.fetch_add(1, Ordering::Relaxed) + 1 });
    }
}
