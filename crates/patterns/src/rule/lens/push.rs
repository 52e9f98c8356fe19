//! What a condition on newest documents lets be asked of stored ones: an alternative for each version, so that indexes on the
//! paths of older documents are used as those of newer ones are.

use super::seen_filter::{has_inner_array, is_kept_by_item};
use super::{Lens, Origin};
use document::Value;
use document::filter::{Filter, Node, Test};
use document::value::Path;

/// Where the value of a newest path is in documents of an older version.
pub(super) struct Stored {
    pub(super) paths: Vec<Path>,
    pub(super) is_wrapped: bool,
    /// It is the first item of an array there.
    pub(super) is_item: bool,
    /// A step may put a value where there was none.
    pub(super) may_be_absent: bool,
}

/// Where documents have what is at a path in another version; `None` if a condition cannot say it.
pub(super) type Locate<'l> = dyn Fn(&Path) -> Option<Stored> + 'l;

impl Lens {
    /// A superset of the stored documents that become ones that match.
    pub fn push(&self, filter: &Filter) -> Filter {
        match self.is_about_changes(filter) {
            true => {
                let current = Node::all_of([self.current().root, filter.root.clone()]);
                let any = self.of_old_versions(filter).into_iter().chain([current]);
                Filter::from_node(Node::Or(any.collect())).collated(filter.collation.clone())
            }
            false => filter.clone(),
        }
    }

    /// The same of documents that are stored in older versions, or in ones that are taken back.
    pub fn push_to_old(&self, filter: &Filter) -> Filter {
        match self.is_about_changes(filter) {
            true => Filter::from_node(Node::Or(self.of_old_versions(filter))).collated(filter.collation.clone()),
            false => self.old().and(filter.clone()),
        }
    }

    fn is_about_changes(&self, filter: &Filter) -> bool {
        filter.reads().is_none_or(|paths| paths.iter().any(|path| self.changes(path)))
    }

    fn of_old_versions(&self, filter: &Filter) -> Vec<Node> {
        let mut versions = Vec::new();
        for version in 1..self.newest() {
            let locate = |path: &Path| self.stored(path, version);
            let older = self.pushed(&filter.root, &locate).unwrap_or(Node::And(Vec::new()));
            let of_version = |node| Node::all_of([self.stored_as(version).root, node]);
            versions.extend(alternatives(older).into_iter().map(of_version));
        }
        if self.last_known() > self.newest() {
            versions.push(self.beyond().root);
        }
        versions
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

    /// A condition that holds for all documents that become ones for which `node` holds; `None` if that may be any. `locate` says
    /// where they have what is at a path afterwards.
    pub(super) fn pushed(&self, node: &Node, locate: &Locate<'_>) -> Option<Node> {
        match node {
            Node::And(nodes) => {
                let known: Vec<Node> = nodes.iter().filter_map(|node| self.pushed(node, locate)).collect();
                (!known.is_empty()).then(|| Node::all_of(known))
            }
            Node::Or(nodes) => {
                Some(Node::Or(nodes.iter().map(|node| self.pushed(node, locate)).collect::<Option<_>>()?))
            }
            Node::Field { path, test } => {
                let stored = locate(path)?;
                if stored.is_wrapped && !is_kept_by_wrapping(test) {
                    return None;
                }
                if stored.is_item && !is_kept_by_item(test) {
                    return None;
                }
                let test_of = |path: &Path| Node::Field { path: path.clone(), test: test.clone() };
                let mut any: Vec<Node> = stored.paths.iter().map(test_of).collect();
                if stored.is_item {
                    any.extend(stored.paths.into_iter().map(|path| Node::Field { path, test: has_inner_array() }));
                }
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
        let mut found = Stored { paths: vec![path.clone()], is_wrapped: false, is_item: false, may_be_absent: false };
        let steps: Vec<_> = self.from(version).flatten().collect();
        for step in steps.into_iter().rev() {
            let mut before = Vec::new();
            for path in found.paths {
                match step.origin(&path) {
                    Origin::Same => before.push(path),
                    // What lies inside of what is moved goes with it.
                    Origin::At(older) if older.is_prefix_of(&path) => before.push(older),
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

/// More are left in one condition.
const MOST_ALTERNATIVES: usize = 4;

/// The condition as several of which one must hold: beside the number of the version each has an index to itself. An alternative that
/// stands among other conditions would not be looked for by its own.
fn alternatives(node: Node) -> Vec<Node> {
    match node {
        Node::Or(nodes) if nodes.len() <= MOST_ALTERNATIVES => nodes,
        Node::And(nodes) => {
            let is_short = |node: &Node| matches!(node, Node::Or(nodes) if nodes.len() <= MOST_ALTERNATIVES);
            let Some(at) = nodes.iter().position(is_short) else { return vec![Node::And(nodes)] };
            let mut others = nodes;
            match others.remove(at) {
                Node::Or(any) => {
                    let beside = |node: Node| Node::all_of(others.iter().cloned().chain([node]));
                    any.into_iter().map(beside).collect()
                }
                other => vec![other],
            }
        }
        other => vec![other],
    }
}

/// Whether the test holds for a value if it holds for an array of nothing but that value.
pub(super) fn is_kept_by_wrapping(test: &Test) -> bool {
    let is_plain = |value: &Value<'_>| !matches!(value, Value::Array(_));
    match test {
        Test::Eq(value) | Test::Lt(value) | Test::Lte(value) | Test::Gt(value) | Test::Gte(value) => is_plain(value),
        Test::In(set) => set.values.iter().all(is_plain) && set.regexes.is_empty(),
        Test::Exists => true,
        Test::All(tests) => tests.iter().all(is_kept_by_wrapping),
        Test::Not(_) | Test::ElemMatch(_) | Test::ElemMatchValue(_) | Test::Size(_) | Test::Leaf(_) => false,
    }
}
