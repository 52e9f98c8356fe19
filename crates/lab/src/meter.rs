//! What one client write really writes: a backend around a store that counts statements and bytes beneath the rules.

use document::backend::{Answer, Backend, Cursor, Facts, FenceKey, Mode, Pipelining, Remote, Session};
use document::op::{AdminOp, Capture, Change, Context, Explained, ReadOp, Verbosity, WriteOp, Written};
use document::{Doc, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The counters of one store.
#[derive(Debug, Default)]
pub struct Meter {
    counts: AtomicBool,
    statements: AtomicU64,
    bytes: AtomicU64,
}

impl Meter {
    /// Counts from now on, from zero.
    pub fn start(&self) {
        self.statements.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        self.counts.store(true, Ordering::Relaxed);
    }

    /// Statements and bytes of the documents that they wrote since [`Meter::start`]; counts no longer.
    pub fn stop(&self) -> (u64, u64) {
        self.counts.store(false, Ordering::Relaxed);
        (self.statements.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    fn is_on(&self) -> bool {
        self.counts.load(Ordering::Relaxed)
    }

    fn add(&self, statements: usize, bytes: usize) {
        self.statements.fetch_add(statements as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A backend whose writes a meter counts.
pub struct Metered {
    pub inner: Arc<dyn Backend>,
    pub meter: Arc<Meter>,
}

impl Metered {
    async fn counted(
        &self,
        session: &mut Session,
        context: &Context,
        op: &WriteOp,
        capture: &Capture,
    ) -> Result<Written> {
        let mut written = self.inner.write(session, context, op, &Capture::Everything).await?;
        let statements = match op {
            WriteOp::Insert(_) | WriteOp::FindAndModify(_) => 1,
            WriteOp::Update(update) => update.statements.len(),
            WriteOp::Delete(delete) => delete.statements.len(),
        };
        let bytes = match op {
            WriteOp::Insert(insert) => insert.documents.iter().map(|doc| doc.as_bytes().len()).sum(),
            _ => written.changes.iter().map(size_after).sum(),
        };
        self.meter.add(statements, bytes);
        for change in &mut written.changes {
            change.before = change.before.take().map(|image| capture.cut(&image));
            change.after = change.after.take().map(|image| capture.cut(&image));
        }
        if matches!(capture, Capture::Nothing) {
            written.changes.clear();
        }
        Ok(written)
    }
}

fn size_after(change: &Change) -> usize {
    change.after.as_ref().map_or(0, |image| image.as_bytes().len())
}

impl Backend for Metered {
    fn facts(&self) -> Facts {
        self.inner.facts()
    }

    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()> {
        self.inner.begin(session, context)
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
        match self.meter.is_on() {
            true => Box::pin(self.counted(session, context, op, capture)),
            false => self.inner.write(session, context, op, capture),
        }
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
        self.inner.admin(session, context, op)
    }

    fn committed(&self, session: &[u8; 16], number: i64) -> bool {
        self.inner.committed(session, number)
    }

    fn cluster_time(&self) -> u64 {
        self.inner.cluster_time()
    }

    /// None while it counts: every statement must pass by.
    fn pipelining(&self) -> Option<&dyn Pipelining> {
        if self.meter.is_on() { None } else { self.inner.pipelining() }
    }

    fn remote(&self) -> Option<&dyn Remote> {
        self.inner.remote()
    }
}
