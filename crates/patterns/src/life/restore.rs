//! Restoring a dump through Pleach. A tool that restores drops collections, makes them and fills them, in any order and several at a
//! time; the catalog is one of them. So the rules that it brings, and those whose collections it drops, rest meanwhile
//! ([`State::Restoring`]): documents come in as they were dumped. When it is done each of these rules begins as if it were applied
//! anew: indexes, seeding, `on`.
//!
//! The tool is recognised by the name that it gives itself when it connects. That name opens nothing that the client may not do:
//! each step asks its own privileges, and a row of the catalog is checked as a declaration is.

use super::catalog::{self, Row};
use super::expiry::Expiry;
use super::indexes::{self, Made};
use super::records::At;
use super::replaced::Progress;
use super::rights::{self, Rights, namespaces};
use super::shape::rows::Shaping;
use super::{Entry, Life, State, names, plan, shape};
use crate::declare::compatible;
use crate::rule::Rule;
use document::backend::{Restoring, Session};
use document::op::{Context, Insert, Namespace, WriteError, Written};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How long other clients wait for the rules when a restore is done: for small databases they are on by then.
const WRITES_WAIT: Duration = Duration::from_secs(5);

/// The same for who asks about rules.
const VERBS_WAIT: Duration = Duration::from_secs(60);

/// A tool that is connected and asks nothing for so long is not at its end: it reads its files.
const PAUSE: Duration = Duration::from_millis(300);

/// One that asks nothing for so long has stopped without saying so.
const SILENCE: Duration = Duration::from_secs(60);

/// How often those who wait look.
const LOOK: Duration = Duration::from_millis(10);

/// The clients that restore dumps.
#[derive(Debug, Default)]
pub(crate) struct Restores(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    connections: usize,
    /// How many of their commands are under way, and when the last one was answered.
    commands: usize,
    answered: Option<Instant>,
    /// One of them has said that it is done, and nothing came since.
    ended: bool,
    /// Databases whose catalog was dropped: rows of the dump take the place of those that are there.
    replaced: BTreeSet<Arc<str>>,
    /// Databases whose rules rest, or are not on yet since then.
    pending: BTreeSet<Arc<str>>,
}

/// Held while such a client is connected, or waits for an answer.
pub(crate) struct Held {
    life: Weak<Life>,
    step: Restoring,
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(life) = self.life.upgrade() else { return };
        let mut known = life.restores.0.lock();
        known.answered = Some(Instant::now());
        match self.step {
            Restoring::Asks => known.commands = known.commands.saturating_sub(1),
            Restoring::Connects => known.connections = known.connections.saturating_sub(1),
        }
        if known.connections == 0 {
            known.replaced.clear();
            drop(known);
            life.wake_keeper.notify_one();
        }
    }
}

impl Life {
    /// A client that restores has connected, or asks something.
    pub(crate) fn restoring_client(self: &Arc<Self>, step: Restoring) -> Held {
        let mut known = self.restores.0.lock();
        match step {
            Restoring::Asks => known.commands += 1,
            Restoring::Connects => known.connections += 1,
        }
        Held { life: Arc::downgrade(self), step }
    }

    /// Whether a restore is under way.
    pub(crate) fn is_restoring(&self) -> bool {
        let known = self.restores.0.lock();
        let is_silent = known.commands == 0 && known.answered.is_some_and(|answered| answered.elapsed() > SILENCE);
        known.connections > 0 && !known.ended && !is_silent
    }

    /// Whether rules of the database rest, or are not on yet since then.
    pub(crate) fn is_pending(&self, db: &str) -> bool {
        self.restores.0.lock().pending.contains(db)
    }

    /// A restore brings or changes rules of the database.
    fn begin_restore(&self, db: &str) {
        let mut known = self.restores.0.lock();
        known.ended = false;
        known.pending.insert(db.into());
        self.patterned.shared.restoring.store(true, Ordering::Relaxed);
    }

    /// Waits for the rules of the database (of all, if none is named) after a restore, so that who comes behind it finds them in
    /// force. A restore that is under way is not waited for, and neither are rules that take long.
    pub(crate) async fn after_restore(&self, db: Option<&str>, for_verb: bool) {
        let limit = if for_verb { VERBS_WAIT } else { WRITES_WAIT };
        while self.patterned.shared.restoring.load(Ordering::Relaxed) && self.waits_for_restore(db, limit) {
            tokio::time::sleep(LOOK).await;
        }
    }

    fn waits_for_restore(&self, db: Option<&str>, limit: Duration) -> bool {
        let entries = self.entries();
        let is_over = |db: &Arc<str>| {
            entries.iter().all(|entry| entry.db != *db || entry.row.state == State::On || entry.problem.is_some())
        };
        let mut known = self.restores.0.lock();
        let is_quiet = known.connections == 0 || known.ended;
        if is_quiet {
            known.pending.retain(|db| !is_over(db));
            self.patterned.shared.restoring.store(!known.pending.is_empty(), Ordering::Relaxed);
        }
        let is_meant = known.pending.iter().any(|pending| db.is_none_or(|db| **pending == *db));
        let since = known.answered.map(|answered| answered.elapsed()).unwrap_or_default();
        is_meant
            && match is_quiet {
                true => since < limit,
                false => known.commands == 0 && since < PAUSE,
            }
    }

    /// A client says that its restore is done: returns when the rules are on, or one does not get on.
    pub(crate) async fn end_restore(&self) -> Result<()> {
        let databases = {
            let mut known = self.restores.0.lock();
            known.ended = true;
            known.replaced.clear();
            known.pending.clone()
        };
        self.wake_keeper.notify_one();
        for db in databases {
            self.settle(&db).await?;
        }
        Ok(())
    }

    /// The catalog of a database is to be that of the dump. Nothing is dropped: a rule that the dump lacks stays, since its
    /// documents may stay too, and no moment exists in which a stop would lose the rules.
    pub(crate) fn replace_catalog(&self, db: &str) {
        self.restores.0.lock().replaced.insert(db.into());
    }

    /// Whether a rule in force has documents in this collection.
    pub(crate) fn is_in_use(&self, ns: &Namespace) -> bool {
        let of =
            |entry: &Entry| entry.row.state != State::Restoring && entry.sides.iter().any(|side| side.stored == *ns);
        self.entries().iter().any(of)
    }

    /// Lets the rules of a collection rest that is about to be dropped.
    pub(crate) async fn rest(&self, context: &Context, ns: &Namespace) -> Result<()> {
        let concerns = |entry: &Entry| {
            entry.row.state.is_kept() && entry.is_declared() && namespaces(&entry.rule).iter().any(|other| other == ns)
        };
        if !self.entries().iter().any(concerns) {
            return Ok(());
        }
        self.begin_restore(&ns.db);
        let _changing = self.changing.lock().await;
        let mut session = Session::default();
        let mut at = At { backend: &*self.backend, session: &mut session, context };
        self.begin_change(&mut at, &ns.db).await?;
        let outcome = async {
            let resting: Vec<Entry> = self.entries().into_iter().filter(concerns).collect();
            if let Some(entry) = resting.iter().find(|entry| is_moving(&entry.row)) {
                return Err(shape::change::under_way(&entry.rule));
            }
            self.unpublished.store(true, Ordering::Relaxed);
            for entry in resting {
                let mut row = entry.row.clone();
                row.replaced = own_values(&row);
                (row.state, row.epoch, row.by) = (State::Restoring, row.epoch + 1, self.process.clone());
                (row.done, row.total) = (0, 0);
                row.shape = row.shape.map(|_| Shaping::default());
                if catalog::replace(&mut at, &entry.db, &row, entry.row.epoch).await? {
                    tracing::info!(rule = &*entry.rule.name, collection = %ns, "rests: its collection is being restored");
                    self.put_entry(Entry::new(&entry.db, row, entry.rule.clone())?);
                }
            }
            self.put_in_force()?;
            self.publish(&mut at, &ns.db).await
        };
        let outcome = outcome.await;
        self.end_change(&mut at, &ns.db).await?;
        outcome
    }

    /// Takes rows of a dump's catalog as rules. What is no rule, or not the client's to make, is refused; nothing is written for it.
    pub(crate) async fn restore_rows(&self, rights: &Rights, context: &Context, op: &Insert) -> Result<Written> {
        self.refuse_raw()?;
        let db = &*op.ns.db;
        rights.need_all(&["insert", "update", "remove"], &op.ns)?;
        self.begin_restore(db);
        let _changing = self.changing.lock().await;
        let mut session = Session::default();
        let mut at = At { backend: &*self.backend, session: &mut session, context };
        self.begin_change(&mut at, db).await?;
        let outcome = async {
            self.backend.prepare(at.session, db).await?;
            self.unpublished.store(true, Ordering::Relaxed);
            let mut written = Written::default();
            for (index, document) in op.documents.iter().enumerate() {
                match self.restore_row(&mut at, rights, db, document).await {
                    Ok(()) => written.n += 1,
                    Err(error) => {
                        written.errors.push(WriteError { index, error });
                        if op.ordered {
                            break;
                        }
                    }
                }
            }
            self.put_in_force()?;
            self.publish(&mut at, db).await?;
            Ok(written)
        };
        let outcome = outcome.await;
        self.end_change(&mut at, db).await?;
        outcome
    }

    async fn restore_row(&self, at: &mut At<'_>, rights: &Rights, db: &str, row: &Doc<'static>) -> Result<()> {
        if !matches!(row.get("_id"), Some(Value::String(_))) {
            return self.restore_note(at, rights, db, row).await;
        }
        let Some(mut row) = Row::read(row) else {
            return Err(Error::bad_value("a row of the catalog that this version of Pleach does not understand"));
        };
        if row.state == State::Retiring || row.shape.as_ref().is_some_and(|shape| shape.timeseries.is_some()) {
            // It was on its way out, or comes back with `create`.
            return Ok(());
        }
        row.declaration = in_database(&row.declaration, db);
        let rule = row.rule_in(db)?;
        (row.kind, row.declaration) = (rule.kind.to_owned(), rule.declaration.clone());
        let known = self.entries().into_iter().find(|entry| Life::is(entry, db, &row.rule));
        if let Some(known) = &known
            && known.row.state != State::Retiring
        {
            if known.row.declaration == row.declaration {
                // It is here, and is kept or rests.
                return Ok(());
            }
            if !self.restores.0.lock().replaced.contains(db) {
                return Err(another(&row, &names::catalog(db)));
            }
            if is_moving(&known.row) {
                return Err(shape::change::under_way(&known.rule));
            }
        }
        need_to_restore(&rights.clone().naming(namespaces(&rule)), &rule)?;
        let others = self.entries().into_iter().filter(|entry| *entry.db == *db && *entry.rule.name != *rule.name);
        let mut all: Vec<Rule> = others.map(|entry| (*entry.rule).clone()).collect();
        all.push(rule.clone());
        compatible(&all)?;
        row.epoch = self.entries().iter().map(|entry| entry.row.epoch).max().unwrap_or(0) + 1;
        row.replaced = own_values(&row);
        (row.state, row.by) = (State::Restoring, self.process.clone());
        (row.done, row.total, row.tidy, row.with_data) = (0, 0, false, false);
        row.shape = match shape::bucket_of(&rule) {
            None => None,
            // Its documents are in two collections, and so they come.
            Some(_) if is_moving(&row) => row.shape,
            Some(_) => Some(Shaping::default()),
        };
        let entry = Entry::new(db, row, Arc::new(rule))?;
        catalog::save(at, db, &entry.row).await?;
        tracing::info!(rule = &*entry.rule.name, "comes with a dump");
        self.put_entry(entry);
        Ok(())
    }

    /// Other rows: the expiry that Pleach has taken over, and the indexes that it has made.
    async fn restore_note(&self, at: &mut At<'_>, rights: &Rights, db: &str, row: &Doc<'static>) -> Result<()> {
        if let Some(expiry) = Expiry::read(db, row) {
            rights.need("collMod", &expiry.ns)?;
            return match self.backend.abilities().forwards {
                true => expiry.save(at).await,
                // The embedded store expires by the index itself, which shows its expiry in no dump that was made beneath Pleach.
                false => Ok(()),
            };
        }
        match Made::read(db, row) {
            Some(made) => {
                rights.need("dropIndex", &made.ns)?;
                made.save(at).await
            }
            None => Ok(()),
        }
    }
}

/// The restore is over: the rule begins as if it were applied to what there is.
pub(crate) async fn wake(life: &Life, entry: &Entry) -> Result<()> {
    let _changing = life.changing.lock().await;
    let Some(entry) = life.current(entry) else { return Ok(()) };
    let (mut session, context) = (Session::default(), life.context());
    let mut at = At { backend: &*life.backend, session: &mut session, context: &context };
    let mut row = entry.row.clone();
    row.state = State::Maintaining;
    match shape::bucket_of(&entry.rule) {
        Some(_) if is_moving(&row) => {
            let has_turn = row.shape.as_ref().is_some_and(|shape| shape.turn.is_some());
            if !has_turn {
                shape::stored::ensure_view(&mut at, &entry.rule.host, &entry.sides).await?;
            }
        }
        Some(bucket) => {
            let change = shape::change::to_declared(&mut at, Some(&entry), &entry.rule, bucket).await?;
            if change.rewrites() {
                let message = format!("{} is an ordinary collection with documents of its own", entry.rule.host);
                return Err(Error::new(Code::NamespaceExists, message)
                    .with_hint("`pleach apply` brings them into buckets, or drop the collection and restore again"));
            }
            row.shape = Some(Shaping { turn: Some(change.turn), ..Shaping::default() });
        }
        None => {
            for needed in indexes::missing(&mut at, &entry.rule).await? {
                indexes::create(&mut at, &entry.rule, &needed).await?;
            }
            row.total = plan::documents(&mut at, &entry.rule.host).await?;
        }
    }
    if !catalog::replace(&mut at, &entry.db, &row, row.epoch).await? {
        return life.refresh(&mut at).await;
    }
    life.put_entry(Entry::new(&entry.db, row, entry.rule.clone())?);
    life.put_in_force()?;
    life.settle_expiry(&mut at, &entry.db).await?;
    life.publish(&mut at, &entry.db).await
}

/// What the client would need to make the rule with commands of its own.
fn need_to_restore(rights: &Rights, rule: &Rule) -> Result<()> {
    for ns in namespaces(rule) {
        rights.need("find", &ns)?;
    }
    if shape::bucket_of(rule).is_some() {
        return rights::need_to_reshape(rights, rule);
    }
    for needed in indexes::needed(rule) {
        rights.need("createIndex", &needed.ns)?;
    }
    rights.need("update", &rule.host)
}

/// What is restored are values of the rule's own, as far as it had seeded them: they are not kept as what was there before it.
fn own_values(row: &Row) -> Progress {
    Progress { since: row.replaced.since, seeded_to: row.seeded_to(), ..Progress::default() }
}

fn is_moving(row: &Row) -> bool {
    row.shape.as_ref().is_some_and(Shaping::is_moving)
}

/// A dump may be restored under another name.
fn in_database(declaration: &Doc<'static>, db: &str) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(declaration.as_bytes().len() + 16);
    for (name, value) in declaration.iter() {
        match name.as_str() {
            "database" => writer.append("database", &Value::from(db)),
            other => writer.append(other, &value),
        };
    }
    writer.finish()
}

/// Documents that are there are not replaced, and neither are rules.
fn another(row: &Row, ns: &Namespace) -> Error {
    let message = format!(
        "E11000 duplicate key error collection: {ns} index: _id_ dup key: {{ _id: \"{}\" }}; a rule of that name is here, declared differently",
        row.rule
    );
    Error::new(Code::DuplicateKey, message).with_hint("restore with --drop to take the dump's rules")
}
