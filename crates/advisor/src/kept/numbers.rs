//! Which number of a parent equals what its children give: their count, or the sum, average, least or greatest of a field, of all of them
//! or of those with one value of an enumerated field. Compares, and sends nothing.

use super::row::{Figure, PathId, Paths, Row};
use crate::relation::chance::{LEAST_PAIRS, NumberPairs};
use crate::thresholds::BY_HAND;
use crate::values::share;
use hashbrown::HashMap;
use std::fmt;

/// What a number is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fold {
    Count,
    Sum,
    Avg,
    Min,
    Max,
}

impl Fold {
    /// The word of a declaration.
    pub fn word(self) -> &'static str {
        match self {
            Fold::Count => "count",
            Fold::Sum => "sum",
            Fold::Avg => "avg",
            Fold::Min => "min",
            Fold::Max => "max",
        }
    }
}

impl fmt::Display for Fold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What a number may be made of: a fold of a field, of the children with one value. The simplest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Making {
    /// The path and the hash of the value that children must have.
    pub only: Option<(PathId, u64)>,
    pub fold: Fold,
    /// Nothing for a count.
    pub of: Option<PathId>,
}

/// A number that is kept by hand.
#[derive(Clone, Debug)]
pub struct Kept {
    pub path: PathId,
    pub making: Making,
    /// Places of the parents that were compared, and of those that differ.
    pub checked: u64,
    pub wrong: Vec<usize>,
    /// The number is rounded to so many digits.
    pub digits: Option<i32>,
    /// How often a random pairing would have been right.
    pub random_share: f64,
}

/// So many fields of parents, and of children, are tried.
const MOST_NUMBERS: usize = 16;
const MOST_FIELDS: usize = 8;
/// A field with more values is not enumerated; so many filters are tried in all.
const MOST_VALUES: usize = 12;
const MOST_FILTERS: usize = 24;
/// What few parents have most likely not at all is not tried on all of them.
const FIRST: usize = 300;
const PROMISING: f64 = 0.4;
/// That it is chance must be less likely than this, with all that was tried.
const LIKELY_CHANCE: f64 = 1e-3;

/// Parents and their children. `families` has a list of places in `children` for each parent.
pub struct Compared<'c> {
    pub parents: &'c [Row],
    pub families: &'c [Vec<u32>],
    pub children: &'c [Row],
}

impl Compared<'_> {
    /// The numbers that are kept by hand, by path. `ids` are the parent's paths that are keys and references.
    pub fn kept(&self, ids: &[PathId], child_ids: &[PathId]) -> Vec<Kept> {
        let makings = self.makings(child_ids);
        let folded: Vec<Folded> = self.families.iter().map(|family| self.folded(family, &makings)).collect();
        let mut found = Vec::new();
        for path in self.numbers(ids) {
            let tried: Vec<(usize, f64)> = (0..makings.len())
                .filter_map(|making| {
                    let first = self.right_share(path, making, &makings, &folded, FIRST);
                    (first > PROMISING).then(|| (making, self.right_share(path, making, &makings, &folded, usize::MAX)))
                })
                .filter(|(_, share)| *share > BY_HAND)
                .collect();
            // The best; of equally good ones the simplest, which are first.
            let Some(best) = tried.iter().map(|(_, share)| *share).max_by(f64::total_cmp) else { continue };
            let Some((making, _)) = tried.into_iter().find(|(_, share)| *share >= best) else { continue };
            found.extend(self.judge(path, making, &makings, &folded));
        }
        found
    }

    /// Places of the parents whose number is not what was found out about it.
    pub fn wrong(&self, kept: &Kept) -> Vec<usize> {
        let makings = [kept.making];
        let wrong = |(place, (parent, family)): (usize, (&Row, &Vec<u32>))| {
            let folded = self.folded(family, &makings);
            let given = folded.values.first()?;
            (!given.is(parent.number(kept.path), kept.digits)).then_some(place)
        };
        self.parents.iter().zip(self.families).enumerate().filter_map(wrong).collect()
    }

    /// The paths of parents that hold numbers, those in most parents first.
    fn numbers(&self, ids: &[PathId]) -> Vec<PathId> {
        let mut counts: HashMap<PathId, u64> = HashMap::new();
        for cell in self.parents.iter().flat_map(Row::cells) {
            if matches!(cell.figure, Figure::Number(_)) && !ids.contains(&cell.path) {
                *counts.entry(cell.path).or_insert(0) += 1;
            }
        }
        let mut paths: Vec<(PathId, u64)> = counts.into_iter().filter(|(_, count)| *count >= LEAST_PAIRS).collect();
        paths.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(&right.0)));
        paths.into_iter().take(MOST_NUMBERS).map(|(path, _)| path).collect()
    }

    /// All that is tried, the simplest first.
    fn makings(&self, ids: &[PathId]) -> Vec<Making> {
        let (mut numbers, mut values) = (HashMap::new(), HashMap::<PathId, HashMap<u64, u64>>::new());
        for cell in self.children.iter().flat_map(Row::cells).filter(|cell| !ids.contains(&cell.path)) {
            match cell.figure {
                Figure::Number(_) => *numbers.entry(cell.path).or_insert(0_u64) += 1,
                Figure::Date(_) | Figure::Document => continue,
                Figure::Other => {}
            }
            let seen = values.entry(cell.path).or_default();
            if seen.len() <= MOST_VALUES {
                *seen.entry(cell.key).or_insert(0) += 1;
            }
        }
        let mut fields: Vec<(PathId, u64)> = numbers.into_iter().collect();
        fields.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(&right.0)));
        let fields: Vec<PathId> = fields.into_iter().take(MOST_FIELDS).map(|(path, _)| path).collect();
        let mut filters: Vec<(PathId, u64)> = values
            .into_iter()
            .filter(|(_, seen)| (2..=MOST_VALUES).contains(&seen.len()))
            .flat_map(|(path, seen)| seen.into_keys().map(move |key| (path, key)))
            .collect();
        filters.sort_unstable();
        filters.truncate(MOST_FILTERS);
        let mut all = vec![Making { only: None, fold: Fold::Count, of: None }];
        for fold in [Fold::Sum, Fold::Avg, Fold::Min, Fold::Max] {
            all.extend(fields.iter().map(|path| Making { only: None, fold, of: Some(*path) }));
        }
        all.extend(filters.iter().map(|only| Making { only: Some(*only), fold: Fold::Count, of: None }));
        for only in filters {
            all.extend(fields.iter().map(|path| Making { only: Some(only), fold: Fold::Sum, of: Some(*path) }));
        }
        all
    }

    fn folded(&self, family: &[u32], makings: &[Making]) -> Folded {
        let children = || family.iter().filter_map(|place| self.children.get(usize::try_from(*place).ok()?));
        let values = makings.iter().map(|making| {
            let wanted = |child: &&Row| making.only.is_none_or(|(path, key)| child.key(path) == Some(key));
            let numbers = || children().filter(wanted).filter_map(|child| child.number(making.of?));
            fold(making.fold, children().filter(wanted).count(), numbers)
        });
        Folded { values: values.collect(), children: family.len() }
    }

    fn right_share(&self, path: PathId, making: usize, makings: &[Making], folded: &[Folded], most: usize) -> f64 {
        let digits = makings.get(making).and_then(|making| self.digits(path, making.fold));
        let (mut right, mut all) = (0, 0);
        // Spread over all parents: the first ones may be the oldest.
        let step = (self.parents.len() / most.max(1)).max(1);
        for (parent, folded) in self.parents.iter().zip(folded).step_by(step) {
            let Some(given) = folded.values.get(making) else { continue };
            let held = parent.number(path);
            if held.is_none() && folded.children == 0 {
                continue;
            }
            all += 1;
            right += u64::from(given.is(held, digits));
        }
        share(right, all)
    }

    fn judge(&self, path: PathId, place: usize, makings: &[Making], folded: &[Folded]) -> Option<Kept> {
        let making = *makings.get(place)?;
        let digits = self.digits(path, making.fold);
        let (mut pairs, mut telling) = (NumberPairs::default(), NumberPairs::default());
        let (mut checked, mut wrong) = (0, Vec::new());
        for (number, (parent, folded)) in self.parents.iter().zip(folded).enumerate() {
            let given = folded.values.get(place)?;
            let held = parent.number(path);
            if held.is_none() && folded.children == 0 {
                continue;
            }
            checked += 1;
            let is_right = given.is(held, digits);
            if !is_right {
                wrong.push(number);
            }
            let (held_key, given_key) = (held.map(f64::to_bits), given.key(held, is_right));
            pairs.add(held_key, given_key);
            if given.tells {
                telling.add(held_key, given_key);
            }
        }
        // Only children, and children that are all alike, say nothing of a sum, an average or an extreme: a copy would do as well.
        let judged = if making.fold == Fold::Count { &pairs } else { &telling };
        let pairing = judged.pairing();
        let tried = if making.only.is_some() { makings.len() } else { 1 + MOST_FIELDS };
        let is_kept = pairing.is_common()
            && share(wrong.len() as u64, checked) < 1.0 - BY_HAND
            && judged.beats_chance()
            && is_unlikely(&pairing, tried);
        let digits = digits.filter(|_| making.fold == Fold::Avg);
        let is_kept = is_kept && !self.is_copied_to_children(path, making);
        is_kept.then(|| Kept { path, making, checked, wrong, digits, random_share: pairing.random_share() })
    }

    /// Whether most children of parents that have several hold the parent's number themselves: they copy it, and not the other way round.
    fn is_copied_to_children(&self, path: PathId, making: Making) -> bool {
        let Some(of) = making.of.filter(|_| making.fold != Fold::Sum) else { return false };
        let (mut equal, mut all) = (0, 0);
        for (parent, family) in self.parents.iter().zip(self.families).filter(|(_, family)| family.len() > 1) {
            let Some(held) = parent.number(path) else { continue };
            let children = family.iter().filter_map(|place| self.children.get(usize::try_from(*place).ok()?));
            for number in children.filter_map(|child| child.number(of)) {
                all += 1;
                equal += u64::from(is_close(number, held));
            }
        }
        share(equal, all) > BY_HAND
    }

    /// To how many digits the parents' averages are rounded; `None` if they are not.
    fn digits(&self, path: PathId, fold: Fold) -> Option<i32> {
        const MOST: i32 = 4;
        const NEARLY_ALL: f64 = 0.9;
        if fold != Fold::Avg {
            return None;
        }
        let numbers = || self.parents.iter().filter_map(|parent| parent.number(path));
        // Not all: those that are wrong may come from elsewhere.
        let all = numbers().count() as u64;
        let rounded_to =
            |digits: i32| numbers().filter(|number| is_close(*number, rounded(*number, digits))).count() as u64;
        (0..=MOST).find(|digits| share(rounded_to(*digits), all) >= NEARLY_ALL)
    }
}

/// What the makings give for one parent.
struct Folded {
    values: Vec<Given>,
    children: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Given {
    value: Option<f64>,
    /// Nothing and zero are the same: there are no such children.
    is_empty: bool,
    /// Several different children are in it.
    tells: bool,
}

fn fold<I: Iterator<Item = f64>>(fold: Fold, count: usize, numbers: impl Fn() -> I) -> Given {
    #[expect(clippy::cast_precision_loss, reason = "families are bounded")]
    let as_number = |count: usize| count as f64;
    if fold == Fold::Count {
        return Given { value: Some(as_number(count)), is_empty: count == 0, tells: true };
    }
    let n = numbers().count();
    let sum: f64 = numbers().sum();
    let least = numbers().fold(f64::INFINITY, f64::min);
    let greatest = numbers().fold(f64::NEG_INFINITY, f64::max);
    let value = match fold {
        Fold::Count | Fold::Sum => Some(sum),
        _ if n == 0 => None,
        Fold::Avg => Some(sum / as_number(n)),
        Fold::Min => Some(least),
        Fold::Max => Some(greatest),
    };
    let tells = if fold == Fold::Sum { n > 1 } else { n > 1 && least < greatest };
    Given { value, is_empty: n == 0, tells }
}

impl Given {
    fn is(&self, held: Option<f64>, digits: Option<i32>) -> bool {
        match (self.value, held) {
            (_, held) if self.is_empty => held.is_none_or(|held| held == 0.0),
            (Some(given), Some(held)) => {
                is_close(given, held)
                    || digits.is_some_and(|digits| {
                        is_close(rounded(given, digits), held) || is_close_to_rounding(given, held, digits)
                    })
            }
            (given, held) => given.is_none() && held.is_none(),
        }
    }

    /// As a key that equals that of the held number if it is right.
    fn key(&self, held: Option<f64>, is_right: bool) -> Option<u64> {
        if is_right { held.map(f64::to_bits) } else { self.value.map(f64::to_bits) }
    }
}

/// Doubles that were added in another order.
fn is_close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1.0)
}

fn rounded(number: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (number * scale).round() / scale
}

/// Halves are rounded up, down or to even, depending on the language.
fn is_close_to_rounding(given: f64, held: f64, digits: i32) -> bool {
    (given - held).abs() <= 0.5 * 10f64.powi(-digits) * (1.0 + 1e-6)
}

/// Whether so many hits are unlikely among so many that were tried: Chernoff's bound of a binomial tail.
fn is_unlikely(pairing: &crate::relation::chance::Pairing, tried: usize) -> bool {
    let (hit, random) = (pairing.share(), pairing.random_share().max(1e-6));
    if hit <= random {
        return false;
    }
    let term = |part: f64, of: f64| if part <= 0.0 { 0.0 } else { part * (part / of).ln() };
    let divergence = term(hit, random) + term(1.0 - hit, 1.0 - random);
    share(pairing.pairs, 1) * divergence > (share(tried as u64, 1) / LIKELY_CHANCE).ln()
}

/// The path of a making's filter and field, for people.
pub fn shown(making: &Making, children: &Paths) -> String {
    match making.of {
        Some(path) => format!("{} of {}", making.fold, children.name(path)),
        None => making.fold.to_string(),
    }
}

#[cfg(test)]
#[path = "numbers_tests.rs"]
mod tests;
