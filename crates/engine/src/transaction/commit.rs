//! The committer: one thread takes what is queued, makes one batch of it, syncs once if that was asked for, and answers.
//! A task that writes alone, little and without waiting for a sync commits by itself: two wake-ups less.
//!
//! Invariants. (1) Locks go when the batch is visible, before its sync; acknowledgements of synced writes wait for it.
//! (2) Relaxed writes are synced within [`RELAXED_SYNC`]. (3) Each batch carries its number and the clock; the number of
//! the last synced batch stands in a file beside the store, so that a journal that lost its tail is noticed when opening.
//! (4) After a failed batch or sync nothing more is written: what was acknowledged stays readable. (5) What has no room on the
//! disk is refused before anything of it is written.

mod worker;

use self::worker::{Loud, Worker, run};
use super::clock::Clock;
use super::locks::{LockKey, LockTable, Owner};
use super::removals::Removals;
use crate::catalog::{Catalog, Collection, CollectionId, Life};
use crate::store::disk_space::{Disk, DiskSpace};
use crate::store::synced::SyncedFile;
use crate::store::{Space, Store, StoreSnapshot};
use arc_swap::ArcSwap;
use bytes::Bytes;
use document::backend::Mode;
use document::op::{Durability, Namespace};
use document::{Code, Error, Result};
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long a relaxed write may stay unsynced.
const RELAXED_SYNC: Duration = Duration::from_millis(100);
/// A task that made so many commits in a row, nobody else's between them, writes alone …
const ALONE: u32 = 8;
/// … and commits itself what is no larger than this.
const OWN_BYTES: usize = 64 << 10;
/// What a commit that removes documents may add beyond what it removes when space is scarce.
const ADDED_TO_DELETES: i64 = 64 << 10;

/// The data and the catalog that belongs to it.
#[derive(Debug)]
pub(crate) struct Current {
    pub snapshot: Arc<StoreSnapshot>,
    pub catalog: Arc<Catalog>,
}

/// What the parts of the engine share.
pub(crate) struct Core {
    pub store: Store,
    pub catalog: Space,
    pub state: Space,
    pub retries: Space,
    pub current: ArcSwap<Current>,
    pub locks: LockTable,
    pub clock: Clock,
    pub disk: Disk,
    pub removals: Removals,
}

/// Writes that become visible together.
pub(crate) struct Commit {
    pub writes: Vec<(Space, Bytes, Option<Bytes>)>,
    pub bytes: usize,
    pub counts: Vec<Counted>,
    pub changes: Vec<Change>,
    pub owner: Owner,
    pub locks: Vec<LockKey>,
    pub fences: Vec<(LockKey, Mode)>,
    pub durability: Durability,
    /// Part of something that frees space.
    pub makes_room: bool,
    /// Told when the writes are visible and the locks free, before a sync.
    pub visible: Option<oneshot::Sender<()>>,
}

impl Commit {
    /// Whether it only waits for the sync of what was written before.
    fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.changes.is_empty()
    }

    /// Whether it is taken when space is scarce: it removes or shrinks documents, or changes the catalog. What a rule adds to a
    /// delete, such as a count in another document, is taken with it.
    fn frees(&self) -> bool {
        let (freed, added) = self.counts.iter().fold((0, 0), |(freed, added), count| match count.bytes {
            bytes if bytes < 0 => (freed - bytes, added),
            bytes => (freed, added + bytes),
        });
        !self.changes.is_empty()
            || self.makes_room
            || (freed > 0 && added <= freed + ADDED_TO_DELETES)
            || self.writes.iter().all(|(_, _, value)| value.is_none())
    }
}

/// How a collection's figures change.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub id: CollectionId,
    pub life: Arc<Life>,
    pub documents: i64,
    pub bytes: i64,
}

/// How the catalog changes.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A new collection, or a new version of one.
    Put(Arc<Collection>),
    /// A collection is gone; its space is removed in the background.
    Drop(Arc<Collection>),
    /// The name is free: the collection got another one.
    Unname(Namespace),
    /// Array marks of an index were set; the collection's record says so.
    Marked(Namespace),
}

/// Where the numbers of the state space stand.
pub(crate) const BATCH: &[u8] = b"b";
pub(crate) const COUNT: u8 = b'n';

pub(crate) fn count_key(id: CollectionId) -> Bytes {
    let mut key = vec![COUNT];
    key.extend_from_slice(&id.0.to_be_bytes());
    Bytes::from(key)
}

/// An acknowledgement to come: the commit's timestamp.
pub(crate) struct Pending(oneshot::Receiver<Result<u64>>);

impl Pending {
    pub(crate) async fn done(self) -> Result<u64> {
        self.0.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// As [`Pending::done`], for a thread of its own.
    pub(crate) fn wait(self) -> Result<u64> {
        self.0.blocking_recv().unwrap_or_else(|_| Err(stopped()))
    }
}

fn stopped() -> Error {
    Error::new(Code::InterruptedAtShutdown, "interrupted at shutdown")
}

type Group = Vec<(Commit, oneshot::Sender<Result<u64>>)>;

#[derive(Default)]
struct Queue {
    commits: Group,
    asleep: bool,
    stopping: bool,
    unsynced_since: Option<Instant>,
    /// The task that submitted last, and how often in a row.
    last: Option<tokio::task::Id>,
    in_a_row: u32,
}

impl Queue {
    /// Whether the task that submits now writes alone.
    fn is_alone(&mut self) -> bool {
        let who = tokio::task::try_id();
        self.in_a_row = if who.is_some() && who == self.last { self.in_a_row.saturating_add(1) } else { 0 };
        self.last = who;
        self.in_a_row >= ALONE && self.commits.is_empty()
    }
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    failure: OnceLock<Error>,
}

impl Shared {
    /// No more writes from now on. What was not acknowledged is perhaps kept, perhaps not; a restart shows it.
    fn fail(&self, core: &Core, error: &Error, what: &str) {
        let full = error.code() == Code::OutOfDiskSpace || core.disk.look(&core.store, 0) != DiskSpace::Enough;
        let error = if full {
            let message = "the disk that holds the data was full when the store had to write; only reads are taken until there is room and the store has been opened anew";
            Error::new(Code::OutOfDiskSpace, message)
                .with_source(error.clone())
                .with_hint("free some space; the server notices by itself")
        } else {
            error.clone()
        };
        tracing::error!(%error, "{what} failed; the server goes on reading but takes no more writes until the store is opened anew");
        let _first_stays = self.failure.set(error);
    }

    fn wake(&self, queue: &mut Queue) {
        if queue.asleep {
            queue.asleep = false;
            self.wake.notify_one();
        }
    }
}

pub(crate) struct Committer {
    shared: Arc<Shared>,
    core: Arc<Core>,
    /// Held while a batch is committed or synced. Taken before the queue, or only tried.
    worker: Arc<Mutex<Worker>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Committer {
    /// `batches` is the number of the last batch in the store.
    pub(crate) fn start(core: Arc<Core>, batches: u64, synced: SyncedFile) -> Result<Committer> {
        let shared = Arc::new(Shared { queue: Mutex::default(), wake: Condvar::new(), failure: OnceLock::new() });
        let worker = Worker { shared: shared.clone(), core: core.clone(), batches, synced };
        let worker = Arc::new(Mutex::new(worker));
        let (of_thread, to_run) = (shared.clone(), worker.clone());
        let thread =
            std::thread::Builder::new()
                .name("committer".to_owned())
                .spawn(move || run(&of_thread, &to_run))
                .map_err(|error| Error::new(Code::InternalError, format!("no thread for the committer: {error}")))?;
        Ok(Committer { shared, core, worker, thread: Mutex::new(Some(thread)) })
    }

    /// Queues a commit. Its locks are the committer's from now on.
    pub(crate) fn submit(&self, commit: Commit) -> Pending {
        let (done, pending) = oneshot::channel();
        let mut queue = self.shared.queue.lock();
        let refused = match self.shared.failure.get() {
            Some(failure) => Some(failure.clone()),
            None => queue.stopping.then(stopped),
        };
        if let Some(error) = refused {
            drop(queue);
            self.core.locks.release(commit.owner, &commit.locks);
            let _nobody_listens = done.send(Err(error));
            return Pending(pending);
        }
        let own = commit.durability == Durability::Relaxed && commit.bytes <= OWN_BYTES && commit.changes.is_empty();
        if queue.is_alone() && own {
            // Not while the thread syncs: that would hold up this task's worker.
            if let Some(mut worker) = self.worker.try_lock() {
                drop(queue);
                let _loud = Loud(self.shared.clone());
                worker.commit(&mut vec![(commit, done)], true);
                return Pending(pending);
            }
        }
        queue.commits.push((commit, done));
        self.shared.wake(&mut queue);
        Pending(pending)
    }

    /// Notices a store that failed in the background, before a write does.
    pub(crate) fn check(&self) {
        if self.shared.failure.get().is_none()
            && let Err(error) = self.core.store.check()
        {
            self.shared.fail(&self.core, &error, "writing out or compacting");
        }
    }

    /// Why nothing is written any more, if so.
    pub(crate) fn failure(&self) -> Option<&Error> {
        self.shared.failure.get()
    }

    /// Finishes what is queued, syncs, and ends the thread.
    pub(crate) fn stop(&self) {
        self.shared.queue.lock().stopping = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.lock().take() {
            let _panicked = thread.join();
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.stop();
    }
}
