//! The one file that names the storage crate: spaces, snapshots, ranges, atomic batches, sync.
//!
//! Invariants kept here. (1) Snapshots are taken only between two batches, under the lock of the writer: the storage
//! crate moves its visible sequence number also when it flushes or compacts, so a snapshot taken while a batch is being
//! applied could see half of it. (2) Spaces are made and removed under the same lock, for the same reason. (3) No empty key
//! and none over 65,535 bytes arrives here ([`MAX_KEY`]).

use super::range::StoreRange;
use super::range_cache::{Memory, RangeCache, Written};
use super::write_log;
use bytes::Bytes;
use document::{Code, Error, Result};
use fjall::config::CompressionPolicy;
use fjall::{AbstractTree, CompressionType, Database, KeyspaceCreateOptions, PersistMode, Readable};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The longest key that the store takes.
pub const MAX_KEY: usize = 65_535;

/// The file that every store of the storage crate has.
pub(crate) const MARKER: &str = "version";

/// Less than this is left in the log of writes when closing: writing it all out takes some syncs for each space.
const LOG_WORTH_EMPTYING: u64 = 1 << 20;

/// How long writing out may take before something must be wrong.
const WRITTEN_OUT_WITHIN: Duration = Duration::from_secs(120);

/// How the store uses memory and disk.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Blocks read from disk and kept.
    pub cache_bytes: u64,
    /// The memtable of one collection is written out at this size.
    pub memtable_bytes: u64,
    /// Bounds the replay when opening.
    pub journal_bytes: u64,
    /// What ranges have read and is kept at hand ([`super::range_cache`]).
    pub range_cache_bytes: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            cache_bytes: 256 << 20,
            memtable_bytes: 32 << 20,
            journal_bytes: 128 << 20,
            range_cache_bytes: 64 << 20,
        }
    }
}

pub struct Store {
    db: Database,
    path: PathBuf,
    options: StoreOptions,
    /// Held while a batch is applied: whether any are taken.
    open: Mutex<bool>,
    /// The range cache of each open space: there are no two for one.
    range_caches: Mutex<HashMap<u64, Weak<RangeCache>>>,
    cache_memory: Arc<Memory>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Opens or makes the store in `path`, replaying what a crash left.
    pub fn open(path: &Path, options: StoreOptions) -> Result<Store> {
        let db = Database::builder(path)
            .cache_size(options.cache_bytes)
            .max_journaling_size(options.journal_bytes.max(64 << 20))
            .worker_threads(2)
            .open()
            .map_err(failed)?;
        let cache_memory = Memory::new(usize::try_from(options.range_cache_bytes).unwrap_or(usize::MAX));
        let (path, open) = (path.to_owned(), Mutex::new(true));
        Ok(Store { db, path, options, open, range_caches: Mutex::default(), cache_memory })
    }

    /// The names of all spaces.
    pub fn names(&self) -> Vec<String> {
        self.db.list_keyspace_names().iter().map(|name| name.to_string()).collect()
    }

    /// Opens a space, making it if it is not there: that takes tens of milliseconds and holds up writers.
    pub fn space(&self, name: &str) -> Result<Space> {
        self.space_sized(name, self.options.memtable_bytes)
    }

    /// As [`Store::space`], written out at another size.
    pub fn space_sized(&self, name: &str, memtable_bytes: u64) -> Result<Space> {
        let _between_batches = self.open.lock();
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(memtable_bytes)
                // What has just been written out is read and merged soon; the level below holds most of a middling collection,
                // and the storage crate would leave that uncompressed too: three times the bytes, for no faster writes. Of 600,000
                // events in quarters (17.6 bytes each as BSON) 7.3 bytes each are left after `compact`; compressing from the first
                // level or only from the third costs the same CPU. Blocks of 16 KB would leave 6.2; what they cost reads by key is open.
                .data_block_compression_policy(CompressionPolicy::new([CompressionType::None, CompressionType::Lz4]))
        };
        let keyspace = self.db.keyspace(name, options).map_err(failed)?;
        let mut all = self.range_caches.lock();
        let range_cache = match all.get(&keyspace.id()).and_then(Weak::upgrade) {
            Some(cache) => cache,
            None => {
                all.retain(|_, cache| cache.strong_count() > 0);
                let cache = RangeCache::new(&self.cache_memory);
                all.insert(keyspace.id(), Arc::downgrade(&cache));
                cache
            }
        };
        Ok(Space { keyspace, range_cache })
    }

    /// Removes a space; its files go when the last reader lets go of it.
    pub fn remove(&self, space: Space) -> Result<()> {
        let _between_batches = self.open.lock();
        self.db.delete_keyspace(space.keyspace).map_err(failed)
    }

    /// The state after the last batch; waits while one is being applied.
    pub fn snapshot(&self) -> Arc<StoreSnapshot> {
        let _between_batches = self.open.lock();
        Arc::new(StoreSnapshot(self.db.snapshot()))
    }

    pub fn batch(&self, capacity: usize) -> Batch {
        // `Database::batch` would hand the bytes to the operating system too, but without a capacity.
        let batch = fjall::OwnedWriteBatch::with_capacity(self.db.clone(), capacity);
        Batch { inner: batch.durability(Some(PersistMode::Buffer)), touched: SmallVec::new() }
    }

    /// Applies the batch: all of it is safe from a kill of this process, and in the snapshot that this returns.
    pub fn commit(&self, batch: Batch) -> Result<Arc<StoreSnapshot>> {
        let one_at_a_time = self.open.lock();
        if !*one_at_a_time {
            return Err(Error::new(Code::InterruptedAtShutdown, "the store is closed"));
        }
        batch.inner.commit().map_err(failed)?;
        let snapshot = Arc::new(StoreSnapshot(self.db.snapshot()));
        for touched in &batch.touched {
            touched.range_cache.apply(touched.written.as_deref(), snapshot.position());
        }
        Ok(snapshot)
    }

    /// Makes every batch so far safe from a loss of power.
    pub fn sync(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncData).map_err(failed)
    }

    /// An error if the store has failed in the background and takes no more writes.
    pub fn check(&self) -> Result<()> {
        self.db.persist(PersistMode::Buffer).map_err(failed)
    }

    /// Writes out all that is in memory: the store removes the parts of its log of writes that are full.
    pub fn write_out(&self) -> Result<()> {
        let names = self.db.list_keyspace_names();
        let open = names.iter().map(|name| self.db.keyspace(name, KeyspaceCreateOptions::default).map_err(failed));
        let spaces = open.collect::<Result<Vec<_>>>()?;
        for space in &spaces {
            space.rotate_memtable().map_err(failed)?;
        }
        let since = Instant::now();
        while spaces.iter().any(|space| space.sealed_memtable_count() > 0) {
            // The storage crate's own waiting would not notice that its threads have failed.
            self.check()?;
            if since.elapsed() > WRITTEN_OUT_WITHIN {
                return Err(Error::new(Code::InternalError, "the store did not write out what is in memory"));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Whether the log of writes has full parts: they are kept, and with them the files of removed spaces, until every space
    /// that they mention is written out and the next writing out ends.
    pub fn has_full_log(&self) -> bool {
        self.db.journal_count() > 1
    }

    /// Starts writing out all that is in memory; whether there was anything.
    pub fn start_writing_out(&self) -> Result<bool> {
        let mut any = false;
        for name in self.db.list_keyspace_names() {
            let space = self.db.keyspace(&name, KeyspaceCreateOptions::default).map_err(failed)?;
            any |= space.rotate_memtable().map_err(failed)? || space.sealed_memtable_count() > 0;
        }
        Ok(any)
    }

    /// Takes no more batches. If the log of writes is worth it, all is written out and the log emptied: it says nothing more
    /// that the tables do not, and opening has nothing to replay.
    pub fn close(&self) -> Result<()> {
        let mut open = self.open.lock();
        *open = false;
        if write_log::bytes(&self.path) < LOG_WORTH_EMPTYING {
            return Ok(());
        }
        self.write_out()?;
        write_log::empty(&self.path)
    }

    /// A newer snapshot of the same data if the store has moved things meanwhile: the old one holds on to memory and files.
    pub fn newer(&self, than: &StoreSnapshot) -> Option<Arc<StoreSnapshot>> {
        (self.db.visible_seqno() != than.0.seqno()).then(|| self.snapshot())
    }

    /// Bytes in memtables: what has not been written out.
    pub fn unwritten_bytes(&self) -> u64 {
        self.db.write_buffer_size()
    }

    pub fn disk_bytes(&self) -> u64 {
        self.db.disk_space().unwrap_or_default()
    }

    pub fn cache_bytes(&self) -> (u64, u64) {
        (self.db.cache_size(), self.db.cache_capacity())
    }
}

/// A sorted map from keys to values: one per collection, and some for the engine itself.
#[derive(Clone)]
pub struct Space {
    keyspace: fjall::Keyspace,
    range_cache: Arc<RangeCache>,
}

impl Space {
    /// Stable while the store is open.
    pub fn id(&self) -> u64 {
        self.keyspace.id()
    }

    pub(crate) fn range_cache(&self) -> &Arc<RangeCache> {
        &self.range_cache
    }

    pub fn name(&self) -> &str {
        self.keyspace.name()
    }

    /// The newest value, visible to snapshots or not: for the holder of the lock on `key`.
    pub fn latest(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.keyspace.get(key).map_err(failed)?.map(Bytes::from))
    }

    /// The newest value, and whether it was written after `snapshot` was taken.
    pub fn latest_since(&self, key: &[u8], snapshot: &StoreSnapshot) -> Result<Option<(Bytes, bool)>> {
        let entry =
            self.keyspace.tree.get_internal_entry(key, fjall::SeqNo::MAX).map_err(|error| failed(error.into()))?;
        Ok(entry.map(|entry| (Bytes::from(entry.value), entry.key.seqno >= snapshot.0.seqno())))
    }

    /// Whether the next batch with this space in it would be made to sleep by the store.
    pub fn is_behind(&self) -> bool {
        self.keyspace.sealed_memtable_count() >= 3 || self.keyspace.tree.l0_run_count() >= 18
    }

    pub fn memtable_bytes(&self) -> u64 {
        self.keyspace.tree.active_memtable().size()
    }

    /// Starts writing the memtable out.
    pub fn write_out(&self) -> Result<()> {
        self.keyspace.rotate_memtable().map(|_| ()).map_err(failed)
    }

    /// Writes everything out into one level; what no snapshot sees any more is left behind.
    pub fn compact(&self) -> Result<()> {
        self.keyspace.rotate_memtable_and_wait().map_err(failed)?;
        self.keyspace.major_compact().map_err(failed)
    }

    pub fn disk_bytes(&self) -> u64 {
        self.keyspace.disk_space()
    }

    /// How many keys there are at most: older versions count too.
    pub fn approximate_keys(&self) -> usize {
        self.keyspace.approximate_len()
    }
}

impl std::fmt::Debug for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Space({})", self.name())
    }
}

impl PartialEq for Space {
    fn eq(&self, other: &Space) -> bool {
        self.id() == other.id()
    }
}

/// A state of all spaces between two batches.
#[derive(Clone)]
pub struct StoreSnapshot(fjall::Snapshot);

impl StoreSnapshot {
    pub fn get(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(known) = space.range_cache.get(key, self.position()) {
            return Ok(known);
        }
        Ok(self.0.get(&space.keyspace, key).map_err(failed)?.map(Bytes::from))
    }

    /// The entries from `from` (inclusive) to `to` (exclusive), or backwards.
    pub fn range(self: &Arc<Self>, space: &Space, from: &[u8], to: &[u8], reverse: bool) -> StoreRange {
        StoreRange::new(self, space, from, to, reverse)
    }

    /// As [`StoreSnapshot::range`], from the store itself; `from` is before `to`.
    pub(crate) fn stored(&self, space: &Space, from: &[u8], to: &[u8]) -> StoredRange {
        StoredRange(self.0.range::<&[u8], _>(&space.keyspace, from..to))
    }

    /// Counts up with each batch: the order of snapshots.
    pub fn position(&self) -> u64 {
        self.0.seqno()
    }
}

impl std::fmt::Debug for StoreSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StoreSnapshot({})", self.position())
    }
}

/// Keys and values, as slices of the blocks they were read from.
pub(crate) struct StoredRange(fjall::Iter);

impl StoredRange {
    pub(crate) fn next(&mut self, reverse: bool) -> Option<Result<(Bytes, Bytes)>> {
        let guard = if reverse { self.0.next_back() } else { self.0.next() };
        let entry = guard?.into_inner().map_err(failed);
        Some(entry.map(|(key, value)| (Bytes::from(key), Bytes::from(value))))
    }
}

/// Writes that become visible together, in as many spaces as needed.
pub struct Batch {
    inner: fjall::OwnedWriteBatch,
    touched: SmallVec<[Touched; 4]>,
}

/// What a batch writes to one space.
struct Touched {
    range_cache: Arc<RangeCache>,
    /// Only if the space had cached ranges when the batch was begun.
    written: Option<Vec<Written>>,
}

impl Batch {
    pub fn put(&mut self, space: &Space, key: Bytes, value: Bytes) {
        debug_assert!(!key.is_empty() && key.len() <= MAX_KEY);
        if let Some(written) = self.touch(space) {
            written.push((key.clone(), Some(value.clone())));
        }
        self.inner.insert(&space.keyspace, key, value);
    }

    pub fn remove(&mut self, space: &Space, key: Bytes) {
        debug_assert!(!key.is_empty() && key.len() <= MAX_KEY);
        if let Some(written) = self.touch(space) {
            written.push((key.clone(), None));
        }
        self.inner.remove(&space.keyspace, key);
    }

    /// Where to note what is written to `space`, if that must be.
    fn touch(&mut self, space: &Space) -> Option<&mut Vec<Written>> {
        let at = match self.touched.iter().rposition(|touched| Arc::ptr_eq(&touched.range_cache, &space.range_cache)) {
            Some(at) => at,
            None => {
                let written = space.range_cache.any().then(Vec::new);
                self.touched.push(Touched { range_cache: space.range_cache.clone(), written });
                self.touched.len() - 1
            }
        };
        self.touched.get_mut(at)?.written.as_mut()
    }

    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }
}

/// A failure of the store as the client sees it.
fn failed(error: fjall::Error) -> Error {
    let full = matches!(&error, fjall::Error::Io(io) | fjall::Error::Storage(lsm_tree::Error::Io(io))
        if io.kind() == std::io::ErrorKind::StorageFull || io.kind() == std::io::ErrorKind::QuotaExceeded);
    let (code, message) = match &error {
        _ if full => (Code::OutOfDiskSpace, "the disk that holds the data is full".to_owned()),
        fjall::Error::Poisoned => (
            Code::InternalError,
            "the store takes no more writes because an earlier one failed; restart the server".to_owned(),
        ),
        fjall::Error::Locked => (Code::ObjectIsBusy, "the data folder is in use by another process".to_owned()),
        fjall::Error::Io(io) => (Code::InternalError, format!("the store could not read or write: {io}")),
        other => (Code::InternalError, format!("the store failed: {other}")),
    };
    Error::new(code, message).with_source(error)
}
