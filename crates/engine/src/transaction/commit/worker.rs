//! What the committer's thread does: it takes a group of commits from the queue, makes one batch of it, publishes what that makes
//! visible, and syncs. The invariants stand in [`super`].

use super::{BATCH, Change, Core, Counted, Current, Group, RELAXED_SYNC, Shared, count_key};
use crate::catalog::{Catalog, Collection, record_key};
use crate::store::Batch;
use crate::store::disk_space::DiskSpace;
use crate::store::keys::{DOCUMENTS, index_prefix};
use crate::store::synced::SyncedFile;
use crate::transaction::locks::LockKey;
use bytes::Bytes;
use document::op::Durability;
use document::{Code, Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// One batch takes at most so many commits …
const GROUP_COMMITS: usize = 1_024;
/// … and about so many bytes, so that a waiting small write is not held up by many large ones.
const GROUP_BYTES: usize = 16 << 20;
/// How often an idle store looks whether its snapshot holds on to things.
const IDLE_LOOK: Duration = Duration::from_secs(1);

pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) core: Arc<Core>,
    /// The number of the last batch.
    pub(super) batches: u64,
    pub(super) synced: SyncedFile,
}

/// What the committer's thread does.
pub(super) fn run(shared: &Arc<Shared>, worker: &Mutex<Worker>) {
    let _loud = Loud(shared.clone());
    let mut group = Vec::new();
    loop {
        let next = next(shared, &mut group);
        let mut worker = worker.lock();
        match next {
            Next::Group => worker.commit(&mut group, false),
            Next::Sync => worker.sync(Vec::new()),
            Next::Idle => worker.look(),
            Next::Stop => {
                if worker.unsynced_since().is_some() {
                    worker.sync(Vec::new());
                }
                return;
            }
        }
    }
}

/// Waits for something to do; fills `group` from the queue.
fn next(shared: &Shared, group: &mut Group) -> Next {
    let mut queue = shared.queue.lock();
    while queue.commits.is_empty() {
        if queue.stopping {
            return Next::Stop;
        }
        if queue.unsynced_since.is_some_and(|since| since.elapsed() >= RELAXED_SYNC) {
            return Next::Sync;
        }
        queue.asleep = true;
        let until = queue.unsynced_since.map_or_else(|| Instant::now() + IDLE_LOOK, |since| since + RELAXED_SYNC);
        let late = shared.wake.wait_until(&mut queue, until).timed_out();
        queue.asleep = false;
        if late && queue.commits.is_empty() && queue.unsynced_since.is_none() {
            return Next::Idle;
        }
    }
    let mut bytes = 0;
    let count = queue
        .commits
        .iter()
        .take(GROUP_COMMITS)
        .take_while(|(commit, _)| {
            let first_or_fits = bytes == 0 || bytes + commit.bytes <= GROUP_BYTES;
            bytes += commit.bytes;
            first_or_fits
        })
        .count();
    group.extend(queue.commits.drain(..count));
    Next::Group
}

impl Worker {
    fn unsynced_since(&self) -> Option<Instant> {
        self.shared.queue.lock().unsynced_since
    }

    /// Notes that something is not synced yet, so that the thread will sync it in time; says since when.
    fn note_unsynced(&self) -> Instant {
        let mut queue = self.shared.queue.lock();
        match queue.unsynced_since {
            Some(since) => since,
            None => {
                let now = Instant::now();
                queue.unsynced_since = Some(now);
                self.shared.wake(&mut queue);
                now
            }
        }
    }

    /// One batch of the whole group. In a task, whose group is relaxed, nothing is synced.
    pub(super) fn commit(&mut self, group: &mut Group, in_task: bool) {
        self.refuse_without_space(group);
        if group.is_empty() {
            return;
        }
        let result = match self.shared.failure.get() {
            Some(failure) => Err(failure.clone()),
            None => self.apply(group),
        };
        let wants_sync = group.iter().any(|(commit, _)| commit.durability == Durability::Synced);
        let mut waiting = Vec::new();
        for (commit, done) in group.drain(..) {
            self.core.locks.release(commit.owner, &commit.locks);
            if let (Ok(_), Some(visible)) = (&result, commit.visible) {
                let _nobody_listens = visible.send(());
            }
            match (&result, commit.durability) {
                (Ok(_), Durability::Synced) => waiting.push(done),
                // The caller may have gone away; the write stands.
                _ => drop(done.send(result.clone())),
            }
        }
        match result {
            Ok(_) if wants_sync => self.sync(waiting),
            Ok(_) => {
                if self.note_unsynced().elapsed() >= RELAXED_SYNC && !in_task {
                    self.sync(Vec::new());
                }
            }
            Err(_) => {}
        }
    }

    fn refuse_without_space(&self, group: &mut Group) {
        let bytes = group.iter().map(|(commit, _)| commit.bytes).sum();
        let space_left = self.core.disk.look(&self.core.store, bytes);
        let Some(refusal) = space_left.refusal() else { return };
        for (commit, done) in
            group.extract_if(.., |(commit, _)| !commit.is_empty() && (space_left == DiskSpace::Gone || !commit.frees()))
        {
            self.core.locks.release(commit.owner, &commit.locks);
            let _nobody_listens = done.send(Err(refusal.clone()));
        }
    }

    /// One batch of the whole group; publishes what it makes visible.
    fn apply(&mut self, group: &mut Group) -> Result<u64> {
        let core = self.core.clone();
        let writes: usize = group.iter().map(|(commit, _)| commit.writes.len()).sum();
        let mut batch = core.store.batch(writes + 4);
        let mut counts: Vec<Counted> = Vec::new();
        let mut removed = Vec::new();
        let mut catalog = core.current.load().catalog.clone();
        for (commit, _) in group.iter_mut() {
            for (space, key, value) in commit.writes.drain(..) {
                match value {
                    Some(value) => batch.put(&space, key, value),
                    None => {
                        if key.starts_with(&index_prefix(DOCUMENTS)) {
                            removed.push(LockKey::entry(space.id(), &key));
                        }
                        batch.remove(&space, key);
                    }
                }
            }
            for count in commit.counts.drain(..) {
                match counts.iter_mut().find(|counted| counted.id == count.id) {
                    Some(counted) => {
                        counted.documents += count.documents;
                        counted.bytes += count.bytes;
                    }
                    None => counts.push(count),
                }
            }
            for change in &commit.changes {
                self.change(change, &mut batch, Arc::make_mut(&mut catalog));
            }
        }
        // Fences alone are a commit too: later snapshots must be newer than they are.
        let fenced = group.iter().any(|(commit, _)| !commit.fences.is_empty());
        if batch.is_empty() && counts.is_empty() && !fenced {
            return Ok(core.clock.committed());
        }
        for count in &mut counts {
            count.documents += count.life.documents.load(Ordering::Relaxed);
            count.bytes += count.life.bytes.load(Ordering::Relaxed);
            if !count.life.dropped.load(Ordering::Relaxed) {
                let mut value = Vec::with_capacity(16);
                value.extend_from_slice(&count.documents.to_be_bytes());
                value.extend_from_slice(&count.bytes.to_be_bytes());
                batch.put(&core.state, count_key(count.id), Bytes::from(value));
            }
        }
        let time = core.clock.tick();
        let number = self.batches + 1;
        let mut value = Vec::with_capacity(16);
        value.extend_from_slice(&number.to_be_bytes());
        value.extend_from_slice(&time.to_be_bytes());
        batch.put(&core.state, Bytes::from_static(BATCH), Bytes::from(value));

        let snapshot = core.store.commit(batch).inspect_err(|error| self.fail(error, "a write"))?;
        self.batches = number;
        for count in counts {
            count.life.documents.store(count.documents, Ordering::Relaxed);
            count.life.bytes.store(count.bytes, Ordering::Relaxed);
        }
        for (commit, _) in group.iter() {
            if !commit.fences.is_empty() {
                core.locks.fences_committed(&commit.fences, snapshot.position());
            }
        }
        let position = snapshot.position();
        core.current.store(Arc::new(Current { snapshot, catalog }));
        core.removals.note(&removed, position);
        core.clock.commit(time);
        Ok(time)
    }

    fn change(&self, change: &Change, batch: &mut Batch, catalog: &mut Catalog) {
        let put = |collection: &Collection, batch: &mut Batch| {
            let (key, value) = collection.record();
            batch.put(&self.core.catalog, key, value);
        };
        match change {
            Change::Put(collection) => {
                put(collection, batch);
                catalog.insert(collection.clone());
            }
            Change::Drop(collection) => {
                batch.remove(&self.core.catalog, record_key(collection.id));
                batch.remove(&self.core.state, count_key(collection.id));
                collection.life.dropped.store(true, Ordering::Release);
                catalog.remove(&collection.ns);
            }
            Change::Unname(ns) => catalog.remove(ns),
            Change::Marked(ns) => {
                if let Some(collection) = catalog.get(ns) {
                    put(&collection.clone(), batch);
                }
            }
        }
    }

    fn sync(&mut self, waiting: Vec<oneshot::Sender<Result<u64>>>) {
        let result = self.core.store.sync().inspect_err(|error| self.fail(error, "a sync"));
        if result.is_ok() {
            self.synced.record(self.batches);
        }
        self.shared.queue.lock().unsynced_since = None;
        let time = self.core.clock.committed();
        for done in waiting {
            let _nobody_listens = done.send(result.clone().map(|()| time));
        }
    }

    fn look(&self) {
        let current = self.core.current.load();
        if let Some(snapshot) = self.core.store.newer(&current.snapshot) {
            self.core.current.store(Arc::new(Current { snapshot, catalog: current.catalog.clone() }));
        }
    }

    fn fail(&self, error: &Error, what: &str) {
        self.shared.fail(&self.core, error, what);
    }
}

enum Next {
    Group,
    Sync,
    Idle,
    Stop,
}

/// A panic of the committer stops writes, loudly.
pub(super) struct Loud(pub(super) Arc<Shared>);

impl Drop for Loud {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!("the committer panicked; no more writes are taken until the server is restarted");
            let _first_stays = self.0.failure.set(Error::new(Code::InternalError, "the committer stopped"));
            self.0.queue.lock().commits.clear();
        }
    }
}
