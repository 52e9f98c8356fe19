//! SEMANTICS R12: many writers of one host's children.

use crate::harness::*;
use bson::doc;
use std::sync::Arc;

const LIKES: &str = "
  posts:
    computed:
      likeCount: { count: likes, by: postId }
";

#[test]
fn writers_of_one_host_share_transactions_and_all_are_counted() {
    let world = Arc::new(World::new(LIKES));
    run(async {
        world.did(insert("posts", vec![doc! {"_id": 1}])).await;
        let mut tasks = Vec::new();
        for writer in 0..32 {
            let world = world.clone();
            tasks.push(tokio::spawn(async move {
                for number in 0..20 {
                    let id = writer * 100 + number;
                    let like = |id: i32| insert("likes", vec![doc! {"_id": id, "postId": 1}]);
                    world.did(like(id)).await;
                    match number % 4 {
                        // One that fails among others.
                        0 => assert_eq!(world.refused(like(id)).await.0, 11000),
                        1 => drop(world.did(delete("likes", doc! {"_id": id}, false)).await),
                        2 => {
                            let many = (0..3).map(|extra| doc! {"_id": id * 10 + extra + 100_000, "postId": 1});
                            world.did(insert("likes", many.collect())).await;
                        }
                        _ => {}
                    }
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(world.field("posts", 1, "likeCount").await, Some((32 * (20 - 5 + 15)).into()));
        world.check().await;
    });
}

/// Who fills copies of a source makes way for who changes it.
#[test]
fn a_source_is_changed_while_many_take_copies_of_it() {
    let world = Arc::new(World::new(
        "
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name] }
",
    ));
    run(async {
        world.did(insert("customers", vec![doc! {"_id": 1, "name": "0"}])).await;
        let mut tasks = Vec::new();
        for writer in 0..16 {
            let world = world.clone();
            tasks.push(tokio::spawn(async move {
                for number in 0..30 {
                    world.did(insert("orders", vec![doc! {"_id": writer * 100 + number, "customerId": 1}])).await;
                }
            }));
        }
        for number in 1..=10 {
            let change = doc! {"$set": {"name": number.to_string()}};
            world.did(update("customers", doc! {"_id": 1}, change, &[])).await;
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(world.field("orders", 0, "customer").await, Some(doc! {"name": "10"}.into()));
        world.check().await;
    });
}
