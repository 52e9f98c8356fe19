//! What is read, fenced and written: one read of all hosts, one of all questions, one update per host.

use super::scripted::{put_in_force, world};
use super::{review, review_about};
use crate::harness::*;
use bson::{Bson, doc};
use document::backend::{Backend, Session};
use document::op::{Explained, Verbosity, WriteOp};
use pleach_patterns::rule::State;
use std::sync::Arc;

/// Beside the note.
const COUNT: &str = "      reviewCount: { count: reviews, by: productId }\n";

async fn explained(world: &World, op: &WriteOp) -> bson::Document {
    let (op, verbosity) = (Explained::Write(op.clone()), Verbosity::QueryPlanner);
    let told = world.layer.explain(&mut Session::default(), &context(), op, verbosity).await.unwrap();
    bson::Document::try_from(&told).unwrap().get_document("pleach").unwrap().clone()
}

/// The steps as `kind collection`, and the fences as `mode key`.
pub(super) async fn plan(world: &World, op: &WriteOp) -> (Vec<String>, Vec<String>) {
    let told = explained(world, op).await;
    let all = |name: &str| told.get_array(name).unwrap().iter().map(|one| one.as_document().unwrap().clone());
    let step = |step: bson::Document| {
        let collection = step.get_str("namespace").unwrap().trim_start_matches("shop.").to_owned();
        format!("{} {collection}", step.get_str("kind").unwrap())
    };
    let fence = |fence: bson::Document| format!("{} {}", fence.get_str("mode").unwrap(), fence.get("key").unwrap());
    (all("steps").map(step).collect(), all("fences").map(fence).collect())
}

#[test]
fn a_look_that_changes_nothing_leaves_a_shared_fence_and_the_host_alone() {
    let world = world("", State::On);
    run(async {
        world.did(insert("products", vec![doc! {"_id": 1}])).await;
        let op = insert("reviews", vec![review(1, "look", "nothing")]);
        let (steps, fences) = plan(&world, &op).await;
        assert_eq!((steps, fences), (vec!["write reviews".into(), "read products".into()], vec!["shared 1".into()]));
        world.did(op).await;
        assert_eq!(world.one("products", 1).await, doc! {"_id": 1, "note": 0});
        // And one that changes something is a delta on the host, without a fence.
        let op = insert("reviews", vec![review(2, "look", "seen")]);
        let (steps, fences) = plan(&world, &op).await;
        assert_eq!(steps, ["write reviews", "read products", "derived products"]);
        assert_eq!(fences, Vec::<String>::new());
        world.did(op).await;
        assert_eq!(world.one("products", 1).await, doc! {"_id": 1, "note": "seen"});
        // A host that is not there is against who makes it meanwhile.
        let op = insert("reviews", vec![doc! {"_id": 3, "productId": 9, "does": "look", "gives": "seen"}]);
        let (steps, fences) = plan(&world, &op).await;
        assert_eq!((steps.len(), fences), (2, vec!["shared 9".into()]));
    });
}

#[test]
fn a_look_that_asks_and_a_count_are_one_statement_on_the_host() {
    let world = world(COUNT, State::On);
    run(async {
        world.did(insert("products", vec![doc! {"_id": 1}, doc! {"_id": 2}])).await;
        let op = insert("reviews", vec![review(1, "look", "ask"), review(2, "update", "")]);
        let (steps, fences) = plan(&world, &op).await;
        assert_eq!(steps, ["write reviews", "read products", "derived products"], "together it is no question");
        assert_eq!(fences, Vec::<String>::new());
        let op = insert("reviews", vec![review(1, "look", "ask")]);
        let (steps, fences) = plan(&world, &op).await;
        assert_eq!(steps, ["write reviews", "read products", "read reviews", "derived products"]);
        assert_eq!(fences, ["exclusive 1"]);
        world.did(op).await;
        assert_eq!(world.one("products", 1).await, doc! {"_id": 1, "note": "ask:1", "reviewCount": 1});
        // The host is written by the count: what the look left alone needs no fence … but is not told from it.
        let op = insert("reviews", vec![review(2, "look", "nothing")]);
        let (steps, fences) = plan(&world, &op).await;
        assert_eq!((steps.len(), fences), (3, vec!["shared 1".into()]));
    });
}

#[test]
fn the_effects_of_a_bulk_on_one_key_are_one_question() {
    let world = world(COUNT, State::On);
    run(async {
        world.did(insert("products", vec![doc! {"_id": 1}, doc! {"_id": 2}])).await;
        let other = doc! {"_id": 5, "productId": 2, "does": "ask", "gives": "d"};
        let reviews = vec![review(1, "update", "a"), review(2, "look", "b"), review(3, "ask", "c"), other];
        let op = insert("reviews", reviews);
        let (steps, fences) = plan(&world, &op).await;
        assert_eq!(steps, ["write reviews", "read reviews", "derived products"], "all questions are one read");
        assert_eq!(fences, ["exclusive 1", "exclusive 2"]);
        world.did(op).await;
        assert_eq!(world.field("products", 1, "note").await, Some("a+b+c:3".into()));
        assert_eq!(world.field("products", 2, "note").await, Some("d:1".into()));
        // About parts: one question each, fenced by key and part; the stronger mode goes for both.
        let reviews = vec![
            review_about(11, "share", "x", "p"),
            review_about(12, "ask", "x", "q"),
            review_about(13, "share", "y", "none"),
        ];
        let op = insert("reviews", reviews.clone());
        let (steps, fences) = plan(&world, &op).await;
        assert_eq!(steps, ["write reviews", "read reviews", "derived products"]);
        let part = |mode: &str, part: &str| format!("{mode} {}", Bson::from(doc! {"key": 1, "about": part}));
        assert_eq!(fences, [part("exclusive", "x"), part("shared", "y")]);
        world.did(op).await;
        assert_eq!(world.field("products", 1, "note").await, Some("p+q:-".into()));
        // One about the whole key swallows them, in the order in which they came.
        world.did(delete("reviews", doc! {"_id": {"$gt": 10}}, true)).await;
        let op = insert("reviews", reviews.into_iter().chain([review(14, "share", "r")]).collect());
        assert_eq!(plan(&world, &op).await.1, ["exclusive 1"]);
        world.did(op).await;
        assert_eq!(world.field("products", 1, "note").await, Some("p+q+none+r:7".into()));
    });
}

/// SEMANTICS R2: seeding comes to these hosts later.
#[test]
fn hosts_ahead_of_seeding_are_neither_looked_at_nor_asked_for() {
    let state = || State::Seeding { position: Some(1.into()) };
    let world = world("", state());
    run(async {
        world.behind(insert("products", vec![doc! {"_id": 0, "sku": "a"}, doc! {"_id": 1, "sku": "b"}])).await;
        for does in ["update", "look", "ask", "share"] {
            let op = insert("reviews", vec![review(1, does, "x")]);
            assert_eq!(plan(&world, &op).await, (vec!["write reviews".into()], vec!["shared 1".into()]), "{does}");
        }
        put_in_force(&world, "sku", "", state());
        for (sku, does, note) in [
            ("a", "look", Some("x")),
            ("a", "ask", Some("x:2")),
            ("b", "look", None),
            ("b", "ask", None),
            ("b", "update", None),
        ] {
            let op = insert("reviews", vec![doc! {"productId": sku, "does": does, "gives": "x"}]);
            let (_, fences) = plan(&world, &op).await;
            assert!(fences.iter().any(|fence| fence.contains(sku)), "{sku} {does}: {fences:?}");
            world.did(op).await;
            let host = world.find("products", doc! {"sku": sku}).await.remove(0);
            assert_eq!(host.get_str("note").ok(), note, "{sku} {does}");
        }
    });
}

/// SEMANTICS R12: whatever inserts share a transaction, the last answer has seen all children.
#[test]
fn many_ask_about_one_host() {
    let world = Arc::new(world("", State::On));
    run(async {
        world.did(insert("products", vec![doc! {"_id": 1}])).await;
        let mut tasks = Vec::new();
        for writer in 0..16 {
            let world = world.clone();
            tasks.push(tokio::spawn(async move {
                for number in 0..5 {
                    let does = if (writer + number) % 2 == 0 { "ask" } else { "share" };
                    world.did(insert("reviews", vec![review(writer * 10 + number, does, "")])).await;
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let note = world.field("products", 1, "note").await.unwrap();
        assert!(note.as_str().unwrap().ends_with(":80"), "{note}");
    });
}

/// A question is asked before hosts go with their source: what it reads holds exactly the changes that it is about.
#[test]
fn what_is_deleted_with_a_source_is_asked_about_by_itself() {
    const NAMED: &str = "
  reviews:
    extended_reference:
      author: { from: users, by: userId, fields: [name], when_deleted: cascade, match: login }
";
    let world = world(NAMED, State::On);
    run(async {
        world.did(insert("products", vec![doc! {"_id": 1}])).await;
        let users = vec![doc! {"_id": 1, "login": "a", "name": "Ada"}, doc! {"_id": 2, "login": "b", "name": "Bea"}];
        world.did(insert("users", users)).await;
        let mut reviews = vec![review(1, "ask", "n"), review(2, "ask", "n")];
        reviews.iter_mut().zip(["a", "b"]).for_each(|(review, login)| drop(review.insert("userId", login)));
        world.did(insert("reviews", reviews)).await;
        assert_eq!(world.field("products", 1, "note").await, Some("n+n:2".into()));
        // One user is gone for its review, the name of the other is copied anew: first one question, then the other.
        let both = vec![
            statement(doc! {"_id": 1}, doc! {"$set": {"login": "c"}}, &[]),
            statement(doc! {"_id": 2}, doc! {"$set": {"name": "Eva"}}, &[]),
        ];
        let op = updates("users", both, true);
        let (steps, _) = plan(&world, &op).await;
        let written = steps.iter().position(|step| step == "derived reviews").unwrap();
        let asked = ["derived reviews", "read reviews", "derived products"];
        assert_eq!(steps[written..], [asked, asked].concat(), "{steps:?}");
        world.did(op).await;
        assert_eq!(world.all("reviews").await.len(), 1);
        assert_eq!(world.field("products", 1, "note").await, Some("n:1".into()));
    });
}
