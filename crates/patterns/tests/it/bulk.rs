//! SEMANTICS R9 and R10: statements that fail, multi-updates in parts.

use crate::harness::*;
use bson::doc;
use document::op::{Insert, WriteOp};

const LIKES: &str = "
  posts:
    computed:
      likeCount: { count: likes, by: postId }
";

fn unordered(op: WriteOp) -> WriteOp {
    match op {
        WriteOp::Insert(insert) => WriteOp::Insert(Insert { ordered: false, ..insert }),
        other => other,
    }
}

fn likes(ids: impl IntoIterator<Item = i32>) -> Vec<bson::Document> {
    ids.into_iter().map(|id| doc! {"_id": id, "postId": 1}).collect()
}

#[test]
fn statements_before_a_failure_stay_and_an_unordered_batch_goes_on() {
    let world = World::new(LIKES);
    run(async {
        world.did(insert("posts", vec![doc! {"_id": 1}])).await;
        world.did(insert("likes", likes([3, 6]))).await;
        let written = world.write(insert("likes", likes(0..10))).await.unwrap();
        assert_eq!((written.n, written.errors.len(), written.errors[0].index), (3, 1, 3));
        assert_eq!(written.errors[0].error.code().number(), 11000);
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(5.into()));
        let written = world.write(unordered(insert("likes", likes(0..10)))).await.unwrap();
        let failed: Vec<usize> = written.errors.iter().map(|error| error.index).collect();
        assert_eq!((written.n, failed), (5, vec![0, 1, 2, 3, 6]));
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(10.into()));
        world.check().await;
    });
}

#[test]
fn large_batches_and_multi_updates_run_in_parts() {
    let world = World::new(LIKES);
    run(async {
        world.did(insert("posts", vec![doc! {"_id": 1}, doc! {"_id": 2}])).await;
        assert_eq!(world.did(insert("likes", likes(0..1_700))).await.n, 1_700);
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(1_700.into()));
        let moved = update("likes", doc! {"_id": {"$gte": 100}}, doc! {"$set": {"postId": 2}}, &["multi"]);
        let written = world.did(moved).await;
        assert_eq!((written.n, written.modified), (1_600, 1_600));
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(100.into()));
        assert_eq!(world.did(delete("likes", doc! {"_id": {"$lt": 600}}, true)).await.n, 600);
        world.check().await;
    });
}

/// As MongoDB: the documents before the failing one stay changed, and the reply says nothing of them.
#[test]
fn a_multi_update_that_fails_keeps_what_it_did() {
    let world = World::new(LIKES);
    run(async {
        world.did(insert("posts", vec![doc! {"_id": 1}, doc! {"_id": 2}])).await;
        let mut documents = likes(0..10);
        documents[6].insert("postId", "seven");
        world.did(insert("likes", documents)).await;
        let written = world.write(update("likes", doc! {}, doc! {"$inc": {"postId": 1}}, &["multi"])).await.unwrap();
        assert_eq!((written.n, written.errors.len()), (0, 1));
        assert_eq!(written.errors[0].error.code().number(), 14);
        assert_eq!(world.field("posts", 2, "likeCount").await, Some(6.into()));
        world.check().await;
    });
}

#[test]
fn several_statements_of_a_command_may_change_one_document() {
    run(async {
        // Two levels of rules on the host: what the first puts into it is there when the second looks.
        let world = World::new(
            "
  users:
    computed:
      posts: { count: posts, by: userId }
      weight: { sum: weight, from: posts, by: userId }
      likes: { sum: likeCount, from: posts, by: userId }
      score: { expr: { $add: [$posts, $likes] } }
  posts:
    extended_reference:
      user: { from: users, by: userId, fields: [name, score] }
    computed:
      likeCount: { count: likes, by: postId }
",
        );
        world.did(insert("posts", vec![doc! {"_id": 1, "userId": "u", "weight": 3}])).await;
        world.did(insert("likes", vec![doc! {"_id": 1, "postId": 1}, doc! {"_id": 2, "postId": 2}])).await;
        let twice = |id: bson::Bson, first: bson::Document, second: bson::Document| {
            let second = doc! {"$set": second};
            vec![
                statement(doc! {"_id": id.clone()}, first, &["upsert"]),
                statement(doc! {"_id": id}, second, &["upsert"]),
            ]
        };
        world.did(updates("users", twice("u".into(), doc! {"name": "a"}, doc! {"name": "b"}), true)).await;
        world.check().await;
        assert_eq!(world.field("users", "u", "weight").await, Some(3.into()));
        world
            .did(updates("posts", twice(2.into(), doc! {"userId": "u", "weight": 4}, doc! {"userId": "v"}), true))
            .await;
        world.check().await;
        world
            .did(updates("posts", twice(2.into(), doc! {"userId": "u", "weight": 5}, doc! {"weight": 6}), false))
            .await;
        world.check().await;
        assert_eq!(world.field("users", "u", "weight").await, Some(9.into()));
    });
}

/// Both sides of a link: a child's key, and a host's reference.
#[test]
fn a_statement_that_writes_an_array_of_keys_fails_whatever_comes_behind_it() {
    const COPIES: &str = "
  likes:
    extended_reference:
      post: { from: posts, by: postId, fields: [title] }
";
    for rules in [LIKES, COPIES] {
        for ordered in [true, false] {
            let world = World::new(rules);
            run(async {
                world.did(insert("posts", vec![doc! {"_id": 1, "title": "a"}, doc! {"_id": 2, "title": "b"}])).await;
                world.did(insert("likes", likes(0..3))).await;
                let to = |id: i32, post: bson::Bson| statement(doc! {"_id": id}, doc! {"$set": {"postId": post}}, &[]);
                let statements = vec![to(1, 2.into()), to(0, bson::bson!([1, 2])), to(0, 2.into()), to(2, 2.into())];
                let written = world.write(updates("likes", statements, ordered)).await.unwrap();
                let failed: Vec<(usize, i32)> =
                    written.errors.iter().map(|error| (error.index, error.error.code().number())).collect();
                assert_eq!((written.n, failed), (if ordered { 1 } else { 3 }, vec![(1, 2)]), "{rules}");
                let expected = if ordered { 1 } else { 2 };
                assert_eq!(world.field("likes", 0, "postId").await, Some(expected.into()));
                world.check().await;
            });
        }
    }
}
