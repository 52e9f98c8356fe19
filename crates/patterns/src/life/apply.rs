//! `apply`: makes the catalog what a declaration says. Indexes first, then every changed rule is maintained; the keeper seeds.

use super::plan::{Changes, Work};
use super::records::At;
use super::shape::drop::Leaving;
use super::shape::rows::Shaping;
use super::states::State;
use super::{Entry, Life, catalog, indexes, plan, shape};
use crate::declare::{Declaration, compatible};
use crate::rule::Rule;
use document::backend::Session;
use document::{Code, Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How far `apply` may go.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Rules that the declaration lacks are removed …
    pub remove: bool,
    /// … with the fields they kept.
    pub with_data: bool,
    /// Only what is new is applied; what rewrites or removes data is left as it is, and said.
    pub additions_only: bool,
}

impl Life {
    /// What is declared differently stays in force as it was: the additions must go with that.
    fn beside_what_stays(&self, db: &str, additions: &Changes) -> Result<()> {
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

    /// Applies a declaration; seeding goes on in the background. Gives what was left undone.
    pub async fn apply(&self, declaration: &Declaration, extent: Extent) -> Result<Vec<String>> {
        let _changing = self.changing.lock().await;
        let (mut session, context) = (Session::default(), self.context());
        let mut at = At { backend: &*self.backend, session: &mut session, context: &context };
        self.begin_change(&mut at, &declaration.database).await?;
        let outcome = self.change(&mut at, declaration, extent).await;
        self.end_change(&mut at, &declaration.database).await?;
        outcome
    }

    async fn change(&self, at: &mut At<'_>, declaration: &Declaration, extent: Extent) -> Result<Vec<String>> {
        let db = &*declaration.database;
        let all = Changes::find(at, &self.entries(), db, &declaration.rules).await?;
        let mut left = Vec::new();
        let changes = match extent.additions_only {
            true => {
                let some = all.clone().additions();
                self.beside_what_stays(db, &some)?;
                let done = |rule: &Arc<Rule>| some.steps.iter().any(|step| step.rule.name == rule.name);
                for step in all.steps.iter().filter(|step| !done(&step.rule)) {
                    let what = match step.work {
                        Work::Remove => "is no longer declared",
                        Work::Rebuild | Work::Keep => "is declared differently",
                        Work::Shape(_) => "stores documents that are there in another form",
                        Work::Index(_) | Work::Expiry(_) | Work::Seed => continue,
                    };
                    left.push(format!("{} {what}", step.rule.name));
                }
                some
            }
            false => all,
        };
        if !extent.remove
            && let Some(rule) = changes.removed().next()
        {
            return Err(Error::new(
                Code::IllegalOperation,
                format!("rule {} is kept in {db} and the declaration does not have it", rule.name),
            )
            .with_hint("say that it is to go with --remove, or put it back into the declaration"));
        }
        self.backend.prepare(at.session, db).await?;
        for step in &changes.steps {
            match &step.work {
                Work::Index(needed) => indexes::create(at, &step.rule, needed).await?,
                Work::Expiry(expiry) => expiry.take_over(at).await?,
                _ => {}
            }
        }
        self.unpublished.store(true, Ordering::Relaxed);
        self.write_down(at, db, &changes, extent).await?;
        self.put_in_force()?;
        // What was made meanwhile by who did not know of the rule; before it is seeded.
        self.settle_expiry(at, db).await?;
        self.publish(at, db).await?;
        self.try_again(db);
        Ok(left)
    }

    async fn write_down(&self, at: &mut At<'_>, db: &str, changes: &Changes, extent: Extent) -> Result<()> {
        let epoch = self.entries().iter().map(|entry| entry.row.epoch).max().unwrap_or(0) + 1;
        for step in &changes.steps {
            let known = self.entries().into_iter().find(|entry| *entry.db == *db && entry.rule.name == step.rule.name);
            let mut row = catalog::Row {
                rule: step.rule.name.to_string(),
                kind: step.rule.kind.to_owned(),
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
            };
            match &step.work {
                Work::Index(_) | Work::Expiry(_) => continue,
                Work::Seed | Work::Rebuild => row.total = plan::documents(at, &step.rule.host).await?,
                Work::Keep => {
                    let Some(known) = known else { continue };
                    row.state = known.row.state;
                    (row.done, row.total) = (known.row.done, known.row.total);
                    row.shape =
                        known.row.shape.map(|shape| shape.declared_as(&known.row.declaration, &row.declaration));
                }
                Work::Shape(change) => {
                    let shape = known.and_then(|known| known.row.shape).unwrap_or_default();
                    row.shape = Some(Shaping {
                        turn: Some(change.turn.clone()),
                        timeseries: None,
                        indexes: Vec::new(),
                        ..shape
                    });
                }
                Work::Remove if shape::bucket_of(&step.rule).is_some() => {
                    if let Some(known) = known {
                        let leaving = Leaving { with_data: extent.with_data, keep_buckets: false };
                        shape::drop::begin(self, at, &known, leaving).await?;
                    }
                    continue;
                }
                Work::Remove => {
                    row.state = State::Retiring;
                    row.with_data = extent.with_data;
                }
            }
            catalog::save(at, db, &row).await?;
            self.put_entry(Entry::new(db, row, step.rule.clone())?);
        }
        Ok(())
    }

    /// Has the keeper try again what it failed in: what was wrong may have been mended, so it is not told any more.
    fn try_again(&self, db: &str) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.entries.lock().iter_mut().filter(|entry| *entry.db == *db).for_each(|entry| entry.problem = None);
        self.wake_keeper.notify_one();
    }

    /// Waits until every rule of the database is on or gone, or one does not get on.
    pub async fn settle(&self, db: &str) -> Result<()> {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            let unfinished: Vec<Entry> =
                self.entries().into_iter().filter(|entry| *entry.db == *db && entry.row.state != State::On).collect();
            if unfinished.is_empty() {
                return Ok(());
            }
            if let Some((entry, problem)) = unfinished.iter().find_map(|entry| Some((entry, entry.problem.clone()?))) {
                return Err(Error::new(
                    Code::OperationFailed,
                    format!("rule {} does not get on: {problem}", entry.rule.name),
                ));
            }
            self.check_stopped()?;
            let _ = tokio::time::timeout(std::time::Duration::from_millis(200), moved).await;
        }
    }
}
