//! Which array of a parent holds its first children by some order: whole or some fields of them. Compares, and sends nothing.

use super::row::{Figure, PathId, Paths, Row};
use crate::relation::chance::{LEAST_PAIRS, Pairing, partner};
use crate::thresholds::{BEYOND_CHANCE, BY_HAND};
use crate::values::share;
use hashbrown::{HashMap, HashSet};
use std::cmp::Ordering;

/// Items of one array of each parent, in order.
#[derive(Clone, Debug, Default)]
pub struct Arrays {
    pub path: String,
    pub item_paths: Paths,
    /// For each parent; `None` if it has no such array.
    pub items: Vec<Option<Vec<Row>>>,
}

/// A child, and where it stands among equals.
#[derive(Clone, Debug, Default)]
pub struct Child {
    pub row: Row,
    /// The ordered bytes of its `_id`.
    pub id: Box<[u8]>,
}

/// Parents with their arrays and children. `families` has a list of places in `children` for each parent.
pub struct Compared<'c> {
    pub arrays: &'c Arrays,
    pub families: &'c [Vec<u32>],
    pub children: &'c [Child],
    pub child_paths: &'c Paths,
}

/// By what the first children are told, the greatest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Path(PathId),
    Id,
}

#[derive(Clone, Debug)]
pub struct Window {
    /// Name in the item, and path in the child.
    pub fields: Vec<WindowField>,
    /// Fields of items that are not the child's.
    pub others: Vec<String>,
    pub order: Order,
    /// The array has the last one first, as `$push` with `$slice` leaves it.
    pub is_reversed: bool,
    pub keep: usize,
    pub checked: u64,
    /// Places of the parents whose window is not what it should be.
    pub wrong: Vec<usize>,
    /// How many parents have more children than the window keeps.
    pub full: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowField {
    pub name: String,
    pub item: PathId,
    pub child: PathId,
}

/// A window that keeps more is no window.
const MOST_KEPT: usize = 1_000;
/// So many orders are tried.
const MOST_ORDERS: usize = 6;
/// So many parents are looked at to find out which fields are which.
const FIRST: usize = 500;
/// An order is by a field that nearly all children have.
const NEARLY_ALL: f64 = 0.95;

impl Compared<'_> {
    /// The window that the array is, if it is one.
    pub fn window(&self) -> Option<Window> {
        let keep = self.keep()?;
        let fields = self.fields();
        if fields.is_empty() {
            return None;
        }
        let mut best: Option<Window> = None;
        for order in self.orders() {
            for is_reversed in [false, true] {
                let window = self.judge(&fields, &order, is_reversed, keep);
                let is_better = best.as_ref().is_none_or(|best| window.wrong.len() < best.wrong.len());
                if is_better {
                    best = Some(window);
                }
            }
        }
        best.filter(|window| self.is_window(window))
    }

    /// Places of the parents whose items are not what the window should hold.
    pub fn wrong(&self, window: &Window) -> Vec<usize> {
        self.judge(&window.fields, &window.order, window.is_reversed, window.keep).wrong
    }

    fn parents(&self) -> impl Iterator<Item = (usize, &[Row], &[u32])> {
        let pairs = self.arrays.items.iter().zip(self.families).enumerate();
        pairs.map(|(place, (items, family))| (place, items.as_deref().unwrap_or_default(), family.as_slice()))
    }

    fn child(&self, place: u32) -> Option<&Child> {
        self.children.get(usize::try_from(place).ok()?)
    }

    /// How many items windows have whose parent has more children. Where none has, nothing was left out: that is no window.
    fn keep(&self) -> Option<usize> {
        let mut lengths: HashMap<usize, u64> = HashMap::new();
        let is_cut = |(_, items, family): &(usize, &[Row], &[u32])| !items.is_empty() && family.len() > items.len();
        for (_, items, _) in self.parents().filter(is_cut) {
            *lengths.entry(items.len()).or_insert(0) += 1;
        }
        let most = lengths.into_iter().max_by_key(|(length, parents)| (*parents, *length));
        most.map(|(length, _)| length).filter(|length| *length <= MOST_KEPT)
    }

    /// Which field of items is which of children: its values are those of the parent's own children, and by chance rarely those of another's.
    fn fields(&self) -> Vec<WindowField> {
        let telling: Vec<(usize, &[Row], &[u32])> =
            self.parents().filter(|(_, items, family)| !items.is_empty() && !family.is_empty()).take(FIRST).collect();
        let values: Vec<HashSet<(PathId, u64)>> = telling.iter().map(|(.., family)| self.values(family)).collect();
        let mut tables: HashMap<(PathId, PathId), Pairing> = HashMap::new();
        let mut seen: HashMap<PathId, u64> = HashMap::new();
        let child_paths: Vec<PathId> = self.child_paths.iter().map(|(path, _)| path).collect();
        for (place, (_, items, _)) in telling.iter().enumerate() {
            let other =
                (0..).map(|attempt| partner(place, attempt, values.len())).take(8).find(|other| *other != place);
            let (Some(own), Some(other)) = (values.get(place), other.and_then(|other| values.get(other))) else {
                continue;
            };
            for cell in items.iter().flat_map(Row::cells) {
                *seen.entry(cell.path).or_insert(0) += 1;
                for path in &child_paths {
                    let (hit, random) = (own.contains(&(*path, cell.key)), other.contains(&(*path, cell.key)));
                    if hit || random {
                        let table = tables.entry((cell.path, *path)).or_default();
                        table.hits += u64::from(hit);
                        table.random_hits += u64::from(random);
                    }
                }
            }
        }
        self.mapped(tables, &seen)
    }

    /// Each field of items with the best one of children; `None` if all of them may be chance.
    fn mapped(&self, tables: HashMap<(PathId, PathId), Pairing>, seen: &HashMap<PathId, u64>) -> Vec<WindowField> {
        let same_name = |item: PathId, child: PathId| self.arrays.item_paths.name(item) == self.child_paths.name(child);
        let mut best: HashMap<PathId, (PathId, Pairing)> = HashMap::new();
        let mut tables: Vec<((PathId, PathId), Pairing)> = tables.into_iter().collect();
        tables.sort_by_key(|(paths, _)| *paths);
        for ((item, child), mut pairing) in tables {
            pairing.pairs = seen.get(&item).copied().unwrap_or(0);
            pairing.random_pairs = pairing.pairs;
            if pairing.share() <= BY_HAND {
                continue;
            }
            let rank = |child: PathId, pairing: &Pairing| {
                (same_name(item, child), pairing.hits, std::cmp::Reverse(pairing.random_hits))
            };
            match best.get(&item) {
                Some((known, of_known)) if rank(*known, of_known) >= rank(child, &pairing) => {}
                _ => drop(best.insert(item, (child, pairing))),
            }
        }
        if !best.values().any(|(_, pairing)| pairing.is_common() && pairing.beats_chance()) {
            return Vec::new();
        }
        // What an item holds in a document is compared as that document.
        let mut fields: Vec<WindowField> = best
            .into_iter()
            .map(|(item, (child, _))| WindowField { name: self.arrays.item_paths.name(item).to_owned(), item, child })
            .filter(|field| !field.name.contains('.'))
            .collect();
        fields.sort_by_key(|field| field.item);
        fields
    }

    fn values(&self, family: &[u32]) -> HashSet<(PathId, u64)> {
        let children = family.iter().filter_map(|place| self.child(*place));
        children.flat_map(|child| child.row.cells()).map(|cell| (cell.path, cell.key)).collect()
    }

    /// Dates first: they are what "newest" means. Then `_id`, then numbers such as scores.
    fn orders(&self) -> Vec<Order> {
        let mut counts: HashMap<(u8, PathId), u64> = HashMap::new();
        for cell in self.children.iter().flat_map(|child| child.row.cells()) {
            let kind = match cell.figure {
                Figure::Date(_) => 0,
                Figure::Number(_) => 1,
                Figure::Document | Figure::Other => continue,
            };
            *counts.entry((kind, cell.path)).or_insert(0) += 1;
        }
        let mut all: Vec<(u8, PathId)> = counts
            .into_iter()
            .filter(|(_, count)| share(*count, self.children.len() as u64) >= NEARLY_ALL)
            .map(|(kind, _)| kind)
            .collect();
        all.sort_unstable();
        let of = |kind: u8| all.iter().filter(move |it| it.0 == kind).take(MOST_ORDERS / 2).map(|it| Order::Path(it.1));
        of(0).chain([Order::Id]).chain(of(1)).collect()
    }

    fn judge(&self, fields: &[WindowField], order: &Order, is_reversed: bool, keep: usize) -> Window {
        let (mut checked, mut full, mut wrong) = (0, 0, Vec::new());
        for (place, items, family) in self.parents() {
            if items.is_empty() && family.is_empty() {
                continue;
            }
            checked += 1;
            full += u64::from(family.len() > keep);
            if !self.is_right(fields, order, is_reversed, keep, items, family) {
                wrong.push(place);
            }
        }
        let others = self
            .arrays
            .item_paths
            .iter()
            .filter(|(path, name)| !name.contains('.') && !fields.iter().any(|field| field.item == *path));
        let others = others.map(|(_, name)| name.to_owned()).collect();
        Window { fields: fields.to_vec(), others, order: order.clone(), is_reversed, keep, checked, wrong, full }
    }

    /// Whether the items are the first children.
    fn is_right(
        &self,
        fields: &[WindowField],
        order: &Order,
        is_reversed: bool,
        keep: usize,
        items: &[Row],
        family: &[u32],
    ) -> bool {
        let mut children: Vec<&Child> = family.iter().filter_map(|place| self.child(*place)).collect();
        children.sort_by(|left, right| compare(order, left, right));
        children.truncate(keep);
        if is_reversed {
            children.reverse();
        }
        children.len() == items.len()
            && children
                .iter()
                .zip(items)
                .all(|(child, item)| fields.iter().all(|field| item.key(field.item) == child.row.key(field.child)))
    }

    /// Whether so many are right, also of those whose parent has more children than fit, and more than any choice of children would be.
    fn is_window(&self, window: &Window) -> bool {
        let wrong: HashSet<usize> = window.wrong.iter().copied().collect();
        let (mut right, mut by_chance) = (0, 0.0);
        for (place, _, family) in self.parents().filter(|(.., family)| family.len() > window.keep) {
            right += u64::from(!wrong.contains(&place));
            by_chance += one_in_choices(family.len(), window.keep);
        }
        let right_share = share(right, window.full);
        window.full >= LEAST_PAIRS
            && right_share > BY_HAND
            && share(window.wrong.len() as u64, window.checked) < 1.0 - BY_HAND
            && share(right, 1) >= BEYOND_CHANCE * by_chance
    }
}

/// The greatest first; of equal ones the one with the least `_id`.
fn compare(order: &Order, left: &Child, right: &Child) -> Ordering {
    let by_order = match order {
        Order::Id => right.id.cmp(&left.id),
        Order::Path(path) => {
            let rank = |child: &Child| match child.row.cell(*path).map(|cell| cell.figure) {
                #[expect(clippy::cast_precision_loss, reason = "milliseconds of any date of our time fit")]
                Some(Figure::Date(millis)) => millis as f64,
                Some(Figure::Number(number)) => number,
                _ => f64::NEG_INFINITY,
            };
            rank(right).total_cmp(&rank(left))
        }
    };
    by_order.then_with(|| left.id.cmp(&right.id))
}

/// How likely it is that some `keep` of `children` in some order are these.
fn one_in_choices(children: usize, keep: usize) -> f64 {
    let choices: f64 = (0..keep.min(12)).map(|taken| share(children.saturating_sub(taken) as u64, 1)).product();
    1.0 / choices.max(1.0)
}

#[cfg(test)]
#[path = "windows_tests.rs"]
mod tests;
