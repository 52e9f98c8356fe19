//! What a client does, as data: the same on worlds with rules and without.

use crate::world::World;
use bson::{Bson, Document, doc};
use document::Result;
use document::backend::Session;
use document::op::{Modify, UpdateStatement, WriteOp, Written};

#[derive(Clone, Debug)]
pub enum Act {
    Insert(&'static str, Vec<Document>),
    /// Filter, update (operators, a replacement or a pipeline), many, upsert.
    Update(&'static str, Document, Bson, bool, bool),
    Delete(&'static str, Document, bool),
    /// findAndModify: an update with `new: true`, or `None` for a removal.
    Modify(&'static str, Document, Option<Document>),
}

impl Act {
    pub fn collection(&self) -> &'static str {
        match self {
            Act::Insert(collection, _) | Act::Update(collection, ..) => collection,
            Act::Delete(collection, ..) | Act::Modify(collection, ..) => collection,
        }
    }

    /// The `_id` that it names; null if none.
    pub fn id(&self) -> Bson {
        let named = match self {
            Act::Insert(_, documents) => documents.first().and_then(|document| document.get("_id")),
            Act::Update(_, query, ..) | Act::Delete(_, query, _) | Act::Modify(_, query, _) => query.get("_id"),
        };
        named.cloned().unwrap_or(Bson::Null)
    }

    /// Whether it may change several documents one by one: it has no number by which it could be sent again.
    pub fn is_multi(&self) -> bool {
        matches!(self, Act::Update(_, _, _, true, _) | Act::Delete(_, _, true))
    }

    /// As a client sends it; the database is for the caller to add.
    pub fn command(&self) -> Document {
        match self {
            Act::Insert(collection, documents) => doc! { "insert": *collection, "documents": documents.clone() },
            Act::Update(collection, query, change, multi, upsert) => {
                let statement = doc! { "q": query.clone(), "u": change.clone(), "multi": *multi, "upsert": *upsert };
                doc! { "update": *collection, "updates": [statement] }
            }
            Act::Delete(collection, query, multi) => {
                doc! { "delete": *collection, "deletes": [{ "q": query.clone(), "limit": i32::from(!*multi) }] }
            }
            Act::Modify(collection, query, Some(change)) => {
                doc! { "findAndModify": *collection, "query": query.clone(), "update": change.clone(), "new": true }
            }
            Act::Modify(collection, query, None) => {
                doc! { "findAndModify": *collection, "query": query.clone(), "remove": true }
            }
        }
    }

    pub fn op(&self, world: &World) -> WriteOp {
        let ns = world.ns(self.collection());
        match self {
            Act::Insert(_, documents) => crate::insert(ns, documents.clone()),
            Act::Update(_, query, change, multi, upsert) => {
                let statement = crate::statement(query.clone(), change.clone(), &[]);
                let statement = UpdateStatement { multi: *multi, upsert: *upsert, ..statement };
                crate::updates(ns, vec![statement], true)
            }
            Act::Delete(_, query, multi) => crate::delete(ns, query.clone(), *multi),
            Act::Modify(_, query, change) => {
                let update = |change: &Document| {
                    let update = crate::change(change.clone());
                    Modify::Update { update, upsert: false, return_new: true }
                };
                let action = change.as_ref().map_or(Modify::Remove, update);
                WriteOp::FindAndModify(Box::new(crate::find_and_modify(ns, query.clone(), action)))
            }
        }
    }
}

impl World {
    pub async fn act_at(&self, session: &mut Session, act: &Act) -> Result<Written> {
        self.write_at(session, &act.op(self)).await
    }

    /// What came of it; the first failed statement is its error.
    pub async fn act(&self, act: &Act) -> Result<Written> {
        let mut written = self.act_at(&mut Session::default(), act).await?;
        match written.errors.is_empty() {
            true => Ok(written),
            false => Err(written.errors.remove(0).error),
        }
    }
}
