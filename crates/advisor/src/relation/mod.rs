//! Which field of which collection holds the `_id`, or a unique field, of which other one: by containment of values, not by names.
//!
//! Each collection of a database is cut down to its [`column`]s. A pair of columns is looked at only if kind and range of the values
//! let the one contain the other ([`candidate`]); then the sampled values of the reference are looked up in the parent, by index and in
//! one bounded read ([`lookup`]). Names break ties, and nothing else. [`chance`] keeps out what any numbers do.

pub mod candidate;
pub mod chance;
pub mod column;
pub mod lookup;
mod named;

pub use named::named;

use crate::options::Options;
use crate::reader::Reader;
use crate::sample::Spread;
use crate::statistics::Statistics;
use crate::survey::Collection;
use crate::values::share;
use candidate::Candidate;
use column::Column;
use document::op::Namespace;
use document::{Doc, Result};
use lookup::Looked;

/// So many reads at most are made to look for references in one database.
const MOST_LOOKUPS: usize = 2_000;
/// And so many for one field.
const MOST_FOR_ONE: usize = 6;
/// A field that holds this share of values from elsewhere, of a kind that nobody makes up twice, refers there and nowhere else.
const SURE: f64 = 0.5;
/// A reference leads to a document this often, or it is none.
const LEAST_CONTAINED: f64 = 0.5;

/// What relations are looked for in: a collection and some of its documents.
#[derive(Clone, Copy)]
pub struct Source<'s> {
    pub ns: &'s Namespace,
    pub statistics: &'s Statistics,
    pub sample: &'s [Doc<'static>],
    /// The sample is all there is.
    pub is_whole: bool,
}

impl<'s> Source<'s> {
    pub fn of(collection: &'s Collection) -> Source<'s> {
        let Collection { ns, statistics, sample, spread, .. } = collection;
        let is_whole = *spread == Spread::Whole && sample.len() as u64 == collection.sampled();
        Source { ns, statistics, sample, is_whole }
    }

    /// How many documents it has: its count may be a little off.
    pub fn documents(&self) -> u64 {
        let sampled = self.sample.len() as u64;
        if self.is_whole { sampled } else { self.statistics.count.max(sampled) }
    }
}

/// The values of one field are those of another collection's key.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// The collection that refers.
    pub from: String,
    /// The path of the reference; through arrays as filters write it.
    pub path: String,
    /// The path leads through an array or to one: several references in a document.
    pub is_many: bool,
    /// How many arrays are on the way, with one at the end.
    pub arrays: usize,
    /// The reference is an array of plain values.
    pub ends_in_array: bool,
    /// The collection that is referred to.
    pub to: String,
    /// Its key: `_id`, or a path whose values are unique.
    pub key: String,
    /// How many references were looked up, and how many of them lead to a document.
    pub checked: u64,
    pub found: u64,
    /// How much more often than by chance.
    pub beyond_chance: f64,
    /// 0 to 1: running numbers are less sure than ids that nobody makes up twice.
    pub confidence: f64,
}

impl Relation {
    /// The share of the references that lead nowhere.
    pub fn dangling(&self) -> f64 {
        1.0 - share(self.found, self.checked)
    }

    pub fn is_self_reference(&self) -> bool {
        self.from == self.to
    }
}

/// The relations between the collections of a database, in the order of collection and path; of several parents the surest first.
pub async fn relations(
    reader: &Reader<'_>,
    _db: &str,
    collections: &[Collection],
    _options: &Options,
) -> Result<Vec<Relation>> {
    let sources: Vec<Source<'_>> = collections.iter().map(Source::of).collect();
    among(reader, &sources).await
}

async fn among(reader: &Reader<'_>, sources: &[Source<'_>]) -> Result<Vec<Relation>> {
    let columns: Vec<Vec<Column>> = sources.iter().map(|source| column::columns(source.sample)).collect();
    let keys = candidate::keys(sources, &columns);
    let mut lookups = 0;
    let mut found = Vec::new();
    for (source, of_child) in sources.iter().zip(&columns) {
        for column in of_child {
            let candidates = candidate::of(source, column, sources, &keys);
            let mut here = Vec::new();
            for candidate in candidates.into_iter().take(MOST_FOR_ONE) {
                if lookups >= MOST_LOOKUPS || reader.cancel.is_set() {
                    break;
                }
                let (looked, has_read) = lookup::look(reader, column, &candidate).await?;
                lookups += usize::from(has_read);
                let Some(relation) = relation(source, column, &candidate, &looked) else { continue };
                let is_sure = column.kind.is_unguessable() && share(looked.found, looked.looked_up) >= SURE;
                here.push(relation);
                if is_sure {
                    break;
                }
            }
            here.sort_by(|left, right| right.confidence.total_cmp(&left.confidence));
            found.extend(here);
        }
    }
    Ok(only_one_key(found, sources))
}

fn relation(source: &Source<'_>, column: &Column, candidate: &Candidate<'_>, looked: &Looked) -> Option<Relation> {
    let contained = share(looked.found, looked.looked_up);
    if looked.looked_up == 0 || contained < LEAST_CONTAINED || !candidate.beats_chance(column, contained) {
        return None;
    }
    // Of running numbers alone nobody can tell for sure.
    let sure = match (column.kind.is_unguessable(), candidate.has_hint, candidate.is_dense(column)) {
        (true, ..) => 1.0,
        (false, true, false) => 0.95,
        (false, false, false) | (false, true, true) => 0.85,
        (false, false, true) => 0.5,
    };
    let Column { path, arrays, ends_in_array, .. } = column.clone();
    Some(Relation {
        from: source.ns.collection.to_string(),
        path,
        is_many: arrays > 0,
        arrays,
        ends_in_array,
        to: candidate.parent.ns.collection.to_string(),
        key: candidate.key.path.clone(),
        checked: looked.looked_up,
        found: looked.found,
        beyond_chance: candidate.beyond_chance(column, contained),
        confidence: contained * sure,
    })
}

/// A child refers to a parent by one of its keys: by `_id` if there is such a reference, else by the key that has a unique index, or that most
/// references lead to. Its other fields that equal unique fields of that parent are copies, not references.
fn only_one_key(found: Vec<Relation>, sources: &[Source<'_>]) -> Vec<Relation> {
    let is_indexed = |relation: &Relation| {
        sources.iter().any(|it| *it.ns.collection == *relation.to && it.statistics.is_unique(&relation.key))
    };
    let rank =
        |relation: &Relation| (relation.key == "_id", is_indexed(relation), share(relation.found, relation.checked));
    let is_better = |one: &Relation, other: &Relation| {
        let (one, other) = (rank(one), rank(other));
        (one.0, one.1) > (other.0, other.1) || ((one.0, one.1) == (other.0, other.1) && one.2 > other.2)
    };
    let is_copy = |relation: &Relation| {
        let beside =
            found.iter().filter(|it| it.from == relation.from && it.to == relation.to && it.key != relation.key);
        relation.key != "_id" && beside.into_iter().any(|other| is_better(other, relation))
    };
    found.iter().filter(|relation| !is_copy(relation)).cloned().collect()
}

#[cfg(test)]
mod tests;
