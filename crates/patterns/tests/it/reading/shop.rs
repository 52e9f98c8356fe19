//! Bucket collections beside plain ones with the same documents, on the embedded store.

pub(crate) use super::samples::*;

use crate::harness::*;
use bson::Document;
use document::backend::Session;
use document::op::{Namespace, ReadOp};
use patterns::rule::State;
use patterns::shapes::bucket::Bucket;

pub(crate) const DB: &str = "shop";

/// The world with these documents, in buckets and plain.
pub(crate) async fn world(bucket: Bucket, documents: Vec<Document>) -> World {
    let world = World::new("  posts:\n    computed:\n      likes: { count: likes, by: postId }\n");
    fill(&world, &bucket, STORED, PLAIN, documents).await;
    world.layer.set_rules(vec![(rule(bucket), State::On)]).unwrap();
    world
}

/// Stores documents in buckets of one collection and, as they come back, in another.
pub(crate) async fn fill(world: &World, bucket: &Bucket, stored: &str, plain: &str, documents: Vec<Document>) {
    let (buckets, logical) = both_forms(bucket, documents);
    if !buckets.is_empty() {
        world.behind(insert(stored, buckets)).await;
        world.behind(insert(plain, logical)).await;
    }
}

/// Both collections give the same rows: in the same order, or each as often.
pub(crate) async fn same(world: &World, op: impl Fn(Namespace) -> ReadOp, ordered: bool, told: &str) -> Vec<Document> {
    let (mut left, mut right) = (Session::default(), Session::default());
    let found = world.read(&mut left, op(ns(LOGICAL))).await.map_err(|error| told_error(&error));
    let expected = world.read(&mut right, op(ns(PLAIN))).await.map_err(|error| told_error(&error));
    let arranged = |rows: Result<Vec<Document>, String>| {
        rows.map(|mut rows| {
            if !ordered {
                rows.sort_by_key(|row| format!("{row:?}"));
            }
            rows
        })
    };
    let (found, expected) = (arranged(found), arranged(expected));
    assert_eq!(found, expected, "{told}");
    found.unwrap_or_default()
}

fn told_error(error: &document::Error) -> String {
    format!("{} {}", error.code().number(), error.message())
}
