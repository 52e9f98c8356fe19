//! Deferred work: rules with lag, and changes that concern many.

use super::village::Village;
use crate::harness::{delete, insert, run, update};
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

const CUSTOMER: &str =
    "{ orders: { extended_reference: { customer: { from: customers, by: customerId, fields: [name] } } } }";

async fn many_orders(orders: i32) -> Village {
    let village = Village::new().await;
    village
        .behind(insert("customers", vec![doc! { "_id": 1, "name": "old" }, doc! { "_id": 2, "name": "other" }]))
        .await;
    let order = |id: i32| doc! { "_id": id, "customerId": if id % 50 == 0 { 2 } else { 1 } };
    village.behind(insert("orders", (0..orders).map(order).collect())).await;
    village.apply(CUSTOMER).await.unwrap();
    village
}

async fn drained(village: &Village) {
    for _ in 0..600 {
        if village.find("pleach.outbox", doc! {}).await.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the outbox does not empty: {:?}", village.find("pleach.outbox", doc! {}).await);
}

#[test]
fn a_change_that_concerns_many_spreads_in_batches() {
    run(async {
        let village = many_orders(1_600).await;
        village.assert_clean().await;
        for name in ["new", "newer", "newest"] {
            let change = doc! { "$set": { "name": name } };
            village.write(update("customers", doc! { "_id": 1 }, change, &[])).await;
            // What is on its way is no drift.
            village.assert_clean().await;
        }
        drained(&village).await;
        let of = |name: &str| doc! { "customer.name": name };
        assert_eq!(village.find("orders", of("newest")).await.len(), 1_568);
        assert_eq!(village.find("orders", of("other")).await.len(), 32);
        village.assert_clean().await;
        village.close().await;
    });
}

#[test]
fn a_job_goes_on_after_a_restart_and_by_another_worker() {
    run(async {
        let village = many_orders(1_600).await;
        village.life.close().await;
        village.write(update("customers", doc! { "_id": 1 }, doc! { "$set": { "name": "new" } }, &[])).await;
        assert_eq!(village.find("pleach.outbox", doc! {}).await.len(), 1);
        assert_eq!(village.find("orders", doc! { "customer.name": "old" }).await.len(), 1_568);
        let village = village.reopen().await;
        // A second worker beside the first.
        village.life.start().await.unwrap();
        drained(&village).await;
        assert_eq!(village.find("orders", doc! { "customer.name": "new" }).await.len(), 1_568);
        village.assert_clean().await;
        village.close().await;
    });
}

#[test]
fn a_job_deletes_with_the_source_only_what_referred_to_it_then() {
    run(async {
        let village = Village::new().await;
        let each = "{ orders: { extended_reference: { customer: { from: customers, by: customerId, fields: [name], when_deleted: cascade, lag: 1s } } }, \
                      teams: { extended_reference: { members: { from: customers, by: memberIds, each: true, fields: [name], when_deleted: cascade, lag: 1s } } } }";
        village.apply(each).await.unwrap();
        village.write(insert("customers", vec![doc! { "_id": 1, "name": "a" }, doc! { "_id": 2 }])).await;
        drained(&village).await;
        let order = |id: i32| doc! { "_id": id, "customerId": id };
        village.write(insert("orders", vec![order(1), order(2)])).await;
        village.write(insert("teams", vec![doc! { "_id": 1, "memberIds": [2, 1] }])).await;
        village.write(delete("customers", doc! {}, true)).await;
        // Their sources are gone, and not yet those that went with them.
        let late = |id: i32| doc! { "_id": 10 + id, "customerId": id };
        village.write(insert("orders", vec![late(1), late(2)])).await;
        village.write(insert("teams", vec![doc! { "_id": 2, "memberIds": [1, 2] }])).await;
        assert_eq!(village.find("orders", doc! {}).await.len(), 4);
        drained(&village).await;
        assert_eq!(village.find("orders", doc! {}).await, [late(1), late(2)]);
        let left = village.find("teams", doc! {}).await;
        assert_eq!(left, [doc! { "_id": 2, "memberIds": [1, 2], "members": [bson::Bson::Null, bson::Bson::Null] }]);
        village.assert_clean().await;
        village.close().await;
    });
}
