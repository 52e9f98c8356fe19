//! Windows, and the first and last values, held against their definition: after random changes of children the host has what its
//! `expected` gives, whether it was looked at, asked about or evaluated from scratch.

use super::{ItemForm, TopField, Window};
use crate::fields::HostUpdate;
use crate::fields::first::{End, First, FirstField};
use crate::fields::order::SortOrder;
use crate::fields::testing::{Memory, apply, change, filter, get, key, reviews, target};
use crate::rule::needs::Direction::{self, Ascending, Descending};
use crate::rule::{Delta, Effect, Effects, Fetch, Field, Link, LinkKey, Question, Rows};
use bson::{Bson, bson, doc};
use document::op::ReadOp;
use document::value::{Path, order};
use document::{Doc, Env, Value};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

const AT: &str = "shown.here";

fn order_of(sort: &[(&str, Direction)]) -> SortOrder {
    SortOrder::new(sort.iter().map(|(path, direction)| (Path::new(path), *direction)))
}

fn window(link: Link, sort: &[(&str, Direction)], keep: u32, fields: Option<&[(&str, &str)]>) -> Arc<dyn Field> {
    let fields = fields.map(|list| list.iter().map(|(name, path)| ((*name).into(), Path::new(path))).collect());
    let window = Window::new(order_of(sort), keep, ItemForm::new(fields));
    Arc::new(TopField::new(target("products", AT), link, window).unwrap())
}

fn first(link: Link, sort: &[(&str, Direction)], end: End) -> Arc<dyn Field> {
    let first = First::new(Path::new("r"), order_of(sort), end);
    Arc::new(FirstField::new(target("products", AT), link, first).unwrap())
}

fn all() -> Vec<Arc<dyn Field>> {
    let plain = || reviews(|_| {});
    let each = || reviews(|link| link.foreign = LinkKey::Path(key("productIds", true)));
    let some = || reviews(|link| link.filter = filter(doc! { "r": { "$lt": 3 } }));
    vec![
        window(plain(), &[("at", Descending)], 2, Some(&[("r", "r"), ("at", "at")])),
        window(plain(), &[("at", Ascending)], 2, None),
        window(plain(), &[("at", Descending)], 2, Some(&[("r", "r")])),
        window(
            plain(),
            &[("at", Ascending), ("r", Descending)],
            3,
            Some(&[("rating", "r"), ("at", "at"), ("id", "_id")]),
        ),
        window(plain(), &[("_id", Descending)], 2, Some(&[("n", "_id")])),
        window(plain(), &[("in.at", Descending)], 2, Some(&[("n", "in.at")])),
        window(some(), &[("r", Ascending)], 2, Some(&[("r", "r")])),
        window(each(), &[("at", Descending)], 2, None),
        first(plain(), &[("at", Descending)], End::First),
        first(plain(), &[("at", Descending)], End::Last),
        first(some(), &[("at", Ascending), ("_id", Descending)], End::Last),
        first(each(), &[("at", Ascending)], End::First),
    ]
}

fn read(field: &dyn Field, memory: &Memory, op: ReadOp) -> Vec<Doc<'static>> {
    let ReadOp::Aggregate(aggregate) = op else { panic!("{:?} reads otherwise", field.describe()) };
    memory.run("reviews", &aggregate.pipeline)
}

/// What an inquiry's answer makes of its host.
fn asked(field: &dyn Field, memory: &Memory, question: Question) -> Option<Delta> {
    let op = field.ask(std::slice::from_ref(&question), Fetch::Rows).unwrap();
    let rows: Vec<_> = read(field, memory, op).iter().filter_map(|row| field.answer_row(row, Fetch::Rows)).collect();
    assert!(rows.len() < 2);
    field.answer(&question, rows.first().map(|(_, _, row)| row)).unwrap()
}

/// The hosts after what follows from a change.
fn react(field: &Arc<dyn Field>, memory: &Memory, hosts: &mut [Doc<'static>], effects: Effects) {
    for (key, effect) in effects {
        let Some(host) = hosts.iter_mut().find(|host| order::equal(&host.get("_id").unwrap(), &key)) else { continue };
        let decided = match effect {
            Effect::Look(delta) => field.decide(host, delta).unwrap(),
            other => other,
        };
        let delta = match decided {
            Effect::Nothing => None,
            Effect::Update(delta) => Some(delta),
            Effect::Ask(inquiry) => {
                let question = Question { key, about: inquiry.about, delta: inquiry.delta };
                asked(&**field, memory, question)
            }
            other => panic!("{other:?}"),
        };
        if let Some(delta) = delta {
            let mut update = HostUpdate::new();
            update.add(field, delta).unwrap();
            *host = apply(&update.into_update().unwrap().unwrap(), host).unwrap();
        }
    }
}

#[track_caller]
fn check(field: &dyn Field, memory: &Memory, hosts: &[Doc<'static>], note: &str) {
    let memory = memory.clone().with("products", hosts.to_vec());
    let keys: Vec<Value<'static>> = hosts.iter().map(|host| host.get("_id").unwrap()).collect();
    let mut rows = Rows::default();
    rows.add(field, Fetch::Rows, &read(field, &memory, field.query(&keys, Fetch::Rows).unwrap()));
    let many: Vec<Value<'static>> = (0..200).map(Value::Int32).collect();
    let [grouped, in_process] = [Fetch::Rows, Fetch::Documents].map(|fetch| {
        let mut grouped = Rows::default();
        grouped.add(field, fetch, &read(field, &memory, field.query(&many, fetch).unwrap()));
        grouped
    });
    for row in memory.aggregate("products", &field.expected(false)) {
        let (id, expected) = (row.get("_id").unwrap(), row.get("expected").unwrap());
        let host = hosts.iter().find(|host| order::equal(&host.get("_id").unwrap(), &id)).unwrap();
        assert_eq!(get(host, AT), expected, "{note} {} {id:?}", field.describe());
        for rows in [&rows, &grouped, &in_process] {
            let placed = field.place(host, None, rows, &Env::fixed()).unwrap();
            assert_eq!(get(&placed, AT), expected, "{note} {}", field.describe());
            assert!(field.is_right(host, &placed));
        }
    }
    assert!(memory.aggregate("products", &field.expected(true)).is_empty());
    let compared = field.comparison(true).unwrap().unwrap();
    for comparison in compared {
        for row in memory.aggregate("products", &comparison.stages.iter().map(Value::borrow).collect()) {
            assert_eq!(row.get("stored"), row.get("expected"), "{note} {}", field.describe());
        }
    }
}

#[test]
fn hosts_are_what_is_expected_after_any_changes() {
    let values = [bson!(1), bson!(2), bson!(2.0), bson!(4), bson!(null), bson!("x"), bson!({ "a": 1 })];
    for field in all() {
        for seed in 0..8 {
            let mut random = StdRng::seed_from_u64(seed);
            let few = seed % 2 == 0;
            let value = |random: &mut StdRng| match few {
                true => values.choose(random).unwrap().clone(),
                false => Bson::Int32(random.random_range(0..1_000)),
            };
            let child = |random: &mut StdRng, id: i32| {
                let mut child = doc! { "_id": id, "productId": random.random_range(0..3) };
                child.insert("productIds", vec![random.random_range(0..3), random.random_range(0..3)]);
                child.insert("at", value(random));
                child.insert(
                    "in",
                    match random.random_range(0..4) {
                        0 => bson!([{ "at": value(random) }, {}]),
                        _ => bson!({ "at": value(random) }),
                    },
                );
                if random.random_bool(0.8) {
                    child.insert("r", value(random));
                }
                child
            };
            let mut children: Vec<bson::Document> = Vec::new();
            let mut hosts: Vec<Doc<'static>> =
                (0..3).map(|id| Doc::from(doc! { "_id": id, "shown": { "here": empty(&*field) } })).collect();
            for step in 0..25 {
                let at = random.random_range(0..children.len().max(1));
                let (before, after) = match random.random_range(0..5) {
                    0 if !children.is_empty() => (Some(children.remove(at)), None),
                    1 | 2 if !children.is_empty() => {
                        let id = children[at].get_i32("_id").unwrap();
                        let mut new = child(&mut random, id);
                        if random.random_bool(0.7) {
                            for kept in ["productId", "productIds", "at", "in"] {
                                new.insert(kept, children[at].get(kept).unwrap().clone());
                            }
                        }
                        (Some(std::mem::replace(&mut children[at], new.clone())), Some(new))
                    }
                    _ => {
                        let new = child(&mut random, if few { 100 - step } else { step });
                        children.push(new.clone());
                        (None, Some(new))
                    }
                };
                let id = before.as_ref().or(after.as_ref()).and_then(|child| child.get_i32("_id").ok()).unwrap();
                let mut changed = change(before.map(Doc::from), after.map(Doc::from));
                changed.id = Value::Int32(id);
                let memory = Memory::default().with("reviews", children.iter().map(Doc::from).collect());
                let mut effects = Effects::new();
                field.react(&changed, &Env::fixed(), &mut effects).unwrap();
                react(&field, &memory, &mut hosts, effects);
                check(&*field, &memory, &hosts, &format!("seed {seed} step {step}"));
            }
        }
    }
}

fn empty(field: &dyn Field) -> Bson {
    match field.empty_values().as_slice() {
        [(_, Value::Null)] => Bson::Null,
        _ => Bson::Array(Vec::new()),
    }
}

#[test]
fn a_child_behind_the_window_leaves_its_host_unwritten() {
    let field = window(reviews(|_| {}), &[("at", Descending)], 1, Some(&[("at", "at")]));
    let host = Doc::from(doc! { "_id": 1, "shown": { "here": [{ "at": 9 }] } });
    let mut effects = Effects::new();
    let new = Doc::from(doc! { "_id": 5, "productId": 1, "at": 3 });
    field.react(&change(None, Some(new)), &Env::fixed(), &mut effects).unwrap();
    let Some((_, Effect::Look(delta))) = effects.pop() else { panic!("it asks") };
    assert!(matches!(field.decide(&host, delta).unwrap(), Effect::Nothing));
}

#[test]
fn what_does_not_matter_has_no_effect() {
    for field in [
        window(reviews(|_| {}), &[("at", Descending)], 1, Some(&[("r", "r")])),
        first(reviews(|_| {}), &[("at", Descending)], End::First),
    ] {
        let mut effects = Effects::new();
        let child = |text: &str| Some(Doc::from(doc! { "_id": 0, "productId": 1, "at": 3, "r": 1, "text": text }));
        field.react(&change(child("a"), child("b")), &Env::fixed(), &mut effects).unwrap();
        assert!(effects.is_empty(), "{effects:?}");
    }
}

#[test]
fn it_says_what_it_is() {
    let shown = window(reviews(|_| {}), &[("at", Descending)], 5, None);
    assert_eq!(shown.describe(), "first 5 of reviews in the order { at: -1, _id: 1 } by productId");
    let last = first(reviews(|_| {}), &[("at", Ascending)], End::Last);
    assert_eq!(last.describe(), "last r from reviews in the order { at: 1, _id: 1 } by productId");
}
