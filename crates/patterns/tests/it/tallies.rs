//! count, sum and avg on every write path.

use crate::harness::*;
use bson::doc;
use document::op::Modify;
use pleach_patterns::rule::State;

const REVIEWS: &str = "
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
      avgRating: { avg: rating, from: reviews, by: productId }
      stars: { sum: rating, from: reviews, by: productId, where: { shown: true } }
";

const LIKES: &str = "
  posts:
    computed:
      likeCount: { count: likes, by: postId }
";

#[test]
fn children_keep_a_count_on_the_parent() {
    let world = World::new(LIKES);
    run(async {
        world.did(insert("posts", vec![doc! {"_id": 1, "text": "a"}, doc! {"_id": 2}])).await;
        assert_eq!(world.one("posts", 1).await, doc! {"_id": 1, "text": "a", "likeCount": 0});
        let likes = (0..5).map(|n| doc! {"_id": n, "postId": 1}).collect();
        assert_eq!(world.did(insert("likes", likes)).await.n, 5);
        assert_eq!(world.field("posts", 1, "likeCount").await, Some(5.into()));
        world.did(update("likes", doc! {"_id": 0}, doc! {"$set": {"postId": 2}}, &[])).await;
        world.did(delete("likes", doc! {"_id": 1}, false)).await;
        world.did(delete("likes", doc! {"_id": {"$gt": 3}}, true)).await;
        assert_eq!(
            world.all("posts").await,
            [doc! {"_id": 1, "text": "a", "likeCount": 2}, doc! {"_id": 2, "likeCount": 1},]
        );
        world.check().await;
    });
}

#[test]
fn a_parent_that_comes_later_counts_the_children_that_wait_for_it() {
    let world = World::new(LIKES);
    run(async {
        world.did(insert("likes", vec![doc! {"_id": 1, "postId": 7}, doc! {"_id": 2, "postId": 7}])).await;
        world.did(insert("posts", vec![doc! {"_id": 7}])).await;
        assert_eq!(world.one("posts", 7).await, doc! {"_id": 7, "likeCount": 2});
        world.did(delete("posts", doc! {"_id": 7}, false)).await;
        world.did(delete("likes", doc! {"_id": 1}, false)).await;
        world.did(update("posts", doc! {"_id": 7}, doc! {"$set": {"x": 1}}, &["upsert"])).await;
        assert_eq!(world.one("posts", 7).await, doc! {"_id": 7, "x": 1, "likeCount": 1});
        world.check().await;
    });
}

#[test]
fn every_write_path_keeps_counts_sums_and_averages() {
    let world = World::new(REVIEWS);
    run(async {
        world.did(insert("products", (1..4).map(|id| doc! {"_id": id}).collect())).await;
        let review = |id: i32, product: i32, rating: f64| {
            doc! {"_id": id, "productId": product, "rating": rating, "shown": id % 2 == 0}
        };
        world.did(insert("reviews", (0..20).map(|n| review(n, n % 3 + 1, 0.1 * f64::from(n))).collect())).await;
        world.check().await;
        let each = [
            update("reviews", doc! {"_id": 3}, doc! {"$inc": {"rating": 0.7}}, &[]),
            update("reviews", doc! {"_id": 4}, doc! {"$set": {"productId": 2, "shown": false}}, &[]),
            update("reviews", doc! {"_id": 5}, doc! {"productId": 3, "rating": 4, "shown": true}, &[]),
            update("reviews", doc! {"_id": 6}, vec![doc! {"$set": {"rating": {"$add": ["$rating", 1]}}}], &[]),
            update("reviews", doc! {"_id": 7}, vec![doc! {"$replaceWith": {"_id": 7, "productId": 1}}], &[]),
            update("reviews", doc! {"_id": 40}, doc! {"$set": {"productId": 1, "rating": 5}}, &["upsert"]),
            update("reviews", doc! {"productId": 1}, doc! {"$mul": {"rating": 2}}, &["multi"]),
            update("reviews", doc! {"productId": 2}, doc! {"$set": {"productId": 3}}, &["multi"]),
            update("reviews", doc! {"_id": 8}, doc! {"$unset": {"productId": ""}}, &[]),
            update("reviews", doc! {"_id": 8}, doc! {"$set": {"productId": null}}, &[]),
            delete("reviews", doc! {"_id": 9}, false),
            delete("reviews", doc! {"productId": 3, "rating": {"$gt": 1}}, true),
            find_and_modify("reviews", doc! {"_id": 10}, modify(doc! {"$set": {"rating": 9}}, false)),
            find_and_modify("reviews", doc! {"_id": 50}, modify(doc! {"productId": 2, "rating": 3}, true)),
            find_and_modify("reviews", doc! {"productId": 1}, Modify::Remove),
            delete("reviews", doc! {}, true),
        ];
        for op in each {
            world.did(op.clone()).await;
            world.check().await;
        }
        let product = world.one("products", 1).await;
        assert_eq!(product.get("reviewCount").zip(product.get("stars")), Some((&0.into(), &0.into())));
        assert_eq!(product.get("avgRating"), Some(&bson::Bson::Null));
    });
}

/// SEMANTICS R2: before seeding comes to a host, nothing is added to it.
#[test]
fn hosts_ahead_of_seeding_are_left_alone() {
    let world = World::new(LIKES);
    run(async {
        world.declare(LIKES, |_| State::Seeding { position: Some(2.into()) });
        world.behind(insert("posts", vec![doc! {"_id": 1, "likeCount": 0}, doc! {"_id": 2}])).await;
        world.did(insert("likes", vec![doc! {"postId": 1}, doc! {"postId": 2}])).await;
        assert_eq!(world.all("posts").await, [doc! {"_id": 1, "likeCount": 1}, doc! {"_id": 2}]);
        world.did(insert("posts", vec![doc! {"_id": 3}])).await;
        assert_eq!(world.one("posts", 3).await, doc! {"_id": 3, "likeCount": 0});
    });
}
