//! Documents that a conversion into buckets does not give back as they were: their `_id`s where `reading_id: time` or slots derive
//! others, single events that slots add up, cut times, numbers of another type in the series (1 and 1.0 are one). They are kept by the `_id` that clients see instead, and `drop RULE
//! --restore` puts them in the place of what the buckets give.
//!
//! Only the order of a reading's fields is not kept.
//!
//! A row of a reading is `{ _id: { rule, since, host: <logical _id> }, original: <_id>, document }`, without the document if only the
//! `_id` is another; of a slot there is a row per event, with the event's `_id` as `was` in the row's `_id`. A reading that was
//! deleted is not brought back; one that was changed gets its `_id` back. A slot gives its events back if it holds exactly what they
//! add up to; if not, it comes back as one document, and the rows stay until `forget`.

use crate::execute::access::Access;
use crate::life::replaced::amount::Amount;
use crate::life::replaced::restore::{among, rows};
use crate::life::replaced::{amount, host_id, host_of, insert};
use crate::life::walk;
use crate::mql;
use crate::rule::names;
use crate::rule::shape::Shape;
use crate::rule::{Rule, key};
use document::value::order;
use document::{Doc, DocWriter, Result, Value};
use hashbrown::HashMap;

/// What is kept of one rule's documents.
pub(crate) struct Originals<'a> {
    pub(crate) rule: &'a Rule,
    pub(crate) since: i64,
}

/// A document that was there.
struct Original {
    /// The row that keeps it.
    row: Doc<'static>,
    id: Value<'static>,
    /// `None` if only its `_id` was another.
    document: Option<Doc<'static>>,
}

impl Original {
    fn read(row: &Doc<'static>) -> Option<Original> {
        let Some(Value::Document(id)) = row.get("_id") else { return None };
        let document = match row.get("document") {
            Some(Value::Document(document)) => Some(document),
            _ => None,
        };
        Some(Original { row: row.clone(), id: id.get("was").or_else(|| row.get("original"))?, document })
    }

    /// As it was, if what clients see is `logical`.
    fn whole(&self, logical: &Doc<'_>) -> Doc<'static> {
        self.document.clone().unwrap_or_else(|| with_id(logical, &self.id))
    }
}

/// The rows of some logical documents, by the `_id` of these.
type ByLogical = HashMap<Vec<u8>, Vec<Original>>;

impl Originals<'_> {
    /// Keeps what is lost of documents that were just stored in a form: each as it was, and as clients see it now. Where they come
    /// from such a form too, what was kept of them follows their new `_id`.
    pub(crate) async fn keep(
        &self,
        at: &mut Access<'_>,
        from: &dyn Shape,
        to: &dyn Shape,
        moved: &[(Doc<'static>, Doc<'static>)],
    ) -> Result<()> {
        let mut known = match from.is_plain() {
            false => self.find(at, from, moved.iter().map(|(document, _)| document)).await?,
            true => ByLogical::new(),
        };
        let (mut new, mut old, mut change) = (Vec::new(), Vec::new(), Amount::default());
        for (document, logical) in moved {
            let id = document.get("_id").unwrap_or(Value::Null);
            match known.remove(&key::bytes(&id)) {
                Some(originals) => {
                    for original in originals {
                        new.push(self.row(to, logical, &original.whole(document)));
                        old.push(original.row);
                    }
                }
                None if !to.adds_up() && is_same(logical, document) => {}
                None => new.push(self.row(to, logical, document)),
            }
        }
        self.remove(at, &old, &mut change).await?;
        new.iter().for_each(|row| change.add(row));
        insert(at, self.rule, new).await?;
        amount::add(at, self.rule, self.since, change).await
    }

    fn row(&self, to: &dyn Shape, logical: &Doc<'_>, document: &Doc<'static>) -> Doc<'static> {
        let logical_id = logical.get("_id").unwrap_or(Value::Null);
        let original = document.get("_id").unwrap_or(Value::Null);
        if to.adds_up() {
            let Value::Document(host) = host_id(&self.rule.name, self.since, Some(&logical_id)) else {
                return Doc::empty();
            };
            let mut id = DocWriter::new();
            host.iter().for_each(|(name, value)| {
                id.append(name.as_str(), &value);
            });
            id.append("was", &original);
            let whole = Value::Document(document.borrow());
            return mql::document([("_id", Value::Document(id.finish())), ("document", whole)]);
        }
        let id = host_id(&self.rule.name, self.since, Some(&logical_id));
        let only_id = is_same(&with_id(logical, &original), document);
        let whole = if only_id { Value::Missing } else { Value::Document(document.borrow()) };
        mql::document([("_id", id), ("original", original), ("document", whole)])
    }

    /// What logical documents of a form become as plain ones: those that were there before, where they are kept.
    pub(crate) async fn give_back(
        &self,
        at: &mut Access<'_>,
        from: &dyn Shape,
        documents: Vec<Doc<'static>>,
    ) -> Result<Vec<Doc<'static>>> {
        let mut known = self.find(at, from, documents.iter()).await?;
        let (mut right, mut used, mut change) = (Vec::with_capacity(documents.len()), Vec::new(), Amount::default());
        for document in documents {
            let id = document.get("_id").unwrap_or(Value::Null);
            let Some(mut originals) = known.remove(&key::bytes(&id)) else {
                right.push(document);
                continue;
            };
            // They were added up in this order.
            originals.sort_by(|a, b| order::compare(&a.id, &b.id));
            let all: Vec<Doc<'static>> = originals.iter().map(|original| original.whole(&document)).collect();
            let together = from.seen_together(&all, &document);
            let is_unchanged = together.is_some_and(|logical| is_same(&with_id(&logical, &id), &document));
            match (is_unchanged, from.adds_up()) {
                (true, _) => right.extend(all),
                (false, true) => {
                    right.push(document);
                    continue;
                }
                (false, false) => {
                    let id = originals.first().map_or(Value::Null, |original| original.id.clone());
                    right.push(with_id(&document, &id));
                }
            }
            used.extend(originals.into_iter().map(|original| original.row));
        }
        self.remove(at, &used, &mut change).await?;
        amount::add(at, self.rule, self.since, change).await?;
        Ok(right)
    }

    async fn remove(&self, at: &mut Access<'_>, rows: &[Doc<'static>], change: &mut Amount) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut gone = Amount::default();
        rows.iter().for_each(|row| gone.add(row));
        *change = change.plus(Amount { documents: -gone.documents, bytes: -gone.bytes });
        let ids = rows.iter().filter_map(|row| row.get("_id")).collect();
        at.delete(&names::replaced(&self.rule.host.db), among(ids)).await.map(drop)
    }

    async fn find(
        &self,
        at: &mut Access<'_>,
        from: &dyn Shape,
        documents: impl Iterator<Item = &Doc<'static>>,
    ) -> Result<ByLogical> {
        let ids: Vec<Value<'static>> = documents.filter_map(|document| document.get("_id")).collect();
        let mut found = ByLogical::new();
        let of_host = |id: &Value<'_>| host_id(&self.rule.name, self.since, Some(id));
        let kept = match from.adds_up() {
            false => rows(at, &self.rule.host.db, ids.iter().map(of_host).collect()).await?,
            true => {
                let mut kept = Vec::new();
                for id in &ids {
                    let (first, mut last) = (of_host(id), DocWriter::new());
                    if let Value::Document(host) = &first {
                        host.iter().for_each(|(name, value)| {
                            last.append(name.as_str(), &value);
                        });
                    }
                    last.append("was", &Value::MaxKey);
                    let last = Value::Document(last.finish());
                    kept.extend(
                        at.find(walk::range(&names::replaced(&self.rule.host.db), Some(&first), Some(&last))).await?,
                    );
                }
                kept
            }
        };
        for row in &kept {
            if let (Some(host), Some(original)) = (host_of(row), Original::read(row)) {
                found.entry(key::bytes(&host)).or_default().push(original);
            }
        }
        Ok(found)
    }
}

/// Whether two documents have the same fields. Their order is the form's: to keep it would be to keep every document twice.
fn is_same(left: &Doc<'_>, right: &Doc<'_>) -> bool {
    left.as_bytes() == right.as_bytes()
        || (left.iter().count() == right.iter().count()
            && left.iter().all(|(name, value)| right.get(name.as_str()).is_some_and(|other| other == value)))
}

/// The document under another `_id`.
fn with_id(document: &Doc<'_>, id: &Value<'_>) -> Doc<'static> {
    let mut writer = DocWriter::with_capacity(document.as_bytes().len() + 32);
    writer.append("_id", id);
    for (name, value) in document.iter().filter(|(name, _)| name.as_str() != "_id") {
        writer.append(name.as_str(), &value);
    }
    writer.finish()
}
