//! Opening: what a folder holds, checked before anything is served from it.
//!
//! Refused: a folder of a newer format, and a store that has fewer batches than were once synced (its journal lost a tail).
//! Put right: indexes whose build was cut off are forgotten, spaces that no collection uses are removed or made ready.

use super::{COLLECTION, Catalog, Collection, CollectionId, Content};
use crate::store::disk_space::Disk;
use crate::store::pool::{Pool, is_pooled};
use crate::store::synced::SyncedFile;
use crate::store::{Space, Store, StoreOptions};
use crate::transaction::clock::Clock;
use crate::transaction::commit::{BATCH, Core, Current, count_key};
use crate::transaction::locks::LockTable;
use crate::transaction::removals::Removals;
use arc_swap::ArcSwap;
use bytes::Bytes;
use document::{Code, Doc, Error, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The format that this version writes; docs/format.md says what it is.
pub(crate) const FORMAT: u32 = 1;

/// The key-value store, in the data folder.
pub(crate) const STORE: &str = "store";

const FORMAT_KEY: &[u8] = b"f";
/// The catalog changes rarely.
const CATALOG_MEMTABLE: u64 = 4 << 20;
/// The state space is written with each batch, always the same few keys: large enough not to be written out all the time.
const STATE_MEMTABLE: u64 = 16 << 20;

/// An opened folder.
pub(crate) struct Opened {
    pub core: Core,
    /// The number of the last batch.
    pub batches: u64,
    pub synced: SyncedFile,
    pub pool: Pool,
    /// The id for the next collection.
    pub next_id: CollectionId,
    /// Spaces of collections that are gone.
    pub remains: Vec<Space>,
    /// Indexes that were being built: their entries are to be erased.
    pub cut_off: Vec<(Arc<Collection>, u32)>,
}

pub(crate) fn open(folder: &Path, options: StoreOptions) -> Result<Opened> {
    let synced = SyncedFile::open(folder)?;
    let store = Store::open(&folder.join(STORE), options)?;
    let catalog_space = store.space_sized("catalog", CATALOG_MEMTABLE)?;
    let state = store.space_sized("state", STATE_MEMTABLE)?;
    let retries = store.space_sized("retries", STATE_MEMTABLE)?;
    check_format(&store, &catalog_space)?;
    let (batches, time) = last_batch(&state)?;
    if synced.last() > batches {
        let message = format!(
            "the store has {batches} batches, but {} had been synced: its journal has lost its end, and acknowledged writes with it",
            synced.last()
        );
        return Err(Error::new(Code::InternalError, message).with_hint(
            "restore a copy; or, to go on without what is lost, remove the file `synced` from the data folder",
        ));
    }

    let snapshot = store.snapshot();
    let mut catalog = Catalog::default();
    let mut next_id = 1;
    let mut cut_off = Vec::new();
    for entry in snapshot.range(&catalog_space, &[COLLECTION], &[COLLECTION + 1], false) {
        let (key, value) = entry?;
        let mut collection = Collection::from_record(&key, &Doc::trusted_bytes(value), &store)?;
        next_id = next_id.max(collection.id.0 + 1);
        read_counts(&collection, &state)?;
        let unfinished: Vec<u32> =
            collection.indexes.iter().filter(|index| !index.ready).map(|index| index.id).collect();
        collection.indexes.retain(|index| index.ready);
        let collection = Arc::new(collection);
        cut_off.extend(unfinished.into_iter().map(|id| (collection.clone(), id)));
        catalog.insert(collection);
    }

    let names = store.names();
    let (mut free, mut remains) = (Vec::new(), Vec::new());
    for name in names.iter().filter(|name| is_pooled(name)) {
        let used = |collection: &Arc<Collection>| matches!(&collection.content, Content::Stored(space) if space.name() == name);
        if catalog.all().any(used) {
            continue;
        }
        let space = store.space(name)?;
        let empty = snapshot.range(&space, &[0], &[0xFF; 8], false).next().transpose()?.is_none();
        if empty { free.push(space) } else { remains.push(space) }
    }
    let pool = Pool::new(free, &names);
    let current = ArcSwap::from_pointee(Current { snapshot, catalog: Arc::new(catalog) });
    let core = Core {
        store,
        catalog: catalog_space,
        state,
        retries,
        current,
        locks: LockTable::default(),
        clock: Clock::new(time),
        disk: Disk::new(folder),
        removals: Removals::default(),
    };
    Ok(Opened { core, batches, synced, pool, next_id: CollectionId(next_id), remains, cut_off })
}

/// A new folder gets the format's number; another number is refused.
fn check_format(store: &Store, catalog: &Space) -> Result<()> {
    match catalog.latest(FORMAT_KEY)? {
        None => {
            let mut batch = store.batch(1);
            batch.put(catalog, Bytes::from_static(FORMAT_KEY), Bytes::copy_from_slice(&FORMAT.to_be_bytes()));
            store.commit(batch)?;
            store.sync()
        }
        Some(bytes) => {
            let found = <[u8; 4]>::try_from(&*bytes).map(u32::from_be_bytes).unwrap_or_default();
            if found == FORMAT {
                return Ok(());
            }
            let message = format!("the data folder has format {found}; this version reads format {FORMAT}");
            Err(Error::new(Code::UnsupportedFormat, message).with_hint("use the version of pleach that wrote it"))
        }
    }
}

/// The number of the last batch and the clock.
fn last_batch(state: &Space) -> Result<(u64, u64)> {
    let Some(value) = state.latest(BATCH)? else { return Ok((0, 0)) };
    let torn = || Error::new(Code::InternalError, "the number of the last batch cannot be read");
    let (number, time) = value.split_at_checked(8).ok_or_else(torn)?;
    let number = number.try_into().map(u64::from_be_bytes).map_err(|_| torn())?;
    Ok((number, time.try_into().map(u64::from_be_bytes).map_err(|_| torn())?))
}

fn read_counts(collection: &Collection, state: &Space) -> Result<()> {
    if let Some(value) = state.latest(&count_key(collection.id))?
        && let Some((documents, bytes)) = value.split_at_checked(8)
    {
        let number = |bytes: &[u8]| bytes.try_into().map(i64::from_be_bytes).unwrap_or_default();
        collection.life.documents.store(number(documents), Ordering::Relaxed);
        collection.life.bytes.store(number(bytes), Ordering::Relaxed);
    }
    Ok(())
}
