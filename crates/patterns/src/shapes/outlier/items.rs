//! All items of an outlier array as a collection of its own, to read: `{ owner, item, index }` with the declared names. It has two
//! places, the hosts with what is embedded and the overflow, and no document is written through it.

use crate::mql;
use crate::rule::outlier::{INDEX, Outlier};
use crate::rule::read::{Dialect, Each, ReadShape};
use crate::rule::shape::{Inserted, LogicalFate, NewDocuments, Place, Rewrite, Shape, Stepped, Stop, StoredAccess};
use crate::rule::{Flaw, Lens, LifeShape, LinkKey, Lookup, Needs, Stack, Unserved};
use crate::shapes::outlier::stored::{index_of, number};
use document::filter::{Filter, Node, Test};
use document::op::{Namespace, SortSpec};
use document::value::Path;
use document::{Array, Code, Doc, DocWriter, Env, Error, Result, Value};
use std::any::Any;
use std::sync::Arc;

/// One of the two parts of an array.
#[derive(Clone, Debug)]
pub(crate) struct ItemsShape {
    outlier: Arc<Outlier>,
    part: ArrayPart,
    /// Of hosts that may have the array under another name in another version.
    lens: Option<Arc<Lens>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArrayPart {
    Embedded,
    Overflow,
}

/// Where all items are. `lens` tells versions of the hosts apart.
pub(crate) fn places(outlier: &Arc<Outlier>, lens: Option<&Arc<Lens>>) -> Vec<Place> {
    let lens = lens.filter(|lens| lens.changes(&Path::new(&outlier.field)));
    let place = |part, stored: &Namespace| {
        let lens = lens.cloned().filter(|_| part == ArrayPart::Embedded);
        let shape = ItemsShape { outlier: outlier.clone(), part, lens };
        Place { stored: stored.clone(), shape: Arc::new(shape) }
    };
    vec![place(ArrayPart::Embedded, &outlier.host), place(ArrayPart::Overflow, &outlier.overflow)]
}

impl ItemsShape {
    fn row(&self, owner: &Value<'_>, item: &Value<'_>, index: u64) -> Doc<'static> {
        let (outlier, index) = (&self.outlier, number(index));
        let mut row = DocWriter::with_capacity(96);
        row.start_document("_id").append(&outlier.owner, owner).append(INDEX, &index).end();
        row.append(&outlier.owner, owner).append(&outlier.item, item).append(INDEX, &index);
        row.finish()
    }

    /// What a condition on rows says about stored documents; `None` if nothing.
    fn pushed(&self, path: &Path, test: &Test) -> Option<Node> {
        let outlier = &self.outlier;
        let path = match path.parts.as_slice() {
            // The `_id` of a row says owner and index.
            [id, rest @ ..] if &*id.name == "_id" && !rest.is_empty() => Path { parts: rest.to_vec() },
            _ => path.clone(),
        };
        let rest = path.parts.get(1..).unwrap_or_default();
        let under =
            |name: &str| Path { parts: Path::new(name).parts.into_iter().chain(rest.iter().cloned()).collect() };
        let (is_owner, is_item) = (path.first() == outlier.owner, path.first() == outlier.item);
        match self.part {
            ArrayPart::Overflow if is_owner || is_item || path.first() == INDEX => {
                Some(Node::Field { path, test: test.clone() })
            }
            ArrayPart::Embedded if is_owner => Some(Node::Field { path: under("_id"), test: test.clone() }),
            ArrayPart::Embedded if self.lens.is_some() => None,
            ArrayPart::Embedded if is_item && is_of_one_value(test) => {
                Some(Node::Field { path: under(&outlier.field), test: test.clone() })
            }
            // The array has an item there.
            ArrayPart::Embedded if path.first() == INDEX && rest.is_empty() => {
                let least = match test {
                    Test::Eq(value) | Test::Gte(value) => value.as_i64_exact()?,
                    Test::Gt(value) => value.as_i64_exact()?.checked_add(1)?,
                    _ => return None,
                };
                (least > 0).then(|| Node::field(&format!("{}.{least}", outlier.field), Test::Exists))
            }
            _ => None,
        }
    }
}

/// Whether an array has an element that passes if one of its elements does by itself.
fn is_of_one_value(test: &Test) -> bool {
    match test {
        Test::Eq(value) => !value.is_nullish() && !matches!(value, Value::Array(_)),
        Test::In(set) => {
            set.regexes.is_empty()
                && !set.values.iter().any(|value| value.is_nullish() || matches!(value, Value::Array(_)))
        }
        _ => false,
    }
}

impl ReadShape for ItemsShape {
    fn view(&self, _: Dialect) -> Array<'static> {
        match self.part {
            ArrayPart::Embedded => {
                let newest = self.lens.iter().flat_map(|lens| lens.view().iter());
                newest.chain(self.outlier.rows_of_hosts().iter()).collect()
            }
            ArrayPart::Overflow => self.outlier.rows_of_overflow(),
        }
    }

    fn decode(&self, stored: &Doc<'_>, each: &mut Each<'_>) -> Result<()> {
        let outlier = &self.outlier;
        match self.part {
            ArrayPart::Embedded => {
                let newest = match &self.lens {
                    // What brings documents up reads no clock.
                    Some(lens) => lens.up(stored, &Env::fixed())?,
                    None => None,
                };
                let stored = newest.as_ref().unwrap_or(stored);
                let owner = stored.get("_id").unwrap_or(Value::Null);
                let Some(Value::Array(items)) = stored.get(&outlier.field) else { return Ok(()) };
                items.iter().zip(0..).try_for_each(|(item, index)| each(self.row(&owner, &item, index)))
            }
            ArrayPart::Overflow => {
                let field = |name: &str| stored.get(name).unwrap_or(Value::Null);
                each(self.row(&field(&outlier.owner), &field(&outlier.item), index_of(stored)))
            }
        }
    }

    /// A document of the overflow is a row, under the same names.
    fn keeps(&self, path: &Path) -> bool {
        let outlier = &self.outlier;
        self.part == ArrayPart::Overflow && [&*outlier.owner, &*outlier.item, INDEX].contains(&path.first())
    }

    fn is_row_by_row(&self) -> bool {
        self.part == ArrayPart::Overflow
    }

    fn push(&self, filter: &Filter) -> Filter {
        let mut nodes = Vec::new();
        filter.root.each_required_field(&mut |path, test| nodes.extend(self.pushed(path, test)));
        Filter::from_node(Node::all_of(nodes))
    }
}

impl LifeShape for ItemsShape {
    fn noun(&self) -> &'static str {
        "items"
    }

    fn describe(&self) -> String {
        format!("items in {}", self.outlier.overflow.collection)
    }

    fn flaws(&self, _: &Doc<'_>) -> Vec<Flaw> {
        Vec::new()
    }

    fn mend(&self, stored: &Doc<'_>) -> Option<Doc<'static>> {
        Some(stored.clone().into_owned())
    }

    fn logical_count(&self) -> Value<'static> {
        match self.part {
            ArrayPart::Embedded => mql::call("$size", mql::field(&self.outlier.field)),
            ArrayPart::Overflow => Value::Int32(1),
        }
    }

    fn unserved(&self, by: &LinkKey, _: &Lookup) -> Option<Unserved> {
        let outlier = &self.outlier;
        let is_served = by.path().is_some_and(|key| [&*outlier.owner, &*outlier.item].contains(&key.path.first()));
        (!is_served).then(|| Unserved {
            key: "by",
            reason: format!("items are found by {} and by {}", outlier.owner, outlier.item),
            hint: format!("write `by: {}` or `by: {}`", outlier.owner, outlier.item),
        })
    }

    fn conversion(&self, _: &dyn Shape, _: &Namespace) -> Vec<Value<'static>> {
        Vec::new()
    }

    fn seen_together(&self, _: &[Doc<'static>], _: &Doc<'static>) -> Option<Doc<'static>> {
        None
    }
}

fn only_read() -> Error {
    Error::new(Code::InternalError, "the items of an array are written through the array")
}

impl Shape for ItemsShape {
    fn is_same(&self, other: &dyn Shape) -> bool {
        let other = (other as &dyn Any).downcast_ref::<ItemsShape>();
        other.is_some_and(|other| other.part == self.part && other.outlier == self.outlier)
    }

    fn needs(&self, _: &Namespace) -> Needs {
        Needs::default()
    }

    fn order(&self) -> SortSpec {
        SortSpec::default()
    }

    fn stored_order(&self) -> Option<SortSpec> {
        Some(SortSpec::default())
    }

    fn place_in_order(&self, _: &Doc<'static>) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn derives_id(&self) -> bool {
        true
    }

    fn check(&self, _: &Doc<'static>) -> Result<Value<'static>> {
        Err(only_read())
    }

    fn as_read(&self, logical: &Doc<'static>) -> Result<Doc<'static>> {
        Ok(logical.clone())
    }

    fn rewrite(&self, _: &Place, _: &Doc<'static>, _: Vec<(usize, LogicalFate)>) -> Result<Rewrite> {
        Err(only_read())
    }

    fn insert<'a>(
        &'a self,
        _: &'a mut dyn StoredAccess,
        _: &'a Stack,
        _: &'a Place,
        _: NewDocuments<'a>,
    ) -> Stepped<'a, Inserted> {
        Box::pin(async { Err(Stop::Command(only_read())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::evaluate::decoded;
    use crate::shapes::outlier::samples::followers;
    use bson::doc;
    use document::Env;
    use document::pipeline::expr::Names;
    use document::pipeline::{Collections, Pipeline, Rows, Run, from_documents};

    struct NoOthers;

    impl Collections for NoOthers {
        fn open(&self, _: &str, _: &Pipeline, _: &Env) -> Result<Rows> {
            Ok(document::pipeline::empty())
        }
    }

    fn pushed(filter: bson::Document) -> Vec<bson::Document> {
        let filter = Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap();
        let shown = |place: &Place| bson::Document::try_from(&place.shape.push(&filter).source).unwrap();
        places(&Arc::new(followers(2)), None).iter().map(shown).collect()
    }

    #[test]
    fn rows_have_owner_item_and_index() {
        let places = places(&Arc::new(followers(2)), None);
        let host = Doc::from(doc! { "_id": 7, "followers": ["a", "b"], "hasOverflow": true, "followerCount": 3 });
        let over = Doc::from(doc! { "_id": 1, "userId": 7, "followerId": "c", "index": 5 });
        let row = |item: &str, index: i32| {
            Doc::from(doc! { "_id": { "userId": 7, "index": index }, "userId": 7, "followerId": item, "index": index })
        };
        let [embedded, overflow] = &places[..] else { panic!("{places:?}") };
        assert_eq!(decoded(&*embedded.shape, &host).unwrap(), [row("a", 0), row("b", 1)]);
        assert_eq!(decoded(&*overflow.shape, &over).unwrap(), [row("c", 5)]);
        for (place, stored, expected) in
            [(embedded, &host, vec![row("a", 0), row("b", 1)]), (overflow, &over, vec![row("c", 5)])]
        {
            let view = Pipeline::parse(&place.shape.view(Dialect::MongoDb), &mut Names::new()).unwrap();
            let run = Run { env: Env::fixed(), collections: Arc::new(NoOthers) };
            let mut rows = view.start(from_documents(vec![stored.clone()]), &run).unwrap();
            let found: Vec<_> = std::iter::from_fn(|| rows.next().unwrap()).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn conditions_reach_what_is_stored() {
        assert_eq!(
            pushed(doc! { "userId": 7, "index": { "$gte": 5 } }),
            [
                doc! { "$and": [{ "_id": { "$eq": 7 } }, { "followers.5": { "$exists": true } }] },
                doc! { "$and": [{ "userId": { "$eq": 7 } }, { "index": { "$gte": 5 } }] },
            ]
        );
        assert_eq!(
            pushed(doc! { "followerId": "a" }),
            [doc! { "followers": { "$eq": "a" } }, doc! { "followerId": { "$eq": "a" } },]
        );
        assert_eq!(pushed(doc! { "followerId": { "$ne": "a" }, "$or": [{ "userId": 1 }] })[1].len(), 1);
    }
}
