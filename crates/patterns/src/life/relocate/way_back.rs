//! What a collection needs on its way back from buckets to plain documents.
//!
//! Its indexes were dropped with the plain collection, so the catalog keeps them and they are made again. And readings may share an
//! `_id`, which documents of a collection may not: the later ones get a new `_id` and keep the one that they had in a field.
//! Neither stops the way back. What came of it is noted for the verb that asked.

use crate::life::access::{Access, find};
use crate::life::relocate::record::Relocation;
use crate::life::relocate::stored;
use crate::life::replaced::restore::among;
use crate::life::transaction::is_transient;
use crate::life::{Entry, Life, expiry};
use crate::mql;
use document::op::{AdminOp, Namespace};
use document::value::key;
use document::{Code, Doc, DocWriter, Result, Value};
use hashbrown::HashSet;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a document that got a new `_id` keeps the one that it shared.
const FIELD: &str = "duplicateOf";

/// What came of a collection that has become plain again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WayBack {
    /// How many documents have a new `_id`.
    pub(crate) duplicates: i64,
    /// The names of the indexes that were made again.
    pub(crate) indexes: Vec<String>,
    /// Those that could not be made, and why.
    pub(crate) failed: Vec<(String, String)>,
}

/// By database and rule, until somebody asks.
#[derive(Debug, Default)]
pub(crate) struct Noted(Mutex<BTreeMap<Key, WayBack>>);

/// A database, and a rule in it.
type Key = (Arc<str>, Arc<str>);

impl WayBack {
    pub(crate) fn is_nothing(&self) -> bool {
        *self == WayBack::default()
    }

    /// `duplicates`, `indexes` and `failed: [ { index, why } ]`.
    pub(crate) fn show(&self, answer: &mut DocWriter) {
        let indexes = self.indexes.iter().map(|name| Value::from(&**name));
        let failed = self.failed.iter();
        let failed =
            failed.map(|(name, why)| mql::object([("index", Value::from(&**name)), ("why", Value::from(&**why))]));
        answer.append("duplicates", &Value::Int64(self.duplicates));
        answer.append("indexes", &Value::Array(indexes.collect()));
        answer.append("failed", &Value::Array(failed.collect()));
    }
}

impl Life {
    pub(crate) fn note_way_back(&self, entry: &Entry, noted: WayBack) {
        self.ways_back.0.lock().insert((entry.db.clone(), entry.rule.name.clone()), noted);
    }

    /// What came of the rule's collection when the rule was last dropped.
    pub(crate) fn take_way_back(&self, db: &str, rule: &str) -> Option<WayBack> {
        self.ways_back.0.lock().remove(&(db.into(), rule.into()))
    }
}

/// Gives a new `_id` to those documents whose own is taken, in the collection or by one before them. Returns how many these are.
pub(super) async fn separate(at: &mut Access<'_>, to: &Namespace, documents: &mut [Doc<'static>]) -> Result<i64> {
    let ids: Vec<Value<'static>> = documents.iter().filter_map(|document| document.get("_id")).collect();
    let mut taken: HashSet<Vec<u8>> = HashSet::new();
    for there in at.find(find(to, among(ids))).await? {
        taken.insert(comparable(&there));
    }
    let mut separated = 0;
    for document in documents {
        if !taken.insert(comparable(document)) {
            *document = with_new_id(document, Value::ObjectId((at.context.env.new_id)()));
            separated += 1;
        }
    }
    Ok(separated)
}

/// Equal for `_id`s that are equal to a unique index.
fn comparable(document: &Doc<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::encode(&document.get("_id").unwrap_or(Value::Null), &mut bytes);
    bytes
}

fn with_new_id(document: &Doc<'_>, id: Value<'static>) -> Doc<'static> {
    let mut field = FIELD.to_owned();
    while document.contains(&field) {
        field.insert(0, '_');
    }
    let mut writer = DocWriter::with_capacity(document.as_bytes().len() + 32);
    writer.append("_id", &id);
    for (name, value) in document.iter().filter(|(name, _)| name.as_str() != "_id") {
        writer.append(name.as_str(), &value);
    }
    writer.append(&field, &document.get("_id").unwrap_or(Value::Null));
    writer.finish()
}

/// The indexes of a plain collection but the one of `_id`, as `listIndexes` shows them.
pub(crate) async fn indexes(at: &mut Access<'_>, ns: &Namespace) -> Result<Vec<Doc<'static>>> {
    let mut all = expiry::indexes(at, ns).await?;
    all.retain(|index| name(index) != "_id_");
    Ok(all)
}

/// What the plain collection is called now: it may have been renamed before a stop. Returns `None` if it is not there.
pub(super) async fn plain_name(
    at: &mut Access<'_>,
    aside: &Namespace,
    logical: &Namespace,
) -> Result<Option<Namespace>> {
    for ns in [aside, logical] {
        if stored::found(at, ns).await?.is_some_and(|found| !found.is_view()) {
            return Ok(Some(ns.clone()));
        }
    }
    Ok(None)
}

/// Makes the indexes again that the plain collection had. One that cannot be made, for what was written since, is named.
pub(super) async fn make_indexes(at: &mut Access<'_>, ns: &Namespace, shape: &Relocation) -> Result<WayBack> {
    let mut back = WayBack { duplicates: shape.duplicates, ..WayBack::default() };
    for index in &shape.plain_indexes {
        let op = AdminOp::CreateIndexes { ns: ns.clone(), indexes: vec![index.clone()] };
        match at.backend.admin(at.session, at.context, op).await {
            Ok(_) => back.indexes.push(name(index)),
            Err(error) if is_transient(&error) || error.code() == Code::InterruptedAtShutdown => return Err(error),
            Err(error) => {
                tracing::warn!(%error, index = name(index), collection = %ns, "an index could not be made again");
                back.failed.push((name(index), error.to_string()));
            }
        }
    }
    Ok(back)
}

fn name(index: &Doc<'_>) -> String {
    index.get("name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn the_old_id_is_kept_in_a_field_that_is_free() {
        let new = |document: bson::Document| with_new_id(&Doc::from(document), Value::Int32(7));
        assert_eq!(new(doc! { "_id": 1, "a": 2 }), Doc::from(doc! { "_id": 7, "a": 2, "duplicateOf": 1 }));
        assert_eq!(
            new(doc! { "duplicateOf": 3, "_id": 1 }),
            Doc::from(doc! { "_id": 7, "duplicateOf": 3, "_duplicateOf": 1 })
        );
    }
}
