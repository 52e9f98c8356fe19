//! Room on the disk: what must stay free for the store to go on, and what may still be written when less is.
//!
//! A store that meets a full disk while it writes memory out or compacts takes no more writes until it is opened again. So
//! before each batch the committer asks here, and refuses what would not fit: nothing of it is written then, and when there
//! is room again the next batch is taken.

use super::Store;
use super::folder::disk_bytes;
use document::{Code, Error};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Beside what is in memory: a journal begun anew, and what writers add while nobody looks.
const MARGIN: u64 = 64 << 20;
/// A compaction writes its tables anew before it removes them: at most all of the store, and not more than this at a time.
const COMPACTION: u64 = 256 << 20;
/// Below this, and what is in memory, nothing at all is written.
const LAST: u64 = 16 << 20;
/// With so much free nobody fills the disk before the next look.
const FAR_FROM_FULL: u64 = 8 << 30;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DiskSpace {
    /// Nothing.
    Gone,
    /// What frees space.
    Scarce,
    Enough,
}

impl DiskSpace {
    /// The error of a write that finds no room; `None` if there is enough.
    pub(crate) fn refusal(self) -> Option<Error> {
        let message = match self {
            DiskSpace::Enough => return None,
            DiskSpace::Scarce => "the disk that holds the data is nearly full; only reads, deletes and drops are taken",
            DiskSpace::Gone => "the disk that holds the data is full; only reads are taken until there is room again",
        };
        Some(Error::new(Code::OutOfDiskSpace, message).with_hint("free some space; the server notices by itself"))
    }
}

/// Watches the disk of one data folder.
pub(crate) struct Disk {
    folder: PathBuf,
    /// What compactions may need.
    compaction: AtomicU64,
    space_left: AtomicU8,
    /// When the disk was found far from full.
    far: Mutex<Option<Instant>>,
    /// What a test wants every look to find.
    #[cfg(test)]
    pub(crate) pretended: Mutex<Option<DiskSpace>>,
}

impl Disk {
    pub(crate) fn new(folder: &Path) -> Disk {
        Disk {
            folder: folder.to_owned(),
            compaction: AtomicU64::new(0),
            space_left: AtomicU8::new(DiskSpace::Enough as u8),
            far: Mutex::new(None),
            #[cfg(test)]
            pretended: Mutex::new(None),
        }
    }

    /// What was found by the last look.
    pub(crate) fn space_left(&self) -> DiskSpace {
        match self.space_left.load(Ordering::Relaxed) {
            0 => DiskSpace::Gone,
            1 => DiskSpace::Scarce,
            _ => DiskSpace::Enough,
        }
    }

    /// Learns from time to time how large the store is.
    pub(crate) fn measure(&self, store: &Store) {
        self.compaction.store(store.disk_bytes().min(COMPACTION), Ordering::Relaxed);
    }

    /// Looks whether a batch of so many bytes has room.
    pub(crate) fn look(&self, store: &Store, bytes: usize) -> DiskSpace {
        #[cfg(test)]
        if let Some(space) = *self.pretended.lock() {
            self.space_left.store(space as u8, Ordering::Relaxed);
            return space;
        }
        let mut far = self.far.lock();
        if far.is_some_and(|seen| seen.elapsed() < LOOK_AGAIN) {
            return DiskSpace::Enough;
        }
        let Some((_, free)) = disk_bytes(&self.folder) else { return DiskSpace::Enough };
        *far = (free > FAR_FROM_FULL).then(Instant::now);
        // In the journal now, and in a table later.
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(2);
        let space = judge(free, store.unwritten_bytes().saturating_add(bytes), self.compaction.load(Ordering::Relaxed));
        if self.space_left.swap(space as u8, Ordering::Relaxed) != space as u8 {
            match space {
                DiskSpace::Enough => tracing::info!(free, "the disk has room again"),
                DiskSpace::Scarce => {
                    tracing::error!(free, "the disk is nearly full: only reads, deletes and drops are taken");
                }
                DiskSpace::Gone => {
                    tracing::error!(free, "the disk is full: only reads are taken until there is room again")
                }
            }
        }
        space
    }
}

fn judge(free: u64, unwritten: u64, compaction: u64) -> DiskSpace {
    match free.saturating_sub(unwritten) {
        left if left >= MARGIN + compaction => DiskSpace::Enough,
        left if left >= LAST => DiskSpace::Scarce,
        _ => DiskSpace::Gone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_memory_and_a_compaction_must_have_room() {
        let check = |free: u64, unwritten: u64, store: u64, expected: DiskSpace| {
            assert_eq!(judge(free << 20, unwritten << 20, store << 20), expected, "{free} {unwritten} {store}");
        };
        check(100, 0, 10, DiskSpace::Enough);
        check(100, 0, 40, DiskSpace::Scarce);
        check(100, 50, 0, DiskSpace::Scarce);
        check(100, 90, 0, DiskSpace::Gone);
        check(0, 0, 0, DiskSpace::Gone);
    }

    #[test]
    fn who_finds_no_room_is_told_what_is_still_taken() {
        assert!(DiskSpace::Enough.refusal().is_none());
        for space in [DiskSpace::Scarce, DiskSpace::Gone] {
            assert_eq!(space.refusal().map(|error| error.code()), Some(Code::OutOfDiskSpace));
        }
    }
}
