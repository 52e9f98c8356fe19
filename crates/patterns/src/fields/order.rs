//! The order of child documents: several sort keys with directions, then `_id`, so that no two children are equal. Values are compared
//! as MongoDB sorts them: a missing one is null, an array stands for its least or greatest element.

use crate::mql::document;
use crate::rule::LinkKey;
use crate::rule::needs::{Direction, IndexNeed};
use crate::rule::seek::Seek;
use crate::rule::{Link, Lookup, Needs, partial_filter};
use document::op::{Namespace, SortKey, SortSpec};
use document::pipeline::sort_spec;
use document::value::{Path, order};
use document::{Doc, Result, Value};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// The values that a child is ordered by.
pub type OrderValues = SmallVec<[Value<'static>; 1]>;

#[derive(Clone, Debug, PartialEq)]
pub struct SortOrder {
    /// As declared; nothing behind an `_id`, which leaves nothing to decide.
    declared: SortSpec,
    /// How equal children are ordered by `_id`; `None` if that is one of the declared keys.
    ties: Option<Direction>,
}

impl SortOrder {
    pub fn new(keys: impl IntoIterator<Item = (Path, Direction)>) -> SortOrder {
        let mut declared = SortSpec::default();
        let mut ties = Some(Direction::Ascending);
        for (path, direction) in keys {
            let is_id = is_id(&path);
            declared.keys.push(SortKey { path, descending: direction == Direction::Descending });
            if is_id {
                ties = None;
                break;
            }
        }
        SortOrder { declared, ties }
    }

    /// The same from the other end.
    #[must_use]
    pub fn reversed(&self) -> SortOrder {
        let turned = |key: &SortKey| SortKey { path: key.path.clone(), descending: !key.descending };
        let ties = self
            .ties
            .map(|ties| if ties == Direction::Ascending { Direction::Descending } else { Direction::Ascending });
        SortOrder { declared: SortSpec { keys: self.declared.keys.iter().map(turned).collect() }, ties }
    }

    /// The declared keys.
    pub fn declared(&self) -> &SortSpec {
        &self.declared
    }

    /// How equal children are ordered by `_id`; `None` if that is one of the declared keys.
    pub fn ties(&self) -> Option<Direction> {
        self.ties
    }

    /// All keys, with the `_id` that decides ties.
    pub fn keys(&self) -> Vec<(Path, Direction)> {
        let declared = self.declared.keys.iter().map(|key| {
            let direction = if key.descending { Direction::Descending } else { Direction::Ascending };
            (key.path.clone(), direction)
        });
        declared.chain(self.ties.map(|ties| (Path::new("_id"), ties))).collect()
    }

    /// By its first key.
    pub fn lookup(&self) -> Lookup {
        self.declared.keys.first().map_or(Lookup::ByValue, |key| Lookup::InOrder(key.path.clone()))
    }

    /// As `$sort` takes it.
    pub fn document(&self) -> Doc<'static> {
        let keys: Vec<(String, i32)> =
            self.keys().iter().map(|(path, direction)| (path.dotted(), direction.number())).collect();
        document(keys.iter().map(|(path, number)| (&**path, Value::Int32(*number))))
    }

    /// What a child is ordered by, beside the `_id` that decides ties. An error where MongoDB cannot sort the child.
    pub fn values(&self, child: &Doc<'_>) -> Result<OrderValues> {
        values(&self.declared, child)
    }

    /// By the declared keys alone.
    pub fn compare_declared(&self, left: &[Value<'_>], right: &[Value<'_>]) -> Ordering {
        sort_spec::compare(&self.declared, left, right)
    }

    /// Of two children; `None` if they are equal by the declared keys and the `_id` of one is not known.
    pub fn compare(
        &self,
        (left, left_id): (&[Value<'_>], Option<&Value<'_>>),
        (right, right_id): (&[Value<'_>], Option<&Value<'_>>),
    ) -> Option<Ordering> {
        match (self.compare_declared(left, right), self.ties) {
            (Ordering::Equal, Some(ties)) => {
                let by_id = order::compare(left_id?, right_id?);
                Some(if ties == Direction::Descending { by_id.reverse() } else { by_id })
            }
            (other, _) => Some(other),
        }
    }

    /// What a field needs whose children are read in this order: the index by which the children of one key come sorted takes the place
    /// of the one that only finds them.
    pub fn needs(&self, host: &Namespace, link: &Link) -> Needs {
        let mut needs = Needs::of_link(host, link);
        let Some(index) = self.index(link) else { return needs };
        match needs.indexes.iter_mut().find(|need| need.ns == link.source && !need.unique) {
            Some(lookup) => *lookup = index,
            None => needs.indexes.push(index),
        }
        needs
    }

    /// `{ by, …sort keys, _id }`: the children of a key in order, page by page; only those that count where an index can say which.
    /// Returns `None` if no index can have them so.
    fn index(&self, link: &Link) -> Option<IndexNeed> {
        let sought: Vec<&Path> = match &link.foreign {
            LinkKey::Path(key) => vec![&key.path],
            LinkKey::Expression(expression) => self.sought(expression.seek.as_ref()?)?,
        };
        let mut keys: Vec<(Path, Direction)> = sought.into_iter().map(|path| (path.clone(), Direction::Any)).collect();
        for (path, direction) in self.keys() {
            // What is equal for all children of a key orders nothing.
            if !keys.iter().any(|(known, _)| *known == path) {
                keys.push((path, direction));
            }
        }
        let partial = link.filter.as_ref().and_then(partial_filter::of);
        Some(IndexNeed { keys, partial, ..IndexNeed::lookup(&link.source, []) })
    }

    /// The paths that are equal for all children of a computed key. Returns `None` where a period stands between them and the order.
    fn sought<'s>(&self, seek: &'s Seek) -> Option<Vec<&'s Path>> {
        let first = self.declared.keys.first().map(|key| &key.path);
        match seek {
            Seek::Equal(path) => Some(vec![path]),
            Seek::Period { path, .. } => (Some(path) == first).then(Vec::new),
            Seek::Parts(parts) => {
                let all = parts.iter().map(|(_, seek)| self.sought(seek)).collect::<Option<Vec<_>>>()?;
                Some(all.into_iter().flatten().collect())
            }
        }
    }
}

/// What a document is ordered by.
pub(crate) fn values(spec: &SortSpec, doc: &Doc<'_>) -> Result<OrderValues> {
    Ok(sort_spec::key(spec, doc)?.into_iter().map(Value::into_owned).collect())
}

pub(crate) fn is_id(path: &Path) -> bool {
    path.parts.len() == 1 && path.first() == "_id"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::testing;
    use crate::rule::KeyPath;
    use Direction::{Ascending, Descending};
    use bson::{Bson, bson, doc};

    fn of(keys: &[(&str, Direction)]) -> SortOrder {
        SortOrder::new(keys.iter().map(|(path, direction)| (Path::new(path), *direction)))
    }

    #[test]
    fn ties_are_decided_by_id() {
        for (keys, expected) in [
            (&[("at", Descending)][..], doc! { "at": -1, "_id": 1 }),
            (&[("a", Ascending), ("b.c", Descending)], doc! { "a": 1, "b.c": -1, "_id": 1 }),
            (&[("_id", Descending)], doc! { "_id": -1 }),
            (&[("a", Ascending), ("_id", Descending), ("b", Ascending)], doc! { "a": 1, "_id": -1 }),
        ] {
            assert_eq!(of(keys).document(), Doc::from(expected), "{keys:?}");
        }
        let last = of(&[("at", Ascending)]).reversed();
        assert_eq!(last.document(), Doc::from(doc! { "at": -1, "_id": -1 }));
        assert_eq!(of(&[("_id", Ascending)]).reversed().document(), Doc::from(doc! { "_id": -1 }));
    }

    #[test]
    fn children_are_compared_as_mongodb_sorts_them() {
        let compare = |order: &SortOrder, left: Bson, right: Bson| {
            let values = |value: Bson| order.values(&Doc::from(doc! { "a": value })).unwrap();
            order.compare((&values(left), Some(&Value::Int32(1))), (&values(right), Some(&Value::Int32(2))))
        };
        let (up, down) = (of(&[("a", Ascending)]), of(&[("a", Descending)]));
        for (left, right, ascending, descending) in [
            (bson!(1), bson!(2), Ordering::Less, Ordering::Greater),
            (bson!(1), bson!(1.0), Ordering::Less, Ordering::Less),
            (bson!([1, 9]), bson!(5), Ordering::Less, Ordering::Less),
            (bson!([]), bson!(null), Ordering::Less, Ordering::Greater),
            (bson!("x"), bson!(5), Ordering::Greater, Ordering::Less),
        ] {
            assert_eq!(compare(&up, left.clone(), right.clone()), Some(ascending), "{left} {right}");
            assert_eq!(compare(&down, left.clone(), right.clone()), Some(descending), "{left} {right}");
        }
        let one = up.values(&Doc::from(doc! { "a": 1 })).unwrap();
        assert_eq!(up.compare((&one, None), (&one, Some(&Value::Int32(1)))), None);
        assert!(
            of(&[("a", Ascending), ("b", Ascending)]).values(&Doc::from(doc! { "a": [1, 2], "b": [1, 2] })).is_err()
        );
    }

    #[test]
    fn the_index_has_the_children_of_a_key_in_order() {
        let link = |change: &dyn Fn(&mut Link)| {
            let field = testing::tally("n", crate::fields::Tally::Count, |link| change(link));
            crate::rule::Field::link(&*field).cloned().unwrap()
        };
        let order = of(&[("at", Descending)]);
        let needs = |link: &Link| -> Vec<Doc<'static>> {
            order.needs(&Namespace::new("shop", "products"), link).indexes.iter().map(IndexNeed::key).collect()
        };
        let plain = link(&|_| {});
        assert_eq!(needs(&plain), [Doc::from(doc! { "productId": 1, "at": -1, "_id": 1 })]);
        let by_field = link(&|link| link.local = KeyPath::new(Path::new("sku")));
        let expected = [doc! { "productId": 1, "at": -1, "_id": 1 }, doc! { "sku": 1 }].map(Doc::from);
        assert_eq!(needs(&by_field), expected);
        let own_id = SortOrder::new([(Path::new("productId"), Ascending), (Path::new("_id"), Descending)]);
        let keys = own_id.needs(&Namespace::new("shop", "products"), &plain).indexes;
        assert_eq!(keys[0].key(), Doc::from(doc! { "productId": 1, "_id": -1 }));
    }
}
