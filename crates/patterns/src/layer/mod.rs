//! [`Patterned`]: the layer around a backend that keeps rules true. [`read`] and [`write`] decide what answers a command: a write
//! that concerns a rule becomes a plan that [`crate::execute::attempt`] executes, what concerns none passes on untouched.

mod array_collations;
mod bulk;
mod client_transaction;
pub(crate) mod explain;
mod in_force;
pub(crate) mod logical_names;
mod multi;
mod named_collection;
mod open_transactions;
mod owned;
mod read;
pub(crate) use read::refuse_collation;
pub(crate) mod refused;
pub(crate) mod switchover_wait;
mod write;

use crate::active::Rules;
use crate::execute::executor::Executor;
use crate::execute::gate::Gate;
use client_transaction::ClientTransaction;
use document::Doc;
use document::backend::{
    Answer, Backend, Cursor, Facts, FenceKey, Head, InFlight, Mode, Pipelining, Remote, Session, Transaction,
};
use document::op::{AdminOp, Capture, Context, Explained, ReadOp, Verbosity, WriteOp, Written};
use open_transactions::{CommandInFlight, OpenTransactions};
use std::sync::Arc;

/// A backend with rules. Cheap to clone.
#[derive(Clone)]
pub struct Patterned {
    pub(crate) executor: Arc<Executor>,
    /// Clients' transactions that live in the server behind.
    transactions: Arc<OpenTransactions>,
}

impl Patterned {
    pub fn new(inner: Arc<dyn Backend>) -> Patterned {
        Patterned::build(inner, None)
    }

    /// With a hook before every step, for tests.
    pub fn with_gate(inner: Arc<dyn Backend>, gate: Arc<dyn Gate>) -> Patterned {
        Patterned::build(inner, Some(gate))
    }

    fn build(inner: Arc<dyn Backend>, gate: Option<Arc<dyn Gate>>) -> Patterned {
        Patterned { executor: Arc::new(Executor::new(inner, gate)), transactions: Arc::default() }
    }

    /// The backend underneath, for the life of rules.
    pub fn inner(&self) -> &Arc<dyn Backend> {
        &self.executor.inner
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<Rules> {
        self.executor.rules()
    }

    /// Held while a command that may be forwarded is under way.
    pub(crate) fn in_flight(&self, command: &Head<'_>) -> Box<dyn InFlight> {
        Box::new(CommandInFlight::new(&self.transactions, self.rules(), command))
    }
}

impl Backend for Patterned {
    fn facts(&self) -> Facts {
        self.executor.inner.facts()
    }

    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            let rules = switchover_wait::until_begun(&self.executor, &self.transactions, session, context).await?;
            let jobs = self.executor.jobs_so_far();
            self.executor.inner.begin(session, context).await?;
            let mut joins = None;
            if let (Some(joined), Some(id)) = (session.joined, session.id) {
                let user = session.relay.as_ref().and_then(|relay| relay.user());
                self.transactions.note((id, user.clone()), joined.number, &rules);
                joins = Some(((id, user), joined.number));
            }
            session.transaction = session.transaction.take().map(|inner| -> Box<dyn Transaction> {
                Box::new(ClientTransaction {
                    inner,
                    rules,
                    jobs,
                    joins,
                    executor: self.executor.clone(),
                    transactions: self.transactions.clone(),
                })
            });
            Ok(())
        })
    }

    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>> {
        read::read(&self.executor, session, context, op)
    }

    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written> {
        Box::pin(write::write(&self.executor, session, context, op, capture))
    }

    fn recall<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
    ) -> Answer<'a, Written> {
        self.executor.inner.recall(session, context, db, statements)
    }

    fn remember<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
        written: &'a Written,
    ) -> Answer<'a, ()> {
        self.executor.inner.remember(session, context, db, statements, written)
    }

    fn fences<'a>(&'a self, session: &'a mut Session, keys: &'a [(FenceKey, Mode)]) -> Answer<'a, ()> {
        self.executor.inner.fences(session, keys)
    }

    fn explain<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: Explained,
        verbosity: Verbosity,
    ) -> Answer<'a, Doc<'static>> {
        Box::pin(explain::explain(&self.executor, session, context, op, verbosity))
    }

    /// What rules mean for whole collections is decided in front of the layer: [`crate::front`].
    fn admin<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: AdminOp,
    ) -> Answer<'a, Vec<Doc<'static>>> {
        self.executor.inner.admin(session, context, op)
    }

    fn committed(&self, session: &[u8; 16], number: i64) -> bool {
        self.executor.inner.committed(session, number)
    }

    fn cluster_time(&self) -> u64 {
        self.executor.inner.cluster_time()
    }

    /// What comes from outside may concern rules, so each statement is looked at; plans are sent through the backend beneath.
    fn pipelining(&self) -> Option<&dyn Pipelining> {
        None
    }

    fn remote(&self) -> Option<&dyn Remote> {
        self.executor.inner.remote()
    }
}
