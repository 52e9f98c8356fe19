//! `dropDatabase` where rules are kept (SEMANTICS R21): the documents go; the rules stay declared, in force and empty.
//!
//! The catalog is never dropped, so that no moment exists in which a kill would lose the rules. They begin anew instead: written
//! down as to be seeded before anything goes, and seeded when everything has gone. So whoever was seeding them stops, and what
//! clients write meanwhile is right in the end, whatever was dropped before and after it.

use crate::execute::access::Access;
use crate::life::replaced::Progress;
use crate::life::{CatalogRule, Life, catalog, emptied, install, lifecycle, replaced};
use crate::rule::Rule;
use crate::rule::State;
use crate::rule::names;
use document::backend::Session;
use document::filter::Filter;
use document::op::{AdminOp, Context, Namespace};
use document::{Code, Doc, Result, Value};
use std::sync::atomic::Ordering;

impl Life {
    /// Empties the database for a client that may drop it; answers when its rules are on again.
    pub(crate) async fn empty_database(&self, context: &Context, db: &str) -> Result<()> {
        {
            let _changing = self.changing.lock().await;
            let mut session = Session::default();
            let mut at = Access { backend: &*self.backend, session: &mut session, context };
            self.begin_change(&mut at, db).await?;
            let outcome = self.empty(&mut at, db).await;
            self.end_change(&mut at, db).await?;
            outcome?;
        }
        self.wake_reconciler.notify_one();
        let limit = context.deadline.map_or_else(|| tokio::time::Instant::now() + EMPTY_RULES_LIMIT, Into::into);
        // A rule that does not get on is told by `status`; the documents are gone all the same.
        if let Ok(Err(error)) = tokio::time::timeout_at(limit, self.settle(db)).await {
            tracing::warn!(%error, db, "after dropDatabase");
        }
        Ok(())
    }

    async fn empty(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        self.unpublished.store(true, Ordering::Relaxed);
        let of_db = |entry: &CatalogRule| *entry.db == *db;
        let before: Vec<CatalogRule> = self.entries().into_iter().filter(of_db).collect();
        for entry in self.entries().into_iter().filter(of_db).filter(|entry| entry.row.state.is_kept()) {
            let mut row = entry.row.clone();
            (row.state, row.epoch, row.by) = (State::Maintaining, row.epoch + 1, self.process.clone());
            (row.done, row.total) = (0, 0);
            // No host is from before the rule any more.
            row.replaced = Progress { seeded_to: Some(Value::MaxKey), ..row.carried() };
            lifecycle::of(&entry.rule).reset(&entry.rule, &mut row);
            if catalog::replace(at, db, &row, entry.row.epoch).await? {
                self.put_entry(CatalogRule::new(db, row, entry.rule.clone())?);
            }
        }
        self.put_in_force()?;
        self.publish(at, db).await?;
        let is_field = |entry: &CatalogRule| entry.row.state.is_kept() && entry.rule.kept_field().is_some();
        let fields: Vec<CatalogRule> = self.entries().into_iter().filter(of_db).filter(is_field).collect();
        let rules: Vec<&Rule> = fields.iter().map(|entry| &*entry.rule).collect();
        let emptied = emptied::collections(at, &rules).await?;
        drop_collections(at, db, &emptied).await?;
        for ns in &emptied {
            at.delete(ns, Filter::all()).await?;
        }
        self.end_reset(at, db, &before).await?;
        // What was to be done is done by seeding.
        at.delete(&names::outbox(db), Filter::all()).await?;
        replaced::forget::forget(at, db, None).await?;
        self.settle_expiry(at, db).await?;
        // Those of a shape are made with its collections.
        for entry in self.entries().into_iter().filter(of_db).filter(is_field) {
            install::ensure_indexes(at, &entry.rule).await?;
        }
        Ok(())
    }
}

/// How long the rules of an empty database are waited for.
const EMPTY_RULES_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

/// Drops everything but what belongs to Pleach and `stays`; views first, since they are made of others.
pub(crate) async fn drop_collections(at: &mut Access<'_>, db: &str, stays: &[Namespace]) -> Result<()> {
    let list = AdminOp::ListCollections { db: db.to_owned(), filter: Filter::all(), name_only: true };
    let rows = at.backend.admin(at.session, at.context, list).await?;
    let is_view = |row: &Doc<'_>| row.get("type").is_some_and(|kind| kind.as_str() == Some("view"));
    let (views, collections): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| is_view(row));
    for row in views.iter().chain(&collections) {
        let Some(Value::String(name)) = row.get("name") else { continue };
        let ns = Namespace::new(db, name.as_str());
        if names::is_bookkeeping(&ns) || name.as_str().starts_with("system.") || stays.contains(&ns) {
            continue;
        }
        match at.backend.admin(at.session, at.context, AdminOp::Drop { ns }).await {
            Err(error) if error.code() == Code::NamespaceNotFound => {}
            other => drop(other?),
        }
    }
    Ok(())
}
