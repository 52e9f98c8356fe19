//! A field that is declared when its source is stored in buckets already (SEMANTICS R34).

use crate::harness::{insert, run};
use bson::doc;
use testing::registry::merged;
use testing::shop::review;
use testing::{Living, Opened, World};

const BUCKETS: &str = "reviews:\n  bucket: { into: review_days, time: at, by: [productId], every: day, at_most: 3 }";
const COUNT: &str = "products:\n  computed:\n    reviewCount: { count: reviews, by: productId }";

#[test]
fn a_bucketed_collection_gets_a_field_later() {
    run(async {
        let living = Living::of(World::on(Opened::engine(), "shop"));
        living.set_rules(BUCKETS).await;
        living.rest().await;
        living.did(insert("products", vec![doc! { "_id": 1 }])).await;
        living.did(insert("reviews", (0..7).map(|n| review(n, 1, n, n)).collect())).await;
        living.set_rules(&merged(&[BUCKETS, COUNT])).await;
        living.rest().await;
        assert_eq!(living.field("products", 1, "reviewCount").await, Some(7.into()));
        living.did(insert("reviews", vec![review(8, 1, 8, 8)])).await;
        assert_eq!(living.field("products", 1, "reviewCount").await, Some(8.into()));
        living.assert_clean().await;
    });
}
