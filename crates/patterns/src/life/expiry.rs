//! Expiry in front of a real MongoDB (SEMANTICS R7): no rule sees what its own TTL monitor deletes. On a collection that a rule
//! reads, TTL indexes therefore expire nothing there: their expiry is a row of the catalog
//! `{ _id: { expires: <collection>, index }, key, after }`, and the documents go by planned deletes.
//!
//! An index made through Pleach has no expiry at all. One that was there before is not built anew: its expiry is put off to the
//! longest there is, and given back when the last rule has gone.

use crate::execute::access::{Access, find};
use crate::life::relocate::stored;
use crate::life::{CatalogRule, Life};
use crate::mql;
use crate::rule::names;
use document::backend::{Backend, Session};
use document::filter::{Filter, Node, Test};
use document::op::{AdminOp, Capture, Context, Delete, DeleteStatement, Durability, Hint, Namespace, WriteOp};
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Code, Doc, DocWriter, Result, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often expired documents are looked for: as often as MongoDB does.
const PERIOD: Duration = Duration::from_secs(60);

/// The longest expiry that MongoDB takes; an index that has it expires nothing younger than 68 years.
const PUT_OFF: i64 = i32::MAX as i64;

/// When the documents of a collection go, by one of its indexes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expiry {
    pub(crate) ns: Namespace,
    pub(crate) index: String,
    pub(crate) key: Doc<'static>,
    /// Seconds.
    pub(crate) after: i64,
}

impl Expiry {
    /// That of an index as it is asked for or listed; `None` if MongoDB would not expire anything by it.
    pub(crate) fn of(ns: &Namespace, index: &Doc<'_>) -> Option<Expiry> {
        let after = seconds(&index.get("expireAfterSeconds")?)?;
        let name = index.get("name")?.as_str()?.to_owned();
        can_expire(index).then_some(Expiry { ns: ns.clone(), index: name, key: key(index)?, after })
    }

    /// Of an index that MongoDB expires documents by.
    pub(crate) fn live(ns: &Namespace, index: &Doc<'_>) -> Option<Expiry> {
        Expiry::of(ns, index).filter(|expiry| expiry.after < PUT_OFF)
    }

    pub(crate) fn is_put_off(&self) -> bool {
        self.after >= PUT_OFF
    }

    pub(crate) fn is_of(&self, index: &Doc<'_>) -> bool {
        index.get("name").is_some_and(|name| name.as_str() == Some(&*self.index))
            && key(index).as_ref() == Some(&self.key)
    }

    /// `{ collMod: …, index: { name, expireAfterSeconds } }`: what puts it off, or gives it back.
    fn change(&self, after: i64) -> Doc<'static> {
        let index = [("name", Value::from(&*self.index)), ("expireAfterSeconds", Value::Int64(after))];
        mql::document([("collMod", Value::from(&*self.ns.collection)), ("index", mql::object(index))])
    }

    /// The command that puts it off.
    pub(crate) fn putting_off(&self) -> Doc<'static> {
        self.change(PUT_OFF)
    }

    fn id(&self) -> Value<'static> {
        mql::object([("expires", Value::from(&*self.ns.collection)), ("index", Value::from(&*self.index))])
    }

    pub(crate) fn read(db: &str, row: &Doc<'_>) -> Option<Expiry> {
        let (Some(Value::Document(id)), Some(Value::Document(key))) = (row.get("_id"), row.get("key")) else {
            return None;
        };
        let text = |name: &str| Some(id.get(name)?.as_str()?.to_owned());
        let ns = Namespace::new(db, &text("expires")?);
        Some(Expiry { ns, index: text("index")?, key: key.into_owned(), after: seconds(&row.get("after")?)? })
    }

    pub(crate) async fn save(&self, at: &mut Access<'_>) -> Result<()> {
        let mut row = DocWriter::new();
        row.append("_id", &self.id()).append("key", &Value::Document(self.key.borrow()));
        row.append("after", &Value::Int64(self.after));
        at.put(&names::catalog(&self.ns.db), &row.finish()).await
    }

    async fn forget(&self, at: &mut Access<'_>) -> Result<()> {
        at.delete(&names::catalog(&self.ns.db), Filter::equality("_id", &self.id())).await.map(drop)
    }

    async fn set(&self, at: &mut Access<'_>, after: i64) -> Result<()> {
        let op = AdminOp::CollMod { ns: self.ns.clone(), change: self.change(after) };
        at.backend.admin(at.session, at.context, op).await.map(drop)
    }

    /// Makes it ours: from now on MongoDB deletes nothing by the index.
    pub(crate) async fn take_over(&self, at: &mut Access<'_>) -> Result<()> {
        self.save(at).await?;
        self.set(at, PUT_OFF).await
    }

    /// The statement that deletes what has expired.
    fn expired(&self, index: &Doc<'_>, now: i64) -> Result<Option<DeleteStatement>> {
        let Some((path, _)) = self.key.iter().next() else { return Ok(None) };
        let before = now.saturating_sub(self.after.saturating_mul(1_000));
        let path = Path::new(path.as_str());
        let mut filter = Filter::from_node(Node::Field { path, test: Test::Lt(Value::DateTime(before)) });
        if let Some(Value::Document(partial)) = index.get("partialFilterExpression") {
            filter = filter.and(Filter::parse(&partial, &mut Names::new())?);
        }
        let hidden = index.get("hidden").is_some_and(|hidden| hidden.is_truthy());
        Ok(Some(DeleteStatement { filter, multi: true, hint: (!hidden).then(|| Hint::Name(self.index.clone())) }))
    }
}

/// A number of seconds as MongoDB takes it.
pub(crate) fn seconds(value: &Value<'_>) -> Option<i64> {
    let seconds = value.as_number()?.to_i64_saturated();
    (seconds >= 0).then_some(seconds.min(PUT_OFF))
}

fn key(index: &Doc<'_>) -> Option<Doc<'static>> {
    match index.get("key") {
        Some(Value::Document(key)) => Some(key.into_owned()),
        _ => None,
    }
}

/// MongoDB expires by indexes of one field that is not `_id`, in order.
pub(crate) fn can_expire(index: &Doc<'_>) -> bool {
    let Some(key) = key(index) else { return false };
    let mut fields = key.iter();
    matches!((fields.next(), fields.next()), (Some((name, direction)), None) if name.as_str() != "_id" && direction.is_number())
}

/// What the catalog of a database says of expiry.
pub(crate) async fn rows(at: &mut Access<'_>, db: &str) -> Result<Vec<Expiry>> {
    let rows = Filter::from_node(Node::field("after", Test::Gte(Value::Int64(0))));
    let rows = at.find(find(&names::catalog(db), rows)).await?;
    Ok(rows.iter().filter_map(|row| Expiry::read(db, row)).collect())
}

/// The indexes of a collection, none if it does not exist. A view has none: the collection that it replaced took its own along.
pub(crate) async fn indexes(at: &mut Access<'_>, ns: &Namespace) -> Result<Vec<Doc<'static>>> {
    match at.backend.admin(at.session, at.context, AdminOp::ListIndexes { ns: ns.clone() }).await {
        Err(error) if matches!(error.code(), Code::NamespaceNotFound | Code::CommandNotSupportedOnView) => {
            Ok(Vec::new())
        }
        other => other,
    }
}

/// The indexes of a collection that MongoDB expires documents by.
pub(crate) async fn live(at: &mut Access<'_>, ns: &Namespace) -> Result<Vec<Expiry>> {
    if !at.backend.facts().own_expiry {
        return Ok(Vec::new());
    }
    if stored::look_up(at, ns).await?.is_some_and(|found| found.is_view()) {
        return Ok(Vec::new());
    }
    Ok(indexes(at, ns).await?.iter().filter_map(|index| Expiry::live(ns, index)).collect())
}

/// Forgets the expiry of indexes that are gone.
pub(crate) async fn forget_gone(at: &mut Access<'_>, ns: &Namespace) -> Result<()> {
    let there = indexes(at, ns).await?;
    for row in rows(at, &ns.db).await?.iter().filter(|row| row.ns == *ns) {
        if !there.iter().any(|index| row.is_of(index)) {
            row.forget(at).await?;
        }
    }
    Ok(())
}

impl Life {
    fn read_by_rules(&self, db: &str) -> BTreeSet<Namespace> {
        let entries = self.entries();
        let sources = entries.iter().filter(|entry| *entry.db == *db).flat_map(|entry| entry.rule.needs().expires);
        // Whole buckets expire where they are stored.
        let places = |source: &Namespace| {
            let is_its_shape = |entry: &&CatalogRule| entry.rule.shape().is_some() && entry.rule.host == *source;
            match entries.iter().find(is_its_shape).filter(|entry| !entry.places.is_empty()) {
                Some(shape) => shape.places.iter().map(|place| place.stored.clone()).collect(),
                None => vec![source.clone()],
            }
        };
        sources.flat_map(|source| places(&source)).collect()
    }

    /// Makes the expiry of a database what its rules ask for; whoever calls it changes no rule meanwhile.
    pub(crate) async fn settle_expiry(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        if !self.backend.facts().own_expiry {
            return Ok(());
        }
        let read = self.read_by_rules(db);
        for ns in &read {
            for expiry in live(at, ns).await? {
                tracing::info!(index = &*expiry.index, collection = %ns, "expires through Pleach: a rule reads the collection");
                expiry.take_over(at).await?;
            }
        }
        for row in rows(at, db).await? {
            if !indexes(at, &row.ns).await?.iter().any(|index| row.is_of(index)) {
                row.forget(at).await?;
            } else if !read.contains(&row.ns) {
                match row.set(at, row.after).await {
                    Ok(()) => row.forget(at).await?,
                    // A server before 5.1 takes it at no index that was made without; then it stays ours.
                    Err(error) => {
                        tracing::warn!(%error, index = &*row.index, collection = %row.ns, "the expiry could not be given back");
                    }
                }
            }
        }
        self.note_expiries(at, db).await
    }

    /// Looks at what the catalog says, to show indexes.
    pub(crate) async fn note_expiries(&self, at: &mut Access<'_>, db: &str) -> Result<()> {
        let mut known: Vec<Expiry> = self.expiries.load().iter().filter(|row| &*row.ns.db != db).cloned().collect();
        known.extend(rows(at, db).await?);
        self.expiries.store(Arc::new(known));
        Ok(())
    }

    /// The expiry that was taken from a real MongoDB, as last seen.
    pub(crate) fn expiries(&self) -> Arc<Vec<Expiry>> {
        self.expiries.load_full()
    }

    /// Deletes what has expired, through the layer; gives how many documents that were.
    pub async fn expire(&self) -> Result<u64> {
        let databases: BTreeSet<Arc<str>> = self.entries().into_iter().map(|entry| entry.db).collect();
        let mut deleted = 0;
        for db in databases {
            let (mut session, context) = (Session::default(), self.context());
            let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
            deleted += self.expire_in(&mut at, &db).await?;
        }
        Ok(deleted)
    }

    async fn expire_in(&self, at: &mut Access<'_>, db: &str) -> Result<u64> {
        {
            let _changing = self.changing.lock().await;
            self.settle_expiry(at, db).await?;
        }
        let context = Context { durability: Durability::Relaxed, ..self.context() };
        let mut deleted = 0;
        for row in rows(at, db).await? {
            self.check_stopped()?;
            let there = indexes(at, &row.ns).await?;
            let Some(index) = there.iter().find(|index| row.is_of(index)) else { continue };
            let Some(statement) = row.expired(index, context.env.now)? else { continue };
            let (ns, statements) = (row.ns.clone(), vec![statement]);
            let op = WriteOp::Delete(Delete::of(ns, statements));
            let mut session = Session::default();
            self.until_restored(&mut session, &row.ns).await;
            let written = self.patterned.write(&mut session, &context, &op, &Capture::Nothing).await?;
            if let Some(failed) = written.errors.into_iter().next() {
                return Err(failed.error);
            }
            deleted += written.n;
        }
        Ok(deleted)
    }
}

/// Looks for expired documents until the life is stopped; of several processes, one does.
pub(crate) async fn work(life: Arc<Life>) {
    if !life.backend.facts().own_expiry {
        return;
    }
    loop {
        life.wait_for_stop(PERIOD).await;
        if life.is_stopped() {
            return;
        }
        let databases: BTreeSet<Arc<str>> = life.entries().into_iter().map(|entry| entry.db).collect();
        for db in databases {
            let (mut session, context) = (Session::default(), life.context());
            let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
            let done = match life.is_first(&mut at, &db).await {
                Ok(true) => life.expire_in(&mut at, &db).await.map(drop),
                Ok(false) => life.note_expiries(&mut at, &db).await,
                Err(error) => Err(error),
            };
            if let Err(error) = done
                && !life.is_stopped()
            {
                tracing::warn!(%error, %db, "expired documents could not be deleted");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, doc};

    #[test]
    fn an_index_expires_documents_as_mongodb_says() {
        let ns = Namespace::new("shop", "carts");
        for (index, expected, live) in [
            (doc! { "key": { "at": 1 }, "name": "a", "expireAfterSeconds": 5 }, Some(5), true),
            (doc! { "key": { "at": -1 }, "name": "a", "expireAfterSeconds": 5.9 }, Some(5), true),
            (doc! { "key": { "at": 1 }, "name": "a", "expireAfterSeconds": f64::NAN }, Some(0), true),
            (doc! { "key": { "at": 1 }, "name": "a", "expireAfterSeconds": i64::MAX }, Some(PUT_OFF), false),
            (doc! { "key": { "at": 1 }, "name": "a", "expireAfterSeconds": -1 }, None, false),
            (doc! { "key": { "at": 1 }, "name": "a", "expireAfterSeconds": "5" }, None, false),
            (doc! { "key": { "at": 1 }, "name": "a" }, None, false),
            (doc! { "key": { "at": 1, "by": 1 }, "name": "a", "expireAfterSeconds": 5 }, None, false),
            (doc! { "key": { "_id": 1 }, "name": "a", "expireAfterSeconds": 5 }, None, false),
            (doc! { "key": { "at": "hashed" }, "name": "a", "expireAfterSeconds": 5 }, None, false),
        ] {
            let shown = index.to_string();
            let index = Doc::from(index);
            assert_eq!(Expiry::of(&ns, &index).map(|expiry| expiry.after), expected, "{shown}");
            assert_eq!(Expiry::live(&ns, &index).is_some(), live, "{shown}");
        }
    }

    #[test]
    fn what_puts_an_expiry_off_is_a_plain_command() {
        let index = Doc::from(doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 5 });
        let expiry = Expiry::of(&Namespace::new("shop", "carts"), &index).unwrap();
        let command =
            doc! { "collMod": "carts", "index": { "name": "at_1", "expireAfterSeconds": Bson::Int64(PUT_OFF) } };
        assert_eq!(expiry.putting_off(), Doc::from(command));
    }
}
