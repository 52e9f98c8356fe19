//! An order by a path that versions move, as one order of stored documents per version: each by the path that its documents have, so
//! that an index on that path gives it. Only steps that leave a value as it is keep the order: rename and nest.

use super::{Lens, Origin};
use document::Value;
use document::filter::{Filter, Node, Test};
use document::op::{SortKey, SortSpec};
use document::value::Path;

/// More ways than this are not worth a find each.
const MOST_PARTS: usize = 8;

/// Some of the stored documents, by an order that is theirs in the newest version too.
#[derive(Clone, Debug)]
pub struct OrderedPart {
    pub filter: Filter,
    pub sort: SortSpec,
}

/// Where some documents of a version have the value.
struct Place {
    path: Path,
    /// Which documents: those that have this there.
    which: Vec<(Path, Held)>,
}

/// What is at a path. Null is apart, since an index has it in one place with what is not there.
#[derive(Clone, Copy)]
enum Held {
    Something,
    Null,
    Nothing,
}

impl Held {
    fn node(self, path: &Path) -> Node {
        let is = |test| Node::field(&path.dotted(), test);
        match self {
            Held::Something => is(Test::Not(Box::new(Test::Eq(Value::Null)))),
            Held::Null => Node::all_of([is(Test::Eq(Value::Null)), is(Test::Exists)]),
            Held::Nothing => is(Test::Not(Box::new(Test::Exists))),
        }
    }
}

impl Lens {
    /// The parts whose documents, put together by the order, are those that match, old ones first. `None` if the order cannot be
    /// told so: it is by several moved paths or by one whose values change, or the filter reads another changed path.
    pub fn ordered(&self, filter: &Filter, sort: &SortSpec) -> Option<Vec<OrderedPart>> {
        let mut moved = sort.keys.iter().filter(|key| self.changes(&key.path));
        let (Some(key), None) = (moved.next(), moved.next()) else { return None };
        let other = |path: &Path| self.changes(path) && *path != key.path;
        if filter.collation.is_some() || filter.has_text() || filter.reads()?.iter().any(other) {
            return None;
        }
        let mut parts = Vec::new();
        for version in 1..self.newest() {
            for place in self.places(&key.path, version)? {
                parts.push(self.part(filter, sort, key, version, &place)?);
            }
        }
        let current = Node::all_of([self.current().root, filter.root.clone()]);
        parts.push(OrderedPart { filter: Filter::from_node(current), sort: sort.clone() });
        (parts.len() <= MOST_PARTS).then_some(parts)
    }

    fn part(
        &self,
        filter: &Filter,
        sort: &SortSpec,
        key: &SortKey,
        version: i32,
        place: &Place,
    ) -> Option<OrderedPart> {
        let mut conditions = vec![self.stored_as(version).root, at(&filter.root, &key.path, &place.path)?];
        conditions.extend(place.which.iter().map(|(path, held)| held.node(path)));
        let by_place = |sorted: &SortKey| match sorted.path == key.path {
            true => SortKey { path: place.path.clone(), ..sorted.clone() },
            false => sorted.clone(),
        };
        let sort = SortSpec { keys: sort.keys.iter().map(by_place).collect() };
        Some(OrderedPart { filter: Filter::from_node(Node::all_of(conditions)), sort })
    }

    /// Where documents of a version have what is at the path afterwards, one way or another.
    fn places(&self, path: &Path, version: i32) -> Option<Vec<Place>> {
        if path.first() == &*self.field {
            return None;
        }
        let mut places = vec![Place { path: path.clone(), which: Vec::new() }];
        let steps: Vec<_> = self.from(version).flatten().collect();
        for step in steps.into_iter().rev() {
            let mut before = Vec::new();
            for place in places {
                // What a later step asks about must not have been moved by this one.
                if place.which.iter().any(|(path, _)| step.origin(path) != Origin::Same) {
                    return None;
                }
                match step.origin(&place.path) {
                    Origin::Same => before.push(place),
                    // Where there was nothing, nothing is afterwards: one order says both.
                    Origin::At(older) if older.is_prefix_of(&place.path) => before.push(Place { path: older, ..place }),
                    // What is inside a field that is overwritten by another is gone, whether or not the other has it.
                    Origin::At(_) if place.path.parts.len() > 1 => return None,
                    Origin::At(older) => {
                        for held in [Held::Something, Held::Null, Held::Nothing] {
                            let mut which = place.which.clone();
                            which.push((older.clone(), held));
                            let path = if matches!(held, Held::Nothing) { &place.path } else { &older };
                            before.push(Place { path: path.clone(), which });
                        }
                    }
                    Origin::SameOrAdded | Origin::Wrapped | Origin::Unknown => return None,
                }
            }
            places = before;
        }
        Some(places)
    }
}

/// The condition with one path for another; `None` if it says something that cannot be said of another path.
fn at(node: &Node, path: &Path, other: &Path) -> Option<Node> {
    let all = |nodes: &[Node]| nodes.iter().map(|node| at(node, path, other)).collect::<Option<Vec<Node>>>();
    Some(match node {
        Node::And(nodes) => Node::And(all(nodes)?),
        Node::Or(nodes) => Node::Or(all(nodes)?),
        Node::Nor(nodes) => Node::Nor(all(nodes)?),
        Node::Field { path: tested, test } if tested == path => Node::Field { path: other.clone(), test: test.clone() },
        Node::Field { .. } => node.clone(),
        Node::Expr(_) | Node::Whole(_) => {
            let filter = Filter { root: node.clone(), source: document::Doc::empty(), collation: None };
            let is_other = filter.reads()?.iter().all(|read| read != path);
            return is_other.then(|| node.clone());
        }
    })
}
