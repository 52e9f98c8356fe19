//! The backend's contract, kept by commands to a real MongoDB.

use crate::client_or_own::ClientOrOwn;
use crate::line::Line;
use crate::transaction::UpstreamTransaction;
use crate::upstream::Upstream;
use crate::{admin, fence, read, write};
use document::Doc;
use document::backend::{
    Answer, Backend, Cursor, Facts, FenceKey, Mode, Pipelining, Privileges, Relay, Remote, Session,
};
use document::op::{AdminOp, Capture, Context, Explained, Namespace, ReadOp, Verbosity, WriteOp, Written};
use std::sync::Arc;

impl Backend for Upstream {
    fn facts(&self) -> Facts {
        Facts::MONGODB
    }

    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()> {
        let line = ClientOrOwn::of(&self.shared, session);
        session.transaction = Some(Box::new(UpstreamTransaction::begin(line, session, context)));
        Box::pin(std::future::ready(Ok(())))
    }

    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>> {
        Box::pin(std::future::ready(Ok(read::open(self, session, context, op))))
    }

    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written> {
        Box::pin(async move {
            let is_ours = session.relay.is_none();
            let op = crate::privileges::permitted(&self.shared, is_ours, op).await?;
            write::write(self, session, context, &op, capture).await
        })
    }

    fn recall<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
    ) -> Answer<'a, Written> {
        Box::pin(write::recall(self, session, context, db, statements))
    }

    fn remember<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
        written: &'a Written,
    ) -> Answer<'a, ()> {
        Box::pin(std::future::ready(write::remember(session, context, db, statements, written)))
    }

    fn fences<'a>(&'a self, session: &'a mut Session, keys: &'a [(FenceKey, Mode)]) -> Answer<'a, ()> {
        Box::pin(fence::take_all(self, session, keys))
    }

    fn explain<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: Explained,
        verbosity: Verbosity,
    ) -> Answer<'a, Doc<'static>> {
        Box::pin(admin::explain(self, session, context, op, verbosity))
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
        self.shared.time.operation()
    }

    /// Transactions of clients live in the server itself, which answers for them.
    fn committed(&self, _: &[u8; 16], _: i64) -> bool {
        false
    }

    fn pipelining(&self) -> Option<&dyn Pipelining> {
        Some(self)
    }

    fn remote(&self) -> Option<&dyn Remote> {
        Some(self)
    }
}

impl Remote for Upstream {
    fn connect(&self) -> Arc<dyn Relay> {
        Arc::new(Line::new(self.shared.clone(), true))
    }

    fn prepare<'a>(&'a self, session: &'a mut Session, db: &'a str) -> Answer<'a, ()> {
        Box::pin(async move { fence::prepare(self, &ClientOrOwn::of(&self.shared, session), db).await })
    }

    fn privileges<'a>(&'a self, line: Option<&'a Arc<dyn Relay>>) -> Answer<'a, Option<Privileges>> {
        Box::pin(crate::privileges::of(&self.shared, line))
    }

    fn leftover(&self) -> Option<Doc<'static>> {
        Some(self.shared.leftover.describe())
    }

    fn end_leftover<'a>(&'a self, leftover: &'a Doc<'a>, expired: bool) -> Answer<'a, bool> {
        Box::pin(crate::leftover::clear(&self.shared, leftover, expired))
    }

    fn open_transactions(&self) -> Answer<'_, Option<Vec<Vec<u8>>>> {
        Box::pin(crate::open::transactions(&self.shared))
    }

    fn open_cursors<'a>(&'a self, namespaces: &'a [Namespace]) -> Answer<'a, Vec<i64>> {
        Box::pin(crate::open::cursors(&self.shared, namespaces))
    }

    fn gossip(&self) -> Option<Doc<'static>> {
        self.shared.time.gossip()
    }
}
