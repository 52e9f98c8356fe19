//! A backend that is lost after so many operations, for good or for a while.

use document::backend::{
    Answer, Backend, Cursor, Facts, FenceKey, Mode, Pipelining, Privileges, Relay, Remote, Session, Transaction,
};
use document::op::{AdminOp, Capture, Context, Explained, Namespace, ReadOp, Verbosity, WriteOp, Written};
use document::{Code, Doc, Error, Result};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Answers so many operations and then none; the one where it ends is done or not, as chance has it in a crash.
pub(crate) struct Dying {
    pub(crate) inner: Arc<dyn Backend>,
    pub(crate) left: Arc<AtomicI64>,
    /// Whether several processes work with it, as with a real MongoDB.
    pub(crate) shared: bool,
}

fn dead() -> Error {
    Error::new(Code::InterruptedAtShutdown, "the process was killed")
}

fn live(left: &AtomicI64) -> Result<()> {
    if left.fetch_sub(1, Ordering::Relaxed) > 0 { Ok(()) } else { Err(dead()) }
}

impl Backend for Dying {
    fn facts(&self) -> Facts {
        if self.shared { Facts::MONGODB } else { Facts::EMBEDDED }
    }
    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            self.inner.begin(session, context).await?;
            let left = self.left.clone();
            session.transaction =
                session.transaction.take().map(|inner| -> Box<dyn Transaction> { Box::new(Mortal { inner, left }) });
            Ok(())
        })
    }
    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>> {
        self.inner.read(session, context, op)
    }
    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written> {
        Box::pin(async move {
            live(&self.left)?;
            let written = self.inner.write(session, context, op, capture).await?;
            live(&self.left)?;
            Ok(written)
        })
    }
    fn fences<'a>(&'a self, session: &'a mut Session, keys: &'a [(FenceKey, Mode)]) -> Answer<'a, ()> {
        self.inner.fences(session, keys)
    }
    fn recall<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
    ) -> Answer<'a, Written> {
        self.inner.recall(session, context, db, statements)
    }
    fn remember<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
        written: &'a Written,
    ) -> Answer<'a, ()> {
        self.inner.remember(session, context, db, statements, written)
    }
    fn committed(&self, session: &[u8; 16], number: i64) -> bool {
        self.inner.committed(session, number)
    }
    fn pipelining(&self) -> Option<&dyn Pipelining> {
        None
    }
    fn remote(&self) -> Option<&dyn Remote> {
        if self.shared { Some(self) } else { None }
    }
    fn explain<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: Explained,
        verbosity: Verbosity,
    ) -> Answer<'a, Doc<'static>> {
        self.inner.explain(session, context, op, verbosity)
    }
    fn admin<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: AdminOp,
    ) -> Answer<'a, Vec<Doc<'static>>> {
        Box::pin(async move {
            live(&self.left)?;
            self.inner.admin(session, context, op).await
        })
    }
    fn cluster_time(&self) -> u64 {
        self.inner.cluster_time()
    }
}

impl Remote for Dying {
    fn connect(&self) -> Arc<dyn Relay> {
        unreachable!("no client connects")
    }
    fn prepare<'a>(&'a self, _: &'a mut Session, _: &'a str) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn leftover(&self) -> Option<Doc<'static>> {
        None
    }
    fn end_leftover<'a>(&'a self, _: &'a Doc<'a>, expired: bool) -> Answer<'a, bool> {
        Box::pin(std::future::ready(Ok(expired)))
    }
    fn open_transactions(&self) -> Answer<'_, Option<Vec<Vec<u8>>>> {
        Box::pin(std::future::ready(Ok(Some(Vec::new()))))
    }
    fn open_cursors<'a>(&'a self, _: &'a [Namespace]) -> Answer<'a, Vec<i64>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
    fn gossip(&self) -> Option<Doc<'static>> {
        None
    }
    fn privileges<'a>(&'a self, _: Option<&'a Arc<dyn Relay>>) -> Answer<'a, Option<Privileges>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

struct Mortal {
    inner: Box<dyn Transaction>,
    left: Arc<AtomicI64>,
}

impl Transaction for Mortal {
    fn commit<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            live(&self.left)?;
            self.inner.commit(context).await?;
            live(&self.left)
        })
    }
    fn abort(self: Box<Self>) {
        self.inner.abort();
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self.inner.as_any_mut()
    }
}
