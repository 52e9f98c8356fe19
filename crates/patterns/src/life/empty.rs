//! `dropDatabase` where rules are kept (SEMANTICS R21): the documents go; the rules stay declared, in force and empty.
//!
//! The catalog is never dropped, so that no moment exists in which a kill would lose the rules. They begin anew instead: written
//! down as to be seeded before anything goes, and seeded when everything has gone. So whoever was seeding them stops, and what
//! clients write meanwhile is right in the end, whatever was dropped before and after it.

use super::records::At;
use super::{Entry, Life, State, catalog, indexes, names, shape};
use document::backend::{Backend, Relay, Session};
use document::filter::Filter;
use document::op::{AdminOp, Context, Namespace};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Life {
    /// Empties the database on behalf of the client; answers when its rules are on again.
    pub(crate) async fn empty_database(&self, client: &mut Session, context: &Context, db: &str) -> Result<()> {
        may_drop(client.relay.clone(), db).await?;
        {
            let _changing = self.changing.lock().await;
            let mut session = Session::default();
            let mut at = At { backend: &*self.backend, session: &mut session, context };
            self.begin_change(&mut at, db).await?;
            let outcome = self.empty(&mut at, client, db).await;
            self.end_change(&mut at, db).await?;
            outcome?;
        }
        self.wake_keeper.notify_one();
        let limit = context.deadline.map_or_else(|| tokio::time::Instant::now() + PATIENCE, Into::into);
        // A rule that does not get on is told by `status`; the documents are gone all the same.
        if let Ok(Err(error)) = tokio::time::timeout_at(limit, self.settle(db)).await {
            tracing::warn!(%error, db, "after dropDatabase");
        }
        Ok(())
    }

    async fn empty(&self, at: &mut At<'_>, client: &mut Session, db: &str) -> Result<()> {
        self.unpublished.store(true, Ordering::Relaxed);
        let of_db = |entry: &Entry| *entry.db == *db;
        let before: Vec<Entry> = self.entries().into_iter().filter(of_db).collect();
        for entry in self.entries().into_iter().filter(of_db).filter(|entry| entry.row.state.is_kept()) {
            let mut row = entry.row.clone();
            (row.state, row.epoch, row.by) = (State::Maintaining, row.epoch + 1, self.process.clone());
            (row.done, row.total) = (0, 0);
            shape::reset::begin(&entry.rule, &mut row);
            if catalog::replace(at, db, &row, entry.row.epoch).await? {
                self.put_entry(Entry::new(db, row, entry.rule.clone())?);
            }
        }
        self.put_in_force()?;
        self.publish(at, db).await?;
        drop_collections(&*self.backend, client, at.context, db).await?;
        self.end_reset(at, db, &before).await?;
        // What was to be done is done by seeding.
        at.delete(&names::outbox(db), Filter::all()).await?;
        self.settle_expiry(at, db).await?;
        // Those of a shape are made with its collections.
        let is_link = |entry: &Entry| entry.row.state.is_kept() && shape::bucket_of(&entry.rule).is_none();
        for entry in self.entries().into_iter().filter(of_db).filter(is_link) {
            for needed in indexes::missing(at, &entry.rule).await? {
                indexes::create(at, &entry.rule, &needed).await?;
            }
        }
        Ok(())
    }
}

/// How long the rules of an empty database are waited for.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// Drops everything but what belongs to Pleach; views first, since they are made of others.
pub(crate) async fn drop_collections(
    backend: &dyn Backend,
    client: &mut Session,
    context: &Context,
    db: &str,
) -> Result<()> {
    let list = AdminOp::ListCollections { db: db.to_owned(), filter: Filter::all(), name_only: true };
    let rows = backend.admin(client, context, list).await?;
    let is_view = |row: &Doc<'_>| row.get("type").is_some_and(|kind| kind.as_str() == Some("view"));
    let (views, collections): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| is_view(row));
    for row in views.iter().chain(&collections) {
        let Some(Value::String(name)) = row.get("name") else { continue };
        let ns = Namespace::new(db, name.as_str());
        if names::is_bookkeeping(&ns) || name.as_str().starts_with("system.") {
            continue;
        }
        match backend.admin(client, context, AdminOp::Drop { ns }).await {
            Err(error) if error.code() == Code::NamespaceNotFound => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// Collection by collection needs less than the whole: the client must have the right to what it asked for.
async fn may_drop(relay: Option<Arc<dyn Relay>>, db: &str) -> Result<()> {
    let Some(relay) = relay.filter(|relay| relay.is_authenticated()) else { return Ok(()) };
    let mut command = DocWriter::new();
    command.append("connectionStatus", &Value::Int32(1)).append("showPrivileges", &Value::Bool(true));
    let status = relay.command("admin", command.finish()).await?;
    let Some(Value::Document(info)) = status.get("authInfo") else { return Ok(()) };
    let Some(Value::Array(privileges)) = info.get("authenticatedUserPrivileges") else { return Ok(()) };
    let allows = |privilege: Value<'_>| {
        let Value::Document(privilege) = privilege else { return false };
        let (Some(Value::Document(on)), Some(Value::Array(actions))) =
            (privilege.get("resource"), privilege.get("actions"))
        else {
            return false;
        };
        let text = |name: &str| on.get(name).and_then(|value| value.as_str().map(str::to_owned));
        let covers = on.contains("anyResource")
            || (text("db").is_some_and(|named| named.is_empty() || named == db)
                && text("collection").is_some_and(|named| named.is_empty()));
        covers && actions.iter().any(|action| matches!(action.as_str(), Some("dropDatabase" | "anyAction")))
    };
    match privileges.iter().any(allows) {
        true => Ok(()),
        false => Err(Error::new(
            Code::Unauthorized,
            format!("not authorized on {db} to execute command {{ dropDatabase: 1 }}"),
        )),
    }
}
