//! Filling new indexes from the documents that were there before.
//!
//! Writers keep the index up to date from the moment it is registered. The builder goes through the documents of a snapshot
//! taken after that, and indexes each under its lock in its newest version: so it never puts back an entry that a
//! writer took away, and whichever of two equal unique keys comes second finds the first.

use crate::catalog::{Collection, Index};
use crate::engine::Engine;
use crate::index;
use crate::store::keys::{DOCUMENTS, document, index_prefix};
use crate::transaction::commit::Change;
use crate::transaction::locks::check_patience;
use crate::transaction::write_set::{Halt, WriteSet};
use crate::write::stored_document::{Target, check_unique, id_part, lock_and_read, write_entries};
use bytes::Bytes;
use document::backend::Mode;
use document::op::{Context, Durability};
use document::{Code, Doc, Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Documents indexed in one batch: their locks are held for that long.
const DOCUMENTS_PER_BATCH: usize = 64;

/// Indexes all documents while writers are kept out, in one batch with the catalog's change.
pub(super) async fn at_once(
    engine: &Engine,
    context: &Context,
    collection: &Arc<Collection>,
    new: &[Arc<Index>],
) -> Result<()> {
    let target = Target { collection, env: &context.env, bypass: true };
    let space = collection.space()?;
    let mut write_set = WriteSet::loose(&engine.inner.core);
    let snapshot = engine.now().snapshot;
    for entry in snapshot.range(space, &index_prefix(DOCUMENTS), &index_prefix(DOCUMENTS + 1), false) {
        let (key, value) = entry?;
        match add(&mut write_set, &target, new, &key, &document(value)?) {
            Ok(()) => {}
            Err(Halt::Failed(error)) => return Err(error),
            Err(Halt::Blocked(_)) => {
                return Err(Error::new(Code::InternalError, "a lock is held in a collection that nobody writes to"));
            }
        }
    }
    write_set.change(Change::Put(collection.clone()));
    engine.inner.committer.submit(write_set.take(context.durability)).done().await?;
    Ok(())
}

/// Indexes all documents beside the writers.
pub(super) async fn entries(
    engine: &Engine,
    context: &Context,
    collection: &Arc<Collection>,
    new: &[Arc<Index>],
) -> Result<()> {
    let target = Target { collection, env: &context.env, bypass: true };
    let space = collection.space()?;
    let (mut from, to) = (index_prefix(DOCUMENTS).to_vec(), index_prefix(DOCUMENTS + 1));
    loop {
        // A newer snapshot each time: what was inserted meanwhile has its entries, and indexing it again does no harm.
        let snapshot = engine.now().snapshot;
        let keys: Vec<Bytes> = snapshot
            .range(space, &from, &to, false)
            .take(DOCUMENTS_PER_BATCH)
            .map(|entry| entry.map(|(key, _)| key))
            .collect::<Result<_>>()?;
        let Some(last) = keys.last() else { return Ok(()) };
        from = last.to_vec();
        from.push(0);
        let mut write_set = WriteSet::loose(&engine.inner.core);
        for key in &keys {
            loop {
                let added = lock_and_read(&mut write_set, space, key).and_then(|doc| match doc {
                    Some(doc) => add(&mut write_set, &target, new, key, &doc),
                    None => Ok(()),
                });
                match added {
                    Ok(()) => break,
                    Err(Halt::Failed(error)) => return Err(error),
                    Err(Halt::Blocked(key)) => {
                        engine.inner.committer.submit(write_set.take(Durability::Relaxed)).done().await?;
                        engine.inner.core.locks.wait(write_set.owner(), key, Mode::Exclusive, context).await?;
                        write_set.adopt(key);
                    }
                }
            }
        }
        engine.inner.committer.submit(write_set.take(Durability::Relaxed)).done().await?;
        check_patience(context)?;
        if collection.life.dropped.load(Ordering::Acquire) {
            return Err(Error::new(
                Code::IndexBuildAborted,
                "the collection was dropped while the index was being built",
            ));
        }
        engine.admit(collection, context, false).await?;
    }
}

fn add(
    write_set: &mut WriteSet,
    target: &Target<'_>,
    new: &[Arc<Index>],
    key: &[u8],
    doc: &Doc<'_>,
) -> Result<(), Halt> {
    let mut added = Vec::with_capacity(new.len());
    for index in new {
        let entries = index::entries(index, doc, id_part(key), target.env)?;
        check_unique(write_set, target, index, target.space()?, &entries.entries)?;
        added.push((index.clone(), entries));
    }
    write_entries(write_set, target.collection, target.space()?, added);
    Ok(())
}
