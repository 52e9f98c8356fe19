//! An item of a lifted array as a document of its own, and that document as an item again. Pure.

use crate::execute::replaced::values::without;
use crate::fields::set_paths::put;
use crate::rule::obstacle::{Arrays, Obstacle};
use crate::rule::{Link, LinkKey, Rule, key};
use document::op::Namespace;
use document::pipeline::expr::field_of_document;
use document::value::{Path, order};
use document::{Doc, DocWriter, Value};
use xxhash_rust::xxh3::xxh3_128;

/// A rule and the array that it lifts.
#[derive(Clone)]
pub(crate) struct Lift<'r> {
    pub(crate) rule: &'r Rule,
    pub(crate) link: &'r Link,
    pub(crate) array: Path,
    /// The field of the children that holds the key of their host.
    pub(crate) by: &'r Path,
}

/// An item as a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Child {
    pub(crate) id: Value<'static>,
    pub(crate) document: Doc<'static>,
    /// Whether the item had no `_id` of its own.
    pub(crate) is_made: bool,
    /// Whether the item held the key of its host.
    pub(crate) had_key: bool,
}

/// Why an item cannot become a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misfit {
    NotADocument,
    /// An array, a regular expression.
    Id,
    OtherKey,
    NoRoom,
}

impl Misfit {
    pub(crate) fn why(self, lift: &Lift<'_>) -> String {
        let by = lift.by;
        match self {
            Misfit::NotADocument => "it is not a document".to_owned(),
            Misfit::Id => "its `_id` is an array or a regular expression, which no document can have".to_owned(),
            Misfit::OtherKey => format!("its `{by}` is another one than that of the document that holds it"),
            Misfit::NoRoom => format!("something in it leaves no room for `{by}`"),
        }
    }
}

impl<'r> Lift<'r> {
    /// Of the array at this path; `None` if the rule has no children that hold one key each.
    pub(crate) fn new(rule: &'r Rule, array: &str) -> Option<Lift<'r>> {
        let link = rule.link()?;
        match &link.foreign {
            LinkKey::Path(by) => Some(Lift { rule, link, array: Path::new(array), by: &by.path }),
            LinkKey::Expression(_) => None,
        }
    }

    pub(crate) fn of(rule: &'r Rule) -> Option<Lift<'r>> {
        Lift::new(rule, &rule.lift.as_ref()?.dotted())
    }

    pub(crate) fn host(&self) -> &'r Namespace {
        &self.rule.host
    }

    pub(crate) fn source(&self) -> &'r Namespace {
        &self.link.source
    }

    /// Whether the array is the field that shows the first children.
    pub(crate) fn is_window(&self) -> bool {
        self.array == self.rule.field
    }

    /// The key by which children find the host; `None` if they cannot.
    pub(crate) fn key(&self, host: &Doc<'_>) -> Option<Value<'static>> {
        let key = field_of_document(host, &self.link.local.path.parts).into_owned();
        (!key.is_nullish() && !matches!(key, Value::Array(_))).then_some(key)
    }

    /// The item at a place of the host's array. An `_id` that is made is the same each time, and later places have larger ones, so that
    /// children whose order is a tie stay in the order of the array.
    pub(crate) fn child(
        &self,
        host: &Value<'_>,
        key: &Value<'_>,
        place: u64,
        item: &Value<'_>,
    ) -> Result<Child, Misfit> {
        let Value::Document(item) = item else { return Err(Misfit::NotADocument) };
        let own = item.get("_id");
        let (id, is_made) = match &own {
            Some(Value::Array(_) | Value::Regex { .. } | Value::Undefined) => return Err(Misfit::Id),
            Some(id) => (id.clone().into_owned(), false),
            None => (self.made_id(host, place), true),
        };
        let held = field_of_document(item, &self.by.parts);
        let had_key = !held.is_missing();
        if had_key && !order::equal(&held, key) {
            return Err(Misfit::OtherKey);
        }
        if Obstacle::on_way(item, &self.by.parts, Arrays::Obstruct).is_some() {
            return Err(Misfit::NoRoom);
        }
        let mut document = DocWriter::with_capacity(item.as_bytes().len() + 64);
        document.append("_id", &id);
        for (name, value) in item.iter().filter(|(name, _)| name.as_str() != "_id") {
            document.append(name.as_str(), &value);
        }
        let mut document = document.finish();
        if !had_key {
            document = put(&document, &[(&self.by.parts, key.borrow())]);
        }
        Ok(Child { id, document, is_made, had_key })
    }

    /// Nine bytes that stand for the host, three for the place.
    fn made_id(&self, host: &Value<'_>, place: u64) -> Value<'static> {
        let Namespace { db, collection } = self.host();
        let mut named = format!("{db}.{collection}/{}/", self.array).into_bytes();
        named.extend(key::bytes(host));
        let (hash, place) = (xxh3_128(&named).to_be_bytes(), place.to_be_bytes());
        let mut id = [0; 12];
        for (to, from) in id.iter_mut().zip(hash.iter().take(9).chain(place.iter().skip(5))) {
            *to = *from;
        }
        Value::ObjectId(id)
    }

    /// A child as an item: without what it was given when it became a document.
    pub(crate) fn item(&self, child: &Doc<'_>, is_made: bool, had_key: bool) -> Doc<'static> {
        let item = if had_key { child.clone().into_owned() } else { without(child, self.by) };
        if is_made { without(&item, &Path::new("_id")) } else { item }
    }
}

/// Whether a stored document has everything that a child has: then nothing is lost if it stands for it.
pub(crate) fn holds(stored: &Doc<'_>, child: &Doc<'_>) -> bool {
    child.iter().all(|(name, value)| stored.get(name.as_str()).is_some_and(|held| order::equal(&held, &value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, bson, doc};

    fn rule() -> Rule {
        let text = "database: shop\ncollections:\n  products:\n    subset:\n      recent: { from: reviews, by: ref.product, sort: { date: -1 }, keep: 2, lift: reviews }\n";
        crate::declare::from_yaml("pleach.yaml", text).into_result().unwrap().rules.remove(0)
    }

    fn child(item: Bson) -> Result<Child, Misfit> {
        let rule = rule();
        let lift = Lift::of(&rule).unwrap();
        lift.child(&Value::Int32(7), &Value::Int32(7), 3, &Value::from(item))
    }

    #[test]
    fn an_item_becomes_a_document_and_an_item_again() {
        let rule = rule();
        let lift = Lift::of(&rule).unwrap();
        for (item, document) in [
            (doc! { "n": 1, "_id": "a" }, doc! { "_id": "a", "n": 1, "ref": { "product": 7 } }),
            (doc! { "_id": 5, "ref": { "product": 7.0 } }, doc! { "_id": 5, "ref": { "product": 7.0 } }),
            (doc! { "_id": 5, "ref": { "x": 1 } }, doc! { "_id": 5, "ref": { "x": 1, "product": 7 } }),
        ] {
            let child = child(Bson::Document(item.clone())).unwrap();
            assert_eq!((&child.document, child.is_made), (&Doc::from(document), false), "{item}");
            let back = lift.item(&child.document, child.is_made, child.had_key);
            assert!(holds(&back, &Doc::from(item.clone())) && holds(&Doc::from(item.clone()), &back), "{item}");
        }
        let made = child(bson!({ "n": 1 })).unwrap();
        assert!(made.is_made && matches!(made.id, Value::ObjectId(_)));
        assert_eq!(lift.item(&made.document, made.is_made, made.had_key), Doc::from(doc! { "n": 1 }));
    }

    #[test]
    fn what_cannot_become_a_document_is_told() {
        for (item, misfit) in [
            (bson!(5), Misfit::NotADocument),
            (bson!([{ "n": 1 }]), Misfit::NotADocument),
            (bson!({ "_id": [1] }), Misfit::Id),
            (bson!({ "ref": { "product": 8 } }), Misfit::OtherKey),
            (bson!({ "ref": { "product": null } }), Misfit::OtherKey),
            (bson!({ "ref": 5 }), Misfit::NoRoom),
        ] {
            assert_eq!(child(item.clone()), Err(misfit), "{item}");
        }
    }

    #[test]
    fn made_ids_are_the_same_again_and_in_the_order_of_the_array() {
        let rule = rule();
        let lift = Lift::of(&rule).unwrap();
        let id = |host: i32, place: u64| lift.made_id(&Value::Int32(host), place);
        assert_eq!(id(1, 2), id(1, 2));
        assert_eq!(lift.made_id(&Value::Double(1.0), 2), id(1, 2));
        assert!(
            [0, 1, 255, 256, 70_000].windows(2).all(|pair| order::compare(&id(1, pair[0]), &id(1, pair[1])).is_lt())
        );
        assert_ne!(id(1, 0), id(2, 0));
    }
}
