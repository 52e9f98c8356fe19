//! `forget RULE`: frees what is kept of a rule, of all its lives; also of one that is gone.

use crate::execute::access::{Access, find};
use crate::execute::rights::Rights;
use crate::life::replaced::amount;
use crate::life::replaced::amount::Amount;
use crate::life::replaced::restore::among;
use crate::life::verbs::{FORGET, Resource};
use crate::life::{CatalogRule, Life, catalog, walk};
use crate::mql;
use crate::rule::names;
use crate::rule::state::State;
use document::backend::Session;
use document::op::{Find, Namespace};
use document::{Code, Error, Result, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many rows are removed at once: each may be as large as a document can be.
const BATCH: u64 = 200;

/// What was freed, and where.
pub(crate) struct Freed {
    pub(crate) db: Arc<str>,
    pub(crate) amount: Amount,
}

impl Life {
    /// Frees what is kept of a rule, on behalf of a client.
    pub(crate) async fn forget_rule(self: &Arc<Self>, rights: &Rights, db: Option<&str>, rule: &str) -> Result<Freed> {
        if let Some(db) = db {
            FORGET.need_to_look_into(rights, db)?;
        }
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        let db = self.database_of(&mut at, rights, db, rule).await?;
        FORGET.need(rights, Resource::Replaced, &names::replaced(&db))?;
        FORGET.need(rights, Resource::Catalog, &names::catalog(&db))?;
        self.start_if_due().await?;
        let _changing = self.changing.lock().await;
        let is_meant = |entry: &CatalogRule| entry.db == db && *entry.rule.name == *rule;
        if let Some(entry) = self.entries().into_iter().find(is_meant) {
            if entry.row.state != State::On {
                let message =
                    format!("rule {rule} is {}: what it replaces is being kept or given back", entry.row.state.name());
                return Err(Error::new(Code::ConflictingOperationInProgress, message)
                    .with_hint("wait until `pleach status` shows it `on`, or gone"));
            }
            let mut row = entry.row.clone();
            row.replaced.since = None;
            if !catalog::replace(&mut at, &db, &row, entry.row.epoch).await? {
                self.refresh(&mut at).await?;
                let message = "the rule was changed meanwhile; try again";
                return Err(Error::new(Code::ConflictingOperationInProgress, message));
            }
            self.put_entry(CatalogRule { row, ..entry });
        }
        let amount = forget(&mut at, &db, Some(rule)).await?;
        Ok(Freed { db, amount })
    }

    /// The database that has something of a rule of that name, kept or in force.
    async fn database_of(
        &self,
        at: &mut Access<'_>,
        rights: &Rights,
        db: Option<&str>,
        rule: &str,
    ) -> Result<Arc<str>> {
        let databases: Vec<String> = match db {
            Some(db) => vec![db.to_owned()],
            None => catalog::databases(at).await?,
        };
        let (mut found, mut others) = (BTreeSet::new(), BTreeSet::new());
        for entry in self.entries() {
            if databases.iter().any(|db| **db == *entry.db) && rights.may_see(&entry.rule) {
                match *entry.rule.name == *rule {
                    true => found.insert(entry.db.clone()),
                    false => others.insert(entry.rule.name.clone()),
                };
            }
        }
        for db in &databases {
            for of in amount::all(at, db).await? {
                if !rights.may("find", &Namespace::new(db, &of.collection)) {
                    continue;
                }
                match of.rule == rule {
                    true => found.insert(db.as_str().into()),
                    false => others.insert(of.rule.into()),
                };
            }
        }
        match found.into_iter().collect::<Vec<_>>().as_slice() {
            [db] => Ok(db.clone()),
            [] => {
                let error = Error::bad_value(format!("nothing is kept of a rule {rule}"));
                let others: Vec<&str> = others.iter().map(|name| &**name).collect();
                Err(match others.is_empty() {
                    true => error.with_hint("`pleach status` shows what is kept"),
                    false => error.with_hint(format!("the rules are: {}", others.join(", "))),
                })
            }
            several => {
                let message =
                    format!("something is kept of a rule {rule} in several databases: {}", several.join(", "));
                Err(Error::bad_value(message).with_hint("name one with --db"))
            }
        }
    }
}

/// Frees everything that is kept in a database, or of one rule; says how much that was.
pub(crate) async fn forget(at: &mut Access<'_>, db: &str, rule: Option<&str>) -> Result<Amount> {
    let ns = names::replaced(db);
    let bound = |since: Option<Value<'static>>| {
        let rule = rule.map(|rule| ("rule", Value::from(rule)));
        rule.map(|rule| mql::object([Some(rule), since.map(|since| ("since", since))].into_iter().flatten()))
    };
    let (first, last) = (bound(None), bound(Some(Value::MaxKey)));
    let mut freed = Amount::default();
    loop {
        let range = Find { limit: Some(BATCH), ..walk::range(&ns, first.as_ref(), last.as_ref()) };
        let rows = match rule {
            Some(_) => at.find(range).await?,
            None => at.find(Find { limit: Some(BATCH), ..find(&ns, document::filter::Filter::all()) }).await?,
        };
        if rows.is_empty() {
            break;
        }
        rows.iter().for_each(|row| freed.add(row));
        at.delete(&ns, among(rows.iter().filter_map(|row| row.get("_id")).collect())).await?;
    }
    for of in amount::all(at, db).await?.into_iter().filter(|of| rule.is_none_or(|rule| of.rule == rule)) {
        amount::remove(at, db, &of.rule, of.since).await?;
    }
    Ok(freed)
}
