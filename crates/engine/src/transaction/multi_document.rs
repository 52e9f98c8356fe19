//! Multi-document transactions: a moment, the writes laid over it, and the right to write to the collections it touched.
//!
//! A transaction ends once: by commit, abort, an error of one of its statements, or the lifetime limit. While a statement
//! runs it holds the open part; whoever ends the transaction meanwhile leaves a note.

use super::commit::{Change, Commit};
use super::retries::{Retry, Saved};
use super::write_set::{Moment, WriteSet, write_conflict};
use crate::catalog::{Collection, Content};
use crate::engine::{Engine, Entered, Inner};
use document::backend::{Answer, Durable, Transaction};
use document::error::label;
use document::op::{Context, Durability, Namespace};
use document::{Code, Error, Result};
use parking_lot::Mutex;
use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long a transaction waits to enter a collection that is being changed; MongoDB's default.
const ENTER_WITHIN: Duration = Duration::from_millis(5);

/// The transaction of a session.
pub(crate) struct EngineTransaction {
    engine: Engine,
    shared: Arc<Shared>,
    /// Its session and number: under these it is remembered when it is committed.
    known_as: Option<([u8; 16], i64)>,
}

struct Shared {
    started: Instant,
    position: u64,
    state: Mutex<State>,
}

enum State {
    Open(Box<Open>),
    /// A statement has the open part.
    Busy,
    Ended,
}

/// What an open transaction holds.
pub(crate) struct Open {
    pub(crate) write_set: WriteSet,
    entered: Vec<Entered>,
    /// The retryable writes in it, whose records are part of it.
    pub(crate) retries: Vec<Retry>,
}

/// A transaction that is about to be committed.
struct Finished {
    open: Box<Open>,
    saved: Vec<Saved>,
    commit: Commit,
}

impl EngineTransaction {
    pub(crate) fn begin(engine: &Engine, known_as: Option<([u8; 16], i64)>) -> EngineTransaction {
        let shared = engine.inner.transactions.add(|| {
            engine.inner.core.removals.begin();
            let write_set = WriteSet::transaction(&engine.inner.core);
            let position = write_set.position().unwrap_or_default();
            let open = Box::new(Open { write_set, entered: Vec::new(), retries: Vec::new() });
            Shared { started: Instant::now(), position, state: Mutex::new(State::Open(open)) }
        });
        EngineTransaction { engine: engine.clone(), shared, known_as }
    }

    /// The engine's own transaction in a session.
    pub(crate) fn of(transaction: &mut dyn Transaction) -> Result<&mut EngineTransaction> {
        transaction
            .as_any_mut()
            .downcast_mut()
            .ok_or_else(|| Error::new(Code::InternalError, "the session's transaction belongs to another backend"))
    }

    /// What a read in the transaction sees.
    pub(crate) fn moment(&self) -> Result<Moment> {
        match &*self.shared.state.lock() {
            State::Open(open) => Ok(open.write_set.moment()),
            State::Busy | State::Ended => Err(aborted()),
        }
    }

    /// Takes the open part for a statement. Not giving it back aborts the transaction.
    pub(crate) fn take(&self) -> Result<Box<Open>> {
        let mut state = self.shared.state.lock();
        match std::mem::replace(&mut *state, State::Ended) {
            State::Open(open) => {
                *state = State::Busy;
                Ok(open)
            }
            State::Busy | State::Ended => Err(aborted()),
        }
    }

    /// Gives the open part back after a statement that went well.
    pub(crate) fn give_back(&self, open: Box<Open>) {
        let mut state = self.shared.state.lock();
        match &*state {
            State::Busy => *state = State::Open(open),
            // It expired meanwhile.
            State::Open(_) | State::Ended => open.discard(&self.engine.inner),
        }
    }

    /// Ends the transaction and gives what is to be committed, if there is anything.
    fn finish(&self, context: &Context) -> Result<Option<Finished>> {
        let mut open = self.take()?;
        *self.shared.state.lock() = State::Ended;
        let Open { write_set, retries, .. } = &mut *open;
        let mut saved: Vec<Saved> = retries.iter_mut().filter_map(|retry| retry.add_to(write_set)).collect();
        if write_set.is_empty() && !write_set.has_fences() {
            return Ok(None);
        }
        saved.extend(self.known_as.map(|(session, number)| Saved::commit(&self.engine, session, number, write_set)));
        let commit = Commit { makes_room: context.sent.makes_room, ..write_set.take(context.durability) };
        Ok(Some(Finished { open, saved, commit }))
    }

    pub(crate) fn fail(&self, open: Box<Open>) {
        open.discard(&self.engine.inner);
        *self.shared.state.lock() = State::Ended;
    }
}

impl Open {
    /// The write set, for the time of a statement.
    pub(crate) fn lend(&mut self, engine: &Engine) -> WriteSet {
        std::mem::replace(&mut self.write_set, WriteSet::loose(&engine.inner.core))
    }

    /// The records of a session's retryable write, begun or gone on with.
    pub(crate) async fn retry(
        &mut self,
        engine: &Engine,
        id: [u8; 16],
        number: i64,
        context: &Context,
    ) -> Result<Retry> {
        match self.retries.iter().position(|retry| retry.is_of(&id, number)) {
            Some(at) => Ok(self.retries.swap_remove(at)),
            None => Retry::begin(engine, id, number, context).await,
        }
    }

    /// Enters a collection for writing, as the transaction's moment has it.
    pub(crate) async fn enter(
        &mut self,
        engine: &Engine,
        write_set: &WriteSet,
        ns: &Namespace,
        context: &Context,
    ) -> Result<Option<Arc<Collection>>> {
        let known = write_set.moment().catalog.get(ns).cloned();
        if let Some(known) = &known
            && write_set.has_made(known)
        {
            return Ok(Some(known.clone()));
        }
        if let Some(entered) = self.entered.iter().find(|entered| entered.collection.ns == *ns) {
            return Ok(Some(entered.collection.clone()));
        }
        let entered = match tokio::time::timeout(ENTER_WITHIN, engine.enter(ns, context)).await {
            Ok(entered) => entered?,
            Err(_) => {
                let message = format!("Unable to acquire IX lock on '{ns}' within {}ms.", ENTER_WITHIN.as_millis());
                return Err(Error::new(Code::LockTimeout, message).with_label(label::TRANSIENT));
            }
        };
        match (known, entered) {
            (None, None) => Ok(None),
            (Some(known), Some(entered)) if Arc::ptr_eq(&known, &entered.collection) => {
                self.entered.push(entered);
                Ok(Some(known))
            }
            // It was made, changed or dropped since the transaction began.
            _ => Err(Error::new(
                Code::SnapshotUnavailable,
                "Unable to read from a snapshot due to pending collection catalog changes; please retry the operation.",
            )
            .with_label(label::TRANSIENT)),
        }
    }

    /// Makes a collection as part of the transaction.
    pub(crate) fn make(engine: &Engine, write_set: &mut WriteSet, collection: Collection) -> Result<Arc<Collection>> {
        let key = crate::transaction::locks::LockKey::namespace(&collection.ns);
        if write_set.lock(key).is_err() || engine.catalog().get(&collection.ns).is_some() {
            return Err(write_conflict());
        }
        let collection = Arc::new(collection);
        write_set.change(Change::Put(collection.clone()));
        Ok(collection)
    }

    /// Undoes what would outlive the transaction: the spaces of collections that now never come to be.
    fn discard(mut self, inner: &Inner) {
        for collection in self.write_set.take_made() {
            if let Content::Stored(space) = &collection.content {
                inner.pool.give_back(space.clone());
            }
        }
    }
}

/// The error of every statement after the end.
fn aborted() -> Error {
    Error::new(Code::NoSuchTransaction, "Transaction has been aborted.").with_label(label::TRANSIENT)
}

impl Transaction for EngineTransaction {
    fn commit<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            let Some(Finished { open, saved, commit }) = self.finish(context)? else { return Ok(()) };
            self.engine.inner.committer.submit(commit).done().await?;
            saved.into_iter().for_each(Saved::keep);
            drop(open);
            Ok(())
        })
    }

    fn publish<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, Durable> {
        Box::pin(async move {
            let Some(Finished { open, saved, mut commit }) = self.finish(context)? else {
                let durable: Durable = Box::pin(std::future::ready(Ok(())));
                return Ok(durable);
            };
            if context.durability == Durability::Relaxed {
                // Visible is all that was asked for.
                self.engine.inner.committer.submit(commit).done().await?;
                saved.into_iter().for_each(Saved::keep);
                drop(open);
                let durable: Durable = Box::pin(std::future::ready(Ok(())));
                return Ok(durable);
            }
            let (visible, seen) = tokio::sync::oneshot::channel();
            commit.visible = Some(visible);
            let pending = self.engine.inner.committer.submit(commit);
            let durable: Durable = if seen.await.is_ok() {
                saved.into_iter().for_each(Saved::keep);
                Box::pin(async move {
                    let result = pending.done().await.map(|_| ());
                    drop(open);
                    result
                })
            } else {
                pending.done().await?;
                Box::pin(std::future::ready(Ok(())))
            };
            Ok(durable)
        })
    }

    fn abort(self: Box<Self>) {}

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Drop for EngineTransaction {
    fn drop(&mut self) {
        if let State::Open(open) = std::mem::replace(&mut *self.shared.state.lock(), State::Ended) {
            open.discard(&self.engine.inner);
        }
        self.engine.inner.transactions.remove(&self.shared, &self.engine.inner);
    }
}

/// The open transactions, for the lifetime limit and for what only they still need.
#[derive(Default)]
pub(crate) struct Transactions {
    open: Mutex<Registered>,
}

#[derive(Default)]
struct Registered {
    all: Vec<Weak<Shared>>,
    /// Up to where fences have been forgotten.
    forgotten: u64,
}

impl Transactions {
    /// Begins one. Its moment is taken while nobody forgets fences: none that it should know of is lost.
    fn add(&self, begin: impl FnOnce() -> Shared) -> Arc<Shared> {
        let mut open = self.open.lock();
        let transaction = Arc::new(begin());
        open.all.push(Arc::downgrade(&transaction));
        transaction
    }

    fn remove(&self, transaction: &Arc<Shared>, inner: &Inner) {
        let mut open = self.open.lock();
        if let Some(at) = open.all.iter().position(|other| other.as_ptr() == Arc::as_ptr(transaction)) {
            open.all.swap_remove(at);
        }
        inner.core.removals.end();
        // Without this look, each end would walk all fences that the oldest transaction still needs.
        let oldest = open.all.iter().filter_map(Weak::upgrade).map(|other| other.position).min();
        if oldest.is_none_or(|oldest| oldest > open.forgotten) {
            inner.core.locks.forget_fences(oldest.unwrap_or(u64::MAX));
            inner.core.removals.forget(oldest.unwrap_or(u64::MAX));
            open.forgotten = oldest.unwrap_or(open.forgotten);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.open.lock().all.len()
    }

    /// Ends those that are older than the limit.
    pub(crate) fn expire(&self, inner: &Inner) {
        let open: Vec<Arc<Shared>> = self.open.lock().all.iter().filter_map(Weak::upgrade).collect();
        for transaction in open {
            if transaction.started.elapsed() < inner.options.transaction_lifetime {
                continue;
            }
            if let State::Open(open) = std::mem::replace(&mut *transaction.state.lock(), State::Ended) {
                tracing::info!("a transaction was aborted because it reached the lifetime limit");
                open.discard(inner);
            }
        }
    }
}
