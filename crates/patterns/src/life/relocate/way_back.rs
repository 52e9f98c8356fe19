//! What a collection needs on its way back from buckets to plain documents.
//!
//! Its indexes and options were dropped with the plain collection, so the catalog keeps them and it gets them again: a collation when
//! it is made, a validator when its documents are back, so that none of them is refused. And readings may share an `_id`, which documents of a collection may not: the later ones get a new `_id` and keep the one that they had in a field.
//! Neither stops the way back. What came of it is noted for the verb that asked.

use crate::execute::access::{Access, find};
use crate::life::relocate::record::Relocation;
use crate::life::relocate::stored;
use crate::life::replaced::restore::among;
use crate::life::transaction::is_transient;
use crate::life::{CatalogRule, Life, expiry};
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
    /// The names of the options that it has again.
    pub(crate) options: Vec<String>,
    /// Those that could not be made, and why.
    pub(crate) failed: Vec<(String, String)>,
}

/// By database and rule, until somebody asks.
#[derive(Debug, Default)]
pub(crate) struct WaysBack(Mutex<BTreeMap<Key, WayBack>>);

/// A database, and a rule in it.
type Key = (Arc<str>, Arc<str>);

impl WayBack {
    pub(crate) fn is_nothing(&self) -> bool {
        *self == WayBack::default()
    }

    /// `duplicates`, `indexes`, `options` and `failed: [ { index, why } ]`.
    pub(crate) fn show(&self, answer: &mut DocWriter) {
        let indexes = self.indexes.iter().map(|name| Value::from(&**name));
        let failed = self.failed.iter();
        let failed =
            failed.map(|(name, why)| mql::object([("index", Value::from(&**name)), ("why", Value::from(&**why))]));
        answer.append("duplicates", &Value::Int64(self.duplicates));
        answer.append("indexes", &Value::Array(indexes.collect()));
        answer.append("options", &Value::Array(self.options.iter().map(|name| Value::from(&**name)).collect()));
        answer.append("failed", &Value::Array(failed.collect()));
    }
}

impl Life {
    pub(crate) fn note_way_back(&self, entry: &CatalogRule, noted: WayBack) {
        self.ways_back.0.lock().insert((entry.db.clone(), entry.rule.name.clone()), noted);
    }

    /// What came of the rule's collection when the rule was last dropped.
    pub(crate) fn take_way_back(&self, db: &str, rule: &str) -> Option<WayBack> {
        self.ways_back.0.lock().remove(&(db.into(), rule.into()))
    }
}

/// Gives a new `_id` to those documents whose own is taken, in the collection or by one before them. Returns how many these are.
/// In a collection with a collation, whose texts are equal only MongoDB knows: there it takes one document at a time.
pub(super) async fn separate(
    at: &mut Access<'_>,
    to: &Namespace,
    documents: &mut [Doc<'static>],
    collated: bool,
) -> Result<i64> {
    let ids: Vec<Value<'static>> = documents.iter().filter_map(|document| document.get("_id")).collect();
    let mut taken: HashSet<Vec<u8>> = HashSet::new();
    for there in at.find(find(to, among(ids))).await? {
        taken.insert(comparable(&there));
    }
    let mut separated = 0;
    for document in documents {
        let is_taken = if collated { !taken.is_empty() } else { !taken.insert(comparable(document)) };
        if is_taken {
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

/// Options of a collection that can only be given to a new one. A validator is no such option: it is given back at the end.
const LASTING: &[&str] = &[
    "changeStreamPreAndPostImages",
    "clusteredIndex",
    "collation",
    "expireAfterSeconds",
    "indexOptionDefaults",
    "storageEngine",
];

const VALIDATION: &[&str] = &["validator", "validationLevel", "validationAction"];

/// The options of a plain collection that it is to have again. Returns `None` if it has none.
pub(crate) async fn options(at: &mut Access<'_>, ns: &Namespace) -> Result<Option<Doc<'static>>> {
    let Some(found) = stored::look_up(at, ns).await? else { return Ok(None) };
    let kept = chosen(&found.options, |name| LASTING.contains(&name) || VALIDATION.contains(&name));
    Ok((!kept.is_empty()).then_some(kept))
}

/// The options that a collection is made with.
pub(super) fn lasting(options: &Doc<'static>) -> Doc<'static> {
    chosen(options, |name| LASTING.contains(&name))
}

fn chosen(options: &Doc<'_>, is_wanted: impl Fn(&str) -> bool) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(options.as_bytes().len());
    for (name, value) in options.iter().filter(|(name, _)| is_wanted(name.as_str())) {
        writer.append(name.as_str(), &value);
    }
    writer.finish()
}

/// Gives a plain collection the validator that it had. Returns the names of all options that it has again.
pub(super) async fn give_options(at: &mut Access<'_>, ns: &Namespace, shape: &Relocation) -> Result<Vec<String>> {
    let Some(options) = &shape.plain_options else { return Ok(Vec::new()) };
    let names = |options: &Doc<'_>| options.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
    let validation = chosen(options, |name| VALIDATION.contains(&name));
    if validation.is_empty() {
        return Ok(names(options));
    }
    let op = AdminOp::CollMod { ns: ns.clone(), change: validation };
    match at.backend.admin(at.session, at.context, op).await {
        Ok(_) => Ok(names(options)),
        Err(error) if is_transient(&error) || error.code() == Code::InterruptedAtShutdown => Err(error),
        Err(error) => {
            tracing::warn!(%error, collection = %ns, "the validator could not be given back");
            Ok(names(&lasting(options)))
        }
    }
}

/// Whether the plain collection has a collation of its own.
pub(super) fn is_collated(shape: Option<&Relocation>) -> bool {
    shape.and_then(|shape| shape.plain_options.as_ref()).is_some_and(|options| options.contains("collation"))
}

/// An index as it is to be made again: one without a collation would get that of the collection.
fn remade(index: &Doc<'static>, shape: &Relocation) -> Doc<'static> {
    if index.contains("collation") || !is_collated(Some(shape)) {
        return index.clone();
    }
    let mut writer = DocWriter::with_capacity(index.as_bytes().len() + 40);
    for (name, value) in index.iter() {
        writer.append(name.as_str(), &value);
    }
    writer.append("collation", &mql::object([("locale", Value::from("simple"))]));
    writer.finish()
}

/// What the plain collection is called now: it may have been renamed before a stop. Returns `None` if it is not there.
pub(super) async fn plain_name(
    at: &mut Access<'_>,
    aside: &Namespace,
    logical: &Namespace,
) -> Result<Option<Namespace>> {
    for ns in [aside, logical] {
        if stored::look_up(at, ns).await?.is_some_and(|found| !found.is_view()) {
            return Ok(Some(ns.clone()));
        }
    }
    Ok(None)
}

/// Makes the indexes again that the plain collection had. One that cannot be made, for what was written since, is named.
pub(super) async fn make_indexes(at: &mut Access<'_>, ns: &Namespace, shape: &Relocation) -> Result<WayBack> {
    let mut back = WayBack { duplicates: shape.duplicates, ..WayBack::default() };
    for index in &shape.plain_indexes {
        let op = AdminOp::CreateIndexes { ns: ns.clone(), indexes: vec![remade(index, shape)] };
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
