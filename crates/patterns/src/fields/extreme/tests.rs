//! Extremes kept by effects are what the definition gives, over children of all types.

use super::{Extreme, ExtremeField};
use crate::fields::fold::testing::{Kept, child, effects, made_and_removed, parts, rolled_up};
use crate::fields::testing::{self, apply, filter, get};
use crate::rule::items::{Item, Items};
use crate::rule::{Delta, Effect, Field, LinkKey};
use crate::rule::{HostField, Link};
use bson::{Bson, bson, doc};
use document::value::Path;
use document::{Doc, Value};
use proptest::prelude::*;
use smallvec::SmallVec;
use std::sync::Arc;

fn extreme(field: &str, which: Extreme, path: &str, change: impl FnOnce(&mut Link)) -> Arc<ExtremeField> {
    let target: HostField = testing::target("products", field);
    Arc::new(ExtremeField::new(target, testing::reviews(change), which, Path::new(path)).unwrap())
}

fn max() -> Arc<ExtremeField> {
    extreme("best", Extreme::Max, "v", |_| {})
}

fn all() -> Vec<Arc<dyn Field>> {
    vec![
        max(),
        extreme("stats.worst", Extreme::Min, "v", |_| {}),
        extreme("deepest", Extreme::Max, "w.v", |_| {}),
        extreme("shallowest", Extreme::Min, "w.v", |link| link.filter = filter(doc! { "open": true })),
    ]
}

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

fn value() -> impl Strategy<Value = Option<Bson>> {
    let single = || {
        prop_oneof![
            6 => (-3_i32..4).prop_map(Bson::from),
            2 => (-3_i32..4).prop_map(|n| Bson::from(f64::from(n))),
            1 => (-3_i64..4).prop_map(Bson::from),
            1 => Just(decimal("1.50")),
            1 => Just(Bson::from(f64::NAN)),
            1 => "[ab]".prop_map(Bson::from),
            1 => any::<bool>().prop_map(Bson::from),
            1 => Just(Bson::MinKey),
            1 => Just(Bson::MaxKey),
            2 => Just(Bson::Null),
            1 => Just(bson!({ "x": 1 })),
            1 => Just(Bson::DateTime(bson::DateTime::from_millis(5))),
        ]
    };
    prop_oneof![
        1 => Just(None),
        6 => single().prop_map(Some),
        1 => prop::collection::vec(single(), 0..3).prop_map(|items| Some(Bson::Array(items))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn effects_give_what_is_expected(parts in parts(child(value))) {
        Kept::new(all(), 1..4).play(parts);
    }

    #[test]
    fn hosts_are_made_and_removed_with_their_children(parts in parts(child(value))) {
        let deepest = extreme("deepest", Extreme::Min, "w.v", rolled_up);
        made_and_removed(vec![extreme("best", Extreme::Max, "v", rolled_up), deepest], |kept| kept.play(parts));
    }

    #[test]
    fn a_part_is_the_sum_of_its_changes(parts in parts(child(value))) {
        Kept::new(all(), 1..4).play_together(parts);
    }
}

#[test]
fn what_cannot_be_the_extreme_is_neither_looked_at_nor_asked_about() {
    let child = |v: Bson| Some(doc! { "_id": 1, "productId": 1, "v": v });
    let kind = |before: Option<bson::Document>, after: Option<bson::Document>| {
        let effects = effects(&*max(), before, after);
        let kinds = effects.iter().map(|(_, effect)| match effect {
            Effect::Update(Delta::Items { came, left, .. }) => format!("update {} {}", came.len(), left.len()),
            Effect::Look(Delta::Items { came, left, .. }) => format!("look {} {}", came.len(), left.len()),
            other => format!("{other:?}"),
        });
        kinds.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(kind(None, child(bson!(5))), "update 1 0");
    assert_eq!(kind(None, child(Bson::Null)), "");
    assert_eq!(kind(child(bson!(5)), None), "look 0 1");
    assert_eq!(kind(child(bson!(5)), child(bson!(7))), "update 1 0");
    assert_eq!(kind(child(bson!(7)), child(bson!(5))), "look 1 1");
    assert_eq!(kind(child(bson!(5)), child(bson!(5.0))), "");
    assert_eq!(kind(child(Bson::Null), None), "");
    let moved = Some(doc! { "_id": 1, "productId": 2, "v": 5 });
    assert_eq!(kind(child(bson!(5)), moved), "update 1 0, look 0 1");
    assert!(max().is_blind());
    assert!(!extreme("best", Extreme::Max, "v", |link| link.create = true).is_blind());
}

#[test]
fn children_are_read_again_only_if_the_best_leaves() {
    let mut kept = Kept::new(vec![max()], 1..2);
    let child = |id: i32, v: i32| Some(Doc::from(doc! { "_id": id, "productId": 1, "v": v }));
    for (id, v) in [(1, 5), (2, 7), (3, 7), (4, 2)] {
        kept.change_one(None, child(id, v));
    }
    for (before, after, asked, best) in [
        (child(1, 5), None, 0, 7),
        (child(2, 7), child(2, 3), 1, 7),
        (child(3, 7), child(3, 9), 1, 9),
        (child(3, 9), None, 2, 3),
        (child(4, 2), child(4, 1), 2, 3),
    ] {
        kept.change_one(before, after);
        assert_eq!((kept.asked, get(kept.host(1), "best")), (asked, Value::Int32(best)));
    }
    // One that is as good takes its place.
    kept.change(vec![(child(2, 3), None), (None, child(5, 4))]);
    assert_eq!((kept.asked, get(kept.host(1), "best")), (2, Value::Int32(4)));
    kept.change(vec![(child(5, 4), None), (child(4, 1), None)]);
    assert_eq!(get(kept.host(1), "best"), Value::Null);
    kept.check();
}

#[test]
fn an_equal_number_leaves_the_stored_one_and_any_type_is_right() {
    let field: Arc<dyn Field> = max();
    for (stored, came, expected) in [
        (bson!(5), bson!(5.0), bson!(5)),
        (bson!(5), bson!(6.0), bson!(6.0)),
        (bson!([1]), bson!(7), bson!([1])),
        (Bson::Null, Bson::MinKey, Bson::MinKey),
    ] {
        let host = Doc::from(doc! { "_id": 1, "best": stored });
        let came = Item { id: Value::Int32(1), order: SmallVec::new(), value: Value::from(came) };
        let mut update = crate::fields::HostUpdate::new();
        update
            .add(&field, Delta::Items { came: [came].into_iter().collect(), left: Items::new(), children: 0 })
            .unwrap();
        let host = apply(&update.into_update().unwrap().unwrap(), &host).unwrap();
        assert_eq!(get(&host, "best"), Value::from(expected));
    }
    let host = |best: Bson| Doc::from(doc! { "_id": 1, "best": best });
    assert!(field.is_right(&host(bson!(5)), &host(bson!(5.0))));
    assert!(!field.is_right(&host(bson!(5)), &host(bson!(6))));
    assert!(!field.is_right(&Doc::from(doc! { "_id": 1 }), &host(Bson::Null)));
    let children = vec![Doc::from(doc! { "productId": 1, "v": 5.0 })];
    let memory = testing::Memory::default().with("products", vec![host(bson!(5))]).with("reviews", children);
    assert!(memory.aggregate("products", &field.expected(true)).is_empty());
}

#[test]
fn the_index_has_the_value_behind_the_key_and_arrays_apart() {
    let shown = |field: &dyn Field| {
        let needs = field.needs().indexes.into_iter().filter(|need| need.ns.collection.as_ref() == "reviews");
        let show = |need: crate::rule::IndexNeed| format!("{:?} {:?}", need.paths(), need.partial.is_some());
        needs.map(show).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(shown(&*max()), r#""productId, v" false; "productId, _id" true"#);
    let deep = extreme("deep", Extreme::Min, "w.v", |link| link.filter = filter(doc! { "open": true }));
    assert_eq!(shown(&*deep), r#""productId, w.v" false; "productId, _id" true; "productId, _id" true"#);
    let each = extreme("each", Extreme::Min, "v", |link| link.foreign = LinkKey::Path(testing::key("productId", true)));
    assert_eq!(shown(&*each), r#""productId" false"#);
}
