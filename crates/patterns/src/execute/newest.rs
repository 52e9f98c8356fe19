//! [`Newest`]: a backend whose documents are all of the newest version, whatever is stored. Background work on hosts and sources
//! (seeding, audit, repair, the outbox) goes through it, and so knows no versions.

use crate::execute::executor::Executor;
use crate::execute::read::versioned;
use crate::execute::versioned_write;
use document::Doc;
use document::backend::{Answer, Backend, Cursor, Facts, FenceKey, Mode, Pipelining, Remote, Session};
use document::op::{AdminOp, Capture, Context, Explained, ReadOp, Verbosity, WriteOp, Written};
use std::sync::Arc;

pub(crate) struct Newest {
    executor: Arc<Executor>,
}

impl Newest {
    pub(crate) fn new(executor: &Arc<Executor>) -> Newest {
        Newest { executor: executor.clone() }
    }

    fn inner(&self) -> &dyn Backend {
        &*self.executor.inner
    }
}

impl Backend for Newest {
    fn facts(&self) -> Facts {
        self.inner().facts()
    }

    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()> {
        self.inner().begin(session, context)
    }

    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>> {
        let rules = self.executor.current();
        if rules.lenses().is_empty() {
            return self.inner().read(session, context, op);
        }
        let rules = self.executor.rules();
        Box::pin(async move { versioned::open(self.inner(), rules.lenses(), session, context, op).await })
    }

    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written> {
        if self.executor.current().lenses().of(op.ns()).is_none() {
            return self.inner().write(session, context, op, capture);
        }
        let rules = self.executor.rules();
        Box::pin(
            async move { versioned_write::write(self.inner(), rules.lenses(), session, context, op, capture).await },
        )
    }

    fn fences<'a>(&'a self, session: &'a mut Session, keys: &'a [(FenceKey, Mode)]) -> Answer<'a, ()> {
        self.inner().fences(session, keys)
    }

    fn recall<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
    ) -> Answer<'a, Written> {
        self.inner().recall(session, context, db, statements)
    }

    fn remember<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
        written: &'a Written,
    ) -> Answer<'a, ()> {
        self.inner().remember(session, context, db, statements, written)
    }

    fn explain<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: Explained,
        verbosity: Verbosity,
    ) -> Answer<'a, Doc<'static>> {
        self.inner().explain(session, context, op, verbosity)
    }

    fn admin<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: AdminOp,
    ) -> Answer<'a, Vec<Doc<'static>>> {
        self.inner().admin(session, context, op)
    }

    fn committed(&self, session: &[u8; 16], number: i64) -> bool {
        self.inner().committed(session, number)
    }

    fn cluster_time(&self) -> u64 {
        self.inner().cluster_time()
    }

    fn pipelining(&self) -> Option<&dyn Pipelining> {
        self.inner().pipelining()
    }

    fn remote(&self) -> Option<&dyn Remote> {
        self.inner().remote()
    }
}
