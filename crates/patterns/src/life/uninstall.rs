//! Takes Pleach out of a database: every rule is dropped and its data kept, then the indexes and collections of ours are removed.
//! It can be stopped anywhere: run again, it goes on with what is left.

use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::install::{made, validators};
use crate::life::relocate::drop::Leaving;
use crate::life::relocate::stored;
use crate::life::relocate::way_back::WayBack;
use crate::life::replaced::amount;
use crate::life::retire::need_to_drop;
use crate::life::verbs::{Resource, UNINSTALL};
use crate::life::{CatalogRule, Life, expiry};
use crate::rule::State;
use crate::rule::names;
use document::backend::Session;
use document::filter::Filter;
use document::op::{AdminOp, Context, Count, Namespace, ReadOp};
use document::{ArrayWriter, Doc, DocWriter, Error, Result, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What was removed from a database, or would be, and what stays.
#[derive(Debug, Default)]
pub(crate) struct Uninstalled {
    db: String,
    rules: Vec<String>,
    indexes: Vec<String>,
    /// Indexes whose expiry MongoDB has again.
    expiries: Vec<String>,
    collections: Vec<String>,
    /// What came of bucketed collections that are plain again.
    back: Vec<(String, WayBack)>,
    /// What stays, and why.
    left: Vec<(String, String)>,
}

impl Uninstalled {
    /// `{ database, rules, indexes, expiries, collections, back: [ { collection, duplicates, … } ], left: [ { what, why } ] }`
    pub(crate) fn show(&self) -> Doc<'static> {
        let mut answer = DocWriter::new();
        answer.append("database", &Value::from(&*self.db));
        for (name, list) in [
            ("rules", &self.rules),
            ("indexes", &self.indexes),
            ("expiries", &self.expiries),
            ("collections", &self.collections),
        ] {
            answer.append(name, &Value::Array(list.iter().map(|item| Value::from(&**item)).collect()));
        }
        let mut back = ArrayWriter::new();
        for (collection, way_back) in self.back.iter().filter(|(_, way_back)| !way_back.is_nothing()) {
            let mut row = DocWriter::new();
            row.append("collection", &Value::from(&**collection));
            way_back.show(&mut row);
            back.push(&Value::Document(row.finish()));
        }
        answer.append("back", &Value::Array(back.finish()));
        let mut left = ArrayWriter::new();
        for (what, why) in &self.left {
            let row = crate::mql::object([("what", Value::from(&**what)), ("why", Value::from(&**why))]);
            left.push(&row);
        }
        answer.append("left", &Value::Array(left.finish()));
        answer.finish()
    }

    /// A database in which nothing could be done.
    pub(crate) fn failed(db: &str, error: &Error) -> Uninstalled {
        let mut outcome = Uninstalled { db: db.to_owned(), ..Uninstalled::default() };
        outcome.leave("all that Pleach has made", error.to_string());
        outcome
    }

    fn leave(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.left.push((what.into(), why.into()));
    }

    /// A rule stays. What is told first is told.
    fn keep_rule(&mut self, entry: &CatalogRule, why: String) {
        let rule = entry.rule.name.to_string();
        if self.rules.contains(&rule) {
            self.rules.retain(|other| *other != rule);
            self.left.push((format!("rule {rule}"), why));
        }
    }

    fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.collections.is_empty() && self.left.is_empty()
    }
}

impl Life {
    /// The databases where something of ours is and that the client may look into.
    pub(crate) async fn installed(&self, at: &mut Access<'_>, rights: &Rights) -> Result<Vec<String>> {
        let list = AdminOp::ListDatabases { filter: Filter::all(), name_only: true };
        let mut found = Vec::new();
        for row in at.backend.admin(at.session, at.context, list).await? {
            let Some(Value::String(db)) = row.get("name") else { continue };
            let db = db.as_str();
            let is_ours = !matches!(db, "admin" | "config" | "local") && rights.may_look_into(db);
            if is_ours && !ours_in(at, db).await?.is_empty() {
                found.push(db.to_owned());
            }
        }
        Ok(found)
    }

    /// What would be removed. Fails if the client may not.
    pub(crate) async fn would_uninstall(
        &self,
        rights: &Rights,
        context: &Context,
        db: &str,
        forget: bool,
    ) -> Result<Option<Uninstalled>> {
        let mut session = Session::default();
        let mut at = Access { backend: &*self.backend, session: &mut session, context };
        let (declared, made_by_create) = self.rules_of(db);
        let mut outcome = Uninstalled { db: db.to_owned(), ..Uninstalled::default() };
        for entry in declared.iter().chain(&made_by_create) {
            UNINSTALL.need_for_rule(rights, Resource::RuleCollections, &entry.rule)?;
        }
        for entry in &declared {
            need_to_drop(UNINSTALL, rights, entry)?;
            outcome.rules.push(entry.rule.name.to_string());
        }
        for made in made::all(&mut at, db).await? {
            UNINSTALL.need(rights, Resource::IndexedCollection, &made.ns)?;
            outcome.indexes.push(format!("{}.{}", made.ns.collection, made.index));
        }
        for row in expiry::rows(&mut at, db).await? {
            UNINSTALL.need(rights, Resource::ExpiringCollection, &row.ns)?;
            outcome.expiries.push(format!("{}.{}", row.ns.collection, row.index));
        }
        for row in validators::rows(&mut at, db).await? {
            UNINSTALL.need(rights, Resource::ConstrainedCollection, &row.ns)?;
        }
        let needed = !made_by_create.is_empty() || (!forget && keeps_values(&mut at, db).await?);
        for name in ours_in(&mut at, db).await? {
            let ns = Namespace::new(db, &name);
            UNINSTALL.need(rights, Resource::OwnCollections, &ns)?;
            match self.keeps(&mut at, &ns, forget, needed).await? {
                Some(why) => outcome.leave(name, why),
                None => outcome.collections.push(name),
            }
        }
        Ok((!outcome.is_empty()).then_some(outcome))
    }

    /// Removes all that is ours from the database; returns `None` if nothing was there. If a rule does not get on, the others go, and it
    /// is named with what stays.
    pub(crate) async fn uninstall(
        self: &Arc<Self>,
        rights: &Rights,
        context: &Context,
        db: &str,
        forget: bool,
    ) -> Result<Option<Uninstalled>> {
        // All rights are looked at before anything is changed.
        let Some(planned) = self.would_uninstall(rights, context, db, forget).await? else { return Ok(None) };
        self.start_if_due().await?;
        let mut outcome = Uninstalled { collections: Vec::new(), left: Vec::new(), ..planned };
        let (declared, made_by_create) = self.rules_of(db);
        for entry in declared.iter().filter(|entry| entry.row.state != State::Retiring) {
            if let Err(error) = self.drop_rule_for(rights, Some(db), &entry.rule.name, Leaving::default()).await {
                outcome.keep_rule(entry, error.to_string());
            }
        }
        for entry in &made_by_create {
            outcome.leave(entry.rule.host.collection.to_string(), "it is a time-series collection that a client made");
        }
        self.try_again(db);
        for stuck in self.settle_all(db).await? {
            outcome.keep_rule(&stuck, stuck.problem.clone().unwrap_or_default());
        }
        for entry in &declared {
            let back = self.take_way_back(db, &entry.rule.name);
            outcome.back.extend(back.map(|back| (entry.rule.host.collection.to_string(), back)));
        }
        for (collection, back) in &outcome.back {
            let failed = back.failed.iter().map(|(index, why)| (format!("no index {collection}.{index}"), why.clone()));
            outcome.left.extend(failed);
        }
        if declared.iter().any(|entry| self.row_of(entry).is_some()) {
            // Its collections hold what it still needs.
            outcome.indexes.clear();
            outcome.expiries.clear();
            outcome.leave("pleach.catalog", "it describes what stays");
            return Ok(Some(outcome));
        }
        let _changing = self.changing.lock().await;
        let mut session = Session::default();
        let mut at = Access { backend: &*self.backend, session: &mut session, context };
        self.begin_change(&mut at, db).await?;
        let removed = self.remove_ours(&mut at, db, forget, &mut outcome).await;
        self.end_change(&mut at, db).await?;
        removed?;
        Ok(Some(outcome))
    }

    async fn remove_ours(&self, at: &mut Access<'_>, db: &str, forget: bool, outcome: &mut Uninstalled) -> Result<()> {
        self.settle_expiry(at, db).await?;
        self.settle_validators(at, db).await?;
        self.drop_unneeded_indexes(at, db).await?;
        let rows = expiry::rows(at, db).await?;
        for row in &rows {
            let index = format!("{}.{}", row.ns.collection, row.index);
            outcome.expiries.retain(|given_back| *given_back != index);
            outcome.leave(index, "this server does not take back the expiry of the index: drop it and make it again");
        }
        let describes_values = !forget && keeps_values(at, db).await?;
        let needed = !rows.is_empty() || describes_values || self.entries().iter().any(|entry| *entry.db == *db);
        let mut names = ours_in(at, db).await?;
        // The catalog last: it says what is left to do.
        names.sort_by_key(|name| name == "pleach.catalog");
        for name in names {
            let ns = Namespace::new(db, &name);
            match self.keeps(at, &ns, forget, needed).await? {
                Some(why) => outcome.leave(name, why),
                None => {
                    stored::drop_if_there(at, &ns).await?;
                    outcome.collections.push(name);
                }
            }
        }
        self.publish(at, db).await
    }

    /// An `apply` has failed: what it made for its rules is removed, and all of ours where no rule is kept.
    pub(crate) async fn leave_nothing(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        match self.entries().iter().any(|entry| *entry.db == *db) {
            true => self.drop_unneeded_indexes(at, db).await.map(drop),
            false => self.remove_ours(at, db, false, &mut Uninstalled::default()).await,
        }
    }

    /// Why a collection of ours stays; `None` if it can go.
    async fn keeps(&self, at: &mut Access<'_>, ns: &Namespace, forget: bool, catalog: bool) -> Result<Option<String>> {
        let is = |other: Namespace| *ns == other;
        if is(names::catalog(&ns.db)) {
            return Ok(catalog.then(|| "it describes what stays".to_owned()));
        }
        if is(names::processes(&ns.db)) && self.registry_of(&ns.db).is_some_and(|registry| registry == *ns) {
            return Ok(Some("a Pleach that runs is announced in it; the last one removes it when it stops".to_owned()));
        }
        let is_aside = ns.collection.starts_with(names::ASIDE);
        if !is_aside && !is(names::replaced(&ns.db)) {
            return Ok(None);
        }
        let documents = count(at, ns).await?;
        Ok(match (documents, is_aside) {
            (0, _) => None,
            (_, true) if self.is_in_use(ns) => None,
            (_, true) => Some(format!("it holds {documents} documents of yours")),
            (_, false) if forget => None,
            (_, false) => Some(format!("it keeps {documents} values that rules have replaced; --forget removes it")),
        })
    }

    /// The rules of declarations, and those that `create` made.
    fn rules_of(&self, db: &str) -> (Vec<CatalogRule>, Vec<CatalogRule>) {
        self.entries().into_iter().filter(|entry| *entry.db == *db).partition(CatalogRule::is_declared)
    }
}

/// Whether the catalog says what is kept of rules that are gone: `drop RULE --restore` needs it.
async fn keeps_values(at: &mut Access<'_>, db: &str) -> Result<bool> {
    Ok(amount::all(at, db).await?.iter().any(|of| !of.amount.is_nothing()))
}

/// The names of our collections in a database.
async fn ours_in(at: &mut Access<'_>, db: &str) -> Result<Vec<String>> {
    let list = AdminOp::ListCollections { db: db.to_owned(), filter: Filter::all(), name_only: true };
    let rows = at.backend.admin(at.session, at.context, list).await?;
    let name = |row: &Doc<'static>| row.get("name").and_then(|name| name.as_str().map(str::to_owned));
    let ours: BTreeSet<String> = rows.iter().filter_map(name).filter(|name| name.starts_with(names::PREFIX)).collect();
    Ok(ours.into_iter().collect())
}

async fn count(at: &mut Access<'_>, ns: &Namespace) -> Result<i64> {
    let op = Count { ns: ns.clone(), filter: Filter::all(), skip: 0, limit: None, hint: None };
    let rows = at.all(ReadOp::Count(op)).await?;
    Ok(rows.first().map_or(0, |row| crate::life::catalog::long(row.get("n"))))
}
