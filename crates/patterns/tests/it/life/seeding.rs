//! Rules added to, changed in and removed from a collection that clients write to.

use super::village::{COUNT, SUM, Village, declared, told};
use crate::harness::{delete, insert, run};
use bson::{Bson, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_rule_is_seeded_and_kept_from_then_on() {
    run(async {
        let village = Village::new().await;
        village.fill(10, 95).await;
        let plan = village.ask("plan", doc! { "declaration": declared(COUNT) }).await.unwrap();
        let kinds: Vec<String> = steps(&plan).iter().map(|step| step.get_str("kind").unwrap().to_owned()).collect();
        assert_eq!(kinds, ["index", "seed"]);
        village.apply(COUNT).await.unwrap();
        assert_eq!(village.states().await, [("products.reviewCount".to_owned(), "on".to_owned())]);
        assert_eq!(village.find("products", doc! { "_id": 4 }).await, [doc! { "_id": 4, "reviewCount": 10 }]);
        assert_eq!(village.find("products", doc! { "_id": 7 }).await, [doc! { "_id": 7, "reviewCount": 9 }]);
        assert_eq!(village.assert_clean().await, 10);
        village.write(insert("reviews", vec![doc! { "_id": 1000, "productId": 7 }])).await;
        village.write(delete("reviews", doc! { "productId": 4 }, true)).await;
        assert_eq!(village.find("products", doc! { "_id": 7 }).await, [doc! { "_id": 7, "reviewCount": 10 }]);
        assert_eq!(village.find("products", doc! { "_id": 4 }).await, [doc! { "_id": 4, "reviewCount": 0 }]);
        let again = village.ask("plan", doc! { "declaration": declared(COUNT) }).await.unwrap();
        assert_eq!(steps(&again), Vec::<bson::Document>::new());
        // The catalog remembers.
        let village = village.reopen().await;
        village.write(insert("reviews", vec![doc! { "_id": 1001, "productId": 7 }])).await;
        assert_eq!(village.find("products", doc! { "_id": 7 }).await, [doc! { "_id": 7, "reviewCount": 11 }]);
        village.assert_clean().await;
        village.close().await;
    });
}

fn steps(plan: &bson::Document) -> Vec<bson::Document> {
    plan.get_array("steps").unwrap().iter().map(|step| step.as_document().unwrap().clone()).collect()
}

#[test]
fn ids_of_all_types_are_seeded() {
    run(async {
        let village = Village::new().await;
        let ids = [Bson::Int32(1), "x".into(), Bson::Boolean(true), doc! { "a": 1 }.into(), Bson::MaxKey, Bson::MinKey];
        for id in &ids {
            village.behind(insert("products", vec![doc! { "_id": id }])).await;
            village.behind(insert("reviews", vec![doc! { "productId": id }])).await;
        }
        village.apply(COUNT).await.unwrap();
        for product in village.find("products", doc! {}).await {
            assert_eq!(product.get_i32("reviewCount").ok(), Some(1), "{product}");
        }
        assert_eq!(village.assert_clean().await, 6);
        village.close().await;
    });
}

#[test]
fn seeding_ends_under_load_without_gap_or_double_count() {
    run(async {
        for rules in [COUNT, SUM] {
            let village = Village::new().await;
            village.fill(700, 3_000).await;
            let stop = Arc::new(AtomicBool::new(false));
            let clients = village.clients(0..4, 700, &stop);
            village.apply(rules).await.unwrap();
            stop.store(true, Ordering::Relaxed);
            for client in clients {
                assert!(client.await.unwrap() > 0);
            }
            assert!(village.assert_clean().await >= 700);
            village.close().await;
        }
    });
}

#[test]
fn a_changed_rule_is_rebuilt_and_a_missing_one_needs_to_be_said() {
    run(async {
        let village = Village::new().await;
        village.fill(5, 30).await;
        let good = COUNT.replace("by: productId", "by: productId, where: { kind: good }");
        village.apply(COUNT).await.unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let clients = village.clients(0..2, 5, &stop);
        village.apply(&good).await.unwrap();
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.await.unwrap();
        }
        village.assert_clean().await;
        let other = SUM.replace("where: { kind: good }", "lag: 0s");
        let other = other.replace(", lag: 0s", "");
        let error = village.apply(&other).await.unwrap_err();
        assert!(
            told(&error).starts_with("96: nothing was applied: rule products.reviewCount is kept in shop"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("--remove"));
        village.ask("apply", doc! { "declaration": declared(&other), "remove": true }).await.unwrap();
        assert_eq!(village.states().await, [("products.total".to_owned(), "on".to_owned())]);
        // The field of the removed rule stays, as an ordinary one.
        let product = village.find("products", doc! { "_id": 0 }).await.remove(0);
        assert!(product.contains_key("reviewCount") && product.contains_key("total"), "{product}");
        village.assert_clean().await;
        village.close().await;
    });
}

#[test]
fn a_dropped_rule_leaves_what_was_asked_and_can_come_back() {
    run(async {
        let village = Village::new().await;
        village.fill(3, 9).await;
        village.apply(SUM).await.unwrap();
        let product = village.find("products", doc! { "_id": 1 }).await.remove(0);
        assert!(product.contains_key("_pleach"), "{product}");
        village.ask("drop", doc! { "rule": "products.total" }).await.unwrap();
        let product = village.find("products", doc! { "_id": 1 }).await.remove(0);
        assert_eq!(product.keys().collect::<Vec<_>>(), ["_id", "total"]);
        assert_eq!(village.states().await, []);
        village.write(insert("reviews", vec![doc! { "productId": 1, "n": 100, "kind": "good" }])).await;
        village.apply(SUM).await.unwrap();
        village.assert_clean().await;
        village.ask("drop", doc! { "rule": "products.total", "with_data": true }).await.unwrap();
        assert_eq!(village.find("products", doc! { "_id": 1 }).await, [doc! { "_id": 1 }]);
        let error = village.ask("drop", doc! { "rule": "products.total" }).await.unwrap_err();
        assert!(error.message().contains("there is no rule products.total"), "{error}");
        village.close().await;
    });
}

#[test]
fn a_rule_that_cannot_be_evaluated_says_why_and_goes_on_once_mended() {
    run(async {
        let village = Village::new().await;
        village
            .behind(insert("products", vec![doc! { "_id": 1, "price": "dear" }, doc! { "_id": 2, "price": 2 }]))
            .await;
        let rules = "{ products: { computed: { double: { expr: { $multiply: [$price, 2] } } } } }";
        let error = village.apply(rules).await.unwrap_err();
        assert!(error.message().contains("products.double") && error.message().contains("$multiply"), "{error}");
        let status = village.ask("status", doc! {}).await.unwrap();
        let rule = status.get_array("rules").unwrap()[0].as_document().unwrap();
        assert!(rule.get_str("problem").unwrap().contains("$multiply"), "{rule}");
        village.behind(delete("products", doc! { "_id": 1 }, false)).await;
        for _ in 0..100 {
            if village.states().await[0].1 == "on" {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        village.apply(rules).await.unwrap();
        assert_eq!(village.find("products", doc! {}).await, [doc! { "_id": 2, "price": 2, "double": 4 }]);
        village.close().await;
    });
}

#[test]
fn what_a_sum_kept_beside_its_field_goes_when_it_becomes_a_count() {
    run(async {
        let village = Village::new().await;
        village.fill(5, 20).await;
        let total = |what: &str| format!("{{ products: {{ computed: {{ total: {{ {what}, by: productId }} }} }} }}");
        village.apply(&total("sum: n, from: reviews")).await.unwrap();
        assert!(village.find("products", doc! { "_pleach.total": { "$exists": true } }).await.len() == 5);
        village.apply(&total("count: reviews")).await.unwrap();
        assert!(village.find("products", doc! { "_pleach": { "$exists": true } }).await.is_empty());
        assert_eq!(village.find("products", doc! { "total": 4 }).await.len(), 5);
        village.assert_clean().await;
        village.close().await;
    });
}
