//! Children that come are put into a window by its update as sorting all children would, or the update fails: the expression and the
//! code alike, over children of all types.

use super::{ItemForm, TopField, Window};
use crate::fields::HostUpdate;
use crate::fields::order::SortOrder;
use crate::fields::testing::{apply, change, get, reviews, target};
use crate::rule::items::Items;
use crate::rule::needs::Direction::{self, Ascending, Descending};
use crate::rule::undecided::is_undecided;
use crate::rule::{Delta, Effect, Effects, Field};
use bson::{Bson, bson, doc};
use document::value::Path;
use document::{Doc, Env, Result, Value};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

type Sort = &'static [(&'static str, Direction)];
type Fields = Option<&'static [(&'static str, &'static str)]>;

const NEWEST: Sort = &[("at", Descending)];

struct Example {
    field: Arc<dyn Field>,
    order: SortOrder,
    form: ItemForm,
    keep: usize,
}

impl Example {
    fn new(sort: Sort, fields: Fields, keep: u32) -> Example {
        let order = SortOrder::new(sort.iter().map(|(path, direction)| (Path::new(path), *direction)));
        let form = ItemForm::new(
            fields.map(|names| names.iter().map(|(name, path)| ((*name).into(), Path::new(path))).collect()),
        );
        let window = Window::new(order.clone(), keep, form.clone());
        let field = TopField::new(target("products", "shown.here"), reviews(|_| {}), window).unwrap();
        Example { field: Arc::new(field), order, form, keep: usize::try_from(keep).unwrap() }
    }

    /// The window of some children.
    fn right(&self, children: &[bson::Document]) -> Value<'static> {
        let mut all: Vec<Doc<'static>> = children.iter().map(Doc::from).collect();
        all.sort_by(|a, b| {
            let (first, second) = (self.order.values(a).unwrap(), self.order.values(b).unwrap());
            self.order.compare((&first, a.get("_id").as_ref()), (&second, b.get("_id").as_ref())).unwrap()
        });
        crate::mql::list(all.iter().take(self.keep).map(|child| self.form.of(child)))
    }

    fn delta(&self, came: &[bson::Document]) -> Delta {
        let mut all: Option<Delta> = None;
        for child in came {
            let mut effects = Effects::new();
            let inserted = change(None, Some(Doc::from(child)));
            self.field.react(&inserted, &Env::fixed(), &mut effects).unwrap();
            let Some((_, Effect::Look(delta))) = effects.pop() else { panic!("{child}") };
            all = Some(match all {
                Some(first) => self.field.combine(first, &delta).unwrap(),
                None => delta,
            });
        }
        all.unwrap()
    }

    /// What the update makes of a window.
    fn placed(&self, stored: Value<'static>, delta: Delta) -> Result<Value<'static>> {
        let shown = crate::mql::object([("here", stored)]);
        let host = crate::mql::document([("_id", Value::Int32(1)), ("shown", shown)]);
        let mut update = HostUpdate::new();
        update.add(&self.field, delta).unwrap();
        apply(&update.into_update().unwrap().unwrap(), &host).map(|host| get(&host, "shown.here"))
    }
}

fn children(documents: Bson) -> Vec<bson::Document> {
    let with_key = |child: &Bson| {
        let mut child = child.as_document().unwrap().clone();
        child.insert("productId", 1);
        child
    };
    documents.as_array().unwrap().iter().map(with_key).collect()
}

#[track_caller]
fn check(example: &Example, stored: Bson, came: Bson, expected: Option<Bson>) {
    let outcome = example.placed(Value::from(stored.clone()), example.delta(&children(came)));
    match expected {
        Some(expected) => assert_eq!(outcome.unwrap(), Value::from(expected), "{stored}"),
        None => assert!(is_undecided(&outcome.unwrap_err()), "{stored}"),
    }
}

#[test]
fn in_its_place_or_not_at_all() {
    let example = Example::new(NEWEST, Some(&[("at", "at")]), 2);
    let came = || bson!([{ "_id": 7, "at": 5 }]);
    check(&example, bson!([]), came(), Some(bson!([{ "at": 5 }])));
    check(&example, bson!([{ "at": 9 }]), came(), Some(bson!([{ "at": 9 }, { "at": 5 }])));
    check(&example, bson!([{ "at": 9 }, { "at": 3 }]), came(), Some(bson!([{ "at": 9 }, { "at": 5 }])));
    check(&example, bson!([{ "at": 4 }, { "at": 3 }]), came(), Some(bson!([{ "at": 5 }, { "at": 4 }])));
    check(&example, bson!([{ "at": 9 }, { "at": 8 }]), came(), Some(bson!([{ "at": 9 }, { "at": 8 }])));
    let several = bson!([{ "_id": 1, "at": 1 }, { "_id": 2, "at": 7 }, { "_id": 3, "at": 6 }]);
    check(&example, bson!([{ "at": 9 }, { "at": 3 }]), several, Some(bson!([{ "at": 9 }, { "at": 7 }])));
    // A tie, an array, and what is no window.
    for stored in [
        bson!([{ "at": 5.0 }]),
        bson!([{ "at": [5, 6] }]),
        bson!([{ "at": Bson::Undefined }]),
        bson!([{ "at": 9 }, { "at": 8 }, { "at": 7 }]),
        bson!([9]),
        bson!(9),
        bson!(null),
    ] {
        check(&example, stored, came(), None);
    }
    let with_id = Example::new(NEWEST, Some(&[("at", "at"), ("id", "_id")]), 2);
    let (old, new) = (bson!({ "at": 5, "id": 3 }), bson!({ "at": 5, "id": 7 }));
    check(&with_id, bson!([old.clone()]), came(), Some(bson!([old, new])));
    check(&with_id, bson!([{ "at": 5 }]), came(), None);
}

#[test]
fn only_what_comes_and_is_ordered_by_values_is_left_to_stages() {
    let example = Example::new(NEWEST, Some(&[("at", "at")]), 2);
    let decides = |delta: &Delta| example.field.stages_decide(delta);
    let came = example.delta(&children(bson!([{ "_id": 7, "at": [5, 6] }])));
    assert!(decides(&came) && example.field.is_blind());
    assert!(!decides(&example.delta(&children(bson!([{ "_id": 7, "at": [] }])))));
    let Delta::Items { came, .. } = came else { panic!("no items") };
    assert!(!decides(&Delta::Items { came: Items::new(), left: came, children: 0 }));
    assert!(!Example::new(NEWEST, Some(&[("r", "r")]), 2).field.is_blind());
}

fn values() -> Vec<Bson> {
    let plain = [
        bson!(1),
        bson!(2),
        bson!(2.0),
        bson!(2_i64),
        bson!(-0.0),
        bson!(0),
        bson!(f64::NAN),
        bson!(null),
        bson!("x"),
        bson!("y"),
        bson!({}),
        bson!({ "a": 1 }),
        bson!({ "b": 0 }),
        bson!(true),
        bson!([]),
        bson!([1, 3]),
        bson!([null]),
    ];
    let more = [
        Bson::MinKey,
        Bson::MaxKey,
        Bson::Undefined,
        Bson::DateTime(bson::DateTime::from_millis(5)),
        Bson::Timestamp(bson::Timestamp { time: 1, increment: 2 }),
        Bson::Decimal128("2.0".parse().unwrap()),
        Bson::ObjectId(bson::oid::ObjectId::from_bytes([7; 12])),
        Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2] }),
    ];
    plain.into_iter().chain(more).collect()
}

#[test]
fn as_sorting_all_children() {
    let forms: &[(Sort, Fields)] = &[
        (NEWEST, Some(&[("at", "at"), ("r", "r")])),
        (NEWEST, Some(&[("r", "r"), ("id", "_id"), ("at", "at")])),
        (NEWEST, None),
        (&[("in.at", Ascending)], Some(&[("n", "in.at"), ("id", "_id")])),
        (&[("in.at", Ascending)], Some(&[("in", "in")])),
        (&[("r", Ascending), ("at", Descending)], Some(&[("at", "at"), ("r", "r"), ("key", "_id")])),
        (&[("r", Ascending), ("_id", Descending)], Some(&[("r", "r"), ("_id", "_id")])),
        (&[("_id", Ascending)], Some(&[("n", "_id")])),
    ];
    let values = values();
    let (mut placed, mut total) = (0, 0);
    for seed in 0..4_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let (sort, fields) = forms.choose(&mut random).unwrap();
        let example = Example::new(sort, *fields, random.random_range(1..5));
        let is_distinct = random.random_bool(0.5);
        let child = |random: &mut StdRng, id: i32| {
            let at = match is_distinct {
                true => Bson::Int32(id),
                false => values.choose(random).unwrap().clone(),
            };
            let r = match is_distinct {
                true => Bson::Int32(-id),
                // Not two arrays: MongoDB cannot sort by both.
                false => values
                    .choose(random)
                    .filter(|value| !matches!(value, Bson::Array(_)))
                    .cloned()
                    .unwrap_or(Bson::Null),
            };
            doc! { "_id": id, "productId": 1, "at": at.clone(), "in": { "at": at }, "r": r }
        };
        let mut ids: Vec<i32> = (0..12).collect();
        let mut some = |random: &mut StdRng, count: usize| -> Vec<bson::Document> {
            (0..count)
                .map(|_| ids.swap_remove(random.random_range(0..ids.len())))
                .collect::<Vec<_>>()
                .into_iter()
                .map(|id| child(random, id))
                .collect()
        };
        let count = random.random_range(0..7);
        let mut all = some(&mut random, count);
        let count = random.random_range(1..5);
        let came = some(&mut random, count);
        let (stored, delta) = (example.right(&all), example.delta(&came));
        if !example.field.stages_decide(&delta) {
            continue;
        }
        all.extend(came);
        total += 1;
        match example.placed(stored.clone(), delta) {
            Ok(window) => assert_eq!(window, example.right(&all), "{seed}: {stored:?}"),
            Err(error) => {
                assert!(is_undecided(&error) && !is_distinct, "{seed}: {error}");
                continue;
            }
        }
        placed += 1;
    }
    assert!(placed * 3 > total * 2, "only {placed} of {total}");
}
