//! Plans remembered by the shape of a query: its filter without the values, its order, what it needs of the documents.
//!
//! Only the choice is kept (which index, or a union), never bounds; it is made again when the indexes change, when the
//! collection has grown or shrunk by half, or when the plan worked in vain for ten times what its trial took.

use super::choose::Query;
use crate::catalog::Collection;
use document::Value;
use document::filter::{Node, Test};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::hash::{BuildHasher, Hash, Hasher};

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Index(u32),
    Union,
}

#[derive(Clone, Copy, Debug)]
struct Remembered {
    choice: Choice,
    indexes: u64,
    documents: u64,
    works: u64,
}

/// The remembered choices of one collection.
#[derive(Debug, Default)]
pub struct PlanCache(Mutex<HashMap<u64, Remembered, foldhash::fast::FixedState>>);

/// A query without its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(u64);

const MOST_SHAPES: usize = 1000;
/// A plan may do so many times the work of its trial, and at least so much, before it is judged again.
const MAX_TIMES_TRIAL: u64 = 10;
const LEAST_WORKS: u64 = 100;

impl PlanCache {
    pub(super) fn get(&self, shape: Shape, collection: &Collection) -> Option<Choice> {
        let remembered = *self.0.lock().get(&shape.0)?;
        let now = collection.count();
        let alike = now / 2 <= remembered.documents && remembered.documents / 2 <= now;
        (alike && remembered.indexes == fingerprint(collection)).then_some(remembered.choice)
    }

    pub(super) fn put(&self, shape: Shape, collection: &Collection, choice: Choice, works: u64) {
        let mut shapes = self.0.lock();
        if shapes.len() >= MOST_SHAPES {
            shapes.clear();
        }
        let (indexes, documents) = (fingerprint(collection), collection.count());
        shapes.insert(shape.0, Remembered { choice, indexes, documents, works });
    }

    /// Tells how much work of a plan gave nothing; one that disappoints is forgotten.
    pub fn report(&self, shape: Shape, works: u64) {
        let mut shapes = self.0.lock();
        let expected =
            shapes.get(&shape.0).map(|remembered| remembered.works.max(LEAST_WORKS).saturating_mul(MAX_TIMES_TRIAL));
        if expected.is_some_and(|expected| works > expected) {
            shapes.remove(&shape.0);
        }
    }
}

fn hasher() -> impl Hasher {
    foldhash::fast::FixedState::default().build_hasher()
}

fn fingerprint(collection: &Collection) -> u64 {
    let mut state = hasher();
    for index in &collection.indexes {
        (index.id, index.ready, index.hidden, index.is_multikey()).hash(&mut state);
    }
    state.finish()
}

impl Shape {
    pub fn of(query: &Query<'_>) -> Shape {
        let mut state = hasher();
        hash_node(&query.filter.root, &mut state);
        for key in query.sort.iter().flat_map(|sort| &sort.keys) {
            (&key.path, key.descending).hash(&mut state);
        }
        query.needed.hash(&mut state);
        query.limit.is_some().hash(&mut state);
        Shape(state.finish())
    }
}

/// Eight hexadecimal digits, as `queryHash` has.
impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08X}", self.0 >> 32)
    }
}

fn hash_node(node: &Node, state: &mut impl Hasher) {
    std::mem::discriminant(node).hash(state);
    match node {
        Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => {
            nodes.len().hash(state);
            nodes.iter().for_each(|node| hash_node(node, state));
        }
        Node::Field { path, test } => {
            path.hash(state);
            hash_test(test, state);
        }
        Node::Expr(expr) => expr.reads().hash(state),
        Node::Whole(_) => {}
    }
}

fn hash_test(test: &Test, state: &mut impl Hasher) {
    std::mem::discriminant(test).hash(state);
    match test {
        Test::Eq(value) | Test::Lt(value) | Test::Lte(value) | Test::Gt(value) | Test::Gte(value) => {
            (value.is_nullish(), matches!(value, Value::Array(_))).hash(state);
        }
        Test::In(set) => {
            (set.values.iter().any(Value::is_nullish), set.regexes.len(), set.values.len() > 10).hash(state);
        }
        Test::All(tests) | Test::ElemMatchValue(tests) => tests.iter().for_each(|test| hash_test(test, state)),
        Test::Not(test) => hash_test(test, state),
        Test::ElemMatch(node) => hash_node(node, state),
        Test::Leaf(leaf) => leaf.prefix().is_some().hash(state),
        Test::Exists | Test::Size(_) => {}
    }
}
