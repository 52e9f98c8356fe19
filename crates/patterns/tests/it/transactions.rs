//! SEMANTICS R5: the client's own transaction; R1: conflicts in it are the client's.

use crate::harness::*;
use bson::doc;

const LIKES: &str = "
  posts:
    computed:
      likeCount: { count: likes, by: postId }
";

#[test]
fn effects_are_seen_at_once_and_vanish_with_the_transaction() {
    let world = World::new(LIKES);
    run(async {
        world.did(insert("posts", vec![doc! {"_id": 1}])).await;
        let mut session = world.begin().await;
        world.write_at(&mut session, &insert("likes", vec![doc! {"_id": 1, "postId": 1}])).await.unwrap();
        let inside = world.all_at(&mut session, "posts").await;
        assert_eq!(inside, [doc! {"_id": 1, "likeCount": 1}]);
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(0.into()));
        session.transaction.take().unwrap().abort();
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(0.into()));
        let mut session = world.begin().await;
        world.write_at(&mut session, &insert("likes", vec![doc! {"_id": 1, "postId": 1}])).await.unwrap();
        world.write_at(&mut session, &delete("likes", doc! {"_id": 1}, false)).await.unwrap();
        world.write_at(&mut session, &insert("likes", vec![doc! {"_id": 2, "postId": 1}])).await.unwrap();
        world.commit(&mut session).await.unwrap();
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(1.into()));
        world.check().await;
    });
}

#[test]
fn a_conflict_reaches_the_client_only_in_its_own_transaction() {
    let world = World::new(LIKES);
    run(async {
        world.did(insert("posts", vec![doc! {"_id": 1}])).await;
        let mut session = world.begin().await;
        world.write_at(&mut session, &insert("likes", vec![doc! {"_id": 1, "postId": 1}])).await.unwrap();
        let mut second = world.begin().await;
        let like = insert("likes", vec![doc! {"_id": 2, "postId": 1}]);
        let error = world.write_at(&mut second, &like).await.unwrap_err();
        assert_eq!((error.code().number(), error.labels()), (112, &["TransientTransactionError"][..]));
        // Outside a transaction it waits until the other is through.
        let waiting = world.write(like.clone());
        let ending = async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            world.commit(&mut session).await.unwrap();
        };
        let (written, ()) = tokio::join!(waiting, ending);
        assert_eq!(written.unwrap().n, 1);
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(2.into()));
        world.check().await;
    });
}

/// Evidence 4: a parent is created while a child is inserted; with the fence one of them is told to try again.
#[test]
fn creating_a_parent_and_adding_a_child_conflict() {
    let world = World::new(LIKES);
    run(async {
        for parent_first in [true, false] {
            let id = i32::from(parent_first);
            let (mut parent, mut child) = (world.begin().await, world.begin().await);
            let create = insert("posts", vec![doc! {"_id": id}]);
            let add = insert("likes", vec![doc! {"postId": id}]);
            let (first, second) = if parent_first { (&mut parent, &mut child) } else { (&mut child, &mut parent) };
            let (op, other) = if parent_first { (&create, &add) } else { (&add, &create) };
            world.write_at(first, op).await.unwrap();
            let error = world.write_at(second, other).await.unwrap_err();
            assert_eq!(error.code().number(), 112);
            world.commit(first).await.unwrap();
            world.did(other.clone()).await;
            assert_eq!(world.field("posts", id, "likeCount").await, Some(1.into()));
        }
        world.check().await;
    });
}
