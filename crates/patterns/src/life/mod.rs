//! The life of a rule: catalog, states, seeding, outbox, audit, repair, drop, status.
//!
//! [`Life`] knows every rule of the databases it looks after, as the catalog has them. What changes them (apply, drop) writes
//! the catalog and puts the new state in force; the reconciler, a task of its own, brings each rule from there to where it should
//! be, and goes on after a restart from what the catalog says.

pub mod apply;
mod audit;
mod audit_upstream;
pub mod catalog;
pub(crate) mod drop_database;
mod emptied;
pub(crate) mod expiry;
pub(crate) mod explain;
mod infer;
pub(crate) mod install;
mod leases;
pub(crate) mod lifecycle;
mod lift;
mod load;
mod outbox;
pub(crate) mod outlier;
mod plan;
pub(crate) mod preview;
mod processes;
mod raw_mode;
pub(crate) mod readers;
mod reconcile;
pub mod relocate;
mod repair;
pub mod replaced;
pub(crate) mod restore;
pub(crate) mod restorers;
mod retire;
mod roll_up_job;
mod seed;
mod seed_source;
mod status;
pub mod timeseries;
mod transaction;
mod uninstall;
mod unkeyed;
pub mod verbs;
mod versions;
mod walk;
mod write_differences;

pub use infer::{InferredKind, InferredKinds, inferred_kinds};

use crate::active::{RuleInState, Rules};
use crate::execute::gate::Point;
use crate::execute::newest::Newest;
use crate::layer::Patterned;
use crate::rule::Rule;
use crate::rule::State;
use crate::shapes::Place;
use arc_swap::ArcSwap;
use catalog::Row;
use document::backend::{Backend, Session};
use document::op::{Context, Durability, Namespace};
use document::{Code, Error, Result, Value};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// MongoDB's code of what a database cannot do while it is being dropped.
const DATABASE_DROP_PENDING: i32 = 215;

/// Makes what an operation of our own carries: the time, ids, patience.
pub type ContextSource = Arc<dyn Fn() -> Context + Send + Sync>;

pub struct Life {
    /// The backend beneath the layer: what is written through it is not planned.
    pub(crate) backend: Arc<dyn Backend>,
    /// The layer that enforces the rules.
    pub(crate) patterned: Patterned,
    contexts: ContextSource,
    entries: Mutex<Vec<CatalogRule>>,
    /// One change of the catalog at a time.
    changing: tokio::sync::Mutex<()>,
    /// Its change only waits for other processes.
    waiting_for_others: tokio::sync::Mutex<bool>,
    /// Databases with indexes that no rule needs any more and that could not be removed yet.
    untidy: Mutex<std::collections::BTreeSet<String>>,
    /// There may be something to do for the reconciler.
    pub(crate) wake_reconciler: Notify,
    /// How often somebody has asked for the rules to be brought on.
    bring_on_requests: AtomicU64,
    /// A rule came to another state.
    pub(crate) state_changed: Notify,
    /// The most hosts that one transaction of seeding or of the outbox is about.
    most_hosts: AtomicU64,
    /// The only database whose rules it looks after; all if there is none.
    only_in: OnceLock<String>,
    stopped: AtomicBool,
    /// This process only reads: it makes nothing ready for writers, and notes nothing.
    only_looks: AtomicBool,
    /// All rules are switched off for this run.
    pub(crate) raw: AtomicBool,
    stopping: Notify,
    tasks: Mutex<Vec<tokio::task::JoinHandle<()>>>,
    /// This process among those that keep the same rules, and how people call it.
    process: String,
    process_name: String,
    /// The lease of this process, where it is announced, and for how long each time.
    leases: tokio::sync::Mutex<leases::Leases>,
    registries: Mutex<Vec<Namespace>>,
    lease_millis: AtomicU64,
    /// Changes of rules that this process has begun.
    changes: AtomicI64,
    /// The catalog was changed, and the other processes were not told yet.
    unpublished: AtomicBool,
    /// How well large collections of buckets were filled when it was last looked at.
    health_cache: relocate::health::HealthCache,
    /// Declared rules that need somebody's word before they are applied.
    pub(crate) pending: Mutex<Vec<apply::Pending>>,
    /// Rows of the catalogs that are no rules of their databases.
    ignored: Mutex<Vec<load::Ignored>>,
    /// The clients that restore a dump.
    restores: restorers::Restores,
    /// Cursors that clients have open between two batches.
    pub(crate) readers: readers::Readers,
    /// The expiry that the rules have taken from a real MongoDB, as last seen.
    expiries: ArcSwap<Vec<expiry::Expiry>>,
    /// How versions are migrated by this process.
    pub(crate) migrations: versions::migration::Migrations,
    /// What came of bucketed collections that have become plain again.
    ways_back: relocate::way_back::WaysBack,
    /// Hosts that did not get back the items that were lifted from them.
    left_hosts: lift::left::AllLeftHosts,
}

/// A rule as it is now.
#[derive(Clone)]
pub(crate) struct CatalogRule {
    pub(crate) db: Arc<str>,
    pub(crate) row: Row,
    pub(crate) rule: Arc<Rule>,
    /// Where the part ends that is being seeded, or was: what writers are shown instead of the saved position.
    pub(crate) reached: Option<Value<'static>>,
    /// Why it does not get on.
    pub(crate) problem: Option<String>,
    /// Of a shape: where its documents are.
    pub(crate) places: Vec<Place>,
    /// Of a shape: its collections are being renamed.
    pub(crate) switching: bool,
}

impl CatalogRule {
    fn of(db: &str, row: Row) -> Result<CatalogRule> {
        let rule = row.rule_in(db)?;
        CatalogRule::new(db, row, Arc::new(rule))
    }

    pub(crate) fn new(db: &str, row: Row, rule: Arc<Rule>) -> Result<CatalogRule> {
        let (places, switching) = match &row.shape {
            Some(shape) => (
                relocate::record::places(&shape.places, db)?,
                shape.switchover.as_ref().is_some_and(|switchover| switchover.begun),
            ),
            None => (Vec::new(), false),
        };
        let rule = versions::change::in_force(&row, rule)?;
        Ok(CatalogRule { db: db.into(), row, rule, reached: None, problem: None, places, switching })
    }

    /// Whether a declaration has made it, and not a client's `create`.
    pub(crate) fn is_declared(&self) -> bool {
        self.row.shape.as_ref().is_none_or(|shape| shape.timeseries.is_none())
    }

    fn rule_in_state(&self, ours: bool) -> RuleInState {
        let (rule, state) = (self.rule.clone(), self.shown(ours));
        RuleInState {
            rule,
            state,
            places: self.places.clone(),
            switching: self.switching,
            restoring: self.row.replaced.restore,
            lifting: self.is_lifting(),
            epoch: self.row.epoch,
        }
    }

    /// Whether items of the rule's array have not become documents yet. Until then no writer touches the array.
    pub(crate) fn is_lifting(&self) -> bool {
        self.row.state == State::Maintaining
            && self.rule.lift.is_some()
            && !self.row.replaced.lifted.as_ref().is_some_and(replaced::Lifted::is_done)
    }

    /// The state that writers work by. How far another process has come with seeding is not known here: a change is a delta for
    /// every host, and seeding overwrites those that came too early (see [`crate::rule::state`]).
    fn shown(&self, ours: bool) -> State {
        let creates = self.rule.link().is_some_and(|link| link.create);
        match (&self.row.state, &self.reached) {
            // An addition must not happen twice: writers look at the position in their own transactions.
            (State::Maintaining | State::Gathering { .. } | State::Seeding { .. }, _) if !ours && creates => {
                State::Gathering { position: None }
            }
            // What comes too early would be put into an array of items, and others would be cut off.
            (State::Maintaining, _) if self.is_lifting() => State::Maintaining,
            (State::Maintaining | State::Seeding { .. }, _) if !ours => {
                State::Seeding { position: Some(Value::MaxKey) }
            }
            (State::Seeding { .. }, Some(_)) => State::Seeding { position: self.reached.clone() },
            (state, _) => state.clone(),
        }
    }
}

impl Life {
    /// The life of the rules of a layer.
    pub fn new(patterned: &Patterned, contexts: ContextSource) -> Arc<Life> {
        Arc::new(Life {
            backend: Arc::new(Newest::new(&patterned.executor)),
            patterned: patterned.clone(),
            contexts,
            entries: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            waiting_for_others: tokio::sync::Mutex::default(),
            untidy: Mutex::default(),
            wake_reconciler: Notify::new(),
            bring_on_requests: AtomicU64::new(0),
            state_changed: Notify::new(),
            most_hosts: AtomicU64::new(u64::MAX),
            migrations: versions::migration::Migrations::default(),
            only_in: OnceLock::new(),
            stopped: AtomicBool::new(false),
            only_looks: AtomicBool::new(false),
            raw: AtomicBool::new(false),
            stopping: Notify::new(),
            tasks: Mutex::default(),
            process: format!("{:016x}", rand::random::<u64>()),
            process_name: format!("process {} on {}", std::process::id(), host()),
            leases: tokio::sync::Mutex::default(),
            registries: Mutex::default(),
            changes: AtomicI64::new(0),
            lease_millis: AtomicU64::new(u64::try_from(leases::LASTS.as_millis()).unwrap_or(u64::MAX)),
            unpublished: AtomicBool::new(false),
            health_cache: relocate::health::HealthCache::default(),
            pending: Mutex::default(),
            ignored: Mutex::default(),
            restores: restorers::Restores::default(),
            readers: readers::Readers::default(),
            expiries: ArcSwap::default(),
            ways_back: relocate::way_back::WaysBack::default(),
            left_hosts: lift::left::AllLeftHosts::default(),
        })
    }

    /// Makes ready what fences and retry records need in a database of the server behind.
    pub(crate) async fn prepare(&self, session: &mut Session, db: &str) -> Result<()> {
        match self.backend.remote() {
            Some(remote) => remote.prepare(session, db).await,
            None => Ok(()),
        }
    }

    /// The same for a database of which a rule is known. Returns false if it is being dropped: its rules go with it.
    pub(crate) async fn prepare_unless_dropped(&self, session: &mut Session, db: &str) -> Result<bool> {
        match self.prepare(session, db).await {
            Err(error) if error.code().number() == DATABASE_DROP_PENDING => Ok(false),
            prepared => prepared.map(|()| true),
        }
    }

    /// Begins to work when a verb has to change something, for a process that was opened by [`Life::load_to_read`]: a verb that is
    /// refused leaves nothing behind, no lease either.
    pub(crate) async fn start_if_due(self: &Arc<Self>) -> Result<()> {
        if !self.only_looks() {
            return Ok(());
        }
        let databases: std::collections::BTreeSet<Arc<str>> =
            self.entries().into_iter().map(|entry| entry.db).collect();
        for db in databases {
            self.prepare_unless_dropped(&mut Session::default(), &db).await?;
        }
        self.only_looks.store(false, Ordering::Relaxed);
        self.start().await?;
        self.wake_reconciler.notify_one();
        Ok(())
    }

    /// Takes the lease on the rules, and starts the background work on the current runtime; [`Life::close`] ends both.
    pub async fn start(self: &Arc<Self>) -> Result<()> {
        self.take_lease().await?;
        let mut tasks = self.tasks.lock();
        tasks.push(tokio::spawn(reconcile::keep(self.clone())));
        tasks.push(tokio::spawn(outbox::work(self.clone())));
        tasks.push(tokio::spawn(leases::hold(self.clone())));
        tasks.push(tokio::spawn(expiry::work(self.clone())));
        tasks.push(tokio::spawn(versions::migration::work(self.clone())));
        Ok(())
    }

    /// Stops the background work and waits until its last step is done.
    pub async fn close(&self) {
        self.stop();
        let tasks = std::mem::take(&mut *self.tasks.lock());
        for task in tasks {
            let _ended = task.await;
        }
    }

    /// What an operation of our own carries. Rules are removed on a disk that is nearly full too.
    pub(crate) fn context(&self) -> Context {
        let mut context = (self.contexts)();
        context.sent.makes_room = true;
        context
    }

    /// The same for what fills the disk: seeding, and the way into another form.
    pub(crate) fn adding_context(&self) -> Context {
        Context { durability: Durability::Relaxed, ..(self.contexts)() }
    }

    /// Ends background work at its next step; what it did is saved.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        for all in [&self.stopping, &self.wake_reconciler, &self.patterned.executor.jobs_committed] {
            all.notify_waiters();
            // For a caller that is about to wait.
            all.notify_one();
        }
    }

    /// Waits until a job was put into the outbox, or for so long.
    pub(crate) async fn wait_for_jobs(&self, at_most: Option<std::time::Duration>) {
        let told = self.patterned.executor.jobs_committed.notified();
        match at_most {
            Some(limit) => drop(tokio::time::timeout(limit, told).await),
            None => told.await,
        }
    }

    /// Waits, not longer than until the life is stopped.
    pub(crate) async fn wait_for_stop(&self, at_most: std::time::Duration) {
        let stopping = self.stopping.notified();
        tokio::pin!(stopping);
        stopping.as_mut().enable();
        if !self.is_stopped() {
            let _ = tokio::time::timeout(at_most, stopping).await;
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn check_stopped(&self) -> Result<()> {
        match self.is_stopped() {
            true => Err(Error::new(Code::InterruptedAtShutdown, "interrupted at shutdown")),
            false => Ok(()),
        }
    }

    /// Whether this process brings the rule on or off, and not another.
    pub(crate) fn is_ours(&self, row: &Row) -> bool {
        row.by == self.process || self.registries.lock().is_empty()
    }

    fn is(entry: &CatalogRule, db: &str, rule: &str) -> bool {
        *entry.db == *db && entry.row.rule == rule
    }

    /// The row of a rule as it is now.
    pub(crate) fn row_of(&self, entry: &CatalogRule) -> Option<Row> {
        let entries = self.entries.lock();
        entries.iter().find(|other| Life::is(other, &entry.db, &entry.row.rule)).map(|other| other.row.clone())
    }

    /// The same rule as it is now; `None` if it was changed or dropped meanwhile.
    pub(crate) fn current(&self, entry: &CatalogRule) -> Option<CatalogRule> {
        let entries = self.entries.lock();
        let same =
            |other: &&CatalogRule| Life::is(other, &entry.db, &entry.row.rule) && other.row.epoch == entry.row.epoch;
        entries.iter().find(same).cloned()
    }

    /// Puts a rule in the place of the one of the same name, or behind all. A problem that was cleared since the entry was read stays
    /// cleared: it may be mended.
    pub(crate) fn put_entry(&self, mut entry: CatalogRule) {
        let mut entries = self.entries.lock();
        match entries.iter_mut().find(|other| Life::is(other, &entry.db, &entry.row.rule)) {
            Some(place) => {
                entry.problem = entry.problem.and_then(|_| place.problem.take());
                *place = entry;
            }
            None => entries.push(entry),
        }
        Life::sort(&mut entries);
    }

    pub(crate) fn remove_entry(&self, entry: &CatalogRule) {
        self.entries.lock().retain(|other| !Life::is(other, &entry.db, &entry.row.rule));
        self.state_changed.notify_waiters();
    }

    /// Notes why a rule does not get on, as it was found by a try that began when so many had asked. If somebody has asked since, it may
    /// be mended: nothing is noted, and whoever asked is told what comes of the next try.
    pub(crate) fn note_problem(&self, entry: &CatalogRule, problem: Option<String>, asked: u64) {
        let mut entries = self.entries.lock();
        let problem = problem.filter(|_| asked == self.bring_on_requests.load(Ordering::Relaxed));
        if let Some(place) = entries.iter_mut().find(|other| Life::is(other, &entry.db, &entry.row.rule)) {
            place.problem = problem;
        }
        drop(entries);
        self.state_changed.notify_waiters();
    }

    /// What others are computed from comes first, and what says how documents are read before all.
    fn sort(entries: &mut Vec<CatalogRule>) {
        let rules: Vec<Rule> = entries.iter().map(|entry| (*entry.rule).clone()).collect();
        if let Ok(order) = crate::declare::order(&rules) {
            *entries = order.into_iter().filter_map(|at| entries.get(at).cloned()).collect();
        }
        entries.sort_by_key(|entry| entry.rule.lens().is_none());
    }

    pub(crate) fn entries(&self) -> Vec<CatalogRule> {
        self.entries.lock().clone()
    }

    /// Puts what the entries say in force.
    pub(crate) fn put_in_force(&self) -> Result<()> {
        self.enforce(&self.entries.lock())
    }

    /// The entries stay locked meanwhile: what was seen of them earlier must not come into force later.
    fn enforce(&self, entries: &[CatalogRule]) -> Result<()> {
        let in_force = entries.iter().filter(|entry| entry.row.state != State::Restoring);
        self.patterned.set_rules(in_force.map(|entry| entry.rule_in_state(self.is_ours(&entry.row))).collect())
    }

    /// Waits until nothing is under way that began before the last change of rules.
    pub(crate) async fn settled(&self) -> Result<()> {
        let mut pause = std::time::Duration::from_micros(100);
        while self.patterned.is_settling() {
            self.check_stopped()?;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(std::time::Duration::from_millis(20));
        }
        Ok(())
    }

    /// The same, not longer than so: says whether it is so.
    pub(crate) async fn settled_within(&self, limit: std::time::Duration) -> Result<bool> {
        tokio::time::timeout(limit, self.settled()).await.map_or(Ok(false), |settled| settled.map(|()| true))
    }

    /// Tells writers that the hosts before `position` are reached. The catalog learns it with the hosts themselves. False if
    /// the rule was changed or dropped meanwhile.
    pub(crate) fn reach(&self, row: &Row, rule: &Rule, position: &Value<'static>) -> Result<bool> {
        let mut entries = self.entries.lock();
        let same =
            |entry: &&mut CatalogRule| Life::is(entry, &rule.host.db, &rule.name) && entry.row.epoch == row.epoch;
        let Some(entry) = entries.iter_mut().find(same) else { return Ok(false) };
        entry.reached = Some(position.clone());
        self.enforce(&entries)?;
        Ok(true)
    }

    /// Whether the rule is in force as it is known here. A change of the rule takes its next step only when no work by it still holds
    /// the answer (see [`Life::settled`]).
    pub(crate) fn in_force(&self, rule: &Arc<Rule>) -> Option<Arc<Rules>> {
        let rules = self.patterned.rules();
        let kept = rules.find(&rule.host.db, &rule.name)?;
        (kept.state.is_kept() && Arc::ptr_eq(&kept.rule, rule)).then(|| rules.clone())
    }

    /// Passes the gate of the layer, if it has one.
    pub(crate) async fn pass(&self, point: Point<'_>) -> Result<()> {
        match self.patterned.executor.gate() {
            Some(gate) => gate.pass(point).await,
            None => Ok(()),
        }
    }

    /// Makes the transactions of seeding and of the outbox smaller, so that tests see many with few documents.
    pub fn limit_hosts(&self, most: u64) {
        self.most_hosts.store(most.max(1), Ordering::Relaxed);
    }

    /// Leaves rules of other databases alone, so that tests on one MongoDB do not take over each other's.
    pub fn limit_database(&self, db: &str) {
        let _already = self.only_in.set(db.to_owned());
    }

    pub(crate) fn at_most(&self, hosts: u64) -> u64 {
        hosts.min(self.most_hosts.load(Ordering::Relaxed))
    }

    /// Brings every rule to where it should be, as the background work does.
    pub async fn bring_on(&self) -> Result<()> {
        reconcile::bring_on(self).await
    }

    /// Does what is due in the outbox, as the background work does.
    pub async fn work_off(&self) -> Result<()> {
        outbox::work_off(self).await
    }

    /// Remembers how far seeding came.
    pub(crate) fn advanced(&self, db: &str, row: &Row) {
        if let Some(entry) = self.entries.lock().iter_mut().find(|entry| Life::is(entry, db, &row.rule))
            && entry.row.epoch == row.epoch
        {
            entry.row = row.clone();
        }
        self.state_changed.notify_waiters();
    }
}

/// The name of this machine, as far as it is known.
fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "this machine".to_owned(), |name| name.trim().to_owned())
}
