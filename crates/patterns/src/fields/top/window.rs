//! What children that came and left make of a window, by what the window shows: the same window, another one, or a question to the
//! children themselves.
//!
//! A window that is not full shows all children. Of a full one it is known that all other children are behind its last item. So what
//! is at or before that item is known, and decides the window if it fills it.

use super::items::ItemOrder;
use crate::fields::order::{OrderValues, SortOrder};
use crate::mql::list;
use crate::rule::items::Item;
use crate::rule::key;
use document::value::order;
use document::{Array, Value};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::cmp::Ordering;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Unchanged,
    Changed(Value<'static>),
    /// The window does not tell.
    Unknown,
}

/// How a window is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'r> {
    pub(super) order: &'r SortOrder,
    pub(super) items: &'r ItemOrder,
    pub(super) keep: usize,
}

/// An item of a window.
#[derive(Clone, Debug)]
struct Slot {
    value: Value<'static>,
    order: OrderValues,
    /// Of its child, if that is known.
    id: Option<Value<'static>>,
}

/// Where a child that left was.
enum Place {
    At(usize),
    /// At one of several places that show the same: which of them is gone does not matter, which of them changed does.
    AmongEqual(usize),
    Behind,
}

impl Reading<'_> {
    pub(super) fn after(&self, stored: &Value<'_>, came: &[Item], left: &[Item]) -> Outcome {
        let Value::Array(before) = stored else { return Outcome::Unknown };
        let Some(slots) = self.slots(before).and_then(|slots| self.changed(slots, came, left)) else {
            return Outcome::Unknown;
        };
        let after = list(slots.into_iter().map(|slot| slot.value));
        match after == *stored {
            true => Outcome::Unchanged,
            false => Outcome::Changed(after),
        }
    }

    fn slots(&self, window: &Array<'_>) -> Option<Vec<Slot>> {
        let slot = |item: Value<'_>| {
            let Value::Document(doc) = &item else { return None };
            let (order, id) = self.items.of(doc)?;
            Some(Slot { order, id, value: item.into_owned() })
        };
        let slots = window.iter().map(slot).collect::<Option<Vec<_>>>()?;
        (slots.len() <= self.keep).then_some(slots)
    }

    /// The window after the changes; `None` if the items do not tell.
    fn changed(&self, mut slots: Vec<Slot>, came: &[Item], left: &[Item]) -> Option<Vec<Slot>> {
        let last = if slots.len() == self.keep { slots.last().cloned() } else { None };
        let mut came: Vec<Option<&Item>> = came.iter().map(Some).collect();
        let mut again = if left.is_empty() { HashMap::new() } else { by_id(&came) };
        for item in left {
            // Where it was if its order is the same, whatever is equal to it.
            let stays = |at: &usize| {
                #[cfg(test)]
                crate::rule::items::compared::one();
                let other = came.get(*at).copied().flatten();
                other.is_some_and(|other| self.order.compare_declared(&other.order, &item.order) == Ordering::Equal)
            };
            let of_id = again.get_mut(&*key::bytes(&item.id));
            let at = of_id.and_then(|of_id| Some(of_id.swap_remove(of_id.iter().position(stays)?)));
            let replaced = at.and_then(|at| came.get_mut(at)).and_then(Option::take);
            match (self.place(&slots, last.as_ref(), item)?, replaced) {
                (Place::At(at), Some(new)) => *slots.get_mut(at)? = Slot::of(new),
                (Place::AmongEqual(_), Some(_)) => return None,
                (Place::At(at) | Place::AmongEqual(at), None) => {
                    slots.remove(at);
                }
                (Place::Behind, _) => {}
            }
        }
        // Of children that came, both `_id`s are known.
        let mut came: Vec<&Item> = came.into_iter().flatten().collect();
        came.sort_by(|a, b| self.order.compare(of_item(a), of_item(b)).unwrap_or(Ordering::Equal));
        for item in came {
            if let Some(last) = &last
                && self.order.compare(of_item(item), of_slot(last))? == Ordering::Greater
            {
                continue;
            }
            let mut at = slots.len();
            for (index, slot) in slots.iter().enumerate().rev() {
                match self.order.compare(of_item(item), of_slot(slot))? {
                    Ordering::Greater => break,
                    Ordering::Less => at = index,
                    Ordering::Equal => return None,
                }
            }
            slots.insert(at, Slot::of(item));
            if slots.len() > self.keep && last.is_none() {
                // Behind a full window; what comes next is not before what came now.
                slots.truncate(self.keep);
            }
        }
        if last.is_some() && slots.len() < self.keep {
            return None;
        }
        slots.truncate(self.keep);
        Some(slots)
    }

    /// Where a child is that was there before; `None` if that is not known.
    fn place(&self, slots: &[Slot], last: Option<&Slot>, item: &Item) -> Option<Place> {
        if self.items.has_id() {
            let is_it = |slot: &Slot| slot.id.as_ref().is_some_and(|id| order::equal(id, &item.id));
            let mut found = slots.iter().enumerate().filter(|(_, slot)| is_it(slot));
            return match (found.next(), found.next(), last) {
                (Some((at, slot)), None, _) if slot.value == item.value => Some(Place::At(at)),
                (None, None, Some(_)) => Some(Place::Behind),
                // Readings of a bucket may share an `_id`.
                _ => None,
            };
        }
        let by_last = last.map_or(Ordering::Less, |last| self.order.compare_declared(&item.order, &last.order));
        if by_last == Ordering::Greater {
            return Some(Place::Behind);
        }
        let is_alike = |slot: &Slot| slot.id.is_none() && slot.value == item.value;
        let alike: Vec<usize> = slots.iter().enumerate().filter(|(_, slot)| is_alike(slot)).map(|(at, _)| at).collect();
        match (alike.as_slice(), by_last) {
            // Equal to the last one, and not shown.
            ([], Ordering::Equal) => Some(Place::Behind),
            // Equal to the last one: another child that shows the same may be behind it.
            ([], _) | (_, Ordering::Equal) => None,
            ([at], _) => Some(Place::At(*at)),
            ([first, .., end], _) => (end - first + 1 == alike.len()).then_some(Place::AmongEqual(*first)),
        }
    }
}

impl Slot {
    fn of(item: &Item) -> Slot {
        Slot { value: item.value.clone(), order: item.order.clone(), id: Some(item.id.clone()) }
    }
}

/// The places of items by their `_id`.
fn by_id(items: &[Option<&Item>]) -> HashMap<Vec<u8>, SmallVec<[usize; 1]>> {
    let mut places: HashMap<Vec<u8>, SmallVec<[usize; 1]>> = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let id = item.map(|item| key::bytes(&item.id));
        id.into_iter().for_each(|id| places.entry(id).or_default().push(at));
    }
    places
}

fn of_slot(slot: &Slot) -> (&[Value<'static>], Option<&Value<'static>>) {
    (&slot.order, slot.id.as_ref())
}

fn of_item(item: &Item) -> (&[Value<'static>], Option<&Value<'static>>) {
    (&item.order, Some(&item.id))
}
