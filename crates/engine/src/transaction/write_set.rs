//! The write set: the writes of one statement group or one transaction before they are committed, with the locks they need.
//!
//! Outside a transaction a document is read in its newest version, under its lock. In a transaction it is read as the
//! transaction's moment has it, and a newer version is a write conflict (first updater wins, at the statement).

use super::commit::{Change, Commit, Core, Counted};
use super::locks::{LockAnswer, LockKey, Owner};
use super::snapshot::{Overlay, ReadSnapshot};
use crate::catalog::{Catalog, Collection};
use crate::store::Space;
use bytes::Bytes;
use document::backend::Mode;
use document::error::label;
use document::op::Durability;
use document::{Code, Error, Result};
use std::sync::Arc;

/// What a reader sees: the data, and the catalog that belongs to it.
#[derive(Clone, Debug)]
pub struct Moment {
    pub catalog: Arc<Catalog>,
    pub snapshot: ReadSnapshot,
}

/// Why a statement stopped.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Somebody else holds this lock: wait for it and run the statement again, or in a transaction give up.
    Blocked(LockKey),
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Halt::Failed(error)
    }
}

pub(crate) struct WriteSet {
    core: Arc<Core>,
    owner: Owner,
    /// The fixed moment of a transaction.
    moment: Option<Moment>,
    overlay: Overlay,
    spaces: Vec<Space>,
    locks: Vec<LockKey>,
    fences: Vec<(LockKey, Mode)>,
    counts: Vec<Counted>,
    changes: Vec<Change>,
    writes: usize,
    bytes: usize,
}

/// The error that tells a transaction's client to start over.
pub(crate) fn write_conflict() -> Error {
    Error::new(
        Code::WriteConflict,
        "WriteConflict error: this operation conflicted with another operation. Please retry your operation or multi-document transaction.",
    )
    .with_label(label::TRANSIENT)
}

impl WriteSet {
    /// Writes outside a transaction.
    pub(crate) fn loose(core: &Arc<Core>) -> WriteSet {
        WriteSet::new(core, None)
    }

    /// The write set of a transaction that begins now.
    pub(crate) fn transaction(core: &Arc<Core>) -> WriteSet {
        let current = core.current.load();
        let moment = Moment { catalog: current.catalog.clone(), snapshot: ReadSnapshot::new(current.snapshot.clone()) };
        WriteSet::new(core, Some(moment))
    }

    fn new(core: &Arc<Core>, moment: Option<Moment>) -> WriteSet {
        WriteSet {
            core: core.clone(),
            owner: core.locks.owner(),
            moment,
            overlay: Overlay::default(),
            spaces: Vec::new(),
            locks: Vec::new(),
            fences: Vec::new(),
            counts: Vec::new(),
            changes: Vec::new(),
            writes: 0,
            bytes: 0,
        }
    }

    pub(crate) fn is_transaction(&self) -> bool {
        self.moment.is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes == 0 && self.changes.is_empty()
    }

    /// How many entries have been written.
    pub(crate) fn writes(&self) -> usize {
        self.writes
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// The position of a transaction's snapshot.
    pub(crate) fn position(&self) -> Option<u64> {
        self.moment.as_ref().map(|moment| moment.snapshot.store_snapshot().position())
    }

    /// What a statement of this write set sees.
    pub(crate) fn moment(&self) -> Moment {
        match &self.moment {
            Some(moment) => Moment {
                catalog: moment.catalog.clone(),
                snapshot: ReadSnapshot::with_overlay(moment.snapshot.store_snapshot().clone(), self.overlay.clone()),
            },
            None => {
                let current = self.core.current.load();
                Moment {
                    catalog: current.catalog.clone(),
                    snapshot: ReadSnapshot::with_overlay(current.snapshot.clone(), self.overlay.clone()),
                }
            }
        }
    }

    /// Takes a lock, or says that somebody else has it.
    pub(crate) fn lock(&mut self, key: LockKey) -> Result<LockAnswer, Halt> {
        let asked = self.core.locks.ask(self.owner, key, Mode::Exclusive);
        match asked {
            LockAnswer::Held => return Err(Halt::Blocked(key)),
            LockAnswer::Granted => self.locks.push(key),
            LockAnswer::Mine => {}
        }
        Ok(asked)
    }

    /// Gives a lock back under which nothing was written.
    pub(crate) fn unlock(&mut self, key: LockKey) {
        self.locks.retain(|held| *held != key);
        self.core.locks.release(self.owner, &[key]);
    }

    /// Takes over a lock that its owner waited for.
    pub(crate) fn adopt(&mut self, key: LockKey) {
        self.locks.push(key);
    }

    /// Passes a fence (SEMANTICS R1); only transactions do.
    pub(crate) fn fence(&mut self, key: LockKey, mode: Mode) -> Result<()> {
        let position =
            self.position().ok_or_else(|| Error::new(Code::InternalError, "a fence belongs in a transaction"))?;
        match self.core.locks.ask(self.owner, key, mode) {
            LockAnswer::Held => return Err(write_conflict()),
            LockAnswer::Granted => self.locks.push(key),
            LockAnswer::Mine => {}
        }
        if self.core.locks.fence_is_newer(key, mode, position) {
            return Err(write_conflict());
        }
        self.fences.push((key, mode));
        Ok(())
    }

    /// The value that a statement of this write set may change; its lock is held.
    pub(crate) fn current(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>> {
        if let Some(written) = self.overlay.get(space, key) {
            return Ok(written);
        }
        let Some(moment) = &self.moment else { return space.latest(key) };
        match space.latest_since(key, moment.snapshot.store_snapshot())? {
            Some((_, true)) => Err(write_conflict()),
            Some((value, false)) => Ok(Some(value)),
            None if moment.snapshot.get(space, key)?.is_some() || self.removed_since(space, key) => {
                Err(write_conflict())
            }
            None => Ok(None),
        }
    }

    /// Whether a document came and went since the transaction's moment.
    fn removed_since(&self, space: &Space, key: &[u8]) -> bool {
        let key = LockKey::entry(space.id(), key);
        self.position().is_some_and(|position| self.core.removals.since(key, position))
    }

    /// Whether nobody has committed since the transaction's moment: what it sees under a lock that it holds is the newest, and
    /// need not be looked for again.
    pub(crate) fn is_newest(&self) -> bool {
        self.position().is_some_and(|position| self.core.current.load().snapshot.position() == position)
    }

    /// What a statement of this write set sees under `key`: as [`WriteSet::moment`] has it, which is made for more than one look.
    pub(crate) fn seen(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>> {
        match (self.overlay.get(space, key), &self.moment) {
            (Some(written), _) => Ok(written),
            (None, Some(moment)) => moment.snapshot.get(space, key),
            (None, None) => self.core.current.load().snapshot.get(space, key),
        }
    }

    /// Whether a statement of this write set sees a key between `from` and `to` that `wanted` accepts.
    pub(crate) fn sees_key(
        &self,
        space: &Space,
        from: &[u8],
        to: &[u8],
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<bool> {
        for entry in self.moment().snapshot.range(space, from, to, false) {
            if wanted(&entry?.0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether there is such a key, for the holder of the lock over that range of a unique index. In a transaction, which has
    /// looked at what it sees, one that it does not see is a conflict.
    pub(crate) fn has_key(
        &self,
        space: &Space,
        from: &[u8],
        to: &[u8],
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<bool> {
        if !self.is_transaction() {
            return self.sees_key(space, from, to, wanted);
        }
        for entry in self.core.current.load().snapshot.range(space, from, to, false) {
            let (key, _) = entry?;
            if wanted(&key) && self.overlay.get(space, &key).is_none() {
                return Err(write_conflict());
            }
        }
        Ok(false)
    }

    pub(crate) fn put(&mut self, space: &Space, key: Bytes, value: Bytes) {
        self.touch(space, key.len() + value.len());
        self.overlay.put(space, key, value);
    }

    pub(crate) fn remove(&mut self, space: &Space, key: Bytes) {
        self.touch(space, key.len());
        self.overlay.remove(space, key);
    }

    fn touch(&mut self, space: &Space, bytes: usize) {
        self.writes += 1;
        self.bytes += bytes;
        if self.spaces.last() != Some(space) && !self.spaces.contains(space) {
            self.spaces.push(space.clone());
        }
    }

    /// Changes a collection's figures.
    pub(crate) fn count(&mut self, collection: &Collection, documents: i64, bytes: i64) {
        match self.counts.iter_mut().find(|counted| counted.id == collection.id) {
            Some(counted) => {
                counted.documents += documents;
                counted.bytes += bytes;
            }
            None => {
                self.counts.push(Counted { id: collection.id, life: collection.life.clone(), documents, bytes });
            }
        }
    }

    /// How this write set changes a collection's number of documents.
    pub(crate) fn counted(&self, collection: &Collection) -> i64 {
        self.counts.iter().find(|counted| counted.id == collection.id).map_or(0, |counted| counted.documents)
    }

    /// Changes the catalog, at once for this write set's own statements, for others with the commit.
    pub(crate) fn change(&mut self, change: Change) {
        if let (Some(moment), Change::Put(collection)) = (&mut self.moment, &change) {
            Arc::make_mut(&mut moment.catalog).insert(collection.clone());
        }
        self.changes.push(change);
    }

    /// Whether a collection was made by this write set.
    pub(crate) fn has_made(&self, collection: &Collection) -> bool {
        self.changes.iter().any(|change| matches!(change, Change::Put(made) if made.id == collection.id))
    }

    /// The collections that this write set would have made, each once.
    pub(crate) fn take_made(&mut self) -> Vec<Arc<Collection>> {
        let mut made: Vec<Arc<Collection>> = Vec::new();
        for change in self.changes.drain(..) {
            match change {
                Change::Put(collection) if !made.iter().any(|other| other.id == collection.id) => made.push(collection),
                Change::Put(_) | Change::Drop(_) | Change::Unname(_) | Change::Marked(_) => {}
            }
        }
        made
    }

    pub(crate) fn has_fences(&self) -> bool {
        !self.fences.is_empty()
    }

    /// The writes so far as a commit; what is left is empty, under another owner.
    pub(crate) fn take(&mut self, durability: Durability) -> Commit {
        let mut writes = Vec::with_capacity(self.writes);
        for space in self.spaces.drain(..) {
            let entries = self.overlay.take(&space);
            writes.extend(entries.into_iter().map(|(key, value)| (space.clone(), key, value)));
        }
        let owner = std::mem::replace(&mut self.owner, self.core.locks.owner());
        self.writes = 0;
        Commit {
            writes,
            bytes: std::mem::take(&mut self.bytes),
            counts: std::mem::take(&mut self.counts),
            changes: std::mem::take(&mut self.changes),
            owner,
            locks: std::mem::take(&mut self.locks),
            fences: std::mem::take(&mut self.fences),
            durability,
            makes_room: false,
            visible: None,
        }
    }
}

impl Drop for WriteSet {
    fn drop(&mut self) {
        self.core.locks.release(self.owner, &self.locks);
    }
}
