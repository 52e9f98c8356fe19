//! Making collections: by `create`, and by the first write to a name.

use crate::background::Job;
use crate::catalog::{Collection, Content, Index, Life};
use crate::commit::Change;
use crate::engine::Engine;
use crate::locks::LockKey;
use crate::work::Work;
use document::backend::Mode;
use document::op::{Context, Durability, Namespace};
use document::{Doc, Result};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Makes the collection that a write needs; it may have been made meanwhile.
pub(crate) async fn implicitly(engine: &Engine, ns: &Namespace, context: &Context) -> Result<()> {
    let _one_at_a_time = engine.inner.defining.lock().await;
    if engine.catalog().get(ns).is_some() {
        return Ok(());
    }
    let mut work = Work::loose(&engine.inner.ground);
    let key = LockKey::namespace(ns);
    engine.inner.ground.locks.wait(work.owner(), key, Mode::Exclusive, context).await?;
    work.adopt(key);
    // A transaction that held the name may have made it.
    if engine.catalog().get(ns).is_some() {
        return Ok(());
    }
    let collection = new_collection(engine, ns)?;
    work.change(Change::Put(Arc::new(collection)));
    engine.inner.committer.submit(work.take(Durability::Relaxed)).done().await?;
    Ok(())
}

/// A collection without options that is not in the catalog yet.
pub(crate) fn new_collection(engine: &Engine, ns: &Namespace) -> Result<Collection> {
    let space = engine.inner.pool.take(&engine.inner.ground.store)?;
    engine.inner.background.send(Job::Refill);
    Ok(Collection {
        id: engine.new_collection_id(),
        ns: ns.clone(),
        uuid: new_uuid(),
        options: Doc::empty(),
        validation: None,
        indexes: vec![Arc::new(Index::on_id())],
        content: Content::Stored(space),
        life: Arc::new(Life { next_index: AtomicU64::new(1), ..Life::default() }),
    })
}

/// A random UUID, version 4.
pub(crate) fn new_uuid() -> [u8; 16] {
    let mut bytes = rand::random::<[u8; 16]>();
    if let Some(byte) = bytes.get_mut(6) {
        *byte = (*byte & 0x0F) | 0x40;
    }
    if let Some(byte) = bytes.get_mut(8) {
        *byte = (*byte & 0x3F) | 0x80;
    }
    bytes
}
