//! Leases (SEMANTICS R3), where several processes can serve one MongoDB: each is announced in the registry while it lives,
//! works by the newest rules soon after they changed, and says so. A rule comes on only then.
//!
//! Of a process that is gone or silent the transactions are ended, and those of its clients waited for; then its lease is
//! removed, and another process goes on with the rules that it was bringing on or off.

use crate::active::Rules;
use crate::execute::access::Access;
use crate::life::processes::{Announced, Registry};
use crate::life::{Life, catalog, processes};
use crate::rule::names;
use document::backend::Session;
use document::op::{AdminOp, Namespace};
use document::{Code, Error, Result, Value};
use hashbrown::HashMap;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long a lease lasts unless a test makes it shorter; it is renewed four times as often.
pub(super) const LASTS: Duration = Duration::from_secs(20);

/// How often a process looks whether rules have changed.
const LOOK: Duration = Duration::from_millis(500);

/// The same while something is under way.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// MongoDB ends a transaction after 60 seconds, a little later than that.
const LONGEST_TRANSACTION: i64 = 90_000;

/// What this process has announced, and what it waits for.
#[derive(Default)]
pub(crate) struct Leases {
    registries: Vec<LeaseRegistry>,
    renewed: Option<Instant>,
}

/// One registry, where this process is announced.
struct LeaseRegistry {
    ns: Namespace,
    /// The epoch whose rules are in force here, and the one that others know to be.
    loaded: i64,
    seen: i64,
    /// Earlier rules that were still worked by when these came.
    earlier: Vec<Weak<Rules>>,
    /// Processes that are no more, with the transactions that were open when that was found.
    dying: HashMap<String, Vec<Vec<u8>>>,
}

impl LeaseRegistry {
    fn new(ns: Namespace) -> LeaseRegistry {
        LeaseRegistry { ns, loaded: -1, seen: -1, earlier: Vec::new(), dying: HashMap::new() }
    }
}

impl Life {
    /// Announces this process and puts in force what the rules are then. Nothing is written without a lease from now on.
    pub(super) async fn take_lease(&self) -> Result<()> {
        if !self.backend.facts().others_write {
            return Ok(());
        }
        let mut leases = self.leases.lock().await;
        leases.registries = self.find_registries().await?;
        *self.registries.lock() = leases.registries.iter().map(|registry| registry.ns.clone()).collect();
        match leases.registries.is_empty() {
            true => tracing::warn!(
                "the user of the connection string may write nowhere: rules that another Pleach brings on are not kept here"
            ),
            false => self.patterned.executor.lease.end(),
        }
        self.look(&mut leases).await.map(drop)
    }

    /// One registry for all, or, for a user who may not write there, one in each database that it may write to.
    async fn find_registries(&self) -> Result<Vec<LeaseRegistry>> {
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        let all = names::processes("admin");
        if self.may_announce(&mut at, &all).await? {
            return Ok(vec![LeaseRegistry::new(all)]);
        }
        let mut registries = Vec::new();
        for db in own_databases(&mut at).await? {
            let ns = names::processes(&db);
            if self.may_announce(&mut at, &ns).await? {
                registries.push(LeaseRegistry::new(ns));
            }
        }
        Ok(registries)
    }

    async fn may_announce(&self, at: &mut Access<'_>, registry: &Namespace) -> Result<bool> {
        let tried = async {
            let contents = Registry::read(at, registry).await?;
            processes::announce(at, registry, &self.process, &self.process_name, contents.epoch, self.lease_lasts())
                .await
        };
        match tried.await {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Code::Unauthorized => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn lease_lasts(&self) -> Duration {
        Duration::from_millis(self.lease_millis.load(Ordering::Relaxed))
    }

    /// Makes leases shorter, so that tests see them end.
    pub fn limit_lease(&self, lasts: Duration) {
        self.lease_millis.store(u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Looks at the registries, renews what is due, does what others wait for. Says whether something is under way.
    async fn look(&self, leases: &mut Leases) -> Result<bool> {
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        let (lease, lasts) = (&self.patterned.executor.lease, self.lease_lasts());
        let (asked, lapsed) = (lease.now(), !lease.is_valid());
        let due = lapsed || leases.renewed.is_none_or(|renewed| renewed.elapsed() >= lasts / 4);
        let (mut under_way, mut complete) = (false, true);
        for registry in &mut leases.registries {
            let contents = Registry::read(&mut at, &registry.ns).await?;
            if lapsed {
                // Nothing is being written here: what the rules are now is all there is to know.
                (registry.loaded, registry.seen) = (-1, contents.epoch);
            }
            if contents.epoch < registry.seen {
                // The registry was removed meanwhile, by a process that took itself for the last, and counts anew.
                (registry.loaded, registry.seen) = (-1, -1);
            }
            if due {
                processes::announce(&mut at, &registry.ns, &self.process, &self.process_name, registry.seen, lasts)
                    .await?;
            }
            if registry.loaded != contents.epoch {
                // A change under way here, such as the build of an index, must not keep the lease from being renewed. If it only
                // waits for other processes, they may be waiting for this one.
                let (changing, waiting_for_others) = (self.changing.try_lock(), self.waiting_for_others.lock().await);
                if changing.is_err() && !*waiting_for_others {
                    (under_way, complete) = (true, false);
                    continue;
                }
                self.refresh(&mut at).await?;
                registry.loaded = contents.epoch;
                registry.earlier = self.patterned.earlier();
            }
            if registry.loaded > registry.seen && registry.earlier.iter().all(|rules| rules.strong_count() == 0) {
                registry.seen = registry.loaded;
                processes::announce(&mut at, &registry.ns, &self.process, &self.process_name, registry.seen, lasts)
                    .await?;
            }
            under_way |= registry.loaded > registry.seen;
            for other in contents.processes.iter().filter(|other| other.process != self.process) {
                under_way |= self.bury(&mut at, registry, other).await?;
            }
            registry.dying.retain(|process, _| contents.has(process));
            self.take_over(&mut at, &registry.ns, &contents).await?;
        }
        if due && (complete || !lapsed) && !leases.registries.is_empty() {
            leases.renewed = Some(Instant::now());
            lease.extend(asked, lasts - lasts / 10);
        }
        Ok(under_way)
    }

    /// Ends what a process that is no more has left open, then its lease. Says whether that has begun and is not over.
    async fn bury(&self, at: &mut Access<'_>, registry: &mut LeaseRegistry, other: &Announced) -> Result<bool> {
        let Some(remote) = self.backend.remote() else { return Ok(false) };
        if !registry.dying.contains_key(&other.process) {
            match remote.end_leftover(&other.leftover, other.left < 0).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                // Whoever may not end the sessions of others waits until the server does.
                Err(error) => tracing::debug!(%error, who = other.process_name, "its transactions could not be ended"),
            }
        }
        let over = match remote.open_transactions().await? {
            Some(open) => {
                let left = registry.dying.entry(other.process.clone()).or_insert_with(|| open.clone());
                left.retain(|transaction| open.contains(transaction));
                left.is_empty()
            }
            None => {
                registry.dying.entry(other.process.clone()).or_default();
                other.left < -LONGEST_TRANSACTION
            }
        };
        if over {
            processes::remove(at, &registry.ns, &other.process).await?;
        }
        Ok(!over)
    }

    /// Goes on with the rules that a process was bringing on or off which is no more.
    async fn take_over(&self, at: &mut Access<'_>, registry: &Namespace, contents: &Registry) -> Result<()> {
        let left = |entry: &crate::life::CatalogRule| {
            // What goes on while it is on is the migration of versions.
            let has_work = entry.row.state != crate::rule::State::On
                || entry.rule.lens().is_some_and(|lens| lens.migrate.background);
            has_work && is_for(registry, &entry.db) && !self.is_ours(&entry.row) && !contents.has(&entry.row.by)
        };
        if !self.entries().iter().any(left) {
            return Ok(());
        }
        let Ok(_changing) = self.changing.try_lock() else { return Ok(()) };
        for entry in self.entries().into_iter().filter(left) {
            let mut row = entry.row.clone();
            (row.by, row.epoch) = (self.process.clone(), row.epoch + 1);
            // How far it came is known from the catalog alone.
            let written = catalog::write_over(self, &entry.db, &row, Some(entry.row.epoch), |now, row| {
                (row.state, row.replaced, row.shape) = (now.state.clone(), now.replaced.clone(), now.shape.clone());
                (row.done, row.total) = (now.done, now.total);
            });
            if let Some(row) = written.await? {
                tracing::info!(rule = &*row.rule, state = row.state.name(), "goes on here: who was about it is gone");
                self.put_entry(crate::life::CatalogRule::new(&entry.db, row, entry.rule.clone())?);
            }
        }
        self.put_in_force()?;
        processes::publish(at, registry).await?;
        self.wake_reconciler.notify_one();
        Ok(())
    }

    pub(super) fn registry_of(&self, db: &str) -> Option<Namespace> {
        self.registries.lock().iter().find(|registry| is_for(registry, db)).cloned()
    }

    /// Tells the other processes that rules of the database have changed.
    pub(crate) async fn publish(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        if let Some(registry) = self.registry_of(db) {
            processes::publish(at, &registry).await?;
        }
        self.unpublished.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until nobody works by rules from before the last change: here, and in every other process.
    pub(crate) async fn settled_everywhere(&self, db: &str) -> Result<()> {
        self.settled().await?;
        let Some(registry) = self.registry_of(db) else { return Ok(()) };
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        {
            // A change under way is published first.
            let _changing = self.changing.lock().await;
            if self.unpublished.load(Ordering::Relaxed) {
                self.publish(&mut at, db).await?;
            }
        }
        self.seen_everywhere(&mut at, &registry).await
    }

    /// The same within a change of rules, which has published what it changed.
    pub(crate) async fn settled_by_all(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        self.settled().await?;
        match self.registry_of(db) {
            Some(registry) => self.seen_everywhere(at, &registry).await,
            None => Ok(()),
        }
    }

    /// Says that a change of rules only waits now, or does so no longer: meanwhile others' changes are taken in.
    pub(crate) async fn park(&self, waits: bool) {
        *self.waiting_for_others.lock().await = waits;
    }

    async fn seen_everywhere(&self, at: &mut Access<'_>, registry: &Namespace) -> Result<()> {
        let (mut wanted, began, mut told) = (None, Instant::now(), false);
        loop {
            self.check_stopped()?;
            let contents = Registry::read(at, registry).await?;
            let wanted = *wanted.get_or_insert(contents.epoch);
            let late = |other: &&Announced| other.process != self.process && other.seen < wanted;
            let Some(other) = contents.processes.iter().find(late) else { return Ok(()) };
            if began.elapsed() > Duration::from_secs(5) && !std::mem::replace(&mut told, true) {
                tracing::warn!(
                    who = other.process_name,
                    "waiting for another Pleach to learn of changed rules, or for its lease to end"
                );
            }
            self.wait_for_stop(LOOK_AGAIN).await;
        }
    }

    /// Rules of a database where this process is not announced would be kept by some processes and not by others.
    fn check_registered(&self, db: &str) -> Result<()> {
        match self.registries.lock().is_empty() {
            true => Ok(()),
            false => Err(Error::new(
                Code::Unauthorized,
                format!("this Pleach holds no lease for rules of {db}: its user could not write there when it started"),
            )
            .with_hint(format!(
                "give the connection string's user the roles readWrite and dbAdmin on {db}, then start Pleach again"
            ))),
        }
    }

    /// Lets one process at a time change the rules of a database. Fails if another one takes longer than two leases over a single
    /// change; the change of a process that is no more is waited for until its lease is removed.
    pub(crate) async fn begin_change(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        let Some(registry) = self.registry_of(db) else { return self.check_registered(db) };
        let (number, mut waiting) = (self.next_change(), None);
        while let Some(changer) = processes::begin_change(at, &registry, &self.process, number).await? {
            let since = match waiting.take() {
                Some((change, since)) if change == changer.change && changer.is_alive => since,
                _ => Instant::now(),
            };
            if since.elapsed() > 2 * self.lease_lasts() {
                return Err(Error::new(
                    Code::ConflictingOperationInProgress,
                    format!("another Pleach is changing the rules of {db}: {}", changer.process_name),
                )
                .with_hint("try again when it is done"));
            }
            waiting = Some((changer.change, since));
            self.check_stopped()?;
            self.wait_for_stop(LOOK_AGAIN).await;
        }
        self.refresh(at).await
    }

    fn next_change(&self) -> i64 {
        self.changes.fetch_add(1, Ordering::Relaxed)
    }

    /// The same at once; false while another process changes rules.
    pub(crate) async fn try_begin_change(&self, at: &mut Access<'_>, db: &str) -> Result<bool> {
        match self.registry_of(db) {
            Some(registry) => {
                Ok(processes::begin_change(at, &registry, &self.process, self.next_change()).await?.is_none())
            }
            None => Ok(self.registries.lock().is_empty()),
        }
    }

    pub(crate) async fn end_change(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        match self.registry_of(db) {
            Some(registry) => processes::end_change(at, &registry, &self.process).await,
            None => Ok(()),
        }
    }

    /// Whether some process brings the rules of a database on and works off its outbox: this one, or another with a lease.
    pub(crate) async fn is_worked_on(&self, db: &str) -> Result<bool> {
        if !self.only_looks() || !self.backend.facts().others_write {
            return Ok(!self.only_looks());
        }
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        for registry in [names::processes("admin"), names::processes(db)] {
            match Registry::read(&mut at, &registry).await {
                Ok(contents) if contents.first().is_some() => return Ok(true),
                Ok(_) => {}
                // A user without the right to look does not know.
                Err(error) if error.code() == Code::Unauthorized => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Whether this process does what only one needs to do.
    pub(crate) async fn is_first(&self, at: &mut Access<'_>, db: &str) -> Result<bool> {
        let Some(registry) = self.registry_of(db) else { return Ok(true) };
        Ok(Registry::read(at, &registry).await?.first() == Some(&self.process))
    }
}

/// The databases that are there, and those that the user has rights in: these may be made later.
async fn own_databases(at: &mut Access<'_>) -> Result<BTreeSet<String>> {
    let list = AdminOp::ListDatabases { filter: document::filter::Filter::all(), name_only: true };
    let text = |value: Option<Value<'static>>| value.and_then(|value| value.as_str().map(str::to_owned));
    let there = at.backend.admin(at.session, at.context, list).await?;
    let mut all: BTreeSet<String> = there.iter().filter_map(|entry| text(entry.get("name"))).collect();
    let body = crate::mql::document([("connectionStatus", Value::from(1)), ("showPrivileges", Value::Bool(true))]);
    let status = AdminOp::Extension { command: "connectionStatus", db: "admin".to_owned(), body };
    for told in at.backend.admin(at.session, at.context, status).await? {
        let Some(Value::Document(info)) = told.get("authInfo") else { continue };
        let Some(Value::Array(privileges)) = info.get("authenticatedUserPrivileges") else { continue };
        for privilege in privileges.iter() {
            if let Value::Document(privilege) = privilege
                && let Some(Value::Document(resource)) = privilege.get("resource")
            {
                all.extend(text(resource.get("db").map(Value::into_owned)).filter(|db| !db.is_empty()));
            }
        }
    }
    all.retain(|db| !matches!(&**db, "admin" | "config" | "local"));
    Ok(all)
}

/// Whether a registry is that of a database.
fn is_for(registry: &Namespace, db: &str) -> bool {
    *registry == names::processes("admin") || *registry.db == *db
}

/// Holds the lease until the life is stopped, and gives it back then.
pub(crate) async fn hold(life: Arc<Life>) {
    let mut leases = life.leases.lock().await;
    if leases.registries.is_empty() {
        return;
    }
    let mut complained = false;
    while !life.is_stopped() {
        let under_way = match life.look(&mut leases).await {
            Ok(under_way) => {
                complained = false;
                under_way
            }
            Err(error) => {
                if !std::mem::replace(&mut complained, true) {
                    tracing::warn!(%error, "the lease on the rules could not be renewed");
                }
                false
            }
        };
        life.wait_for_stop(if under_way { LOOK_AGAIN } else { LOOK.min(life.lease_lasts() / 4) }).await;
    }
    life.patterned.executor.lease.end();
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    for registry in &leases.registries {
        if let Err(error) = processes::remove(&mut at, &registry.ns, &life.process).await {
            tracing::debug!(%error, "the lease on the rules could not be given back");
        }
        if let Err(error) = remove_if_last(&mut at, &registry.ns).await {
            tracing::debug!(%error, "the registry of processes could not be removed");
        }
    }
}

/// The last process leaves nothing behind where no database has rules.
async fn remove_if_last(at: &mut Access<'_>, registry: &Namespace) -> Result<()> {
    let contents = Registry::read(at, registry).await?;
    if !contents.processes.is_empty() || !catalog::databases(at).await?.is_empty() {
        return Ok(());
    }
    crate::life::relocate::stored::drop_if_there(at, registry).await
}
