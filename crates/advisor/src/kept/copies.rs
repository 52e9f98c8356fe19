//! Which fields of a document equal fields of the document that it refers to: grouped to copies, with what is wrong. Compares, and sends
//! nothing.

use super::row::{Figure, PathId, Paths, Row};
use crate::relation::chance::{Pairing, partner};
use crate::thresholds::BY_HAND;
use hashbrown::HashMap;

/// A reference that leads to a document.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The place of the document in its sample; several pairs have the same one if the reference is in an array.
    pub document: usize,
    /// What is beside the reference: the document, or the element of the array.
    pub host: Row,
    /// The place of the document that is referred to.
    pub source: usize,
}

/// Some fields of the source, kept in the host.
#[derive(Clone, Debug)]
pub struct Copy {
    /// The field that holds the copy: a document, or one flat value.
    pub field: String,
    pub is_flat: bool,
    /// Name in the copy and path in the source. A flat copy has one, under its own name.
    pub fields: Vec<CopiedField>,
    /// Fields of the copy's document that are no copies.
    pub others: Vec<String>,
    /// Pairs whose host has a copy, and the places of those that differ.
    pub checked: u64,
    pub wrong: Vec<usize>,
    /// Pairs whose host has none although the source has something to copy.
    pub absent: u64,
    /// The best of its fields: how often, and how often by chance.
    pub pairing: Pairing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedField {
    pub name: String,
    pub host: PathId,
    pub source: PathId,
}

/// What is compared. `ids` are the host's paths that are references themselves: tenants and owners that both sides refer to.
pub struct Compared<'c> {
    pub pairs: &'c [Pair],
    pub sources: &'c [Row],
    pub host_paths: &'c Paths,
    pub source_paths: &'c Paths,
    pub ids: &'c [PathId],
}

/// One field of the host with the field of the source that it equals best.
#[derive(Clone, Copy, Debug)]
struct Match {
    host: PathId,
    source: PathId,
    pairing: Pairing,
}

impl Match {
    fn is_copy(&self) -> bool {
        self.pairing.is_common() && self.pairing.beats_chance()
    }
}

impl Compared<'_> {
    /// The copies, in the order of their fields.
    pub fn copies(&self) -> Vec<Copy> {
        let matches = self.matches();
        let mut groups: HashMap<&str, Vec<Match>> = HashMap::new();
        for found in &matches {
            let (above, _) = split(self.host_paths.name(found.host));
            groups.entry(above).or_default().push(*found);
        }
        let mut nested: Vec<(&str, Vec<Match>)> = groups
            .iter()
            .filter(|(above, group)| !above.is_empty() && group.iter().any(Match::is_copy))
            .map(|(above, group)| (*above, group.clone()))
            .collect();
        nested.sort_by_key(|(above, _)| *above);
        let mut copies: Vec<Copy> = Vec::new();
        for (field, group) in nested {
            let inside =
                |copy: &Copy| field.strip_prefix(copy.field.as_str()).is_some_and(|rest| rest.starts_with('.'));
            if !copies.iter().any(inside) {
                copies.push(self.nested(field, &group));
            }
        }
        let flat = groups
            .get("")
            .into_iter()
            .flatten()
            .filter(|found| found.is_copy() && !self.is_number_of_an_only_child(found));
        for found in flat {
            let field = self.host_paths.name(found.host);
            if !self.is_document(found.host) {
                let copied = CopiedField { name: field.to_owned(), host: found.host, source: found.source };
                copies.push(self.judge(field, true, vec![copied], Vec::new(), found.pairing));
            }
        }
        copies.retain(|copy| copy.checked > 0);
        copies.sort_by(|left, right| left.field.cmp(&right.field));
        copies
    }

    /// Of each path of the host the best match.
    fn matches(&self) -> Vec<Match> {
        let mut tables: HashMap<(PathId, PathId), Pairing> = HashMap::new();
        let mut present: HashMap<PathId, (u64, u64)> = HashMap::new();
        let by_key: Vec<HashMap<u64, Vec<PathId>>> = self.sources.iter().map(by_key).collect();
        for (place, pair) in self.pairs.iter().enumerate() {
            let other = self.another(place);
            for cell in pair.host.cells().iter().filter(|cell| !self.ids.contains(&cell.path)) {
                let seen = present.entry(cell.path).or_default();
                seen.0 += 1;
                seen.1 += u64::from(other.is_some());
                for source in by_key.get(pair.source).and_then(|keys| keys.get(&cell.key)).into_iter().flatten() {
                    tables.entry((cell.path, *source)).or_default().hits += 1;
                }
                let random = other.and_then(|other| by_key.get(other)?.get(&cell.key));
                for source in random.into_iter().flatten() {
                    tables.entry((cell.path, *source)).or_default().random_hits += 1;
                }
            }
        }
        let mut best: HashMap<PathId, Match> = HashMap::new();
        for ((host, source), mut pairing) in tables {
            let Some((pairs, random_pairs)) = present.get(&host) else { continue };
            (pairing.pairs, pairing.random_pairs) = (*pairs, *random_pairs);
            let found = Match { host, source, pairing };
            match best.get(&host) {
                Some(known) if !self.is_better(&found, known) => {}
                _ => drop(best.insert(host, found)),
            }
        }
        let mut all: Vec<Match> = best.into_values().filter(|found| found.pairing.share() > BY_HAND).collect();
        all.sort_by_key(|found| found.host);
        all
    }

    fn is_better(&self, found: &Match, known: &Match) -> bool {
        let rank = |it: &Match| {
            let (host, source) = (self.host_paths.name(it.host), self.source_paths.name(it.source));
            let depth = source.matches('.').count();
            (it.pairing.hits, split(host).1 == split(source).1, std::cmp::Reverse((depth, it.source)))
        };
        rank(found) > rank(known)
    }

    /// The source of a pair drawn at random that has another one.
    fn another(&self, place: usize) -> Option<usize> {
        const TRIES: usize = 8;
        let own = self.pairs.get(place)?.source;
        let length = self.pairs.len();
        (0..TRIES)
            .filter_map(|attempt| self.pairs.get(partner(place, attempt, length)))
            .map(|pair| pair.source)
            .find(|source| *source != own)
    }

    /// A number of a source that only one document refers to may as well be made from that document: a sum of one amount.
    fn is_number_of_an_only_child(&self, found: &Match) -> bool {
        let is_number = |pair: &&Pair| pair.host.number(found.host).is_some();
        let mut sources: HashMap<usize, u64> = HashMap::new();
        self.pairs.iter().filter(is_number).for_each(|pair| *sources.entry(pair.source).or_insert(0) += 1);
        let with_others: u64 = sources.values().filter(|pairs| **pairs > 1).sum();
        !sources.is_empty() && with_others * 2 < sources.values().sum()
    }

    fn is_document(&self, path: PathId) -> bool {
        let figure = self.pairs.iter().find_map(|pair| pair.host.cell(path)).map(|cell| cell.figure);
        figure == Some(Figure::Document)
    }

    fn nested(&self, field: &str, group: &[Match]) -> Copy {
        let best = group.iter().filter(|found| found.is_copy()).max_by_key(|found| found.pairing.hits);
        let has_same_name =
            |found: &&Match| split(self.host_paths.name(found.host)).1 == split(self.source_paths.name(found.source)).1;
        let fields: Vec<CopiedField> = group
            .iter()
            .filter(|found| found.is_copy() || (found.pairing.is_common() && has_same_name(found)))
            .map(|found| CopiedField {
                name: split(self.host_paths.name(found.host)).1.to_owned(),
                host: found.host,
                source: found.source,
            })
            .collect();
        let others = self
            .host_paths
            .iter()
            .filter(|(path, name)| {
                let (above, _) = split(name);
                above == field && !fields.iter().any(|copied| copied.host == *path) && !self.is_rare(*path)
            })
            .map(|(_, name)| split(name).1.to_owned())
            .collect();
        self.judge(field, false, fields, others, best.map(|found| found.pairing).unwrap_or_default())
    }

    /// Whether a path is in no pair of this reference: paths are numbered for all.
    fn is_rare(&self, path: PathId) -> bool {
        !self.pairs.iter().any(|pair| pair.host.cell(path).is_some())
    }

    fn judge(
        &self,
        field: &str,
        is_flat: bool,
        fields: Vec<CopiedField>,
        others: Vec<String>,
        pairing: Pairing,
    ) -> Copy {
        let holder = self.host_paths.number(field);
        let (mut checked, mut absent, mut wrong) = (0, 0, Vec::new());
        for (place, pair) in self.pairs.iter().enumerate() {
            let Some(source) = self.sources.get(pair.source) else { continue };
            let has_copy = holder.is_some_and(|holder| pair.host.cell(holder).is_some())
                || fields.iter().any(|copied| pair.host.cell(copied.host).is_some());
            if !has_copy {
                absent += u64::from(fields.iter().any(|copied| source.cell(copied.source).is_some()));
                continue;
            }
            checked += 1;
            if is_wrong(&fields, &pair.host, source) {
                wrong.push(place);
            }
        }
        Copy { field: field.to_owned(), is_flat, fields, others, checked, wrong, absent, pairing }
    }
}

/// Whether a field of the copy is not what the source has.
pub fn is_wrong(fields: &[CopiedField], host: &Row, source: &Row) -> bool {
    fields.iter().any(|copied| host.key(copied.host) != source.key(copied.source))
}

fn by_key(row: &Row) -> HashMap<u64, Vec<PathId>> {
    let mut keys: HashMap<u64, Vec<PathId>> = HashMap::new();
    row.cells().iter().for_each(|cell| keys.entry(cell.key).or_default().push(cell.path));
    keys
}

/// The path above, and the last name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('.').unwrap_or(("", path))
}

/// When a host was written and when its source last changed, for each pair; `None` if it is not known.
pub type Times = (Option<i64>, Option<i64>);

/// Whether the wrong copies look frozen on purpose: all of them are older than the last change of their source, and that is no
/// coincidence: so many documents that were drawn at random would not all be older.
pub fn are_frozen(times: &[Times], wrong: &[usize], tried: usize) -> bool {
    const COINCIDENCE: f64 = 0.2;
    let is_older = |times: &Times| matches!(times, (Some(written), Some(changed)) if written < changed);
    if wrong.is_empty() || !wrong.iter().all(|place| times.get(*place).is_some_and(is_older)) {
        return false;
    }
    let older = times.iter().filter(|times| is_older(times)).count();
    let wrong_count = u64::try_from(wrong.len()).unwrap_or(u64::MAX);
    let chance = crate::values::share(older as u64, times.len() as u64);
    // All that are older are wrong, and no other is: nothing could be clearer.
    let is_exact = older == wrong.len() && older < times.len();
    is_exact || chance.powf(crate::values::share(wrong_count, 1)) * crate::values::share(tried as u64, 1) <= COINCIDENCE
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;
