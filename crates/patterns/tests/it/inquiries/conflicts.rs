//! SEMANTICS R1: who meets whom. Two transactions begin, then both write; the second is told to try again exactly where the
//! value would be wrong otherwise.

use super::scripted::world;
use super::{review, review_about};
use crate::harness::*;
use bson::doc;
use document::op::WriteOp;
use pleach_patterns::rule::State;

/// Whether the two conflict, in either order.
async fn conflict(world: &World, first: &WriteOp, second: &WriteOp, name: &str) -> bool {
    let mut conflicts = Vec::new();
    for (one, other) in [(first, second), (second, first)] {
        // Both at the end, and one behind the other's commit.
        for commits_first in [false, true] {
            let (mut left, mut right) = (world.begin().await, world.begin().await);
            // Fixes the moment of both.
            world.all_at(&mut left, "products").await;
            world.all_at(&mut right, "products").await;
            world.write_at(&mut left, one).await.unwrap();
            if commits_first {
                world.commit(&mut left).await.unwrap();
            }
            let written = world.write_at(&mut right, other).await;
            if let Err(error) = &written {
                assert_eq!((error.code().number(), error.labels()), (112, &["TransientTransactionError"][..]));
            }
            conflicts.push(written.is_err());
            for mut session in [left, right] {
                if let Some(transaction) = session.transaction.take() {
                    transaction.abort();
                }
            }
            world.behind(delete("reviews", doc! {}, true)).await;
            world.behind(update("products", doc! {}, doc! {"$set": {"note": "v"}}, &["multi"])).await;
            world.behind(delete("products", doc! {"_id": {"$ne": 1}}, true)).await;
        }
    }
    assert!(conflicts.iter().all(|conflict| *conflict == conflicts[0]), "{name}: not in every order: {conflicts:?}");
    conflicts[0]
}

#[test]
fn who_reads_children_meets_who_changes_them() {
    let world = world("", State::On);
    run(async {
        world.did(insert("products", vec![doc! {"_id": 1}])).await;
        // A collection that is made meanwhile would be a conflict of its own.
        world.behind(insert("reviews", vec![doc! {"_id": 0}])).await;
        world.behind(update("products", doc! {"_id": 1}, doc! {"$set": {"note": "v"}}, &[])).await;
        let of = |name: &'static str, first: bson::Document, second: bson::Document, expected: bool| {
            let (first, second) = (insert("reviews", vec![first]), insert("reviews", vec![second]));
            (name, first, second, expected)
        };
        let looked = || review(1, "look", "nothing");
        let unchanged = || review(2, "update", "v");
        let asked = |id: i32, gives: &str| review(id, "ask", gives);
        let shared = |id: i32, gives: &str| review(id, "share", gives);
        for (name, first, second, expected) in [
            of("two that leave the host alone", looked(), review(3, "look", "nothing"), false),
            of("the same by an update that changes nothing", looked(), unchanged(), false),
            of("an evaluation and a look", asked(3, "none"), looked(), true),
            of("an evaluation and an update that changes nothing", asked(3, "none"), unchanged(), true),
            of("an evaluation that changes nothing and one that does", asked(3, "=v"), asked(4, "=w"), true),
            of("an evaluation and an update", asked(3, "=w"), review(4, "update", "x"), true),
            // The update takes the host as it is: it may come before or behind.
            of("an evaluation that changes nothing and an update", asked(3, "=v"), review(4, "update", "x"), false),
            of("two that come and are not among the first", shared(3, "none"), shared(4, "none"), false),
            of("two that come and are the first", shared(3, "=x"), shared(4, "=y"), true),
            of("the same where one finds its value there", shared(3, "=v"), shared(4, "=y"), true),
            of("the same where both do", shared(3, "=v"), shared(4, "=v"), true),
            of("one that comes and an evaluation", shared(3, "none"), asked(4, "none"), true),
            of(
                "a part that a child comes to and leaves",
                review_about(3, "share", "x", "none"),
                review_about(4, "ask", "x", "none"),
                true,
            ),
            of("two parts", review_about(3, "ask", "x", "none"), review_about(4, "ask", "y", "none"), false),
            of("a part that stays and the whole", review_about(3, "share", "x", "none"), asked(4, "none"), true),
        ] {
            assert_eq!(conflict(&world, &first, &second, name).await, expected, "{name}");
        }
    });
}

/// Evidence 4, for every way in which a change may leave no trace in a host.
#[test]
fn who_makes_a_host_meets_who_did_not_find_it() {
    let world = world("", State::On);
    run(async {
        world.did(insert("products", vec![doc! {"_id": 1}])).await;
        // A collection that is made meanwhile would be a conflict of its own.
        world.behind(insert("reviews", vec![doc! {"_id": 0}])).await;
        let made = insert("products", vec![doc! {"_id": 9}]);
        for (does, gives) in
            [("update", "x"), ("look", "x"), ("look", "nothing"), ("ask", "x"), ("share", "none"), ("share", "x")]
        {
            let mut child = doc! {"_id": 1, "productId": 9, "does": does, "gives": gives};
            assert!(conflict(&world, &made, &insert("reviews", vec![child.clone()]), does).await, "{does} {gives}");
            child.insert("about", "part");
            assert!(
                conflict(&world, &made, &insert("reviews", vec![child]), does).await,
                "{does} {gives} about a part"
            );
        }
    });
}

/// One transaction does both: it meets nobody but others.
#[test]
fn a_transaction_does_not_meet_itself() {
    let world = world("", State::On);
    run(async {
        world.did(insert("products", vec![doc! {"_id": 1}])).await;
        let mut session = world.begin().await;
        for (id, does, gives) in
            [(1, "look", "nothing"), (2, "share", "none"), (3, "ask", "x"), (4, "share", "=x"), (5, "ask", "y")]
        {
            world.write_at(&mut session, &insert("reviews", vec![review(id, does, gives)])).await.unwrap();
        }
        world.commit(&mut session).await.unwrap();
        assert_eq!(world.field("products", 1, "note").await, Some("y:5".into()));
    });
}
