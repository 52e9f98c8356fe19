//! The harness of all tests: operations from plain documents and all rows of a read, on any backend; with the feature `rules`,
//! backends of both kinds ([`Data`]), rules on them ([`World`], [`Living`]), and the worlds of the proofs ([`registry`], [`shop`]).
//! [`labelled`] makes databases of which it is known which symptoms they show.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

pub mod labelled;
pub mod legacy;
mod ops;

#[cfg(feature = "rules")]
mod act;
#[cfg(feature = "rules")]
mod data;
#[cfg(feature = "rules")]
mod living;
#[cfg(feature = "rules")]
pub mod registry;
#[cfg(feature = "rules")]
pub mod shop;
#[cfg(feature = "rules")]
mod world;

#[cfg(feature = "rules")]
pub use act::Act;
#[cfg(feature = "rules")]
pub use data::{Data, Opened, options};
#[cfg(feature = "rules")]
pub use living::{ALL_OF_IT, Living};
#[cfg(feature = "rules")]
pub use world::{Contexts, World, declaration, declared};

pub use ops::{change, delete, filter, find, find_and_modify, insert, statement, update, updates};

use bson::Document;
use document::backend::{Backend, BatchLimit, Session};
use document::error::Scope;
use document::op::{Context, Durability, ReadConcern, ReadOp, Sent};
use document::{Env, Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number that no other test of this process has.
pub fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// What an operation carries: a fixed time, ids that no other test has, nothing synced.
pub fn context() -> Context {
    let new_id = || {
        let mut id = [0; 12];
        let (process, number) = id.split_at_mut(4);
        process.copy_from_slice(&std::process::id().to_be_bytes());
        number.copy_from_slice(&next().to_be_bytes());
        id
    };
    Context {
        env: Env { new_id, ..Env::fixed() },
        read_concern: ReadConcern::Local,
        durability: Durability::Relaxed,
        deadline: None,
        sent: Sent::default(),
    }
}

/// All batches that a read gives, of so many rows each.
pub async fn batches(
    backend: &dyn Backend,
    session: &mut Session,
    op: ReadOp,
    documents: usize,
) -> Result<Vec<Vec<Document>>> {
    let context = context();
    let mut cursor = backend.read(session, &context, op).await?;
    let mut batches = Vec::new();
    loop {
        let batch = cursor.next(session, &context, BatchLimit { documents, bytes: 16 << 20 }).await?;
        batches.push(batch.documents.iter().map(|doc| Document::try_from(doc).unwrap()).collect());
        if batch.exhausted {
            return Ok(batches);
        }
    }
}

/// All rows that a read gives.
pub async fn rows(backend: &dyn Backend, session: &mut Session, op: ReadOp) -> Result<Vec<Document>> {
    Ok(batches(backend, session, op, 10_000).await?.concat())
}

/// Makes a database ready for fences and retry records, where that is needed.
pub async fn prepare(backend: &dyn Backend, db: &str) {
    if let Some(remote) = backend.remote() {
        remote.prepare(&mut Session::default(), db).await.unwrap();
    }
}

/// Code and message.
pub fn told(error: &Error) -> (i32, String) {
    (error.code().number(), error.message().to_owned())
}

/// Whether a transaction that met this may be run again.
pub fn is_transient(error: &Error) -> bool {
    error.scope() == Scope::Transient
}
