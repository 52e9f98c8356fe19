//! [`Patterned`]: the layer around a backend that keeps rules true. [`read`] and [`write`] decide what answers a command: a write
//! that concerns a rule becomes a plan that [`crate::execute::attempt`] executes, what concerns none passes on untouched.

pub(crate) mod admin;
mod behind;
mod bulk;
mod client_transaction;
mod expiry;
pub(crate) mod explain;
mod in_force;
mod listing;
mod multi;
mod open_transactions;
mod owned;
mod read;
pub(crate) mod readers;
pub(crate) mod remembered;
mod restore;
pub(crate) mod rights;
pub(crate) mod shaped;
mod statements;
mod switchover_wait;
mod timeseries;
mod validators;
mod write;

use crate::active::lease::Lease;
use crate::active::route::Circumstances;
use crate::active::{Rules, route, side_writes};
use crate::execute::digits;
use crate::execute::gate::Gate;
use crate::life::Life;
use crate::life::expiry::Expiry;
use arc_swap::ArcSwap;
use client_transaction::ClientTransaction;
use document::Doc;
use document::backend::{
    Answer, Backend, Cursor, Facts, FenceKey, Front, Head, InFlight, Mode, Pipelining, Relay, Remote, Restorer,
    Restoring, Route, Session, Transaction,
};
use document::op::{AdminOp, Capture, Context, Explained, Namespace, ReadOp, Verbosity, WriteOp, Written};
use open_transactions::{CommandInFlight, OpenTransactions};
use parking_lot::Mutex;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// A backend with rules. Cheap to clone.
#[derive(Clone)]
pub struct Patterned {
    pub(crate) executor: Arc<Executor>,
}

pub(crate) struct Executor {
    pub(crate) inner: Arc<dyn Backend>,
    rules: ArcSwap<Rules>,
    /// Rules that are no longer in force, while a write or a client's transaction still works by them.
    earlier: Mutex<Vec<Weak<Rules>>>,
    /// Other rules are in force.
    changed: tokio::sync::Notify,
    gate: Option<Arc<dyn Gate>>,
    /// Clients' transactions that live in the server behind.
    joined: OpenTransactions,
    pub(crate) readers: readers::Readers,
    /// Who waits for which hot host.
    pub(crate) lines: crate::execute::host_queue::Lines,
    /// Inserts that fly together.
    pub(crate) convoys: crate::execute::convoy::Convoys,
    /// Hosts that were looked for in vain.
    pub(crate) orphans: crate::execute::missing_hosts::Orphans,
    /// Which buckets take the next readings.
    pub(crate) opens: shaped::write::open_buckets::OpenBuckets,
    /// Who brings rules on and off, answers the `pleach` command and works on the outbox.
    life: OnceLock<Weak<Life>>,
    /// The expiry that the rules have taken from a real MongoDB, as last seen.
    expiries: ArcSwap<Vec<Expiry>>,
    /// Until when this process may write.
    pub(crate) lease: Lease,
    /// What users may do, as last asked.
    remembered: remembered::Remembered,
    /// How many jobs were put into the outbox; some may have been rolled back.
    jobs_added: AtomicU64,
    /// A dump is being restored, or its rules are not on yet.
    pub(crate) restoring: AtomicBool,
}

impl Executor {
    pub(crate) fn gate(&self) -> Option<&Arc<dyn Gate>> {
        self.gate.as_ref()
    }

    pub(crate) fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Whether plans may be sent at once.
    pub(crate) fn flights(&self) -> bool {
        self.inner.pipelining().is_some() && !self.gate.as_ref().is_some_and(|gate| gate.wants_answers())
    }

    pub(crate) fn is_current(&self, rules: &Arc<Rules>) -> bool {
        Arc::ptr_eq(&self.rules.load(), rules)
    }

    pub(crate) fn life(&self) -> Option<Arc<Life>> {
        self.life.get().and_then(Weak::upgrade)
    }

    pub(crate) fn expiries(&self) -> Arc<Vec<Expiry>> {
        self.expiries.load_full()
    }

    pub(crate) fn set_expiries(&self, expiries: Vec<Expiry>) {
        self.expiries.store(Arc::new(expiries));
    }

    pub(crate) fn jobs_added(&self) {
        self.jobs_added.fetch_add(1, Ordering::Relaxed);
    }

    /// How many jobs were put into the outbox so far: looked at before a transaction begins.
    pub(crate) fn jobs_so_far(&self) -> u64 {
        self.jobs_added.load(Ordering::Relaxed)
    }

    /// Wakes who works on the outbox, after a commit: if jobs were added since the transaction began, by it or by others.
    pub(crate) fn wake_jobs(&self, before: u64) {
        if self.jobs_so_far() != before
            && let Some(life) = self.life()
        {
            life.wake_worker.notify_one();
        }
    }
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
        Patterned {
            executor: Arc::new(Executor {
                inner,
                rules: ArcSwap::default(),
                earlier: Mutex::default(),
                changed: tokio::sync::Notify::new(),
                gate,
                joined: OpenTransactions::default(),
                readers: readers::Readers::default(),
                lines: crate::execute::host_queue::Lines::default(),
                convoys: crate::execute::convoy::Convoys::default(),
                orphans: crate::execute::missing_hosts::Orphans::default(),
                opens: shaped::write::open_buckets::OpenBuckets::default(),
                life: OnceLock::new(),
                expiries: ArcSwap::default(),
                lease: Lease::default(),
                remembered: remembered::Remembered::default(),
                jobs_added: AtomicU64::new(0),
                restoring: AtomicBool::new(false),
            }),
        }
    }

    /// The backend underneath, for who keeps the books.
    pub fn inner(&self) -> &Arc<dyn Backend> {
        &self.executor.inner
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<Rules> {
        self.executor.rules()
    }

    /// Who answers a command if there is a server behind.
    pub fn route_of(&self, command: &Head<'_>) -> Route {
        let executor = &self.executor;
        let at = Circumstances {
            rules: &executor.rules.load(),
            lease: &executor.lease,
            is_restoring: &|db| restore::is_pending(executor, db),
            expires: &|ns| executor.expiries.load().iter().any(|row| row.ns.by_ref() == ns),
        };
        route::of(&at, command)
    }

    /// Joins the layer with the life of its rules; once.
    pub fn attach(&self, life: &Arc<Life>) {
        let _first_stays = self.executor.life.set(Arc::downgrade(life));
    }
}

impl Backend for Patterned {
    fn facts(&self) -> Facts {
        self.executor.inner.facts()
    }

    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            let rules = switchover_wait::until_begun(&self.executor, session, context).await?;
            let jobs = self.executor.jobs_so_far();
            self.executor.inner.begin(session, context).await?;
            let mut joins = None;
            if let (Some(joined), Some(id)) = (session.joined, session.id) {
                let user = session.relay.as_ref().and_then(|relay| relay.user());
                self.executor.joined.note((id, user.clone()), joined.number, &rules);
                joins = Some(((id, user), joined.number));
            }
            session.transaction = session.transaction.take().map(|inner| -> Box<dyn Transaction> {
                Box::new(ClientTransaction { inner, rules, jobs, joins, executor: self.executor.clone() })
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
        Box::pin(async move {
            let line = session.relay.clone();
            let outcome = write::write(&self.executor, session, context, op, capture).await;
            rights::of_write(&self.executor, line, op, outcome).await
        })
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

    fn admin<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: AdminOp,
    ) -> Answer<'a, Vec<Doc<'static>>> {
        Box::pin(async move {
            let rights = rights::before_admin(&self.executor, session.relay.clone(), &op).await?;
            let target = rights::target(&op);
            let outcome = admin::run(&self.executor, session, context, op).await;
            rights::of_admin(&self.executor, rights.as_ref(), target.as_ref(), outcome)
        })
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

impl Front for Patterned {
    fn connect(&self) -> Option<Arc<dyn Relay>> {
        self.executor.inner.remote().map(Remote::connect)
    }

    fn route(&self, command: &Head<'_>) -> Route {
        match self.route_of(command) {
            Route::Forward if self.executor.inner.remote().is_none() => Route::Plain,
            route => route,
        }
    }

    fn refuse<'a>(&'a self, command: &'a Head<'a>, line: Option<&'a Arc<dyn Relay>>) -> Answer<'a, ()> {
        let Some(refused) = shaped::refused::stream(&self.executor.rules(), command) else {
            return match side_writes::merged_into(command) {
                Some(target) => {
                    Box::pin(async move { rights::before_sink(&self.executor, command, line, &target).await })
                }
                None => Box::pin(behind::refuse(&self.executor, command, line)),
            };
        };
        let refused = timeseries::refused(&self.executor, command).unwrap_or(refused);
        Box::pin(rights::refuse_stream(&self.executor, command, line, refused))
    }

    fn takes_writes(&self, view: &Namespace) -> bool {
        self.executor.rules().shaped(view).is_some()
    }

    fn in_flight(&self, command: &Head<'_>) -> Option<Box<dyn InFlight>> {
        let rules = self.executor.rules();
        Some(Box::new(CommandInFlight::new(&self.executor, rules, command)))
    }

    fn cursor_open(&self, namespace: &str) -> Option<Box<dyn Any + Send + Sync>> {
        Some(Box::new(self.executor.readers.add(namespace)))
    }

    fn restoring(&self, step: Restoring) -> Option<Restorer> {
        let life = self.executor.life()?;
        Some(match step {
            Restoring::Connects => Arc::new(life.restorer()),
            Restoring::Asks => Arc::new(life.restorer_asks()),
        })
    }

    fn restored<'a>(&'a self, sessions: &'a [[u8; 16]]) -> Answer<'a, ()> {
        Box::pin(async move {
            match self.executor.life() {
                Some(life) => life.end_restore(sessions).await,
                None => Ok(()),
            }
        })
    }

    fn rewritten(&self, command: &Head<'_>) -> Option<Doc<'static>> {
        listing::rewritten(command).or_else(|| digits::command(&self.executor.rules(), command))
    }
}
