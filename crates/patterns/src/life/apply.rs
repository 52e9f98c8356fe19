//! `apply`: makes the catalog what a declaration says. Indexes first, then every changed rule is maintained; the reconciler seeds.

use crate::declare::{Declaration, compatible};
use crate::execute::access::Access;
use crate::execute::rights::{Rights, namespaces};
use crate::life::plan::{ApplyPlan, Work};
use crate::life::preview::{Preview, PreviewOptions, Refusal, RulePreview};
use crate::life::relocate::drop::Leaving;
use crate::life::{CatalogRule, Life, catalog, install, lifecycle, replaced, retire};
use crate::rule::Rule;
use crate::rule::state::State;
use document::backend::Session;
use document::op::Namespace;
use document::{Code, Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How far `apply` may go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Consent {
    /// Rules that the declaration lacks are removed …
    pub remove: bool,
    /// … with the fields they kept.
    pub with_data: bool,
    /// Existing values may be removed, and more than half of them changed.
    pub overwrite: bool,
    /// Names that do not exist are meant as they are written, although near ones exist.
    pub create_missing: bool,
    /// Only what is new is applied; what rewrites or removes data, or needs a flag, is left as it is, and said.
    pub additions_only: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// What was left undone, and why: a line each.
    pub left: Vec<String>,
    pub(crate) preview: Preview,
}

/// What is to be done, decided by a look at the data.
struct Decided {
    changes: ApplyPlan,
    applied: Applied,
    /// The rules that a flag is needed for.
    pending: Vec<Pending>,
}

/// A declared rule that waits for somebody to say that it may be applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pending {
    pub(crate) db: String,
    pub(crate) rule: Arc<str>,
    /// The collections of the rule: whoever may not read them is not shown it.
    pub(crate) namespaces: Vec<Namespace>,
    pub(crate) reason: String,
}

impl Life {
    /// What is declared differently stays in force as it was: the additions must go with that.
    fn beside_what_stays(&self, db: &str, additions: &ApplyPlan) -> Result<()> {
        let mut rules: Vec<Rule> =
            self.entries().iter().filter(|entry| *entry.db == *db).map(|entry| (*entry.rule).clone()).collect();
        for step in &additions.steps {
            if !rules.iter().any(|rule| rule.host == step.rule.host && rule.name == step.rule.name) {
                rules.push((*step.rule).clone());
            }
        }
        compatible(&rules)
            .map_err(|error| error.with_hint("`pleach apply` changes and removes the old rules before it adds the new"))
    }

    /// Applies a declaration; seeding goes on in the background.
    pub async fn apply(self: &Arc<Self>, declaration: &Declaration, extent: Consent) -> Result<Applied> {
        self.apply_for(&Rights::unrestricted(), declaration, extent).await
    }

    /// The same for a client with these rights.
    pub(crate) async fn apply_for(
        self: &Arc<Self>,
        rights: &Rights,
        declaration: &Declaration,
        extent: Consent,
    ) -> Result<Applied> {
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        // Before anything is written: what is refused leaves nothing behind, not even a lease.
        let mut early = None;
        if self.only_looks() {
            early = Some(self.decide(&mut at, rights, declaration, extent).await?);
            self.start_if_due().await?;
        }
        let _changing = self.changing.lock().await;
        let decided = match early {
            Some(decided) => decided,
            None => self.decide(&mut at, rights, declaration, extent).await?,
        };
        self.begin_change(&mut at, &declaration.database).await?;
        let outcome = self.change(&mut at, rights, declaration, extent, decided).await;
        if outcome.is_err()
            && let Err(error) = self.leave_nothing(&mut at, &declaration.database).await
        {
            tracing::warn!(%error, "what a failed apply had made could not be removed");
        }
        self.end_change(&mut at, &declaration.database).await?;
        outcome
    }

    /// Looks at the data, and refuses what needs a flag that was not given.
    async fn decide(
        &self,
        at: &mut Access<'_>,
        rights: &Rights,
        declaration: &Declaration,
        extent: Consent,
    ) -> Result<Decided> {
        let db = &*declaration.database;
        let mut changes = ApplyPlan::find(at, &self.entries(), db, &declaration.rules).await?;
        let mut left = Vec::new();
        if extent.additions_only {
            let some = changes.clone().additions();
            let done = |rule: &Arc<Rule>| some.steps.iter().any(|step| step.rule.name == rule.name);
            for step in changes.steps.iter().filter(|step| !done(&step.rule)) {
                let what = match step.work {
                    Work::Remove => "is no longer declared",
                    Work::Rebuild | Work::Keep => "is declared differently",
                    Work::Shape(_) => "stores documents that are there in another form",
                    Work::Lift => "moves the items of an array into documents of their own",
                    Work::Convert { rewrites: true, .. } => lifecycle::of(&step.rule).rewriting(),
                    Work::Index(_)
                    | Work::Expiry(_)
                    | Work::Seed
                    | Work::Constrain(_)
                    | Work::Convert { rewrites: false, .. } => continue,
                };
                left.push(format!(
                    "rule {} {what}: the rule that is kept stays in force until `pleach apply`",
                    step.rule.name
                ));
            }
            changes = some;
        }
        let options = PreviewOptions { remove: extent.remove, with_data: extent.with_data };
        let preview = Preview::look(self, at, rights, &changes, &declaration.rules, options).await?;
        let refused: Vec<(&RulePreview, &Refusal)> =
            preview.refusals().filter(|(_, refusal)| !refusal.is_waived(extent)).collect();
        let mut pending = Vec::new();
        if extent.additions_only {
            for (rule_preview, refusal) in &refused {
                let (rule, reason) = (rule_preview.rule.name.clone(), refusal.reason.clone());
                let flag = refusal.need.flag().map(|flag| format!(" --{}", flag.replace('_', "-")));
                left.push(format!("{reason}: it is pending until `pleach apply{}`", flag.unwrap_or_default()));
                let namespaces = namespaces(&rule_preview.rule);
                pending.push(Pending { db: db.to_owned(), rule, namespaces, reason });
            }
            let names: Vec<Arc<str>> = pending.iter().map(|pending| pending.rule.clone()).collect();
            changes = changes.without(&names);
            self.beside_what_stays(db, &changes)?;
        } else {
            let all: Vec<&Refusal> = refused.iter().map(|(_, refusal)| *refusal).collect();
            if let Some(error) = Refusal::error("applied", &all) {
                return Err(error);
            }
        }
        Ok(Decided { changes, applied: Applied { left, preview }, pending })
    }

    async fn change(
        self: &Arc<Self>,
        at: &mut Access<'_>,
        rights: &Rights,
        declaration: &Declaration,
        extent: Consent,
        mut decided: Decided,
    ) -> Result<Applied> {
        let db = &*declaration.database;
        let now = ApplyPlan::find(at, &self.entries(), db, &declaration.rules).await?;
        let now = if extent.additions_only { now.additions() } else { now };
        if !now.clone().without(&decided.pending_names()).is_same(&decided.changes) {
            // Another process has changed the rules meanwhile.
            decided = self.decide(at, rights, declaration, extent).await?;
        }
        let changes = decided.changes;
        self.refuse_being_restored(db, &changes)?;
        install::create_all(at, &changes.indexes().collect::<Vec<_>>()).await?;
        self.prepare(at.session, db).await?;
        replaced::prepare(at, db).await?;
        for step in &changes.steps {
            if let Work::Expiry(expiry) = &step.work {
                expiry.take_over(at).await?;
            }
        }
        self.unpublished.store(true, Ordering::Relaxed);
        self.write_down(at, db, &changes, extent).await?;
        if self.entries().iter().any(|entry| *entry.db == *db && entry.rule.constraint().is_some()) {
            // Before a rule writes its field: schemas that list what is allowed must allow it.
            self.settle_validators(at, db).await?;
        }
        self.put_in_force()?;
        // What was made meanwhile by processes that did not know the rule; before it is seeded.
        self.settle_expiry(at, db).await?;
        self.publish(at, db).await?;
        let mut pending = self.pending.lock();
        pending.retain(|pending| pending.db != db);
        pending.extend(decided.pending);
        drop(pending);
        self.try_again(db);
        Ok(decided.applied)
    }

    pub(crate) async fn write_down(
        &self,
        at: &mut Access<'_>,
        db: &str,
        changes: &ApplyPlan,
        extent: Consent,
    ) -> Result<()> {
        let epoch = self.entries().iter().map(|entry| entry.row.epoch).max().unwrap_or(0) + 1;
        for step in &changes.steps {
            let lifecycle = lifecycle::of(&step.rule);
            let known = self.entries().into_iter().find(|entry| *entry.db == *db && entry.rule.name == step.rule.name);
            let mut row = catalog::Row {
                rule: step.rule.name.to_string(),
                kind: step.rule.pattern.to_owned(),
                declaration: step.rule.declaration.clone(),
                state: State::Maintaining,
                epoch,
                done: 0,
                total: 0,
                with_data: false,
                tidy: known.as_ref().is_some_and(|known| known.row.tidy || known.rule.state_path().is_some())
                    && step.rule.state_path().is_none(),
                by: self.process.clone(),
                shape: None,
                replaced: known.as_ref().map(|known| known.row.carried()).unwrap_or_default(),
                taken_back: None,
            };
            match &step.work {
                Work::Index(_) | Work::Expiry(_) => continue,
                Work::Seed
                | Work::Lift
                | Work::Rebuild
                | Work::Shape(_)
                | Work::Constrain(_)
                | Work::Convert { .. } => {
                    lifecycle.begin(at, known.as_ref(), step, &mut row).await?;
                }
                Work::Keep => {
                    let Some(known) = known else { continue };
                    row.state = known.row.state;
                    (row.done, row.total) = (known.row.done, known.row.total);
                    row.replaced = known.row.replaced;
                    row.taken_back = known.row.taken_back;
                    row.shape =
                        known.row.shape.map(|shape| shape.declared_as(&known.row.declaration, &row.declaration));
                }
                Work::Remove => {
                    if let Some(known) = known {
                        let leaving = Leaving { with_data: extent.with_data, ..Leaving::default() };
                        lifecycle.drop(self, at, &known, leaving).await?;
                    }
                    continue;
                }
            }
            let written = catalog::write_over(self, db, &row, None, |now, row| match &step.work {
                Work::Keep => lifecycle.take_over(now, row),
                Work::Lift | Work::Rebuild if now.state.is_kept() => row.replaced = now.carried(),
                _ => {}
            });
            if let Some(row) = written.await? {
                self.put_entry(CatalogRule::new(db, row, step.rule.clone())?);
            }
        }
        Ok(())
    }

    /// A rule whose hosts are getting back what they had is changed when that is done: some have it already.
    fn refuse_being_restored(&self, db: &str, changes: &ApplyPlan) -> Result<()> {
        let is_restored = |rule: &Arc<Rule>| {
            let is_it =
                |entry: &CatalogRule| *entry.db == *db && entry.rule.name == rule.name && entry.row.replaced.restore;
            self.entries().iter().any(is_it)
        };
        match changes.steps.iter().find(|step| is_restored(&step.rule)) {
            Some(step) => Err(retire::being_restored(&step.rule)),
            None => Ok(()),
        }
    }

    /// Has the reconciler try again what it failed in: what was wrong may have been mended, so it is not told any more.
    pub(crate) fn try_again(&self, db: &str) {
        let mut entries = self.entries.lock();
        self.bring_on_requests.fetch_add(1, Ordering::Relaxed);
        entries.iter_mut().filter(|entry| *entry.db == *db).for_each(|entry| entry.problem = None);
        drop(entries);
        self.wake_reconciler.notify_one();
    }

    /// Waits until every rule of the database is on, or gone with the indexes that were made for it, or one does not get on.
    pub async fn settle(&self, db: &str) -> Result<()> {
        self.settle_rules(db, |_| true).await
    }

    /// Waits until a rule that was dropped is gone, whatever becomes of the others.
    pub(crate) async fn settle_dropped(&self, db: &str, rule: &str) -> Result<()> {
        self.settle_rules(db, |entry| *entry.rule.name == *rule).await
    }

    async fn settle_rules(&self, db: &str, concerns: impl Fn(&CatalogRule) -> bool) -> Result<()> {
        let is_stuck = |entries: &[CatalogRule]| entries.iter().any(|entry| entry.problem.is_some());
        let stuck = self.settled_but_for(db, concerns, is_stuck).await?;
        match stuck.iter().find_map(|entry| Some((entry, entry.problem.as_ref()?))) {
            Some((entry, problem)) => {
                let message = format!("rule {} does not get on: {problem}", entry.rule.name);
                Err(Error::new(Code::OperationFailed, message))
            }
            None => Ok(()),
        }
    }

    /// Waits until every rule of the database is on, gone or stuck: returns those that do not get on.
    pub(crate) async fn settle_all(&self, db: &str) -> Result<Vec<CatalogRule>> {
        self.settled_but_for(db, |_| true, |entries| entries.iter().all(|entry| entry.problem.is_some())).await
    }

    /// Waits until every rule that is concerned is on or gone, or what is left of them is enough for the caller.
    async fn settled_but_for(
        &self,
        db: &str,
        concerns: impl Fn(&CatalogRule) -> bool,
        is_enough: impl Fn(&[CatalogRule]) -> bool,
    ) -> Result<Vec<CatalogRule>> {
        loop {
            let moved = self.state_changed.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            let waits = |entry: &CatalogRule| entry.row.state == State::Restoring && self.is_restoring(db);
            let unfinished: Vec<CatalogRule> = self
                .entries()
                .into_iter()
                .filter(|entry| *entry.db == *db && concerns(entry) && entry.row.state != State::On && !waits(entry))
                .collect();
            if unfinished.is_empty() && self.tidy_again(db).await? {
                // What ends the last rule is done when its change of the catalog is: its expiry is given back in it.
                let _changed = self.changing.lock().await;
                return Ok(unfinished);
            }
            if is_enough(&unfinished) {
                return Ok(unfinished);
            }
            self.check_stopped()?;
            let _ = tokio::time::timeout(std::time::Duration::from_millis(200), moved).await;
        }
    }
}

impl Decided {
    fn pending_names(&self) -> Vec<Arc<str>> {
        self.pending.iter().map(|pending| pending.rule.clone()).collect()
    }
}
