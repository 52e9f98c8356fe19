//! Which of a rule's collections exist. A misspelt name would otherwise look like a collection without documents.

use crate::declare::spelling::nearest;
use crate::execute::access::Access;
use crate::execute::rights::Rights;
use crate::life::audit::AuditedRule;
use crate::life::audit::note::{Note, no_database};
use crate::life::{Life, lifecycle};
use crate::rule::names;
use document::backend::Session;
use document::filter::Filter;
use document::op::{AdminOp, Namespace};
use document::{Code, Doc, Result, Value};
use std::collections::BTreeSet;

/// The names in one database.
pub(crate) struct Presence {
    db: String,
    /// `None` if they may not be listed: then every collection is taken to exist.
    collections: Option<BTreeSet<String>>,
    near: Option<String>,
}

impl Presence {
    /// Looks into a database. Names that the client may not read are not suggested.
    pub(crate) async fn of(at: &mut Access<'_>, db: &str, rights: &Rights) -> Result<Presence> {
        let list = AdminOp::ListCollections { db: db.to_owned(), filter: Filter::all(), name_only: true };
        let collections = names_of(at, list).await?;
        let mut near = None;
        if collections.as_ref().is_some_and(|names| names.is_empty()) {
            let list = AdminOp::ListDatabases { filter: Filter::all(), name_only: true };
            let others = names_of(at, list).await?.unwrap_or_default();
            let readable = others.iter().map(|name| &**name).filter(|name| !is_internal(name));
            near = nearest(db, readable.filter(|name| rights.may_look_into(name))).map(str::to_owned);
        }
        Ok(Presence { db: db.to_owned(), collections, near })
    }

    pub(crate) fn is_of(&self, db: &str) -> bool {
        self.db == db
    }

    pub(crate) fn has(&self, ns: &Namespace) -> bool {
        self.collections.as_ref().is_none_or(|names| names.contains(&*ns.collection))
    }

    /// The name that was perhaps meant.
    pub(crate) fn near(&self, ns: &Namespace, rights: &Rights) -> Option<String> {
        let names = self.collections.iter().flatten().map(|name| &**name);
        let readable = names.filter(|name| {
            let other = Namespace { collection: (*name).into(), ..ns.clone() };
            !names::is_bookkeeping(&other) && !name.starts_with("system.") && rights.may("find", &other)
        });
        nearest(&ns.collection, readable).map(str::to_owned)
    }

    /// What of the rule does not exist.
    pub(crate) fn missing(&self, asked: &AuditedRule, rights: &Rights) -> Option<Note> {
        if self.collections.as_ref().is_some_and(|names| names.is_empty()) {
            return Some(Note::NoDatabase { near: self.near.clone() });
        }
        lifecycle::of(&asked.rule).lacks(self, asked, rights)
    }

    pub(crate) fn no_collection(&self, ns: &Namespace, rights: &Rights) -> Note {
        Note::NoCollection { collection: ns.clone(), near: self.near(ns, rights) }
    }
}

impl Life {
    /// Says that a database does not exist. `None` if it does, or if its collections may not be listed.
    pub(crate) async fn missing_database(&self, db: &str, rights: &Rights) -> Result<Option<String>> {
        let (mut session, context) = (Session::default(), self.context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        let presence = Presence::of(&mut at, db, rights).await?;
        let is_missing = presence.collections.as_ref().is_some_and(|names| names.is_empty());
        Ok(is_missing.then(|| no_database(db, &presence.near)))
    }
}

fn is_internal(db: &str) -> bool {
    matches!(db, "admin" | "config" | "local")
}

/// The `name` of each row; `None` if listing is not allowed.
async fn names_of(at: &mut Access<'_>, list: AdminOp) -> Result<Option<BTreeSet<String>>> {
    let name = |row: &Doc<'static>| match row.get("name") {
        Some(Value::String(name)) => Some(name.as_str().to_owned()),
        _ => None,
    };
    match at.backend.admin(at.session, at.context, list).await {
        Ok(rows) => Ok(Some(rows.iter().filter_map(name).collect())),
        Err(error) if error.code() == Code::Unauthorized => Ok(None),
        Err(error) => Err(error),
    }
}
