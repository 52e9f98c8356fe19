//! Restoring a dump through Pleach. A tool that restores drops collections, makes them and fills them, in any order and several at a
//! time; the catalog is one of them. So the rules that it brings, and those whose collections it drops, rest meanwhile
//! ([`State::Restoring`]): documents come in as they were dumped. When it is done each of these rules begins as if it were applied
//! anew: indexes, seeding, `on`.
//!
//! The tool is recognised by the name that it gives itself when it connects. That name opens nothing that the client may not do:
//! each step asks its own privileges, and a row of the catalog is checked as a declaration is.

use crate::declare::compatible;
use crate::execute::access::Access;
use crate::execute::rights::{Rights, namespaces};
use crate::life::catalog::Row;
use crate::life::expiry::Expiry;
use crate::life::install::MadeIndex;
use crate::life::install::validators::ComposedValidator;
use crate::life::relocate::record::Relocation;
use crate::life::restorers::RestoredBy;
use crate::life::verbs::{APPLY, Resource};
use crate::life::{CatalogRule, Life, catalog, lifecycle, relocate};
use crate::rule::Rule;
use crate::rule::State;
use crate::rule::names;
use document::backend::Session;
use document::op::{Context, Insert, Namespace, WriteError, Written};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Life {
    /// Whether a rule in force has documents in this collection.
    pub(crate) fn is_in_use(&self, ns: &Namespace) -> bool {
        let of = |entry: &CatalogRule| {
            entry.row.state != State::Restoring && entry.places.iter().any(|place| place.stored == *ns)
        };
        self.entries().iter().any(of)
    }

    /// Lets the rules of a collection rest that is about to be dropped.
    /// The client needs what bringing them back needs: else its restore would stop when the collection is gone.
    pub(crate) async fn rest(&self, rights: &Rights, by: RestoredBy, context: &Context, ns: &Namespace) -> Result<()> {
        let concerns = |entry: &CatalogRule| {
            entry.row.state.is_kept() && entry.is_declared() && namespaces(&entry.rule).iter().any(|other| other == ns)
        };
        let resting: Vec<CatalogRule> = self.entries().into_iter().filter(concerns).collect();
        if resting.is_empty() {
            return Ok(());
        }
        need_catalog(rights, &ns.db)?;
        resting.iter().try_for_each(|entry| need_to_restore(rights, &entry.rule))?;
        self.begin_restore(&ns.db, by);
        let _changing = self.changing.lock().await;
        let mut session = Session::default();
        let mut at = Access { backend: &*self.backend, session: &mut session, context };
        self.begin_change(&mut at, &ns.db).await?;
        let outcome = async {
            let resting: Vec<CatalogRule> = self.entries().into_iter().filter(concerns).collect();
            if let Some(entry) = resting.iter().find(|entry| is_moving(&entry.row)) {
                return Err(relocate::change::under_way(&entry.rule));
            }
            self.unpublished.store(true, Ordering::Relaxed);
            for entry in resting {
                let mut row = entry.row.clone();
                // What is restored are values of the rule's own: they are not kept as what was there before it.
                row.replaced = row.carried();
                (row.state, row.epoch, row.by) = (State::Restoring, row.epoch + 1, self.process.clone());
                (row.done, row.total) = (0, 0);
                row.shape = row.shape.map(Relocation::begun_anew);
                if catalog::replace(&mut at, &entry.db, &row, entry.row.epoch).await? {
                    tracing::info!(rule = &*entry.rule.name, collection = %ns, "rests: its collection is being restored");
                    self.put_entry(CatalogRule::new(&entry.db, row, entry.rule.clone())?);
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
    pub(crate) async fn restore_rows(
        &self,
        rights: &Rights,
        by: RestoredBy,
        context: &Context,
        op: &Insert,
    ) -> Result<Written> {
        self.refuse_raw()?;
        let db = &*op.ns.db;
        rights.need("insert", &op.ns)?;
        self.begin_restore(db, by);
        let _changing = self.changing.lock().await;
        let mut session = Session::default();
        let mut at = Access { backend: &*self.backend, session: &mut session, context };
        self.begin_change(&mut at, db).await?;
        let outcome = async {
            self.prepare(at.session, db).await?;
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

    async fn restore_row(&self, at: &mut Access<'_>, rights: &Rights, db: &str, row: &Doc<'static>) -> Result<()> {
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
        (row.kind, row.declaration) = (rule.pattern.to_owned(), rule.declaration.clone());
        let known = self.entries().into_iter().find(|entry| Life::is(entry, db, &row.rule));
        if let Some(known) = &known
            && known.row.state != State::Retiring
        {
            if known.row.declaration == row.declaration {
                // It is here, and is kept or rests.
                return Ok(());
            }
            if !self.replaces_catalog(db) {
                return Err(another(&row, &names::catalog(db)));
            }
            if is_moving(&known.row) {
                return Err(relocate::change::under_way(&known.rule));
            }
        }
        need_catalog(rights, db)?;
        need_to_restore(&rights.clone().naming(namespaces(&rule)), &rule)?;
        let others = self.entries().into_iter().filter(|entry| *entry.db == *db && *entry.rule.name != *rule.name);
        let mut all: Vec<Rule> = others.map(|entry| (*entry.rule).clone()).collect();
        all.push(rule.clone());
        compatible(&all)?;
        row.epoch = self.entries().iter().map(|entry| entry.row.epoch).max().unwrap_or(0) + 1;
        row.replaced = row.carried();
        (row.state, row.by) = (State::Restoring, self.process.clone());
        (row.done, row.total, row.tidy, row.with_data) = (0, 0, false, false);
        lifecycle::of(&rule).adopt(rights, &rule, &mut row)?;
        let entry = CatalogRule::new(db, row, Arc::new(rule))?;
        catalog::save(at, db, &entry.row).await?;
        tracing::info!(rule = &*entry.rule.name, "comes with a dump");
        self.put_entry(entry);
        Ok(())
    }

    /// Other rows: the expiry that Pleach has taken over, validators that rules add to, and the indexes that it has made.
    async fn restore_note(&self, at: &mut Access<'_>, rights: &Rights, db: &str, row: &Doc<'static>) -> Result<()> {
        let known = at.one(&names::catalog(db), &row.get("_id").unwrap_or(Value::Null)).await?;
        if known.is_some_and(|known| known == *row) {
            return Ok(());
        }
        if let Some(expiry) = Expiry::read(db, row) {
            rights.need("collMod", &expiry.ns)?;
            return match self.backend.facts().own_expiry {
                true => expiry.save(at).await,
                // The embedded store expires by the index itself, which shows its expiry in no dump that was made beneath Pleach.
                false => Ok(()),
            };
        }
        if let Some(composed) = ComposedValidator::read(db, row) {
            rights.need("collMod", &composed.ns)?;
            return composed.save(at).await;
        }
        match MadeIndex::read(db, row) {
            Some(made) => {
                rights.need("dropIndex", &made.ns)?;
                made.save(at).await
            }
            None => Ok(()),
        }
    }
}

/// The restore is over: the rule begins as if it were applied to what there is.
pub(crate) async fn wake(life: &Life, entry: &CatalogRule) -> Result<()> {
    let _changing = life.changing.lock().await;
    let Some(entry) = life.current(entry) else { return Ok(()) };
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    let mut row = entry.row.clone();
    row.state = State::Maintaining;
    lifecycle::of(&entry.rule).restore(&mut at, &entry, &mut row).await?;
    if !catalog::replace(&mut at, &entry.db, &row, row.epoch).await? {
        return life.refresh(&mut at).await;
    }
    life.put_entry(CatalogRule::new(&entry.db, row, entry.rule.clone())?);
    life.put_in_force()?;
    life.settle_expiry(&mut at, &entry.db).await?;
    life.publish(&mut at, &entry.db).await
}

/// What the client would need to make the rule with commands of its own: as of `apply`.
fn need_to_restore(rights: &Rights, rule: &Rule) -> Result<()> {
    let needed = || {
        APPLY.need_for_rule(rights, Resource::RuleCollections, rule)?;
        let mut indexed = rule.needs().indexes.into_iter().map(|need| need.ns);
        indexed.try_for_each(|ns| APPLY.need(rights, Resource::IndexedCollection, &ns))?;
        lifecycle::of(rule).need_to_change(APPLY, rights, rule)
    };
    needed().map_err(|_| naming_roles(rights, &rule.host.db))
}

/// What the client would need to write rows of the catalog.
fn need_catalog(rights: &Rights, db: &str) -> Result<()> {
    let needed = APPLY.need(rights, Resource::Catalog, &names::catalog(db));
    needed.map_err(|_| naming_roles(rights, db))
}

/// MongoDB's own role for restoring lacks what rules need, and its tool shows messages only: so the roles are part of it. No collection
/// is named that the client may not read.
fn naming_roles(rights: &Rights, db: &str) -> Error {
    let message = format!(
        "not authorized on {db} to execute command {{ {} }}: restoring a database with rules needs the roles readWrite and dbAdmin on {db}",
        rights.command()
    );
    Error::new(Code::Unauthorized, message)
}

fn is_moving(row: &Row) -> bool {
    row.shape.as_ref().is_some_and(Relocation::is_moving)
}

/// A dump may be restored under another name.
pub(super) fn in_database(declaration: &Doc<'static>, db: &str) -> Doc<'static> {
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
