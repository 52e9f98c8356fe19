//! Numbers of different values kept by effects are what the definition gives, over children of all types.

use super::DistinctField;
use crate::fields::fold::testing::{Kept, child, effects, made_and_removed, parts, rolled_up};
use crate::fields::testing::{self, filter, get};
use crate::rule::{Delta, Effect, Field, Inquiry, Link, LinkKey};
use bson::{Bson, bson, doc};
use document::backend::Mode;
use document::value::Path;
use document::{Doc, Value};
use proptest::prelude::*;
use std::sync::Arc;

fn distinct(field: &str, path: &str, each_value: bool, change: impl FnOnce(&mut Link)) -> Arc<DistinctField> {
    let target = testing::target("products", field);
    Arc::new(DistinctField::new(target, testing::reviews(change), Path::new(path), each_value).unwrap())
}

fn all() -> Vec<Arc<dyn Field>> {
    vec![
        distinct("values", "v", false, |_| {}),
        distinct("stats.tags", "v", true, |_| {}),
        distinct("deep", "w.v", false, |_| {}),
        distinct("deepTags", "w.v", true, |link| link.filter = filter(doc! { "open": true })),
    ]
}

fn value() -> impl Strategy<Value = Option<Bson>> {
    let single = || {
        prop_oneof![
            6 => (0_i32..3).prop_map(Bson::from),
            2 => (0_i32..3).prop_map(|n| Bson::from(f64::from(n))),
            1 => Just(Bson::from(f64::NAN)),
            1 => "[ab]".prop_map(Bson::from),
            2 => Just(Bson::Null),
            1 => Just(bson!({ "x": 1 })),
            1 => Just(bson!([1])),
            1 => Just(Bson::RegularExpression(bson::Regex { pattern: "a".try_into().unwrap(), options: "".try_into().unwrap() })),
        ]
    };
    prop_oneof![
        1 => Just(None),
        4 => single().prop_map(Some),
        3 => prop::collection::vec(single(), 0..3).prop_map(|items| Some(Bson::Array(items))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn effects_give_what_is_expected(parts in parts(child(value))) {
        Kept::new(all(), 1..4).play(parts);
    }

    #[test]
    fn a_part_is_the_sum_of_its_changes(parts in parts(child(value))) {
        Kept::new(all(), 1..4).play_together(parts);
    }

    #[test]
    fn hosts_are_made_and_removed_with_their_children(parts in parts(child(value))) {
        made_and_removed(vec![distinct("values", "v", false, rolled_up), distinct("tags", "w.v", true, rolled_up)], |kept| kept.play_together(parts));
    }
}

#[test]
fn many_questions_are_counted_in_one_pass() {
    let each = |link: &mut Link| link.foreign = LinkKey::Path(testing::key("productId", true));
    let mut kept = Kept::new(vec![distinct("tags", "v", true, |_| {}), distinct("each", "v", true, each)], 1..3);
    let child = |id: i32, first: i32| {
        let tags: Vec<i32> = (first..first + 150).chain([first]).collect();
        Some(Doc::from(doc! { "_id": id, "productId": 1 + id % 2, "v": tags }))
    };
    kept.change(vec![(None, child(1, 0)), (None, child(2, 50)), (None, child(3, 100))]);
    kept.check();
    assert_eq!(get(kept.host(2), "tags"), Value::Int32(250));
    kept.change(vec![(child(1, 0), child(1, 120)), (child(2, 50), None)]);
    kept.check();
    assert_eq!((get(kept.host(1), "each"), get(kept.host(2), "tags")), (Value::Int32(0), Value::Int32(170)));
}

#[test]
fn only_values_that_come_or_leave_are_asked_about() {
    let child = |v: Bson| Some(doc! { "_id": 1, "productId": 1, "v": v });
    let asked = |before: Option<bson::Document>, after: Option<bson::Document>| {
        let effects = effects(&*distinct("tags", "v", true, |_| {}), before, after);
        let shown = effects.iter().map(|(_, effect)| match effect {
            Effect::Ask(Inquiry { about, delta: Delta::Count(n), mode }) => {
                format!("{about:?} {n} {}", *mode == Mode::Exclusive)
            }
            other => format!("{other:?}"),
        });
        shown.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(asked(None, child(bson!([1, 2, 1.0]))), "Int32(1) 1 false, Int32(2) 1 false");
    assert_eq!(asked(child(bson!([1, 2])), child(bson!([2, (Bson::Null)]))), "Null 1 false, Int32(1) -1 true");
    assert_eq!(asked(child(bson!(1)), child(bson!([1.0]))), "");
    assert_eq!(asked(None, Some(doc! { "productId": 1 })), "");
    assert_eq!(asked(child(bson!([])), None), "");
}

#[test]
fn a_value_counts_while_any_child_has_it() {
    let mut kept = Kept::new(vec![distinct("values", "v", false, |_| {})], 1..2);
    let child = |id: i32, v: Bson| Some(Doc::from(doc! { "_id": id, "productId": 1, "v": v }));
    // Three inserts of one new value are one more.
    kept.change(vec![(None, child(1, bson!(5))), (None, child(2, bson!(5.0))), (None, child(3, bson!(5)))]);
    assert_eq!(get(kept.host(1), "values"), Value::Int32(1));
    kept.change(vec![(child(1, bson!(5)), child(1, bson!([5])))]);
    assert_eq!(get(kept.host(1), "values"), Value::Int32(2));
    kept.change(vec![(child(2, bson!(5.0)), None), (child(3, bson!(5)), None)]);
    assert_eq!(get(kept.host(1), "values"), Value::Int32(1));
    kept.check();
}
