//! The end of a rule: its jobs, its state in the hosts and, if asked, its field are removed; then the catalog forgets it.

use crate::execute::access::{Access, update_one, update_op};
use crate::execute::evaluate::becomes;
use crate::execute::rights::Rights;
use crate::fields::value_at;
use crate::life::relocate::drop::Leaving;
use crate::life::replaced::Lifted;
use crate::life::transaction::OwnTransaction;
use crate::life::verbs::{DROP, RequiredPrivileges, Resource};
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, WalkEnd, walk};
use crate::life::{CatalogRule, Life, catalog, lifecycle, lift, plan, replaced};
use crate::rule::Rule;
use crate::rule::State;
use crate::rule::names;
use document::backend::{Answer, Session};
use document::filter::Filter;
use document::op::{Context, Durability};
use document::value::Path;
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How many hosts are looked at in one transaction.
const PACE: Pace = Pace::even(1_000);

impl Life {
    /// Drops a rule on behalf of this process; what it leaves behind is removed in the background. Returns its database.
    pub async fn drop_rule(self: &Arc<Self>, db: Option<&str>, rule: &str, leaving: Leaving) -> Result<Arc<str>> {
        self.drop_rule_for(&Rights::unrestricted(), db, rule, leaving).await
    }

    /// The same on behalf of a client.
    pub(crate) async fn drop_rule_for(
        self: &Arc<Self>,
        rights: &Rights,
        db: Option<&str>,
        rule: &str,
        leaving: Leaving,
    ) -> Result<Arc<str>> {
        leaving.check()?;
        if let Some(db) = db {
            DROP.need_to_look_into(rights, db)?;
        }
        let entry = self.find_rule(db, rule, leaving, rights).await?;
        need_to_drop(DROP, rights, &entry)?;
        if leaving.restore {
            DROP.need(rights, Resource::Replaced, &names::replaced(&entry.rule.host.db))?;
            lifecycle::of(&entry.rule).need_to_lift(DROP, rights, &entry.rule)?;
        }
        self.start_if_due().await?;
        let _changing = self.changing.lock().await;
        let entry = &self.find_rule(db, rule, leaving, rights).await?;
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        self.begin_change(&mut at, &entry.db).await?;
        let outcome = self.write_drop(&mut at, entry, leaving, rights).await;
        self.end_change(&mut at, &entry.db).await?;
        outcome.map(|()| entry.db.clone())
    }

    /// The rule of that name, among those that the client may read. One that is gone if what is kept of it is asked for.
    async fn find_rule(&self, db: Option<&str>, rule: &str, leaving: Leaving, rights: &Rights) -> Result<CatalogRule> {
        let is_meant = |entry: &CatalogRule| &*entry.rule.name == rule && db.is_none_or(|db| *entry.db == *db);
        let found: Vec<CatalogRule> =
            self.entries().into_iter().filter(|entry| is_meant(entry) && rights.may_see(&entry.rule)).collect();
        match found.as_slice() {
            [entry] => Ok(entry.clone()),
            [] => {
                let gone = match leaving.restore {
                    true => self.find_gone(rights, db, rule).await?,
                    false => None,
                };
                gone.ok_or_else(|| no_such_rule(self, db, rule, rights))
            }
            several => {
                let databases: Vec<&str> = several.iter().map(|entry| &*entry.db).collect();
                let message = format!("rule {rule} is kept in several databases: {}", databases.join(", "));
                Err(Error::new(Code::BadValue, message).with_hint("name one with --db"))
            }
        }
    }

    async fn write_drop(
        &self,
        at: &mut Access<'_>,
        entry: &CatalogRule,
        leaving: Leaving,
        rights: &Rights,
    ) -> Result<()> {
        let Some(row) = self.row_of(entry) else {
            return match leaving.restore {
                true => self.restore_gone(at, entry).await,
                false => Err(no_such_rule(self, Some(&entry.db), &entry.rule.name, rights)),
            };
        };
        if row.replaced.restore {
            // It was asked for before: it continues.
            return if leaving.restore { Ok(()) } else { Err(being_restored(&entry.rule)) };
        }
        // The items of an array are kept in its overflow, and versions replace nothing.
        if leaving.restore && entry.rule.outlier().is_none() && entry.rule.lens().is_none() {
            replaced::restore::check(at, &row, &entry.rule).await?;
        }
        let current = CatalogRule::new(&entry.db, row, entry.rule.clone())?;
        lifecycle::of(&entry.rule).drop(self, at, &current, leaving).await?;
        self.publish(at, &entry.db).await?;
        self.wake_reconciler.notify_one();
        Ok(())
    }
}

/// Writes down that a field goes; the reconciler removes what it leaves.
pub(crate) async fn begin(life: &Life, at: &mut Access<'_>, entry: &CatalogRule, leaving: Leaving) -> Result<()> {
    leaving.refuse_buckets(&entry.rule)?;
    let mut row = entry.row.clone();
    let since = row.epoch;
    row.state = State::Retiring;
    row.replaced.restore = leaving.restore;
    if leaving.restore {
        (row.done, row.total) = (0, plan::documents(at, &entry.rule.host).await?);
    }
    row.with_data = leaving.with_data;
    row.epoch += 1;
    row.by.clone_from(&life.process);
    life.unpublished.store(true, Ordering::Relaxed);
    let written = catalog::write_over(life, &entry.db, &row, Some(since), |now, row| {
        row.replaced.seeded_to = now.seeded_to();
        row.replaced.lifted.clone_from(&now.replaced.lifted);
        row.replaced.seeded = now.replaced.seeded;
    });
    let Some(row) = written.await? else {
        life.refresh(at).await?;
        return Err(Error::new(Code::ConflictingOperationInProgress, "the rule was changed meanwhile; try again"));
    };
    life.put_entry(CatalogRule { row, reached: None, problem: None, ..entry.clone() });
    life.put_in_force()
}

/// What the client would need to drop the rule's documents and fields by commands of its own. `needed`: as the verb lists it.
pub(crate) fn need_to_drop(needed: RequiredPrivileges, rights: &Rights, entry: &CatalogRule) -> Result<()> {
    needed.need(rights, Resource::Catalog, &names::catalog(&entry.db))?;
    lifecycle::of(&entry.rule).need_to_change(needed, rights, &entry.rule)
}

/// The error of a change of a rule whose hosts are getting back what they had.
pub(crate) fn being_restored(rule: &Rule) -> Error {
    let message = format!("rule {} is being dropped, and its documents are getting back what they had", rule.name);
    Error::new(Code::ConflictingOperationInProgress, message).with_hint("wait until `pleach status` no longer shows it")
}

/// Names the rules of the database that the client may read.
fn no_such_rule(life: &Life, db: Option<&str>, rule: &str, rights: &Rights) -> Error {
    let there: Vec<String> = life
        .entries()
        .iter()
        .filter(|entry| db.is_none_or(|db| *entry.db == *db) && rights.may_see(&entry.rule))
        .map(|entry| entry.rule.name.to_string())
        .collect();
    let error = Error::new(Code::BadValue, format!("there is no rule {rule}"));
    match there.is_empty() {
        true => error.with_hint("no rule is kept here; `pleach apply` makes them"),
        false => error.with_hint(format!("the rules are: {}", there.join(", "))),
    }
}

/// Removes what a retiring rule has left.
pub(crate) async fn retire(life: &Life, entry: &CatalogRule) -> Result<()> {
    // No process may still keep it.
    life.settled_everywhere(&entry.db).await?;
    let context = Context { durability: Durability::Relaxed, ..life.context() };
    let mut session = Session::default();
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    let jobs = Filter::equality("_id.rule", &Value::from(&*entry.rule.name));
    at.delete(&names::outbox(&entry.db), jobs).await?;
    if entry.row.replaced.restore {
        replaced::restore::restore(life, entry).await?;
        return end(life, entry).await;
    }
    let mut row = entry.row.clone();
    if let Some(since) = row.replaced.since {
        let Some(undone) = lift::unfinished::undo(life, entry, row, since).await? else {
            return life.reload().await;
        };
        row = undone;
    }
    let traces = Traces { unlifted: row.replaced.lifted.clone(), ..Traces::of(&entry.rule, row.with_data) };
    if traces.state || traces.with_data {
        clean(life, entry, &traces).await?;
    }
    end(life, &CatalogRule { row, ..entry.clone() }).await
}

/// The catalog forgets the rule, and what was made for it alone goes.
pub(super) async fn end(life: &Life, entry: &CatalogRule) -> Result<()> {
    let _changing = life.changing.lock().await;
    if is_superseded(life, entry) {
        return Ok(());
    }
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    replaced::ended_rules::end(&mut at, entry).await?;
    life.tidy_indexes(&mut at, &entry.db).await?;
    catalog::remove(&mut at, &entry.db, &entry.row).await?;
    life.remove_entry(entry);
    life.put_in_force()?;
    life.settle_expiry(&mut at, &entry.db).await?;
    life.publish(&mut at, &entry.db).await?;
    tracing::info!(rule = &*entry.rule.name, "gone");
    Ok(())
}

/// Removes the state that an earlier form of the rule has left.
pub(crate) async fn tidy(life: &Life, entry: &CatalogRule) -> Result<()> {
    clean(life, entry, &Traces { state: true, ..Traces::of(&entry.rule, false) }).await
}

/// Whether the rule was declared again meanwhile.
fn is_superseded(life: &Life, entry: &CatalogRule) -> bool {
    life.row_of(entry).is_none_or(|row| row.epoch != entry.row.epoch)
}

/// What a rule leaves in its hosts.
struct Traces {
    field: Path,
    state_path: Path,
    state: bool,
    with_data: bool,
    /// Of a window whose field is an array that was being lifted: which hosts still have their items there.
    unlifted: Option<Lifted>,
}

impl Traces {
    fn of(rule: &Rule, with_data: bool) -> Traces {
        let state_path = Path::new(&format!("_pleach.{}", rule.field.dotted()));
        // An earlier form of the rule may have had a state where this one has none.
        let state = rule.link().is_some_and(|link| link.refers == crate::rule::Refers::Source);
        Traces { field: rule.field.clone(), state_path, state, with_data, unlifted: None }
    }

    fn has_any(&self, host: &Doc<'_>) -> bool {
        let has = |path: &Path| match value_at(host, path) {
            Value::Missing => false,
            Value::Array(items) if !ends_outside_arrays(host, path) => items.iter().any(|item| !item.is_nullish()),
            _ => true,
        };
        (self.takes_field(host) && has(&self.field)) || (self.state && has(&self.state_path))
    }

    /// Whether the field of the host goes. Items that are no documents yet stay where they are.
    fn takes_field(&self, host: &Doc<'_>) -> bool {
        let holds_items = |lifted: &Lifted| {
            lifted.array == self.field.dotted() && !lifted.has_lifted(&host.get("_id").unwrap_or(Value::Null))
        };
        self.with_data && !self.unlifted.as_ref().is_some_and(holds_items)
    }

    /// The host without them, and without the documents that were made for them alone.
    fn removed(&self, host: &Doc<'_>) -> Doc<'static> {
        let mut right = host.clone().into_owned();
        for path in [(self.takes_field(host), &self.field), (self.state, &self.state_path)] {
            if let (true, path) = path {
                right = replaced::without(&right, path);
            }
        }
        right
    }
}

/// Whether a path leads to its value without passing an array: then an array is the value itself, be it of nulls only.
fn ends_outside_arrays(host: &Doc<'_>, path: &Path) -> bool {
    let mut value = Value::Document(host.clone());
    path.parts.iter().all(|part| {
        let Value::Document(document) = &value else { return false };
        let inner = document.get(&part.name).unwrap_or(Value::Missing);
        value = inner.into_owned();
        true
    })
}

/// Walks the hosts. It begins anew after a restart: what is clean is only read.
async fn clean(life: &Life, entry: &CatalogRule, traces: &Traces) -> Result<()> {
    match walk(life, PACE, None, &mut Cleaning { life, entry, traces }).await? {
        WalkEnd::Reached => Ok(()),
        WalkEnd::Superseded => life.reload().await,
    }
}

struct Cleaning<'a> {
    life: &'a Life,
    entry: &'a CatalogRule,
    traces: &'a Traces,
}

impl PartWork for Cleaning<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }
}

impl Cleaning<'_> {
    async fn one_part(&self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let (life, entry, host) = (self.life, self.entry, &self.entry.rule.host);
        if is_superseded(life, entry) {
            return Ok(None);
        }
        let context = Context { durability: Durability::Relaxed, ..life.context() };
        // Held until the commit: another process that applies the rule anew waits for this one.
        let _held = life.patterned.rules();
        let mut began = OwnTransaction::begin(life, &context).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context: &context };
        if catalog::epoch(&mut at, &entry.db, &entry.row.rule).await? != Some(entry.row.epoch) {
            return Ok(None);
        }
        let (hosts, next) = walk::read(&mut at, host, part, None).await?;
        let cleaned = |host: &Doc<'static>| {
            let update = becomes(host, &self.traces.removed(host));
            Some(update_one(Filter::equality("_id", &host.get("_id")?), update))
        };
        let statements: Vec<_> = hosts.iter().filter(|host| self.traces.has_any(host)).filter_map(cleaned).collect();
        if !statements.is_empty() {
            at.write(&update_op(host, statements)).await?;
            began.commit().await?;
        }
        Ok(Some(PartDone::of(&hosts, next)))
    }
}
