//! What the catalogs say, put in force: at the start, and whenever another process has changed them.

use crate::execute::access::Access;
use crate::life::relocate::own;
use crate::life::{CatalogRule, Life, catalog};
use document::Result;
use document::backend::Session;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A row of a catalog that is no rule of its database: whoever may write there has put it in. It is left alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ignored {
    pub(super) db: Arc<str>,
    pub(super) rule: String,
    pub(super) reason: String,
}

impl Ignored {
    pub(super) fn warn(&self) {
        let Ignored { db, rule, reason } = self;
        tracing::warn!(
            rule,
            database = &**db,
            reason,
            "a row of the catalog is no rule of its database; it is not kept"
        );
    }
}

impl Life {
    /// Reads the catalogs and puts what they say in force.
    pub async fn load(&self) -> Result<()> {
        self.reload().await
    }

    /// The same for a process that only reads, perhaps as a user who may not write.
    pub async fn load_to_read(&self) -> Result<()> {
        self.only_looks.store(true, Ordering::Relaxed);
        self.reload().await
    }

    pub(crate) fn only_looks(&self) -> bool {
        self.only_looks.load(Ordering::Relaxed)
    }

    /// What another process has done a moment ago, for a decision by it.
    pub(super) async fn catch_up(&self) -> Result<()> {
        let is_alone = self.registries.lock().is_empty();
        match is_alone || self.raw.load(Ordering::Relaxed) {
            true => Ok(()),
            false => self.reload().await,
        }
    }

    pub(super) async fn reload(&self) -> Result<()> {
        let _changing = self.changing.lock().await;
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        self.refresh(&mut at).await
    }

    /// The same within a change of rules.
    pub(crate) async fn refresh(&self, at: &mut Access<'_>) -> Result<()> {
        let known: BTreeSet<Arc<str>> = self.entries().into_iter().map(|entry| entry.db).collect();
        let mut rows: Vec<(Arc<str>, catalog::Row)> = Vec::new();
        let is_ours = |db: &String| self.only_in.get().is_none_or(|only| only == db);
        for db in catalog::databases(at).await?.into_iter().filter(is_ours) {
            let db: Arc<str> = db.into();
            rows.extend(catalog::load(at, &db).await?.into_iter().map(|row| (db.clone(), row)));
        }
        for db in rows.iter().map(|(db, _)| db.clone()).collect::<BTreeSet<_>>() {
            let is_new = !known.contains(&db) && !self.only_looks();
            if is_new && !self.prepare_unless_dropped(at.session, &db).await? {
                rows.retain(|(other, _)| *other != db);
                continue;
            }
            if self.backend.facts().own_expiry {
                self.note_expiries(at, &db).await?;
            }
        }
        {
            // What is known meanwhile is not lost: a seeding goes on beside this.
            let mut known = self.entries.lock();
            let (mut entries, mut ignored) = (Vec::with_capacity(rows.len()), Vec::new());
            for (db, row) in rows {
                let name = row.rule.clone();
                match self.merged(&known, &db, row).and_then(names_its_own) {
                    Ok(entry) => entries.push(entry),
                    Err(error) => ignored.push(Ignored { db, rule: name, reason: error.message().to_owned() }),
                }
            }
            self.note_ignored(ignored);
            Life::sort(&mut entries);
            *known = entries;
            self.enforce(&known)?;
        }
        self.state_changed.notify_waiters();
        self.wake_reconciler.notify_one();
        Ok(())
    }

    /// Warns of each row once.
    fn note_ignored(&self, ignored: Vec<Ignored>) {
        let mut known = self.ignored.lock();
        for row in ignored.iter().filter(|row| !known.contains(row)) {
            row.warn();
        }
        *known = ignored;
    }

    /// A row of the catalog beside what is known of its rule: what this process is about, it knows best.
    fn merged(&self, known: &[CatalogRule], db: &str, row: catalog::Row) -> Result<CatalogRule> {
        let known = known.iter().find(|entry| Life::is(entry, db, &row.rule));
        match known.cloned() {
            Some(known) if known.row.epoch == row.epoch && self.is_ours(&row) => Ok(known),
            Some(known) if known.row.taken_back != row.taken_back => CatalogRule::of(&known.db, row),
            Some(known) if known.row.declaration == row.declaration && row.shape.is_some() => {
                CatalogRule::new(db, row, known.rule)
            }
            Some(known) if known.row.declaration == row.declaration => {
                Ok(CatalogRule { row, reached: None, problem: None, ..known })
            }
            _ => CatalogRule::of(db, row),
        }
    }
}

/// The entry, unless its row names collections that are none of its rule's: somebody else has written it.
fn names_its_own(entry: CatalogRule) -> Result<CatalogRule> {
    match &entry.row.shape {
        Some(shape) => own::check(&entry.rule, shape).map(|()| entry),
        None => Ok(entry),
    }
}
