//! SEMANTICS R35 and R2: roll-ups whose values are looked at and asked for. The number of children is kept whatever becomes of the
//! value, and all that is kept until seeding comes to the value.

use super::scripted::{rolled_up, rolled_up_in};
use crate::harness::*;
use bson::doc;
use pleach_patterns::rule::State;

fn child(id: i32, does: &str, gives: &str) -> bson::Document {
    doc! {"_id": id, "productId": "k", "does": does, "gives": gives}
}

fn part(id: i32, about: &str, gives: &str) -> bson::Document {
    doc! {"_id": id, "productId": "k", "does": "share", "about": about, "gives": gives}
}

fn host(note: impl Into<bson::Bson>, children: i32) -> bson::Document {
    doc! {"_id": "k", "note": note.into(), "_pleach": {"note": {"children": children}}}
}

#[test]
fn children_count_whatever_becomes_of_the_value() {
    for (does, gives, note) in
        [("update", "x", "x"), ("look", "x", "x"), ("look", "ask", "ask:1"), ("share", "x", "x:1")]
    {
        let world = rolled_up();
        run(async {
            world.did(insert("reviews", vec![child(1, does, gives)])).await;
            assert_eq!(world.all("products").await, [host(note, 1)], "{does} {gives}");
            world.did(insert("reviews", vec![child(2, "look", "nothing")])).await;
            assert_eq!(world.all("products").await, [host(note, 2)], "{does} {gives}");
            world.did(insert("reviews", vec![child(3, "share", "none")])).await;
            assert_eq!(world.all("products").await, [host(note, 3)], "{does} {gives}");
            world.did(insert("reviews", vec![part(4, "a", "none"), part(5, "b", "y"), part(6, "c", "none")])).await;
            assert_eq!(world.all("products").await, [host("y:-", 6)], "{does} {gives}");
            world.did(delete("reviews", doc! {"_id": {"$gt": 1}}, true)).await;
            assert_eq!(world.field("products", "k", "_pleach").await, Some(doc! {"note": {"children": 1}}.into()));
            world.did(delete("reviews", doc! {}, true)).await;
            assert_eq!(world.all("products").await, Vec::<bson::Document>::new(), "{does} {gives}");
        });
    }
}

/// A first child that leaves no value makes its host all the same.
#[test]
fn a_host_is_made_by_a_child_without_a_value() {
    for (does, gives) in [("look", "nothing"), ("share", "none"), ("ask", "none")] {
        let world = rolled_up();
        run(async {
            world.did(insert("reviews", vec![child(1, does, gives)])).await;
            assert_eq!(world.all("products").await, [host(0, 1)], "{does} {gives}");
            world.did(insert("reviews", vec![child(2, "update", "x"), child(3, "update", "y")])).await;
            world.did(insert("reviews", vec![child(4, does, gives)])).await;
            assert_eq!(world.all("products").await, [host("x+y", 4)], "{does} {gives}");
        });
    }
}

#[test]
fn until_seeding_shows_the_value_only_children_count() {
    let world = rolled_up();
    run(async {
        world.did(insert("reviews", vec![child(0, "update", "before")])).await;
        let mut children = 1;
        for state in [
            State::Gathering { position: Some(document::Value::MaxKey) },
            State::Seeding { position: None },
            State::Seeding { position: Some("a".into()) },
        ] {
            rolled_up_in(&world, state.clone());
            for does in ["update", "look", "ask", "share"] {
                world.did(insert("reviews", vec![child(children, does, "x")])).await;
                children += 1;
                assert_eq!(world.all("products").await, [host("before", children)], "{state:?} {does}");
            }
        }
        rolled_up_in(&world, State::Seeding { position: Some("l".into()) });
        world.did(insert("reviews", vec![child(100, "ask", "x")])).await;
        assert_eq!(world.all("products").await, [host("x:14", 14)]);
    });
}

/// Against the walk over the hosts, which evaluates exclusively.
#[test]
fn what_is_hidden_from_the_value_leaves_a_fence() {
    let world = rolled_up();
    run(async {
        world.did(insert("reviews", vec![child(0, "update", "before"), child(1, "update", "before")])).await;
        rolled_up_in(&world, State::Seeding { position: None });
        // An edit: no child more, no child less, and the host is not written at all.
        let edit = update("reviews", doc! {"_id": 0}, doc! {"$set": {"gives": "y"}}, &[]);
        let (_, fences) = super::plans::plan(&world, &edit).await;
        assert_eq!(fences, ["shared \"k\""]);
    });
}
