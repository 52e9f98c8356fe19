//! Which columns may refer to which: the cheap look before a read. The values must be of one kind and lie in the range of the keys.

use super::Source;
use super::column::{Column, Kind};
use crate::thresholds::BEYOND_CHANCE;
use crate::values::share;
use document::op::Namespace;
use hashbrown::HashSet;

/// A field without a unique index is a key if this many documents of the sample have different values.
const LEAST_DISTINCT: u64 = 50;
/// And this share of the documents has one.
const NEARLY_ALL: f64 = 0.95;
/// So much of the keys' range is covered by references to dense numbers, and so many keys there are at least. Ages, ratings and
/// quantities are dense too, but do not reach from one end to the other.
const COVERED: f64 = 0.9;
const LEAST_DENSE: u64 = 20;
/// Numbers that fill this much of their range are dense: any number among them is contained.
const DENSE: f64 = 1.0 / BEYOND_CHANCE;

/// What references may lead to.
pub struct KeyColumn<'c> {
    source: usize,
    column: &'c Column,
    distinct: HashSet<u64>,
}

/// A parent that a column may refer to.
pub struct Candidate<'c> {
    pub parent: Source<'c>,
    pub key: &'c Column,
    pub distinct: &'c HashSet<u64>,
    pub has_hint: bool,
    /// Values of the child that are among the sampled keys.
    seen: u64,
}

/// Of each collection `_id`, and the fields that are unique: by an index, or in a sample that is large enough.
pub fn keys<'c>(sources: &[Source<'_>], columns: &'c [Vec<Column>]) -> Vec<KeyColumn<'c>> {
    let mut keys = Vec::new();
    for (place, (source, columns)) in sources.iter().zip(columns).enumerate() {
        let key = |column: &&Column| {
            column.is_distinct() && (source.statistics.is_unique(&column.path) || is_distinct_enough(source, column))
        };
        keys.extend(columns.iter().filter(key).map(|column| KeyColumn {
            source: place,
            column,
            distinct: column.distinct(),
        }));
    }
    keys
}

/// A read finds it only by an index, so without one it counts only if all documents are there to be looked at.
fn is_distinct_enough(source: &Source<'_>, column: &Column) -> bool {
    let can_be_found = source.is_whole || source.statistics.is_indexed(&column.path);
    let nearly_all = share(column.documents, source.sample.len() as u64) >= NEARLY_ALL;
    let numbers_are_sparse = column.kind != Kind::Number || density(column, column.documents) < DENSE;
    can_be_found && column.documents >= LEAST_DISTINCT && nearly_all && numbers_are_sparse
}

/// The parents of a column that are worth a look, the likeliest first.
pub fn of<'c>(
    child: &Source<'_>,
    column: &Column,
    sources: &[Source<'c>],
    keys: &'c [KeyColumn<'c>],
) -> Vec<Candidate<'c>> {
    // A document's own `_id` is no reference, and text and numbers mixed are none to go by.
    if column.path == "_id" || column.is_mixed || column.keys.is_empty() {
        return Vec::new();
    }
    let mut all: Vec<Candidate<'c>> = Vec::new();
    for key in keys {
        let Some(parent) = sources.get(key.source) else { continue };
        let is_itself = parent.ns == child.ns && key.column.path == column.path;
        if is_itself || key.column.kind != column.kind || !may_contain(key.column, column) {
            continue;
        }
        let seen = column.weight(&key.distinct);
        if seen == 0 && should_have_been_seen(parent, column) {
            continue;
        }
        let has_hint = hints(&column.path, parent.ns);
        all.push(Candidate { parent: *parent, key: key.column, distinct: &key.distinct, has_hint, seen });
    }
    // What the samples show comes first, a name only breaks ties.
    let order = |it: &Candidate<'_>| (it.key.path == "_id", it.shown_tenths(column), it.has_hint);
    all.sort_by_key(|candidate| std::cmp::Reverse(order(candidate)));
    all
}

/// Some of the values that are to be looked up lie between the least and the greatest key of the sample, which does not show the ends.
fn may_contain(key: &Column, column: &Column) -> bool {
    const SOME: usize = 5;
    let inside = |value: &document::Value<'_>| {
        let bytes = crate::values::key_bytes(value);
        key.range.0 <= bytes && bytes <= key.range.1
    };
    let within = column.probes.values().filter(|value| inside(value)).count();
    column.kind.is_unguessable() || within * SOME >= column.probes.len()
}

/// Whether a sample of the parent would have shown some of the child's values.
fn should_have_been_seen(parent: &Source<'_>, column: &Column) -> bool {
    const EXPECTED: f64 = 20.0;
    let fraction = share(parent.sample.len() as u64, parent.documents().max(1));
    parent.is_whole || share(column.distinct().len() as u64, 1) * fraction >= EXPECTED
}

/// How full the range of whole numbers is, if so many different ones are in it.
fn density(column: &Column, numbers: u64) -> f64 {
    match column.numbers {
        Some((least, greatest)) => share(numbers, greatest.abs_diff(least).saturating_add(1)).min(1.0),
        None => 0.0,
    }
}

impl Candidate<'_> {
    /// How many of ten references are keys, as far as the samples tell.
    fn shown_tenths(&self, column: &Column) -> u64 {
        let fraction = share(self.parent.sample.len() as u64, self.parent.documents().max(1));
        let contained = share(self.seen, column.keys.len() as u64) / fraction.max(1e-9);
        (1..=10).filter(|tenths| contained * 10.0 >= share(*tenths, 1)).count() as u64
    }

    /// Whether any whole number in the range of the references would be contained, about.
    pub fn is_dense(&self, column: &Column) -> bool {
        column.kind == Kind::Number && self.chance() >= DENSE
    }

    /// The share of whole numbers in the keys' range that are keys.
    fn chance(&self) -> f64 {
        density(self.key, self.parent.documents().max(self.key.documents))
    }

    /// How much more often references are contained than any whole number of their range; what is no number is never so by chance.
    pub fn beyond_chance(&self, column: &Column, contained: f64) -> f64 {
        const MOST: f64 = 1e6;
        match column.kind {
            Kind::Number => (contained / self.chance().max(1.0 / MOST)).min(MOST),
            _ => MOST,
        }
    }

    /// Containment must be so much more frequent than among other values of the same range. Dense numbers contain anything; there the
    /// references must be spread as the keys are, and be no running numbers themselves.
    pub fn beats_chance(&self, column: &Column, contained: f64) -> bool {
        if self.beyond_chance(column, contained) >= BEYOND_CHANCE {
            return true;
        }
        let (Some((least, greatest)), Some((first, last))) = (column.numbers, self.key.numbers) else { return false };
        let covered = share(greatest.abs_diff(least), last.abs_diff(first).max(1));
        let is_running = column.is_distinct() && column.keys.len() as u64 >= LEAST_DENSE;
        self.parent.documents() >= LEAST_DENSE && covered >= COVERED && contained >= NEARLY_ALL && !is_running
    }
}

/// Whether the path names the collection: `customerId`, `customer._id`, `customer` and `customers`, whatever the case. Of itself:
/// `parentId`, `replyTo` say nothing, and need not.
fn hints(path: &str, parent: &Namespace) -> bool {
    let letters = |text: &str| -> String {
        text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let collection = letters(&parent.collection);
    let stem = match collection.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => collection.strip_suffix('s').unwrap_or(&collection).to_owned(),
    };
    stem.len() >= 3 && letters(path).contains(&stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hint() {
        let check = |path: &str, collection: &str| hints(path, &Namespace::new("d", collection));
        assert!(
            check("customerId", "customers")
                && check("customer._id", "Customers")
                && check("category_ids", "categories")
        );
        assert!(!check("parentId", "comments") && !check("id", "ids") && !check("owner", "users"));
    }
}
