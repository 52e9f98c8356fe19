//! The bridge between the asynchronous [`Backend`] and the engine's plain code: the only file where the two meet.

use crate::engine::Engine;
use crate::transaction::EngineTransaction;
use crate::transaction::locks::LockKey;
use crate::transaction::write_set::Moment;
use crate::{admin, explain, read, write};
use document::backend::{Answer, Backend, Cursor, Facts, FenceKey, Mode, Pipelining, Remote, Session};
use document::op::{AdminOp, Capture, Context, Explained, ReadOp, Verbosity, WriteOp, Written};
use document::{Code, Doc, Error, Result};

impl Engine {
    /// What a read of this session sees: its transaction's moment, or now.
    pub fn moment(&self, session: &mut Session) -> Result<Moment> {
        match session.transaction.as_mut() {
            Some(transaction) => EngineTransaction::of(&mut **transaction)?.moment(),
            None => Ok(self.now()),
        }
    }
}

/// Runs code that may take long without holding up the other connections of this worker.
pub fn long<R>(work: impl FnOnce() -> R) -> R {
    let many = tokio::runtime::Handle::try_current()
        .is_ok_and(|handle| handle.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread);
    if many { tokio::task::block_in_place(work) } else { work() }
}

impl Backend for Engine {
    fn facts(&self) -> Facts {
        Facts::EMBEDDED
    }

    fn begin<'a>(&'a self, session: &'a mut Session, _context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            let known_as = session.id.zip(session.number);
            session.transaction = Some(Box::new(EngineTransaction::begin(self, known_as)));
            Ok(())
        })
    }

    fn committed(&self, session: &[u8; 16], number: i64) -> bool {
        self.inner.retries.is_committed(session, number)
    }

    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>> {
        // At once, and not when it is waited for: a future would hold the operation, which is copied with it.
        Box::pin(std::future::ready(read::open(self, session, context, op)))
    }

    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written> {
        Box::pin(write::write(self, session, context, op, capture))
    }

    fn recall<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        _db: &'a str,
        statements: &'a [i32],
    ) -> Answer<'a, Written> {
        Box::pin(write::with_retry(self, session, context, |retry| retry.recall(statements)))
    }

    fn remember<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        _db: &'a str,
        statements: &'a [i32],
        written: &'a Written,
    ) -> Answer<'a, ()> {
        Box::pin(write::with_retry(self, session, context, |retry| retry.remember(statements, written)))
    }

    fn fences<'a>(&'a self, session: &'a mut Session, keys: &'a [(FenceKey, Mode)]) -> Answer<'a, ()> {
        Box::pin(async move { pass(session, keys) })
    }

    fn explain<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: Explained,
        verbosity: Verbosity,
    ) -> Answer<'a, Doc<'static>> {
        Box::pin(async move { explain::explain(self, session, context, &op, verbosity) })
    }

    fn admin<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: AdminOp,
    ) -> Answer<'a, Vec<Doc<'static>>> {
        Box::pin(admin::run(self, session, context, op))
    }

    fn cluster_time(&self) -> u64 {
        self.inner.core.clock.committed()
    }

    fn pipelining(&self) -> Option<&dyn Pipelining> {
        None
    }

    fn remote(&self) -> Option<&dyn Remote> {
        None
    }
}

/// Passes fences in the session's transaction; one that somebody else has in the way ends it.
fn pass(session: &mut Session, fences: &[(FenceKey, Mode)]) -> Result<()> {
    let transaction = session
        .transaction
        .as_mut()
        .ok_or_else(|| Error::new(Code::InternalError, "a fence belongs in a transaction"))?;
    let transaction = EngineTransaction::of(&mut **transaction)?;
    let mut open = transaction.take()?;
    for (key, mode) in fences {
        if let Err(error) = open.write_set.fence(LockKey::fence(key), *mode) {
            transaction.fail(open);
            return Err(error);
        }
    }
    transaction.give_back(open);
    Ok(())
}
