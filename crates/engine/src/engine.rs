//! The engine: what is shared by all operations, and how they enter a collection.

use crate::background::{Background, Job};
use crate::catalog::recover;
use crate::catalog::{Catalog, Collection, CollectionId};
use crate::store::StoreOptions;
use crate::store::disk_space::DiskSpace;
use crate::store::folder::FolderLock;
use crate::store::pool::Pool;
use crate::transaction::Transactions;
use crate::transaction::commit::{Committer, Core};
use crate::transaction::locks::check_patience;
use crate::transaction::retries::Retries;
use crate::transaction::snapshot::ReadSnapshot;
use crate::transaction::write_set::Moment;
use crate::ttl::Ttl;
use document::op::{Context, Namespace};
use document::{Code, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::OwnedRwLockReadGuard;

/// A store that had to stop waits so long for more room before it is opened anew on a disk that is still nearly full.
const SCARCE_BEFORE_REOPENING: Duration = Duration::from_secs(3);

/// How to open an engine.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the store may use for caches and unwritten data, about.
    pub memory_bytes: u64,
    /// Where the server listens: in the error of a process that finds the folder taken.
    pub address: Option<String>,
    /// How often expired documents are looked for.
    pub ttl_period: Duration,
    /// How long a transaction may stay open.
    pub transaction_lifetime: Duration,
    /// How long the answers of retryable writes are kept.
    pub retries_kept: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory_bytes: 512 << 20,
            address: None,
            ttl_period: Duration::from_secs(60),
            transaction_lifetime: Duration::from_secs(60),
            retries_kept: Duration::from_secs(30 * 60),
        }
    }
}

impl Options {
    fn store(&self) -> StoreOptions {
        StoreOptions {
            cache_bytes: self.memory_bytes / 8 * 3,
            memtable_bytes: (self.memory_bytes / 16).clamp(4 << 20, 64 << 20),
            journal_bytes: 128 << 20,
            range_cache_bytes: self.memory_bytes / 8,
        }
    }

    /// How much may be in memtables before the largest is written out.
    pub(crate) fn unwritten_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// How large one transaction's writes may grow.
    pub(crate) fn transaction_bytes(&self) -> usize {
        usize::try_from(self.memory_bytes / 4).unwrap_or(usize::MAX).max(64 << 20)
    }
}

/// The embedded store. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) core: Arc<Core>,
    pub(crate) committer: Committer,
    pub(crate) pool: Pool,
    pub(crate) next_id: AtomicU64,
    /// Held by operations that make, drop, rename or change collections and indexes.
    pub(crate) defining: tokio::sync::Mutex<()>,
    pub(crate) transactions: Transactions,
    pub(crate) retries: Retries,
    pub(crate) background: Background,
    pub(crate) ttl: Ttl,
    pub(crate) path: PathBuf,
    pub(crate) options: Options,
    _folder: FolderLock,
}

/// A collection to write to, and the right to do so until dropped.
pub(crate) struct Entered {
    pub(crate) collection: Arc<Collection>,
    _gate: OwnedRwLockReadGuard<()>,
}

impl Engine {
    /// Opens or makes the data folder.
    pub fn open(path: &Path, options: Options) -> Result<Engine> {
        let folder = FolderLock::take(path, options.address.as_deref())?;
        crate::store::temporary::remove_remains(path);
        let opened = recover::open(path, options.store())?;
        let core = Arc::new(opened.core);
        let retries = Retries::load(&core.retries, &core.current.load().snapshot)?;
        let committer = Committer::start(core.clone(), opened.batches, opened.synced)?;
        let inner = Arc::new(Inner {
            core,
            committer,
            pool: opened.pool,
            next_id: AtomicU64::new(opened.next_id.0),
            defining: tokio::sync::Mutex::new(()),
            transactions: Transactions::default(),
            retries,
            background: Background::default(),
            ttl: Ttl::default(),
            path: path.to_owned(),
            options,
            _folder: folder,
        });
        inner.background.start(&inner)?;
        inner.ttl.start(&inner)?;
        for space in opened.remains {
            inner.background.send(Job::Remove(space));
        }
        for (collection, index) in opened.cut_off {
            inner.background.send(Job::EraseIndex(collection, index));
        }
        Ok(Engine { inner })
    }

    /// Finishes what was acknowledged, stops writing, and leaves tables without a log.
    pub fn close(&self) {
        self.inner.ttl.stop();
        self.inner.background.stop();
        self.inner.committer.stop();
        if self.inner.committer.failure().is_none()
            && let Err(error) = self.inner.core.store.close()
        {
            tracing::warn!(%error, "the log of writes stays; it is replayed at the next start");
        }
    }

    /// Whether the store had to stop because the disk was full, so long ago, and there is room again: closed and opened anew it goes
    /// on.
    pub fn wants_reopening(&self, stopped_for: Duration) -> bool {
        if !self.has_stopped() {
            return false;
        }
        let core = &self.inner.core;
        match core.disk.look(&core.store, 0) {
            DiskSpace::Enough => true,
            // What is in memory can be written out, and then deletes and drops make more room: a stopped store takes neither.
            DiskSpace::Scarce => stopped_for >= SCARCE_BEFORE_REOPENING,
            DiskSpace::Gone => false,
        }
    }

    /// Whether the store takes no more writes because its disk was full.
    pub fn has_stopped(&self) -> bool {
        self.inner.committer.failure().is_some_and(|error| error.code() == Code::OutOfDiskSpace)
    }

    /// Says whether nobody uses the engine any more: its folder can be opened again then.
    pub fn release_watch(&self) -> impl Fn() -> bool + use<> {
        let inner = Arc::downgrade(&self.inner);
        move || inner.strong_count() == 0
    }

    /// What a read outside a transaction sees now.
    pub fn now(&self) -> Moment {
        let current = self.inner.core.current.load();
        Moment { catalog: current.catalog.clone(), snapshot: ReadSnapshot::new(current.snapshot.clone()) }
    }

    pub fn catalog(&self) -> Arc<Catalog> {
        self.inner.core.current.load().catalog.clone()
    }

    pub(crate) fn new_collection_id(&self) -> CollectionId {
        CollectionId(self.inner.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Enters a collection for writing, if it is there; waits while it is being changed.
    pub(crate) async fn enter(&self, ns: &Namespace, context: &Context) -> Result<Option<Entered>> {
        loop {
            let Some(collection) = self.inner.core.current.load().catalog.get(ns).cloned() else { return Ok(None) };
            let gate = match collection.life.gate.clone().try_read_owned() {
                Ok(gate) => gate,
                Err(_) => self.wait_for_gate(&collection, context).await?,
            };
            // Its newest version: it may have changed, or gone, before the gate opened.
            let newest = self.inner.core.current.load().catalog.get(ns).cloned();
            match newest {
                Some(newest) if Arc::ptr_eq(&newest.life, &collection.life) => {
                    return Ok(Some(Entered { collection: newest, _gate: gate }));
                }
                _ => {}
            }
        }
    }

    async fn wait_for_gate(&self, collection: &Collection, context: &Context) -> Result<OwnedRwLockReadGuard<()>> {
        let mut waiting = std::pin::pin!(collection.life.gate.clone().read_owned());
        loop {
            match tokio::time::timeout(Duration::from_millis(20), &mut waiting).await {
                Ok(gate) => return Ok(gate),
                Err(_) => check_patience(context)?,
            }
        }
    }

    /// Refuses what adds to a disk that has no room, early; then as [`Engine::pace`]. Of a transaction the whole decides, when it is
    /// committed.
    pub(crate) async fn admit(&self, collection: &Collection, context: &Context, in_transaction: bool) -> Result<()> {
        let space_left = self.inner.core.disk.space_left();
        let may_free = space_left == DiskSpace::Scarce && (in_transaction || context.sent.makes_room);
        match space_left.refusal().filter(|_| !may_free) {
            Some(refusal) => Err(refusal),
            None => self.pace(collection, context).await,
        }
    }

    /// Waits while the store is behind with writing out what the collection has, so that the committer need not.
    pub(crate) async fn pace(&self, collection: &Collection, context: &Context) -> Result<()> {
        let space = collection.space()?;
        while space.is_behind() || self.inner.core.state.is_behind() {
            check_patience(context)?;
            if let Some(failure) = self.inner.committer.failure() {
                return Err(failure.clone());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({})", self.inner.path.display())
    }
}
