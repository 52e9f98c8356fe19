//! A child as an item of a window: whole, or some of its fields. Where the item itself tells how it is ordered, a window is kept without
//! reading the children again.

use crate::fields::excerpt::Excerpt;
use crate::fields::order::{self, OrderValues, SortOrder, is_id};
use document::op::{Capture, SortKey, SortSpec};
use document::value::Path;
use document::{Doc, DocWriter, Value};
use std::sync::Arc;

/// What an item holds of its child.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemForm {
    Whole,
    Fields(Excerpt),
}

/// How items tell their order.
#[derive(Clone, Debug)]
pub(super) struct ItemOrder {
    /// The sort keys, where the item has them.
    spec: SortSpec,
    /// What stands for a path through sub-documents: an array there has lost which of its elements had no value.
    nested: Vec<Arc<str>>,
    /// The item's name for `_id`.
    id: Option<Arc<str>>,
}

impl ItemForm {
    /// `None`: the whole child.
    pub fn new(fields: Option<Vec<(Arc<str>, Path)>>) -> ItemForm {
        fields.map_or(ItemForm::Whole, |fields| ItemForm::Fields(Excerpt::new(fields)))
    }

    pub(super) fn of(&self, child: &Doc<'_>) -> Value<'static> {
        Value::Document(match self {
            ItemForm::Whole => as_stored(child),
            ItemForm::Fields(excerpt) => excerpt.of(child),
        })
    }

    /// The same, as an expression over the child.
    pub(super) fn expression(&self) -> Value<'static> {
        match self {
            ItemForm::Whole => Value::from("$$ROOT"),
            ItemForm::Fields(excerpt) => excerpt.expression(),
        }
    }

    /// What it reads of a child.
    pub(super) fn reads(&self) -> Capture {
        match self {
            ItemForm::Whole => Capture::Everything,
            ItemForm::Fields(excerpt) => Capture::Paths(excerpt.paths().cloned().collect()),
        }
    }

    /// Returns `None` unless all sort keys are in the item.
    pub(super) fn order(&self, order: &SortOrder) -> Option<ItemOrder> {
        let ItemForm::Fields(excerpt) = self else {
            return Some(ItemOrder { spec: order.declared().clone(), nested: Vec::new(), id: Some("_id".into()) });
        };
        let (mut spec, mut nested) = (SortSpec::default(), Vec::new());
        for SortKey { path, descending } in &order.declared().keys {
            let (name, copied) =
                excerpt.fields.iter().find(|(_, copied)| copied == path || copied.is_prefix_of(path))?;
            if copied.parts.len() > 1 {
                nested.push(name.clone());
            }
            let rest = path.parts.iter().skip(copied.parts.len()).map(|part| &*part.name);
            let place: Vec<&str> = std::iter::once(&**name).chain(rest).collect();
            spec.keys.push(SortKey { path: Path::new(&place.join(".")), descending: *descending });
        }
        let id = excerpt.fields.iter().find(|(_, copied)| is_id(copied)).map(|(name, _)| name.clone());
        Some(ItemOrder { spec, nested, id })
    }
}

/// The document with `_id` first, where MongoDB puts it: a client may have sent it anywhere.
fn as_stored(child: &Doc<'_>) -> Doc<'static> {
    if child.iter().next().is_none_or(|(name, _)| name.as_str() == "_id") {
        return child.clone().into_owned();
    }
    let mut stored = DocWriter::new();
    stored.append("_id", &child.get("_id").unwrap_or(Value::Missing));
    for (name, value) in child.iter().filter(|(name, _)| name.as_str() != "_id") {
        stored.append(name.as_str(), &value);
    }
    stored.finish()
}

impl ItemOrder {
    /// Whether items say which child they are.
    pub(super) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// The item's name for `_id`.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// The sort keys, where the item has them.
    pub(super) fn keys(&self) -> impl Iterator<Item = &SortKey> {
        self.spec.keys.iter()
    }

    /// The fields of the item in which an array does not tell the order.
    pub(super) fn nested(&self) -> impl Iterator<Item = &str> {
        self.nested.iter().map(|name| &**name)
    }

    /// What an item is ordered by, and its child's `_id` if it has that. Returns `None` if it does not tell.
    pub(super) fn of(&self, item: &Doc<'_>) -> Option<(OrderValues, Option<Value<'static>>)> {
        let is_array = |name: &Arc<str>| matches!(item.get(name), Some(Value::Array(_)));
        if self.nested.iter().any(is_array) {
            return None;
        }
        let values = order::values(&self.spec, item).ok()?;
        match &self.id {
            None => Some((values, None)),
            Some(name) => Some((values, Some(item.get(name)?.into_owned()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::needs::Direction;
    use bson::{Bson, bson, doc};

    fn fields(fields: &[(&str, &str)]) -> ItemForm {
        ItemForm::new(Some(fields.iter().map(|(name, path)| ((*name).into(), Path::new(path))).collect()))
    }

    fn by(path: &str) -> SortOrder {
        SortOrder::new([(Path::new(path), Direction::Descending)])
    }

    #[test]
    fn an_item_has_what_is_declared_in_that_order() {
        let child = Doc::from(doc! { "_id": 1, "a": { "b": 2 }, "x": null, "c": 3 });
        let value = |form: &ItemForm| form.of(&child);
        assert_eq!(value(&ItemForm::Whole), Value::Document(child.clone()));
        let sent = Doc::from(doc! { "a": 1, "_id": 1 });
        assert_eq!(ItemForm::Whole.of(&sent), Value::from(bson!({ "_id": 1, "a": 1 })));
        let some = fields(&[("c", "c"), ("b", "a.b"), ("no", "none"), ("x", "x")]);
        assert_eq!(value(&some), Value::from(bson!({ "c": 3, "b": 2, "x": null })));
        assert_eq!(value(&fields(&[("id", "_id")])), Value::from(bson!({ "id": 1 })));
    }

    /// The order of an item is that of its child, or it is not told.
    #[test]
    fn items_tell_the_order_of_their_children() {
        for (form, path, is_told, has_id) in [
            (ItemForm::Whole, "a.b", true, true),
            (fields(&[("n", "a")]), "a.b", true, false),
            (fields(&[("n", "a.b")]), "a.b", true, false),
            (fields(&[("n", "a.b"), ("key", "_id")]), "a.b", true, true),
            (fields(&[("n", "a.b.c")]), "a.b", false, false),
            (fields(&[("n", "c")]), "a.b", false, false),
            (fields(&[("n", "c")]), "_id", false, false),
            (fields(&[("key", "_id")]), "_id", true, true),
        ] {
            let told = form.order(&by(path));
            assert_eq!(told.is_some(), is_told, "{form:?} {path}");
            assert_eq!(told.is_some_and(|order| order.has_id()), has_id, "{form:?} {path}");
        }
        let values: Vec<Bson> = vec![
            bson!({ "b": 1 }),
            bson!({ "b": [1, 2] }),
            bson!({}),
            bson!(null),
            bson!(5),
            bson!([]),
            bson!([{ "b": 1 }, {}]),
            bson!([{ "b": 1 }, { "b": [3] }]),
            bson!([5, { "b": 1 }]),
            bson!({ "b": null }),
            bson!({ "b": [] }),
        ];
        for form in [ItemForm::Whole, fields(&[("n", "a"), ("i", "_id")]), fields(&[("n", "a.b"), ("i", "_id")])] {
            let order = by("a.b");
            let told = form.order(&order).unwrap();
            for value in &values {
                let child = Doc::from(doc! { "_id": 7, "a": value.clone() });
                let Value::Document(item) = form.of(&child) else { panic!("{value}") };
                match told.of(&item) {
                    Some((values, id)) => {
                        assert_eq!(values, order.values(&child).unwrap(), "{form:?} {value}");
                        assert_eq!(id, Some(Value::Int32(7)));
                    }
                    None => assert!(form == fields(&[("n", "a.b"), ("i", "_id")]), "{form:?} {value}"),
                }
            }
        }
    }
}
