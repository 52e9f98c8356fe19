//! What is kept of a rule whose life has ended, and how it is given back: `drop RULE --restore` brings the rule into the catalog again as
//! one that is being dropped, so that it goes on after a stop as any other.

use crate::declare::compatible;
use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::relocate::stored;
use crate::life::replaced::amount::Of;
use crate::life::replaced::forget::forget;
use crate::life::replaced::{Progress, amount, rows_between};
use crate::life::{CatalogRule, Life, catalog, plan};
use crate::rule::Rule;
use crate::rule::names;
use crate::rule::state::State;
use document::backend::Session;
use document::op::{Find, Namespace};
use document::{Code, Error, Result};
use std::sync::Arc;

/// Ends a life of a rule: writes down what it leaves, or that nothing is left.
pub(crate) async fn end(at: &mut Access<'_>, entry: &CatalogRule) -> Result<()> {
    let (row, rule) = (&entry.row, &entry.rule);
    if row.with_data && rule.shape().is_some() {
        // Documents that were deleted are not brought back.
        return forget(at, &entry.db, Some(&rule.name)).await.map(drop);
    }
    if !row.replaced.restore {
        return match row.replaced.since {
            Some(since) => {
                let seeded_to = row.seeded_to().filter(|_| !row.with_data);
                amount::leave(at, rule, since, seeded_to.as_ref(), row.replaced.lifted.as_ref()).await
            }
            None => Ok(()),
        };
    }
    for of in amount::lives(at, &entry.db, &rule.name).await? {
        let rest = Find { limit: Some(1), ..rows_between(rule, of.since, None, None) };
        match at.find(rest).await?.is_empty() {
            true => amount::remove(at, &entry.db, &rule.name, of.since).await?,
            // Of documents that clients have deleted or changed. No host has a value of the rule's own any more.
            false => amount::leave(at, of.rule().as_ref().unwrap_or(rule), of.since, None, None).await?,
        }
    }
    Ok(())
}

impl Life {
    /// A rule that is gone and of which something is kept, as one that is being restored; `None` if there is none.
    pub(crate) async fn find_gone(&self, rights: &Rights, db: Option<&str>, rule: &str) -> Result<Option<CatalogRule>> {
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        let databases = match db {
            Some(db) => vec![db.to_owned()],
            None => catalog::databases(&mut at).await?,
        };
        let mut found: Vec<(String, Of)> = Vec::new();
        for db in databases {
            let is_shown =
                |of: &Of| !of.amount.is_nothing() && rights.may("find", &Namespace::new(&db, &of.collection));
            let newest = amount::lives(&mut at, &db, rule).await?.into_iter().find(is_shown);
            found.extend(newest.map(|of| (db, of)));
        }
        let (db, of) = match <[_; 1]>::try_from(found) {
            Ok([one]) => one,
            Err(found) if found.is_empty() => return Ok(None),
            Err(several) => {
                let databases: Vec<&str> = several.iter().map(|(db, _)| &**db).collect();
                let message =
                    format!("something is kept of a rule {rule} in several databases: {}", databases.join(", "));
                return Err(Error::bad_value(message).with_hint("name one with --db"));
            }
        };
        let Some(known) = of.rule().filter(|known| *known.host.db == *db) else {
            let message = format!("rule {rule} is gone, and it was not written down what it was");
            let hint = format!("`pleach apply` a declaration that has it, then `pleach drop {rule} --restore`");
            return Err(Error::new(Code::OperationFailed, message).with_hint(hint));
        };
        if !rights.may_see(&known) {
            return Ok(None);
        }
        let row = catalog::Row {
            rule: known.name.to_string(),
            kind: known.pattern.to_owned(),
            declaration: known.declaration.clone(),
            state: State::Retiring,
            epoch: self.entries().iter().map(|entry| entry.row.epoch).max().unwrap_or(0) + 1,
            done: 0,
            total: 0,
            with_data: false,
            tidy: false,
            by: self.process.clone(),
            shape: None,
            replaced: Progress {
                since: Some(of.since),
                seeded_to: of.seeded_to,
                lifted: of.lifted,
                restore: true,
                ..Progress::default()
            },
            taken_back: None,
        };
        CatalogRule::new(&db, row, Arc::new(known)).map(Some)
    }

    /// Begins to give back what is kept of a rule that is gone; the reconciler does it.
    pub(crate) async fn restore_gone(&self, at: &mut Access<'_>, entry: &CatalogRule) -> Result<()> {
        let (db, rule) = (&entry.db, &entry.rule);
        let others = self.entries().into_iter().filter(|other| other.db == *db).map(|other| (*other.rule).clone());
        let others: Vec<Rule> = others.chain([(**rule).clone()]).collect();
        compatible(&others).map_err(|error| error.with_hint("drop the other rule first"))?;
        if rule.shape().is_some() && stored::look_up(at, &rule.host).await?.is_some_and(|found| found.is_view()) {
            let message = format!("the documents of {} are still stored as buckets, without a rule", rule.host);
            let hint = format!("`pleach apply` the rule again, then `pleach drop {} --restore`", rule.name);
            return Err(Error::new(Code::OperationFailed, message).with_hint(hint));
        }
        crate::life::replaced::restore::check(at, &entry.row, rule).await?;
        self.prepare(at.session, db).await?;
        let mut row = entry.row.clone();
        row.total = plan::documents(at, &rule.host).await?;
        self.unpublished.store(true, std::sync::atomic::Ordering::Relaxed);
        at.insert(&names::catalog(db), vec![row.write()]).await.map_err(|error| match error.code() {
            Code::DuplicateKey => {
                Error::new(Code::ConflictingOperationInProgress, "the rule was applied meanwhile; try again")
            }
            _ => error,
        })?;
        self.put_entry(CatalogRule { row, ..entry.clone() });
        self.put_in_force()?;
        self.publish(at, db).await?;
        self.wake_reconciler.notify_one();
        Ok(())
    }
}
