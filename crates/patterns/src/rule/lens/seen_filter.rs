//! What a condition of an older client lets be asked of newest documents: what no step since its version concerns is asked as it is,
//! a superset stands for the rest, and the rest is asked again of what the client sees.

use super::push::{Stored, is_kept_by_wrapping};
use super::{Lens, Origin};
use document::filter::{Filter, Node, Test};
use document::value::Path;
use document::{Array, Value};

/// A condition in two parts.
#[derive(Clone, Debug)]
pub struct SeenFilter {
    /// Of newest documents.
    pub asked: Filter,
    /// Of what the client sees of those; `None` if nothing is left.
    pub left: Option<Filter>,
}

impl Lens {
    /// The condition of a client of `version`, taken apart.
    pub fn seen_filter(&self, filter: &Filter, version: i32) -> SeenFilter {
        if !self.reads_since(version, &filter.root) {
            return SeenFilter { asked: filter.clone(), left: None };
        }
        let all = match &filter.root {
            Node::And(nodes) => nodes.clone(),
            other => vec![other.clone()],
        };
        let is_kept = |node: &Node| is_sayable(node) && !self.reads_since(version, node);
        let (kept, left): (Vec<Node>, Vec<Node>) = all.into_iter().partition(is_kept);
        let left = Filter::from_node(Node::all_of(left));
        let locate = |path: &Path| self.shown(path, version);
        let pushed = match self.pushed(&left.root, &locate).filter(is_sayable) {
            // A document whose number is not known is seen as it is.
            Some(pushed) if is_sayable(&left.root) => {
                Some(Node::Or(vec![pushed, Node::all_of([self.unknown().root, left.root.clone()])]))
            }
            _ => None,
        };
        let asked = Filter::from_node(Node::all_of(kept.into_iter().chain(pushed)));
        let collation = filter.collation.clone();
        SeenFilter { asked: asked.collated(collation.clone()), left: Some(left.collated(collation)) }
    }

    /// Whether a condition is about something that differs from what clients of `version` see.
    fn reads_since(&self, version: i32, node: &Node) -> bool {
        match node {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
                nodes.iter().any(|node| self.reads_since(version, node))
            }
            // A text search is about an index, and that is one of newest documents.
            node if node.has_text() => false,
            node => node.reads().is_none_or(|paths| paths.iter().any(|path| self.changes_since(version, path))),
        }
    }

    /// Where newest documents have what clients of a version see at the path; `None` if a condition cannot say it.
    fn shown(&self, path: &Path, version: i32) -> Option<Stored> {
        if path.first() == &*self.field {
            return None;
        }
        let mut found = Stored { paths: vec![path.clone()], is_wrapped: false, is_item: false, may_be_absent: false };
        for step in self.from(version).flatten() {
            let mut after = Vec::new();
            for path in found.paths {
                match step.destination(&path) {
                    Origin::Same => after.push(path),
                    Origin::At(newer) => after.extend([newer, path]),
                    Origin::Wrapped => {
                        found.is_item = true;
                        after.push(path);
                    }
                    Origin::SameOrAdded | Origin::Unknown => return None,
                }
            }
            after.sort();
            after.dedup();
            found.paths = after;
        }
        Some(found)
    }
}

/// Whether the condition can be written as a query again.
fn is_sayable(node: &Node) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().all(is_sayable),
        Node::Field { .. } => true,
        Node::Expr(_) | Node::Whole(_) => node.has_text(),
    }
}

/// Whether an item of the array is an array itself: then what holds for the item need not hold for the array.
pub(super) fn has_inner_array() -> Test {
    Test::ElemMatchValue(vec![Test::Gte(Value::Array(Array::empty()))])
}

/// Whether the test holds for an array if it holds for its first item, which is no array.
pub(super) fn is_kept_by_item(test: &Test) -> bool {
    // Of an empty array nothing is seen, and that is null to a test.
    let is_null = |value: &Value<'_>| matches!(value, Value::Null | Value::Missing);
    let takes_nothing = match test {
        Test::Eq(value) | Test::Lte(value) | Test::Gte(value) => is_null(value),
        Test::In(set) => set.values.iter().any(is_null),
        Test::All(tests) => !tests.iter().all(is_kept_by_item),
        _ => false,
    };
    is_kept_by_wrapping(test) && !takes_nothing
}
