//! Windows against "sort all children and cut".

use super::items::{ItemForm, ItemOrder};
use super::window::{Outcome, Reading};
use crate::fields::order::SortOrder;
use crate::mql::list;
use crate::rule::items::Item;
use crate::rule::needs::Direction;
use bson::{Bson, bson, doc};
use document::value::Path;
use document::{Doc, Value};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

struct Example {
    order: SortOrder,
    form: ItemForm,
    items: ItemOrder,
    keep: usize,
}

impl Example {
    fn new(sort: &[(&str, Direction)], fields: Option<&[&str]>, keep: usize) -> Example {
        let order = SortOrder::new(sort.iter().map(|(path, direction)| (Path::new(path), *direction)));
        let form =
            ItemForm::new(fields.map(|names| names.iter().map(|name| ((*name).into(), Path::new(name))).collect()));
        let items = form.order(&order).unwrap();
        Example { order, form, items, keep }
    }

    fn item(&self, child: &bson::Document) -> Item {
        let child = Doc::from(child);
        Item { id: child.get("_id").unwrap(), order: self.order.values(&child).unwrap(), value: self.form.of(&child) }
    }

    fn right(&self, children: &[bson::Document]) -> Value<'static> {
        let mut items: Vec<Item> = children.iter().map(|child| self.item(child)).collect();
        items.sort_by(|a, b| self.order.compare((&a.order, Some(&a.id)), (&b.order, Some(&b.id))).unwrap());
        list(items.into_iter().take(self.keep).map(|item| item.value))
    }

    fn after(&self, stored: &Value<'_>, came: &[bson::Document], left: &[bson::Document]) -> Outcome {
        let items =
            |children: &[bson::Document]| -> Vec<Item> { children.iter().map(|child| self.item(child)).collect() };
        let reading = Reading { order: &self.order, items: &self.items, keep: self.keep };
        reading.after(stored, &items(came), &items(left))
    }
}

type Sort = &'static [(&'static str, Direction)];

const NEWEST: Sort = &[("at", Direction::Descending)];

#[track_caller]
fn check(example: &Example, stored: Bson, came: Bson, left: Bson, expected: Option<Bson>) {
    let documents = |list: Bson| -> Vec<bson::Document> {
        list.as_array().unwrap().iter().map(|item| item.as_document().unwrap().clone()).collect()
    };
    let outcome = example.after(&Value::from(stored.clone()), &documents(came), &documents(left));
    let told = match outcome {
        Outcome::Unchanged => Some(Value::from(stored)),
        Outcome::Changed(window) => Some(window),
        Outcome::Unknown => None,
    };
    assert_eq!(told, expected.map(Value::from));
}

#[test]
fn by_order_alone() {
    let example = Example::new(NEWEST, Some(&["at", "r"]), 2);
    let full = || bson!([{ "at": 9, "r": 1 }, { "at": 5, "r": 2 }]);
    let one = || bson!([{ "at": 5, "r": 2 }]);
    // Behind the last item of a full window.
    check(&example, full(), bson!([{ "_id": 1, "at": 4 }]), bson!([]), Some(full()));
    // In order, and out of order.
    check(
        &example,
        full(),
        bson!([{ "_id": 1, "at": 10 }]),
        bson!([]),
        Some(bson!([{ "at": 10 }, { "at": 9, "r": 1 }])),
    );
    check(&example, full(), bson!([{ "_id": 1, "at": 7 }]), bson!([]), Some(bson!([{ "at": 9, "r": 1 }, { "at": 7 }])));
    check(&example, one(), bson!([{ "_id": 1, "at": 3 }]), bson!([]), Some(bson!([{ "at": 5, "r": 2 }, { "at": 3 }])));
    check(&example, bson!([]), bson!([{ "_id": 1, "at": 3 }]), bson!([]), Some(bson!([{ "at": 3 }])));
    // Ties need the `_id`.
    check(&example, full(), bson!([{ "_id": 1, "at": 5 }]), bson!([]), None);
    check(&example, full(), bson!([{ "_id": 1, "at": 9 }]), bson!([]), None);
    check(
        &example,
        bson!([]),
        bson!([{ "_id": 2, "at": 3, "r": 2 }, { "_id": 1, "at": 3, "r": 1 }]),
        bson!([]),
        Some(bson!([{ "at": 3, "r": 1 }, { "at": 3, "r": 2 }])),
    );
    // What leaves a full window is replaced by what is not shown; behind it nothing is shown.
    check(&example, full(), bson!([]), bson!([{ "_id": 1, "at": 9, "r": 1 }]), None);
    check(&example, full(), bson!([]), bson!([{ "_id": 1, "at": 4 }]), Some(full()));
    check(&example, full(), bson!([]), bson!([{ "_id": 1, "at": 5, "r": 3 }]), Some(full()));
    check(&example, full(), bson!([]), bson!([{ "_id": 1, "at": 5, "r": 2 }]), None);
    check(&example, one(), bson!([]), bson!([{ "_id": 1, "at": 5, "r": 2 }]), Some(bson!([])));
    // In place.
    check(
        &example,
        full(),
        bson!([{ "_id": 1, "at": 9, "r": 7 }]),
        bson!([{ "_id": 1, "at": 9, "r": 1 }]),
        Some(bson!([{ "at": 9, "r": 7 }, { "at": 5, "r": 2 }])),
    );
    check(
        &example,
        full(),
        bson!([{ "_id": 1, "at": 4, "r": 7 }]),
        bson!([{ "_id": 1, "at": 4, "r": 1 }]),
        Some(full()),
    );
    // Ranked anew, and still known.
    check(
        &example,
        full(),
        bson!([{ "_id": 1, "at": 6, "r": 1 }]),
        bson!([{ "_id": 1, "at": 9, "r": 1 }]),
        Some(bson!([{ "at": 6, "r": 1 }, { "at": 5, "r": 2 }])),
    );
    check(&example, full(), bson!([{ "_id": 1, "at": 4, "r": 1 }]), bson!([{ "_id": 1, "at": 9, "r": 1 }]), None);
    // Equal ones: which of them left does not matter, which of them changed does.
    let equal = || bson!([{ "at": 5 }, { "at": 5 }]);
    let many = Example::new(NEWEST, Some(&["at", "r"]), 3);
    check(&many, equal(), bson!([]), bson!([{ "_id": 1, "at": 5 }]), Some(bson!([{ "at": 5 }])));
    check(&many, equal(), bson!([{ "_id": 1, "at": 5, "r": 1 }]), bson!([{ "_id": 1, "at": 5 }]), None);
    // No window of ours.
    for stored in [bson!(null), bson!(5), bson!([5]), bson!([{ "at": 1 }, { "at": 1 }, { "at": 1 }])] {
        check(&example, stored, bson!([{ "_id": 1, "at": 5 }]), bson!([]), None);
    }
    // The item is not among those that show all children.
    check(&example, one(), bson!([]), bson!([{ "_id": 1, "at": 5, "r": 3 }]), None);
}

#[test]
fn by_id_where_items_have_it() {
    let example = Example::new(NEWEST, None, 2);
    let full = || bson!([{ "_id": 1, "at": 5 }, { "_id": 3, "at": 5 }]);
    check(&example, full(), bson!([{ "_id": 4, "at": 5 }]), bson!([]), Some(full()));
    check(
        &example,
        full(),
        bson!([{ "_id": 2, "at": 5 }]),
        bson!([]),
        Some(bson!([{ "_id": 1, "at": 5 }, { "_id": 2, "at": 5 }])),
    );
    check(
        &example,
        full(),
        bson!([{ "_id": 3, "at": 5, "x": 1 }]),
        bson!([{ "_id": 3, "at": 5 }]),
        Some(bson!([{ "_id": 1, "at": 5 }, { "_id": 3, "at": 5, "x": 1 }])),
    );
    check(&example, full(), bson!([]), bson!([{ "_id": 9, "at": 5 }]), Some(full()));
    check(&example, full(), bson!([]), bson!([{ "_id": 1, "at": 5 }]), None);
    check(
        &example,
        full(),
        bson!([{ "_id": 0, "at": 7 }]),
        bson!([{ "_id": 1, "at": 5 }]),
        Some(bson!([{ "_id": 0, "at": 7 }, { "_id": 3, "at": 5 }])),
    );
    check(&example, bson!([{ "_id": 1, "at": 5 }]), bson!([]), bson!([{ "_id": 9, "at": 5 }]), None);
}

/// Whatever the window tells is what sorting all children tells.
#[test]
fn as_sorting_all_children() {
    let forms: &[(Sort, Option<&[&str]>)] = &[
        (NEWEST, Some(&["at", "r"])),
        (NEWEST, Some(&["at"])),
        (NEWEST, Some(&["r", "_id", "at"])),
        (NEWEST, None),
        (&[("at", Direction::Ascending), ("r", Direction::Descending)], Some(&["at", "r"])),
        (&[("at", Direction::Ascending), ("_id", Direction::Descending)], None),
    ];
    let values = [bson!(1), bson!(2), bson!(2.0), bson!(null), bson!([]), bson!([1, 3]), bson!("x"), bson!({ "a": 1 })];
    let (mut told, mut total) = (0, 0);
    for seed in 0..3_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let (sort, fields) = forms.choose(&mut random).unwrap();
        let example = Example::new(sort, *fields, random.random_range(1..5));
        let few = random.random_bool(0.5);
        let child = |random: &mut StdRng, id: i32| {
            let value = |random: &mut StdRng| match few {
                true => values.choose(random).unwrap().clone(),
                false => Bson::Int32(random.random_range(0..1_000)),
            };
            let (at, r) = (value(random), values.choose(random).unwrap().clone());
            // Not two arrays: MongoDB cannot sort by both.
            let r = if matches!(r, Bson::Array(_)) { bson!(1) } else { r };
            doc! { "_id": id, "at": at, "r": r }
        };
        let mut children: Vec<bson::Document> =
            (0..random.random_range(0..7)).map(|id| child(&mut random, id * 10)).collect();
        let stored = example.right(&children);
        let (mut came, mut left) = (Vec::new(), Vec::new());
        for at in (0..children.len()).rev() {
            match random.random_range(0..4) {
                0 => left.push(children.remove(at)),
                1 => {
                    let id = children[at].get_i32("_id").unwrap();
                    let mut new = child(&mut random, id);
                    if random.random_bool(0.5) {
                        new.insert("at", children[at].get("at").unwrap().clone());
                    }
                    left.push(std::mem::replace(&mut children[at], new.clone()));
                    came.push(new);
                }
                _ => {}
            }
        }
        for _ in 0..random.random_range(0..3) {
            let id = random.random_range(0..70);
            let is_used = children.iter().chain(&left).any(|other| other.get_i32("_id").unwrap() == id);
            if !is_used {
                came.push(child(&mut random, id));
                children.extend(came.last().cloned());
            }
        }
        let right = example.right(&children);
        total += 1;
        match example.after(&stored, &came, &left) {
            Outcome::Unknown => continue,
            Outcome::Unchanged => assert_eq!(stored, right, "{seed}"),
            Outcome::Changed(window) => assert_eq!(window, right, "{seed}"),
        }
        told += 1;
    }
    assert!(told * 2 > total, "only {told} of {total} were told");
}

#[test]
fn what_many_changed_children_cost_grows_with_their_number() {
    let example = Example::new(NEWEST, Some(&["_id", "at"]), 10);
    let cost = |n: i32| {
        let children = |text: &str| -> Vec<bson::Document> {
            (0..n).map(|id| doc! { "_id": id, "at": id, "text": text }).collect()
        };
        let stored = example.right(&children("old"));
        crate::rule::items::compared::by(|| {
            assert_eq!(example.after(&stored, &children("new"), &children("old")), Outcome::Unchanged);
        })
    };
    let (some, more) = (cost(500), cost(4_000));
    assert!(some >= 500 && more <= 8 * some, "{some} comparisons for 500 children, {more} for 4000");
}
