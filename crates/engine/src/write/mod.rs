//! Writing: insert, update, delete and findAndModify, in and outside transactions.
//!
//! A statement is plain code over [`WriteSet`]; the [`Driver`] decides what happens when it meets a lock that somebody else
//! holds: in a transaction that is a write conflict, outside, the writes so far are committed, the lock waited for, and the
//! statement run again. So the statements of one command share a batch as long as nothing is in the way.

mod delete;
mod find_and_modify;
mod insert;
pub(crate) mod stored_document;
mod target;
mod update;
mod validate;

use crate::admin;
use crate::catalog::Collection;
use crate::engine::{Engine, Entered};
use crate::transaction::commit::Commit;
use crate::transaction::locks::LockKey;
use crate::transaction::retries::Retry;
use crate::transaction::write_set::{Halt, WriteSet, write_conflict};
use crate::transaction::{EngineTransaction, Open};
use document::backend::{Mode, Session};
use document::error::Scope;
use document::op::{Capture, Change, Context, Durability, Namespace, WriteOp, Written};
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

/// Outside a transaction writes are committed when they are so many entries …
const FLUSH_WRITES: usize = 2_000;
/// … or so many bytes.
const FLUSH_BYTES: usize = 4 << 20;

/// Runs a write operation.
pub(crate) async fn write(
    engine: &Engine,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    if let Some(transaction) = session.transaction.as_mut() {
        let transaction = EngineTransaction::of(&mut **transaction)?;
        let retry = session.id.zip(session.retry);
        return in_transaction(engine, transaction, context, op, capture, retry).await;
    }
    let retry = match (session.id, session.retry) {
        (Some(id), Some(number)) => Some(Retry::begin(engine, id, number, context).await?),
        _ => None,
    };
    let write_set = WriteSet::loose(&engine.inner.core);
    let mut driver = Driver { engine, context, capture, write_set, place: Place::Loose(None), retry, flushed: false };
    let written = driver.run(op).await?;
    driver.finish().await?;
    Ok(written)
}

async fn in_transaction(
    engine: &Engine,
    transaction: &EngineTransaction,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
    retry: Option<([u8; 16], i64)>,
) -> Result<Written> {
    let mut open = transaction.take()?;
    let retry = match retry {
        None => None,
        Some((id, number)) => match open.retry(engine, id, number, context).await {
            Ok(retry) => Some(retry),
            Err(error) => {
                transaction.fail(open);
                return Err(error);
            }
        },
    };
    let write_set = open.lend(engine);
    let place = Place::Transaction(&mut open);
    let mut driver = Driver { engine, context, capture, write_set, place, retry, flushed: false };
    let result = driver.run(op).await;
    let Driver { write_set, retry, .. } = driver;
    open.write_set = write_set;
    open.retries.extend(retry);
    match &result {
        Ok(written) if written.errors.is_empty() => transaction.give_back(open),
        _ => transaction.fail(open),
    }
    result
}

/// Works on the records of the session's retryable write, in its transaction. Does nothing if the write is not retryable.
pub(crate) async fn with_retry<T: Default>(
    engine: &Engine,
    session: &mut Session,
    context: &Context,
    work: impl FnOnce(&mut Retry) -> T,
) -> Result<T> {
    let (Some(transaction), Some(id), Some(number)) = (session.transaction.as_mut(), session.id, session.retry) else {
        return Ok(T::default());
    };
    let transaction = EngineTransaction::of(&mut **transaction)?;
    let mut open = transaction.take()?;
    match open.retry(engine, id, number, context).await {
        Ok(mut retry) => {
            let result = work(&mut retry);
            open.retries.push(retry);
            transaction.give_back(open);
            Ok(result)
        }
        Err(error) => {
            transaction.fail(open);
            Err(error)
        }
    }
}

/// Where the statements of one operation run.
pub(crate) struct Driver<'a> {
    engine: &'a Engine,
    context: &'a Context,
    capture: &'a Capture,
    write_set: WriteSet,
    place: Place<'a>,
    retry: Option<Retry>,
    /// Something was committed without a sync.
    flushed: bool,
}

enum Place<'a> {
    Loose(Option<Entered>),
    Transaction(&'a mut Open),
}

/// Why a statement ended without a result.
pub(crate) enum Stop {
    /// The statement failed; the command may go on.
    Statement(Error),
    /// The command fails.
    Command(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error.scope() {
            Scope::Transient | Scope::Command => Stop::Command(error),
            Scope::Statement => Stop::Statement(error),
        }
    }
}

impl Driver<'_> {
    async fn run(&mut self, op: &WriteOp) -> Result<Written> {
        match op {
            WriteOp::Insert(op) => insert::run(self, op).await,
            WriteOp::Update(op) => update::run(self, op).await,
            WriteOp::Delete(op) => delete::run(self, op).await,
            WriteOp::FindAndModify(op) => find_and_modify::run(self, op).await,
        }
    }

    /// The collection to write to, if it is there.
    async fn enter(&mut self, ns: &Namespace) -> Result<Option<Arc<Collection>>> {
        match &mut self.place {
            Place::Loose(Some(entered)) => Ok(Some(entered.collection.clone())),
            Place::Loose(place) => {
                let Some(entered) = self.engine.enter(ns, self.context).await? else { return Ok(None) };
                let collection = entered.collection.clone();
                *place = Some(entered);
                Ok(Some(collection))
            }
            Place::Transaction(open) => open.enter(self.engine, &self.write_set, ns, self.context).await,
        }
    }

    /// As [`Driver::enter`], making the collection if it is not there.
    async fn enter_or_make(&mut self, ns: &Namespace) -> Result<Arc<Collection>> {
        loop {
            if let Some(collection) = self.enter(ns).await? {
                return Ok(collection);
            }
            match &mut self.place {
                Place::Loose(_) => {
                    admin::create::implicitly(self.engine, ns, self.context).await?;
                }
                Place::Transaction(_) => {
                    let collection = admin::create::new_collection(self.engine, ns)?;
                    return Open::make(self.engine, &mut self.write_set, collection);
                }
            }
        }
    }

    /// After a halt: an error, or time to run the statement again.
    async fn settle(&mut self, halt: Halt) -> Result<(), Stop> {
        match halt {
            Halt::Failed(error) => Err(Stop::from(error)),
            Halt::Blocked(_) if self.write_set.is_transaction() => Err(Stop::Command(write_conflict())),
            Halt::Blocked(key) => self.wait_for(key).await.map_err(Stop::Command),
        }
    }

    async fn wait_for(&mut self, key: LockKey) -> Result<()> {
        // A statement that waits holds no lock.
        self.flush(Durability::Relaxed).await?;
        self.engine.inner.core.locks.wait(self.write_set.owner(), key, Mode::Exclusive, self.context).await?;
        self.write_set.adopt(key);
        Ok(())
    }

    /// Between two statements: commits a large write set, or refuses a transaction that grew too large.
    async fn breathe(&mut self) -> Result<()> {
        if self.write_set.is_transaction() {
            let limit = self.engine.inner.options.transaction_bytes();
            if self.write_set.bytes() > limit {
                let message = format!(
                    "Total size of all transaction operations must be less than {limit}. Actual size is {}",
                    self.write_set.bytes()
                );
                return Err(Error::new(Code::TransactionTooLarge, message));
            }
        } else if self.write_set.writes() >= FLUSH_WRITES || self.write_set.bytes() >= FLUSH_BYTES {
            self.flush(Durability::Relaxed).await?;
            crate::transaction::locks::check_patience(self.context)?;
            if let Place::Loose(Some(entered)) = &self.place {
                self.engine.pace(&entered.collection, self.context).await?;
            }
        }
        Ok(())
    }

    /// As [`Engine::admit`].
    async fn admit(&self, collection: &Collection) -> Result<()> {
        self.engine.admit(collection, self.context, self.write_set.is_transaction()).await
    }

    /// Commits the writes so far and waits until they are visible (or synced), so that what follows sees it.
    async fn flush(&mut self, durability: Durability) -> Result<()> {
        if let Some(retry) = &mut self.retry {
            retry.save(&mut self.write_set);
        }
        let commit = Commit { makes_room: self.context.sent.makes_room, ..self.write_set.take(durability) };
        if commit.writes.is_empty() && commit.changes.is_empty() && !(self.flushed && durability == Durability::Synced)
        {
            self.engine.inner.core.locks.release(commit.owner, &commit.locks);
            return Ok(());
        }
        self.flushed = durability == Durability::Relaxed;
        self.engine.inner.committer.submit(commit).done().await?;
        Ok(())
    }

    async fn finish(mut self) -> Result<()> {
        self.flush(self.context.durability).await
    }

    /// Remembers a changed document for a caller that asked for it.
    fn captured(&self, written: &mut Written, id: Value<'_>, before: Option<&Doc<'_>>, after: Option<&Doc<'_>>) {
        if !matches!(self.capture, Capture::Nothing) {
            let (before, after) = (before.map(|doc| self.capture.cut(doc)), after.map(|doc| self.capture.cut(doc)));
            written.changes.push(Change { id: id.into_owned(), before, after });
        }
    }
}
