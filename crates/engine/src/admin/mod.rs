//! Work on the catalog: one file per operation. A change of the catalog holds `defining`; a change of a collection also
//! has its gate to itself, so that no writer has an older version in hand.

mod build;
mod coll_mod;
mod compact;
pub(crate) mod create;
mod create_indexes;
mod create_view;
mod drop;
mod drop_indexes;
mod existing_index;
mod index_spec;
mod list;
mod names;
mod rename;
mod stats;
mod text_spec;
mod validate;

use crate::catalog::{Collection, CollectionId};
use crate::engine::Engine;
use crate::transaction::commit::Change;
use crate::transaction::locks::check_patience;
use crate::transaction::write_set::WriteSet;
use document::backend::Session;
use document::op::{AdminOp, Context, Durability, Namespace};
use document::{Code, Doc, Error, Result};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedRwLockWriteGuard;

/// Runs an operation on the catalog.
pub(crate) async fn run(
    engine: &Engine,
    session: &mut Session,
    context: &Context,
    op: AdminOp,
) -> Result<Vec<Doc<'static>>> {
    match op {
        AdminOp::Create { ns, options } => create::run(engine, session, context, ns, options).await,
        AdminOp::CreateView { ns, on, pipeline } => create_view::run(engine, context, ns, &on, pipeline).await,
        AdminOp::Drop { ns } => drop::collection(engine, context, &ns).await,
        AdminOp::DropDatabase { db } => drop::database(engine, context, &db).await,
        AdminOp::Rename { from, to, drop_target } => rename::run(engine, context, &from, to, drop_target).await,
        AdminOp::CollMod { ns, change } => coll_mod::run(engine, context, &ns, &change).await,
        AdminOp::ListCollections { db, filter, name_only } => {
            let moment = engine.moment(session)?;
            list::collections(&moment.catalog, &db, &filter, name_only, context)
        }
        AdminOp::ListDatabases { filter, name_only } => list::databases(engine, &filter, name_only, context),
        AdminOp::CreateIndexes { ns, indexes } => create_indexes::run(engine, session, context, &ns, &indexes).await,
        AdminOp::ListIndexes { ns } => list::indexes(&engine.moment(session)?.catalog, &ns),
        AdminOp::DropIndexes { ns, which } => drop_indexes::run(engine, context, &ns, &which).await,
        AdminOp::DbStats { db, scale } => Ok(vec![stats::database(engine, &db, scale)]),
        AdminOp::CollStats { ns, scale } => Ok(vec![stats::collection(engine, &ns, scale)?]),
        AdminOp::Validate { ns, full: _ } => {
            let moment = engine.now();
            crate::backend::long(|| validate::run(&moment, &ns, context)).map(|doc| vec![doc])
        }
        AdminOp::Compact { ns } => {
            // The moment holds a snapshot, and what a snapshot sees is not thrown away: it is let go first.
            let catalog = engine.catalog();
            crate::backend::long(|| compact::run(&engine.inner.core.store, &catalog, &ns)).map(|doc| vec![doc])
        }
        AdminOp::Sync => {
            let nothing_new = WriteSet::loose(&engine.inner.core).take(Durability::Synced);
            engine.inner.committer.submit(nothing_new).done().await.map(|_| nothing())
        }
        AdminOp::Status => Ok(vec![stats::status(engine)]),
        AdminOp::Extension { command, .. } => {
            Err(Error::new(Code::CommandNotFound, format!("no such command: '{command}'")))
        }
    }
}

/// Waits until nobody writes to the collection any more, and keeps writers out.
async fn alone(collection: &Collection, context: &Context) -> Result<OwnedRwLockWriteGuard<()>> {
    let mut waiting = std::pin::pin!(collection.life.gate.clone().write_owned());
    loop {
        match tokio::time::timeout(Duration::from_millis(20), &mut waiting).await {
            Ok(gate) => return Ok(gate),
            Err(_) => check_patience(context)?,
        }
    }
}

/// Makes changes of the catalog true.
async fn apply(engine: &Engine, context: &Context, changes: Vec<Change>) -> Result<()> {
    let mut write_set = WriteSet::loose(&engine.inner.core);
    for change in changes {
        write_set.change(change);
    }
    engine.inner.committer.submit(write_set.take(context.durability)).done().await?;
    Ok(())
}

/// As [`apply`], when a later step waits for the sync.
async fn apply_relaxed(engine: &Engine, changes: Vec<Change>) -> Result<()> {
    let mut write_set = WriteSet::loose(&engine.inner.core);
    for change in changes {
        write_set.change(change);
    }
    engine.inner.committer.submit(write_set.take(Durability::Relaxed)).done().await?;
    Ok(())
}

/// The newest version of a collection, whatever its name is now.
fn newest(engine: &Engine, id: CollectionId) -> Option<Arc<Collection>> {
    engine.catalog().all().find(|collection| collection.id == id).cloned()
}

fn not_found(message: impl Into<String>) -> Error {
    Error::new(Code::NamespaceNotFound, message)
}

fn is_view(ns: &Namespace) -> Error {
    Error::new(Code::CommandNotSupportedOnView, format!("Namespace {ns} is a view, not a collection"))
}

/// A reply without fields.
fn nothing() -> Vec<Doc<'static>> {
    vec![Doc::empty()]
}
