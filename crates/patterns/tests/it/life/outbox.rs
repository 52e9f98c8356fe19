//! Deferred work: rules with lag, and changes that concern many.

use super::village::Village;
use crate::harness::{insert, run};
use bson::doc;
use std::time::Duration;

#[test]
fn a_rule_with_lag_is_right_soon_and_what_waits_is_no_drift() {
    run(async {
        let village = Village::new().await;
        village.fill(3, 9).await;
        village
            .apply("{ products: { computed: { followers: { count: follows, by: productId, lag: 1s } } } }")
            .await
            .unwrap();
        for _ in 0..20 {
            village.write(insert("follows", vec![doc! { "productId": 1 }])).await;
        }
        let status = village.ask("status", doc! {}).await.unwrap();
        assert_eq!(status.get_document("outbox").unwrap().get_i64("pending").unwrap(), 1, "{status}");
        assert_eq!(village.find("products", doc! { "_id": 1 }).await, [doc! { "_id": 1, "followers": 0 }]);
        village.assert_clean().await;
        for _ in 0..200 {
            if village.find("pleach.outbox", doc! {}).await.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(village.find("products", doc! { "_id": 1 }).await, [doc! { "_id": 1, "followers": 20 }]);
        assert_eq!(village.find("pleach.outbox", doc! {}).await, Vec::<bson::Document>::new());
        village.assert_clean().await;
        village.close().await;
    });
}
