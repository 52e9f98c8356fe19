//! Source documents that came to a host, or left it. One that is there is found without a look at the others: a transaction may change
//! as many as it likes.

use crate::rule::key;
use document::Value;
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::ops::Deref;

/// A source document as an item of a host's value.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub id: Value<'static>,
    /// The values that it is ordered by.
    pub order: SmallVec<[Value<'static>; 1]>,
    pub value: Value<'static>,
}

/// So many are looked through faster than sought.
const LOOKED_THROUGH: usize = 16;

#[derive(Clone, Debug, Default)]
pub struct Items {
    list: Vec<Item>,
    /// By `_id`, once there are many.
    places: Option<Box<Places>>,
}

type Places = HashMap<Vec<u8>, SmallVec<[usize; 1]>>;

impl Items {
    pub fn new() -> Items {
        Items::default()
    }

    pub fn push(&mut self, item: Item) {
        if let Some(places) = &mut self.places {
            places.entry(key::bytes(&item.id)).or_default().push(self.list.len());
        }
        self.list.push(item);
    }

    /// Takes this item out, and says whether it was there. The order of many is not kept: it means nothing.
    pub fn take(&mut self, item: &Item) -> bool {
        if self.places.is_none() && self.list.len() <= LOOKED_THROUGH {
            let found = self.list.iter().position(|other| is_it(other, item));
            found.map(|at| self.list.remove(at));
            return found.is_some();
        }
        let list = &self.list;
        let places = self.places.get_or_insert_with(|| Box::new(places(list)));
        let Some(of_id) = places.get_mut(&*key::bytes(&item.id)) else { return false };
        let found = of_id.iter().position(|at| list.get(*at).is_some_and(|other| is_it(other, item)));
        let Some(at) = found.map(|found| of_id.swap_remove(found)) else { return false };
        self.list.swap_remove(at);
        let was = self.list.len();
        let moved = self.list.get(at).and_then(|moved| places.get_mut(&*key::bytes(&moved.id)));
        if let Some(place) = moved.and_then(|of_id| of_id.iter_mut().find(|place| **place == was)) {
            *place = at;
        }
        true
    }

    pub fn retain(&mut self, stays: impl FnMut(&Item) -> bool) {
        self.places = None;
        self.list.retain(stays);
    }
}

fn places(list: &[Item]) -> Places {
    let mut places = Places::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        places.entry(key::bytes(&item.id)).or_default().push(at);
    }
    places
}

fn is_it(other: &Item, item: &Item) -> bool {
    #[cfg(test)]
    compared::one();
    other == item
}

impl Deref for Items {
    type Target = [Item];

    fn deref(&self) -> &[Item] {
        &self.list
    }
}

impl<'i> IntoIterator for &'i Items {
    type Item = &'i Item;
    type IntoIter = std::slice::Iter<'i, Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl FromIterator<Item> for Items {
    fn from_iter<I: IntoIterator<Item = Item>>(items: I) -> Items {
        Items { list: items.into_iter().collect(), places: None }
    }
}

impl PartialEq for Items {
    fn eq(&self, other: &Items) -> bool {
        self.list == other.list
    }
}

/// How many items were compared with each other: what a transaction of many changes costs.
#[cfg(test)]
pub(crate) mod compared {
    use std::cell::Cell;

    thread_local!(static COMPARED: Cell<u64> = const { Cell::new(0) });

    pub(crate) fn one() {
        COMPARED.with(|compared| compared.set(compared.get() + 1));
    }

    /// How many `run` compares.
    pub(crate) fn by(run: impl FnOnce()) -> u64 {
        let before = COMPARED.with(Cell::get);
        run();
        COMPARED.with(Cell::get) - before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    fn item(id: i32, value: i32) -> Item {
        Item { id: Value::Int32(id), order: SmallVec::new(), value: Value::Int32(value) }
    }

    #[test]
    fn many_items_are_those_of_a_plain_list() {
        let mut random = StdRng::seed_from_u64(7);
        let (mut items, mut plain) = (Items::new(), Vec::<Item>::new());
        for _ in 0..5_000 {
            let some = item(random.random_range(0..60), random.random_range(0..3));
            if random.random_bool(0.5) {
                items.push(some.clone());
                plain.push(some);
            } else {
                let at = plain.iter().position(|other| *other == some);
                at.map(|at| plain.swap_remove(at));
                assert_eq!(items.take(&some), at.is_some());
            }
            assert_eq!(items.len(), plain.len());
        }
        let sorted = |items: &[Item]| {
            let mut all: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            all.sort();
            all
        };
        assert_eq!(sorted(&items), sorted(&plain));
    }
}
