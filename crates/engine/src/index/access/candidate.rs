//! What one index can do for a query: its bounds, what they leave to check, and whether it gives the order.

use super::bounds::{Exactness, FieldKind};
use super::implies::implies;
use super::interval::Intervals;
use super::predicate::{Conditions, Predicate};
use crate::catalog::Index;
use crate::store::keys::DOCUMENTS;
use document::Env;
use document::filter::{Node, Test};
use document::op::SortSpec;
use document::value::Path;
use std::sync::Arc;

/// An index and the part of it that a query has to read.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub index: Arc<Index>,
    /// Per key of the index, where arrays have been seen when the plan was made.
    pub multikey: Vec<u64>,
    /// Per key of the index.
    pub bounds: Vec<Intervals>,
    /// Tests to make on the values of an entry, by key.
    pub key_tests: Vec<(usize, Test)>,
    /// For each conjunct of the filter, whether the document still has to be tested for it.
    pub unproven: Vec<bool>,
    /// How many keys are bounded by conditions.
    pub bounded: usize,
}

/// What a key is bounded by.
struct Assigned {
    node: usize,
    element: Option<usize>,
}

impl Candidate {
    /// The index with bounds from `conditions`; `None` if it might lack matching documents or if nothing bounds its first key.
    pub fn bounded(index: &Arc<Index>, root: &Node, conditions: &Conditions<'_>, env: &Env) -> Option<Candidate> {
        let candidate = Candidate::new(index, conditions);
        (candidate.bounded > 0 && candidate.is_complete(root, conditions, env)).then_some(candidate)
    }

    /// The index, whether anything bounds it or not.
    pub fn new(index: &Arc<Index>, conditions: &Conditions<'_>) -> Candidate {
        let multikey: Vec<u64> = (0..index.keys.len()).map(|at| index.multikey(at)).collect();
        let mut candidate = Candidate {
            index: index.clone(),
            bounds: vec![Intervals::full(); index.keys.len()],
            multikey,
            key_tests: Vec::new(),
            unproven: vec![true; conditions.nodes.len()],
            bounded: 0,
        };
        let mut assigned: Vec<Option<Assigned>> = Vec::with_capacity(index.keys.len());
        for at in 0..index.keys.len() {
            let found = candidate.bound_key(at, conditions, &assigned);
            if found.is_none() && at == 0 {
                return candidate;
            }
            candidate.bounded += usize::from(found.is_some());
            assigned.push(found);
        }
        candidate
    }

    /// Bounds the key number `at` by the predicates on its path.
    fn bound_key(&mut self, at: usize, conditions: &Conditions<'_>, assigned: &[Option<Assigned>]) -> Option<Assigned> {
        let path = &self.index.keys.get(at)?.path;
        let kind =
            FieldKind { multikey: self.is_multikey(at), sparse_alone: self.index.sparse && self.index.keys.len() == 1 };
        // A sparse index leaves out the entries of array elements that have none of its fields.
        let leaves_out = self.index.sparse && self.any_multikey();
        let usable: Vec<(&Predicate<'_>, Intervals, Exactness)> = conditions
            .predicates
            .iter()
            .filter(|predicate| predicate.path == *path && (predicate.needs_field || !leaves_out))
            .filter(|predicate| self.may_join(at, predicate, assigned))
            .filter_map(|predicate| predicate.bounds(kind).map(|(intervals, exact)| (predicate, intervals, exact)))
            .collect();
        let best = usable.iter().enumerate().min_by_key(|(place, (_, intervals, _))| (width(intervals), *place))?.0;
        let (chosen, ..) = usable.get(best)?;
        let chosen = Assigned { node: chosen.node, element: chosen.element };
        let mut allowed = Intervals::full();
        for (place, (predicate, intervals, exactness)) in usable.iter().enumerate() {
            if kind.multikey && place != best && !self.same_element(at, predicate, &chosen) {
                continue;
            }
            allowed = allowed.intersect(intervals);
            match exactness {
                Exactness::Exact => self.prove(predicate.node),
                // The documents themselves are read whole: their tests are made there.
                Exactness::Covered if self.index.id == DOCUMENTS => {}
                Exactness::Covered => {
                    if let Some(test) = predicate.key_test() {
                        self.key_tests.push((at, test));
                        self.prove(predicate.node);
                    }
                }
                Exactness::Fetch => {}
            }
        }
        *self.bounds.get_mut(at)? = allowed;
        Some(chosen)
    }

    /// Two keys whose paths run through the same array may both be bounded only by conditions on the same element of it.
    fn may_join(&self, at: usize, predicate: &Predicate<'_>, assigned: &[Option<Assigned>]) -> bool {
        assigned.iter().enumerate().all(|(other, found)| {
            let Some(found) = found else { return true };
            match self.last_shared_array(at, other) {
                None => true,
                Some(last) => {
                    found.node == predicate.node
                        && found.element == predicate.element
                        && predicate.element.is_some_and(|parts| last < parts)
                }
            }
        })
    }

    /// The deepest place where the paths of two keys run through the same array.
    fn last_shared_array(&self, a: usize, b: usize) -> Option<usize> {
        let (first, second) = (self.index.keys.get(a)?, self.index.keys.get(b)?);
        let shared = first.path.parts.iter().zip(&second.path.parts).take_while(|(x, y)| x == y).count();
        (0..shared).rev().find(|place| self.multikey_at(a, *place) || self.multikey_at(b, *place))
    }

    /// Whether the predicate is about the same array element as the chosen one, and there is no array below it.
    fn same_element(&self, at: usize, predicate: &Predicate<'_>, chosen: &Assigned) -> bool {
        let Some(parts) = predicate.element else { return false };
        let below = self.multikey.get(at).is_some_and(|bits| bits.checked_shr(bit(parts)).unwrap_or(0) != 0);
        predicate.node == chosen.node && predicate.element == chosen.element && !below
    }

    fn prove(&mut self, node: usize) {
        if let Some(unproven) = self.unproven.get_mut(node) {
            *unproven = false;
        }
    }

    pub fn is_multikey(&self, at: usize) -> bool {
        self.multikey.get(at).is_some_and(|bits| *bits != 0)
    }

    pub fn any_multikey(&self) -> bool {
        self.multikey.iter().any(|bits| *bits != 0)
    }

    fn multikey_at(&self, at: usize, place: usize) -> bool {
        self.multikey.get(at).is_some_and(|bits| bits >> bit(place) & 1 == 1)
    }

    /// Whether every matching document has an entry: a sparse or partial index may lack some.
    pub fn is_complete(&self, root: &Node, conditions: &Conditions<'_>, env: &Env) -> bool {
        let partial = self.index.partial.as_ref().is_none_or(|partial| implies(root, &partial.root, env));
        let sparse = !self.index.sparse
            || conditions.predicates.iter().any(|predicate| {
                let key = self.index.keys.iter().position(|key| key.path == predicate.path);
                key.is_some_and(|at| predicate.rejects_missing(self.is_multikey(at), env))
            });
        partial && sparse
    }

    /// Whether reading the index gives the order of `sort`: `None` if not, else whether it must be read backwards.
    pub fn order(&self, sort: &SortSpec) -> Option<bool> {
        let (mut at, mut backwards) = (0, None);
        'keys: for wanted in &sort.keys {
            while let Some(key) = self.index.keys.get(at) {
                if key.path == wanted.path {
                    if !self.sorts_by(at) {
                        return None;
                    }
                    at += 1;
                    if self.is_pinned(at - 1) {
                        continue 'keys;
                    }
                    let reverse = key.descending != wanted.descending;
                    if *backwards.get_or_insert(reverse) != reverse {
                        return None;
                    }
                    continue 'keys;
                }
                if !self.has_one_value(at) {
                    break;
                }
                at += 1;
            }
            if !self.pins(&wanted.path) {
                return None;
            }
        }
        Some(backwards.unwrap_or(false))
    }

    /// All entries that are read have the same value for the key.
    fn has_one_value(&self, at: usize) -> bool {
        self.bounds.get(at).is_some_and(|bounds| bounds.single_point().is_some())
    }

    /// All documents that are found have the same value for the key.
    fn is_pinned(&self, at: usize) -> bool {
        self.has_one_value(at) && !self.is_multikey(at)
    }

    fn pins(&self, path: &Path) -> bool {
        self.index.keys.iter().enumerate().any(|(at, key)| key.path == *path && self.is_pinned(at))
    }

    /// A document with an array sorts by its least element of all, so none of its entries may be left out (a sparse
    /// index leaves out those of elements without the field).
    fn sorts_by(&self, at: usize) -> bool {
        !self.is_multikey(at)
            || self
                .bounds
                .iter()
                .enumerate()
                .all(|(other, bounds)| bounds.is_full() || (other != at && self.last_shared_array(at, other).is_none()))
    }

    /// Whether it finds at most one document, and by one look-up.
    pub fn is_unique_point(&self) -> bool {
        self.index.unique && self.bounds.iter().all(|bounds| bounds.single_point().is_some())
    }
}

/// Places from 63 on share a bit; the same bound keeps shifts defined.
fn bit(place: usize) -> u32 {
    u32::try_from(place.min(63)).unwrap_or(63)
}

/// How much a set of values is likely to hold: points, then closed ranges, then open ones.
fn width(intervals: &Intervals) -> (u8, usize) {
    let count = intervals.as_slice().len();
    if intervals.all_points() {
        (0, count)
    } else if intervals.is_full() {
        (3, count)
    } else if count == 1 {
        (1, count)
    } else {
        (2, count)
    }
}
