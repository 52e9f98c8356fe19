//! What nobody waits for: spaces made ahead, emptied and removed, entries of dropped indexes erased, memory and disk watched,
//! transactions past their lifetime ended. One thread; expiry of documents has its own ([`crate::ttl`]).

use crate::catalog::{Collection, Content};
use crate::engine::Inner;
use crate::store::Space;
use crate::store::disk_space::DiskSpace;
use crate::store::keys::index_prefix;
use crate::transaction::write_set::WriteSet;
use document::op::Durability;
use document::{Code, Error, Result};
use parking_lot::Mutex;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// What may stay in memory on a scarce disk: writing it out frees its journals.
const SCARCE_UNWRITTEN: u64 = 1 << 20;
/// A key of the state space that has no value.
const NEVER_WRITTEN: &[u8] = b"-";
const FORGET_EVERY: Duration = Duration::from_secs(60);
/// A dropped collection of no more entries is emptied and its space used again: removing and making one cost ten syncs each.
const EMPTY_AT_MOST: usize = 1_000;
/// One that takes more on the disk is removed: emptied, its tables would stay until they are compacted.
const EMPTY_BYTES: u64 = 1 << 20;
/// Entries erased in one batch.
const ERASE_AT_ONCE: usize = 2_000;

pub(crate) enum Job {
    /// Make spaces ahead again.
    Refill,
    Remove(Space),
    EraseIndex(Arc<Collection>, u32),
    Stop,
}

#[derive(Default)]
pub(crate) struct Background {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Background {
    pub(crate) fn start(&self, inner: &Arc<Inner>) -> Result<()> {
        let (sender, jobs) = channel();
        let weak = Arc::downgrade(inner);
        let thread = std::thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || run(&weak, &jobs))
            .map_err(|error| Error::new(Code::InternalError, format!("no thread for background work: {error}")))?;
        *self.jobs.lock() = Some(sender);
        *self.thread.lock() = Some(thread);
        self.send(Job::Refill);
        Ok(())
    }

    pub(crate) fn send(&self, job: Job) {
        if let Some(jobs) = &*self.jobs.lock() {
            let _stopped = jobs.send(job);
        }
    }

    pub(crate) fn stop(&self) {
        self.send(Job::Stop);
        *self.jobs.lock() = None;
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _panicked = thread.join();
        }
    }
}

fn run(inner: &Weak<Inner>, jobs: &Receiver<Job>) {
    let mut forgot = Instant::now();
    // Spaces that could not be released, for want of room perhaps.
    let mut unreleased = Vec::new();
    loop {
        let job = jobs.recv_timeout(LOOK_EVERY);
        let Some(inner) = inner.upgrade() else { return };
        let result = match job {
            Ok(Job::Refill) => inner.pool.refill(&inner.core.store),
            Ok(Job::Remove(space)) => release(&inner, &space).inspect_err(|_| unreleased.push(space)),
            Ok(Job::EraseIndex(collection, index)) => erase(&inner, &collection, index),
            Ok(Job::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                inner.transactions.expire(&inner);
                watch_disk(&inner);
                unreleased.retain(|space| release(&inner, space).is_err());
                if forgot.elapsed() >= FORGET_EVERY {
                    forgot = Instant::now();
                    if let Err(error) = forget_retries(&inner) {
                        tracing::warn!(%error, "old retry records could not be removed");
                    }
                }
                watch_memory(&inner)
            }
        };
        if let Err(error) = result {
            tracing::warn!(%error, "background work failed");
        }
    }
}

fn watch_disk(inner: &Inner) {
    let core = &inner.core;
    core.disk.measure(&core.store);
    core.disk.look(&core.store, 0);
    inner.committer.check();
}

/// Removes the answers of retryable writes that nobody will ask for any more.
fn forget_retries(inner: &Inner) -> Result<()> {
    for sessions in inner.retries.idle(inner.options.retries_kept).chunks(1_000) {
        let mut write_set = WriteSet::loose(&inner.core);
        for id in sessions {
            inner.retries.forget(id, &inner.core.retries, &mut write_set);
        }
        inner.committer.submit(write_set.take(Durability::Relaxed)).wait()?;
    }
    Ok(())
}

/// Writes the largest memtables out while all together take too much, or their journals are in the way on a scarce disk.
fn watch_memory(inner: &Inner) -> Result<()> {
    let core = &inner.core;
    let is_scarce = core.disk.space_left() == DiskSpace::Scarce;
    if is_scarce && core.store.unwritten_bytes() <= SCARCE_UNWRITTEN {
        return free_log(inner);
    }
    let most = if is_scarce { SCARCE_UNWRITTEN } else { inner.options.unwritten_bytes() };
    if core.store.unwritten_bytes() <= most {
        return Ok(());
    }
    let catalog = core.current.load().catalog.clone();
    let largest = catalog
        .all()
        .filter_map(|collection| match &collection.content {
            Content::Stored(space) => Some(space.clone()),
            Content::View(_) => None,
        })
        .chain([core.state.clone(), core.retries.clone()])
        .max_by_key(Space::memtable_bytes);
    match largest {
        Some(space) if space.memtable_bytes() > 0 => space.write_out(),
        _ => Ok(()),
    }
}

/// Lets the store remove the full parts of its log of writes, and the files of dropped collections that these mention. A space
/// of a few entries holds on to all of them for as long as it is not written out.
pub(crate) fn free_log(inner: &Inner) -> Result<()> {
    let core = &inner.core;
    if !core.store.has_full_log() || core.store.start_writing_out()? {
        return Ok(());
    }
    // Nothing is in memory, and the store looks at its log only when it has written something out.
    let mut write_set = WriteSet::loose(core);
    write_set.remove(&core.state, bytes::Bytes::from_static(NEVER_WRITTEN));
    inner.committer.submit(write_set.take(Durability::Relaxed)).wait()?;
    core.store.start_writing_out().map(|_| ())
}

/// Empties the space of a dropped collection for the next one, or removes it if that is less work. Nobody writes to it any
/// more, and readers that still read it read a snapshot.
fn release(inner: &Inner, space: &Space) -> Result<()> {
    let snapshot = inner.core.current.load().snapshot.clone();
    let keys: Vec<bytes::Bytes> = snapshot
        .range(space, &[0], &[0xFF; 8], false)
        .take(EMPTY_AT_MOST + 1)
        .map(|entry| entry.map(|(key, _)| key))
        .collect::<Result<_>>()?;
    if keys.len() > EMPTY_AT_MOST || space.disk_bytes() > EMPTY_BYTES || inner.pool.is_full() {
        return inner.core.store.remove(space.clone());
    }
    if !keys.is_empty() {
        let mut write_set = WriteSet::loose(&inner.core);
        for key in keys {
            write_set.remove(space, key);
        }
        inner.committer.submit(write_set.take(Durability::Relaxed)).wait()?;
    }
    inner.pool.give_back(space.clone());
    Ok(())
}

/// Erases the entries of an index that is gone. Nobody reads or writes them any more, so no locks are needed.
fn erase(inner: &Inner, collection: &Arc<Collection>, index: u32) -> Result<()> {
    let space = collection.space()?;
    let (mut from, to) = (index_prefix(index).to_vec(), index_prefix(index + 1));
    loop {
        let snapshot = inner.core.current.load().snapshot.clone();
        let keys: Vec<bytes::Bytes> = snapshot
            .range(space, &from, &to, false)
            .take(ERASE_AT_ONCE)
            .map(|entry| entry.map(|(key, _)| key))
            .collect::<Result<_>>()?;
        let Some(last) = keys.last().cloned() else { return Ok(()) };
        if collection.life.dropped.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut write_set = WriteSet::loose(&inner.core);
        for key in keys {
            write_set.remove(space, key);
        }
        let pending = inner.committer.submit(write_set.take(Durability::Relaxed));
        pending.wait()?;
        from = last.to_vec();
        from.push(0);
    }
}
