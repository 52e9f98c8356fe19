//! What a condition on newest documents lets be asked of stored ones: an alternative for each version, so that indexes on the
//! paths of older documents are used as those of newer ones are.

use super::{Lens, Origin};
use document::Value;
use document::filter::{Filter, Node, Test};
use document::value::Path;

/// Where the value of a newest path is in documents of an older version.
struct Stored {
    paths: Vec<Path>,
    is_wrapped: bool,
    /// A step may put a value where there was none.
    may_be_absent: bool,
}

impl Lens {
    /// A superset of the stored documents that become ones that match.
    pub fn push(&self, filter: &Filter) -> Filter {
        let touches = |path: &Path| self.changes(path);
        if filter.reads().is_some_and(|paths| !paths.iter().any(touches)) {
            return filter.clone();
        }
        let mut versions = Vec::new();
        for version in 1..self.newest() {
            let older = self.pushed(&filter.root, version).unwrap_or(Node::And(Vec::new()));
            versions.push(Node::all_of([self.stored_as(version).root, older]));
        }
        if self.last_known() > self.newest() {
            versions.push(self.beyond().root);
        }
        versions.push(Node::all_of([self.current().root, filter.root.clone()]));
        Filter::from_node(Node::Or(versions)).collated(filter.collation.clone())
    }

    /// Whether the filter is left to be evaluated on documents that are read: no index serves it before all are migrated.
    pub fn is_unindexed(&self, filter: &Filter) -> bool {
        let Some(paths) = filter.reads() else { return true };
        if self.last_known() > self.newest() {
            return paths.iter().any(|path| self.changes(path));
        }
        let unknown = |path: &Path| (1..self.newest()).any(|version| self.stored(path, version).is_none());
        paths.iter().any(|path| self.changes(path) && unknown(path))
    }

    /// A condition that holds for all documents of a version for which `node` holds afterwards; `None` if that may be any.
    fn pushed(&self, node: &Node, version: i32) -> Option<Node> {
        match node {
            Node::And(nodes) => {
                let known: Vec<Node> = nodes.iter().filter_map(|node| self.pushed(node, version)).collect();
                (!known.is_empty()).then(|| Node::all_of(known))
            }
            Node::Or(nodes) => {
                Some(Node::Or(nodes.iter().map(|node| self.pushed(node, version)).collect::<Option<_>>()?))
            }
            Node::Field { path, test } => {
                let stored = self.stored(path, version)?;
                if stored.is_wrapped && !is_kept_by_wrapping(test) {
                    return None;
                }
                let test_of = |path: Path| Node::Field { path, test: test.clone() };
                let mut any: Vec<Node> = stored.paths.into_iter().map(test_of).collect();
                if stored.may_be_absent {
                    any.push(Node::Field { path: path.clone(), test: Test::Not(Box::new(Test::Exists)) });
                }
                match any.len() {
                    1 => any.pop(),
                    _ => Some(Node::Or(any)),
                }
            }
            Node::Nor(_) | Node::Expr(_) | Node::Whole(_) => {
                let filter = Filter { root: node.clone(), source: document::Doc::empty(), collation: None };
                let is_same = filter.reads()?.iter().all(|path| !self.changes(path));
                is_same.then(|| node.clone())
            }
        }
    }

    /// Where documents of a version have what is at the path afterwards; `None` if a condition cannot say it.
    fn stored(&self, path: &Path, version: i32) -> Option<Stored> {
        if path.first() == &*self.field {
            return None;
        }
        let mut found = Stored { paths: vec![path.clone()], is_wrapped: false, may_be_absent: false };
        let steps: Vec<_> = self.from(version).flatten().collect();
        for step in steps.into_iter().rev() {
            let mut before = Vec::new();
            for path in found.paths {
                match step.origin(&path) {
                    Origin::Same => before.push(path),
                    Origin::At(older) => before.extend([older, path]),
                    Origin::SameOrAdded => {
                        found.may_be_absent = true;
                        before.push(path);
                    }
                    Origin::Wrapped => {
                        found.is_wrapped = true;
                        before.push(path);
                    }
                    Origin::Unknown => return None,
                }
            }
            before.sort();
            before.dedup();
            found.paths = before;
        }
        // What lies under another name and what comes where nothing was cannot be told apart by one condition.
        (found.paths.len() == 1 || !found.may_be_absent && !found.is_wrapped).then_some(found)
    }
}

/// Whether the test holds for a value if it holds for an array of nothing but that value.
fn is_kept_by_wrapping(test: &Test) -> bool {
    let is_plain = |value: &Value<'_>| !matches!(value, Value::Array(_));
    match test {
        Test::Eq(value) | Test::Lt(value) | Test::Lte(value) | Test::Gt(value) | Test::Gte(value) => is_plain(value),
        Test::In(set) => set.values.iter().all(is_plain) && set.regexes.is_empty(),
        Test::Exists => true,
        Test::All(tests) => tests.iter().all(is_kept_by_wrapping),
        Test::Not(_) | Test::ElemMatch(_) | Test::ElemMatchValue(_) | Test::Size(_) | Test::Leaf(_) => false,
    }
}
