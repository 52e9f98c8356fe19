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
pub(crate) struct OpenBucket {
    pub(crate) n: i32,
    /// At least so many readings are in it.
    pub(crate) count: u32,
    /// The bytes of those, about.
    pub(crate) bytes: usize,
}

#[derive(Debug, Default)]
pub(crate) struct OpenBuckets {
    known: Mutex<HashMap<u64, Known>>,
    looks: AtomicU64,
}

#[derive(Debug)]
struct Known {
    open: OpenBucket,
    /// When it was last looked at.
    look: u64,
}

/// Taken before a reading is sent: which look its bucket is remembered by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct LookNumber(u64);

/// The hash of a series and period in a stored collection: it names the open bucket, for turns too. Two that share one only cost
/// each other a look.
pub(crate) fn host(stored: &Namespace, key: &Key) -> u64 {
    let seed = xxhash_rust::xxh3::xxh3_64_with_seed(stored.collection.as_bytes(), stored.db.len() as u64);
    xxhash_rust::xxh3::xxh3_64_with_seed(&key.bytes(), seed)
}

impl OpenBuckets {
    pub(crate) fn get(&self, host: u64) -> Option<OpenBucket> {
        self.known.lock().get(&host).map(|known| known.open)
    }

    pub(crate) fn look(&self, host: u64) -> LookNumber {
        LookNumber(self.known.lock().get(&host).map_or(0, |known| known.look))
    }

    /// A reading was added to the bucket `n`.
    pub(crate) fn added(&self, host: u64, look: LookNumber, n: i32, bytes: usize) {
        let mut known = self.known.lock();
        let first = OpenBucket { n, count: 1, bytes };
        match known.get_mut(&host) {
            Some(have) if have.open.n == n && have.look == look.0 => {
                have.open.count += 1;
                have.open.bytes += bytes;
            }
            Some(have) if have.open.n >= n => {}
            _ => self.put(&mut known, host, first),
        }
    }

    /// What is known after a commit, or that nothing is.
    pub(crate) fn learn(&self, host: u64, open: Option<OpenBucket>) {
        let mut known = self.known.lock();
        let Some(open) = open else {
            known.remove(&host);
            return;
        };
        let more = known.get(&host).map(|have| have.open).filter(|have| (have.n, have.count) > (open.n, open.count));
        self.put(&mut known, host, more.unwrap_or(open));
    }

    /// What a look at the stored bucket has shown.
    pub(crate) fn seen(&self, host: u64, open: OpenBucket) {
        self.put(&mut self.known.lock(), host, open);
    }

    fn put(&self, known: &mut HashMap<u64, Known>, host: u64, open: OpenBucket) {
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(host, Known { open, look: self.looks.fetch_add(1, Ordering::Relaxed) + 1 });
    }
}
