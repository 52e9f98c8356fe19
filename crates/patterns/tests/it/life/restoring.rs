//! What was there before a rule: kept while it is seeded, given back by `drop --restore`, freed by `forget`.

use super::dying::Dying;
use super::village::{COUNT, Village};
use crate::harness::{delete, insert, run, update};
use bson::{Bson, Document, doc};
use document::backend::{Backend, Session};
use document::op::Capture;
use pleach_patterns::life::relocate::drop::Leaving;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use testing::legacy::{self, NAMES, RULES};
use testing::{Living, Opened, World};

async fn legacy(village: &Village) {
    for (collection, documents) in legacy::documents() {
        village.behind(insert(collection, documents)).await;
    }
}

async fn all(village: &Village, collection: &str) -> Vec<Document> {
    village.find(collection, doc! {}).await
}

async fn restore(village: &Village, rule: &str) -> Document {
    village.ask("drop", doc! { "rule": rule, "restore": true }).await.unwrap()
}

async fn rule(village: &Village, name: &str) -> Document {
    let status = village.ask("status", doc! {}).await.unwrap();
    let rules = status.get_array("rules").unwrap().clone();
    let mut rules = rules.into_iter().filter_map(|rule| rule.as_document().cloned());
    rules.find(|rule| rule.get_str("rule").ok() == Some(name)).unwrap_or_else(|| panic!("{status}"))
}

#[test]
fn every_host_gets_back_what_it_had() {
    run(async {
        let forwards = NAMES.to_vec();
        let backwards: Vec<&str> = NAMES.into_iter().rev().collect();
        for (names, part) in [(forwards, 500), (backwards, 2)] {
            let village = Village::new().await;
            legacy(&village).await;
            let before = all(&village, "orders").await;
            village.life.limit_hosts(part);
            village.overwrite(RULES).await.unwrap();
            assert_ne!(all(&village, "orders").await, before);
            village.assert_clean().await;
            for name in names {
                restore(&village, name).await;
            }
            for (now, before) in all(&village, "orders").await.iter().zip(&before) {
                // In the same order, too.
                assert_eq!(now.to_string(), before.to_string());
            }
            assert_eq!(all(&village, "orders").await, before);
            assert_eq!(all(&village, "pleach.replaced").await, Vec::<Document>::new());
            assert_eq!(all(&village, "pleach.catalog").await, Vec::<Document>::new());
            village.close().await;
        }
    });
}

#[test]
fn a_field_named_as_our_state_and_null_that_rules_share_come_back() {
    const RULES: &str = "{ hosts: {
        extended_reference: { info.customer: { from: customers, by: cid, fields: [name] } },
        computed: { total: { sum: n, from: lines, by: orderId }, info.avg: { avg: n, from: lines, by: orderId } } } }";
    run(async {
        let names = ["hosts.total", "hosts.info.avg", "hosts.info.customer"];
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]] {
            let village = Village::new().await;
            let mut hosts = Vec::new();
            for own in
                [Bson::Null, 5.into(), vec![1].into(), Bson::Array(vec![]), doc! {}.into(), doc! { "a": 1 }.into()]
            {
                let id = i32::try_from(hosts.len()).unwrap();
                // What is neither a document nor null there leaves no room for the fields.
                let info = if matches!(own, Bson::Document(_)) { own.clone() } else { Bson::Null };
                hosts.push(doc! { "_id": id, "_pleach": own, "cid": 1, "info": info, "z": 1 });
            }
            let several = vec![1.into(), doc! { "a": 1 }.into(), vec![2].into(), Bson::Null];
            hosts.push(doc! { "_id": 90, "_pleach": several, "cid": 1, "z": 1 });
            village.behind(insert("hosts", hosts.clone())).await;
            village.behind(insert("customers", vec![doc! { "_id": 1, "name": "Ann" }])).await;
            village
                .behind(insert("lines", (0..9).map(|id| doc! { "_id": id, "orderId": id % 3, "n": id }).collect()))
                .await;
            let refused = village.apply(RULES).await.unwrap_err().to_string();
            assert!(refused.contains("in `_pleach`, and would replace that of 5 documents"), "{refused}");
            village.overwrite(RULES).await.unwrap();
            for at in order {
                restore(&village, names[at]).await;
            }
            // The state was moved behind all other fields (R8), and a client's own field of its name stays there.
            let with_state_last = |mut host: Document| {
                let state = host.remove("_pleach").unwrap();
                host.insert("_pleach", state);
                host.to_string()
            };
            for (now, before) in all(&village, "hosts").await.into_iter().zip(hosts) {
                assert_eq!(with_state_last(now), with_state_last(before), "{order:?}");
            }
            assert_eq!(all(&village, "pleach.replaced").await, Vec::<Document>::new());
            village.close().await;
        }
    });
}

#[test]
fn later_changes_and_other_forms_of_the_rule_do_not_reach_what_is_kept() {
    run(async {
        let village = Village::new().await;
        village.fill(4, 0).await;
        let had = |id: i32, n: Bson| {
            update("products", doc! { "_id": id }, doc! { "$set": { "reviewCount": n, "z": 1 } }, &[])
        };
        village.behind(had(0, Bson::Int32(0))).await;
        village.behind(had(1, Bson::Int32(7))).await;
        let before = all(&village, "products").await;
        village.overwrite(COUNT).await.unwrap();
        let seeded = rule(&village, "products.reviewCount").await.get_document("seeded").unwrap().clone();
        assert_eq!(seeded, doc! { "corrected": 1_i64, "filled": 2_i64, "removed": 0_i64, "left": 1_i64 });
        // A value that was right is kept too: it changes with the children.
        village
            .write(insert("reviews", vec![doc! { "_id": 1, "productId": 0 }, doc! { "_id": 2, "productId": 3 }]))
            .await;
        village.write(insert("products", vec![doc! { "_id": 50 }])).await;
        village
            .overwrite("{ products: { computed: { reviewCount: { sum: n, from: reviews, by: productId } } } }")
            .await
            .unwrap();
        village.overwrite(&COUNT.replace("by: productId", "by: productId, where: { kind: good }")).await.unwrap();
        let kept = rule(&village, "products.reviewCount").await.get_document("kept").unwrap().clone();
        assert_eq!(kept.get_i64("documents").ok(), Some(2), "{kept}");
        let village = village.reopen().await;
        let answer = restore(&village, "products.reviewCount").await;
        assert!(!answer.contains_key("kept"), "{answer}");
        let mut expected = before;
        expected.push(doc! { "_id": 50 });
        assert_eq!(all(&village, "products").await, expected);
        village.close().await;
    });
}

#[test]
fn elements_that_moved_get_back_what_they_had() {
    run(async {
        let village = Village::new().await;
        let items = |names: &[(i32, Option<&str>)]| {
            let item = |(id, old): &(i32, Option<&str>)| match old {
                Some(old) => doc! { "productId": id, "product": { "title": old } },
                None => doc! { "productId": id },
            };
            Bson::Array(names.iter().map(|name| Bson::Document(item(name))).collect())
        };
        let order = doc! { "_id": 1, "items": items(&[(1, Some("a")), (2, Some("b")), (3, None), (1, Some("c"))]) };
        village.behind(insert("orders", vec![order])).await;
        let products = (1..5).map(|id| doc! { "_id": id, "title": format!("t{id}") }).collect();
        village.behind(insert("products", products)).await;
        village.overwrite("{ orders: { extended_reference: { items.product: { from: products, by: items.productId, fields: [title] } } } }").await.unwrap();
        // The first is taken out, one is put in front and one at the end.
        let new = |id: i32| doc! { "productId": id };
        village.write(update("orders", doc! {}, doc! { "$pop": { "items": -1 } }, &[])).await;
        let push = doc! { "$push": { "items": { "$each": [new(4)], "$position": 0 } } };
        village.write(update("orders", doc! {}, push, &[])).await;
        village.write(update("orders", doc! {}, doc! { "$push": { "items": new(1) } }, &[])).await;
        village.assert_clean().await;
        restore(&village, "orders.items.product").await;
        let expected = items(&[(4, None), (2, Some("b")), (3, None), (1, Some("c")), (1, Some("a"))]);
        assert_eq!(all(&village, "orders").await, [doc! { "_id": 1, "items": expected }]);
        village.close().await;
    });
}

#[test]
fn what_is_kept_is_shown_and_freed() {
    run(async {
        let village = Village::new().await;
        village.fill(3, 9).await;
        village.behind(update("products", doc! {}, doc! { "$set": { "reviewCount": 99 } }, &["multi"])).await;
        village.overwrite(COUNT).await.unwrap();
        let kept = rule(&village, "products.reviewCount").await.get_document("kept").unwrap().clone();
        assert_eq!(kept.get_i64("documents").ok(), Some(3));
        assert!(kept.get_i64("bytes").unwrap() > 100, "{kept}");
        // Without --restore it stays, and what is there when the rule is applied again is kept beside it.
        let dropped = village.ask("drop", doc! { "rule": "products.reviewCount" }).await.unwrap();
        assert_eq!(dropped.get_document("kept").ok(), Some(&kept));
        let status = village.ask("status", doc! {}).await.unwrap();
        let gone = status.get_array("kept").unwrap()[0].as_document().unwrap().clone();
        assert_eq!(
            (gone.get_str("rule").ok(), gone.get_i64("documents").ok()),
            (Some("products.reviewCount"), Some(3))
        );
        village.write(update("products", doc! { "_id": 1 }, doc! { "$set": { "reviewCount": 5 } }, &[])).await;
        village.overwrite(COUNT).await.unwrap();
        let both = rule(&village, "products.reviewCount").await.get_document("kept").unwrap().clone();
        assert_eq!(both.get_i64("documents").ok(), Some(6));
        restore(&village, "products.reviewCount").await;
        let counts = |products: Vec<Document>| -> Vec<Option<i32>> {
            products.iter().map(|product| product.get_i32("reviewCount").ok()).collect()
        };
        assert_eq!(counts(all(&village, "products").await), [Some(99); 3]);
        assert_eq!(all(&village, "pleach.replaced").await, Vec::<Document>::new());
        village.overwrite(COUNT).await.unwrap();
        village.ask("drop", doc! { "rule": "products.reviewCount" }).await.unwrap();
        let freed = village.ask("forget", doc! { "rule": "products.reviewCount" }).await.unwrap();
        assert_eq!(freed.get_document("freed").ok(), Some(&kept), "{freed}");
        assert_eq!(all(&village, "pleach.replaced").await, Vec::<Document>::new());
        let status = village.ask("status", doc! {}).await.unwrap();
        assert!(!status.contains_key("kept"), "{status}");
        let error = village.ask("forget", doc! { "rule": "products.reviewCount" }).await.unwrap_err();
        assert!(error.message().contains("nothing is kept of a rule products.reviewCount"), "{error}");
        village.close().await;
    });
}

#[test]
fn nothing_is_taken_away_where_nothing_is_kept() {
    run(async {
        let village = Village::new().await;
        village.fill(3, 9).await;
        village.behind(update("products", doc! { "_id": 1 }, doc! { "$set": { "reviewCount": 99 } }, &[])).await;
        village.overwrite(COUNT).await.unwrap();
        let applied = all(&village, "products").await;
        for (flag, other) in [("with_data", "restore"), ("keep_buckets", "restore"), ("with_data", "keep_buckets")] {
            let both = doc! { "rule": "products.reviewCount", flag: true, other: true };
            let error = village.ask("drop", both).await.unwrap_err();
            assert!(error.message().contains(&format!("'{flag}' and '{other}' contradict")), "{error}");
        }
        // As after a dump that has the catalog and not what is kept.
        let rows = all(&village, "pleach.replaced").await;
        village.behind(delete("pleach.replaced", doc! {}, true)).await;
        let error = village.ask("drop", doc! { "rule": "products.reviewCount", "restore": true }).await.unwrap_err();
        assert!(error.message().contains("of 1 documents"), "{error}");
        village.behind(insert("pleach.replaced", rows)).await;
        village.ask("forget", doc! { "rule": "products.reviewCount" }).await.unwrap();
        let error = village.ask("drop", doc! { "rule": "products.reviewCount", "restore": true }).await.unwrap_err();
        assert!(error.message().contains("freed by `forget`"), "{error}");
        assert_eq!(all(&village, "products").await, applied);
        // A rebuild after that keeps no value of the rule's own.
        village.overwrite(&COUNT.replace("by: productId", "by: productId, where: { kind: good }")).await.unwrap();
        assert_eq!(all(&village, "pleach.replaced").await, Vec::<Document>::new());
        let (op, context) = (insert("pleach.replaced", vec![doc! {}]), crate::harness::context());
        let refused = village.front.write(&mut Session::default(), &context, &op, &Capture::Nothing).await.unwrap_err();
        assert_eq!(refused.code().number(), 73);
        village.close().await;
    });
}

/// Clients change what the rules read and write, while they are seeded; the hosts of the first collection keep what they had.
fn clients(village: &Village, stop: &Arc<AtomicBool>) -> Vec<tokio::task::JoinHandle<()>> {
    let one = |number: i32| {
        let (layer, stop) = (village.front.clone(), stop.clone());
        tokio::spawn(async move {
            let mut made = 0;
            while !stop.load(Ordering::Relaxed) {
                let (id, to) = (1_000 * (number + 1) + made, rand::random_range(0..200));
                let op = match made % 7 {
                    0 => insert("orders", vec![doc! { "_id": id, "customerId": to % 5, "price": 1 }]),
                    1 => update("orders", doc! { "_id": to }, doc! { "$set": { "note": made } }, &[]),
                    2 => {
                        update("customers", doc! { "_id": to % 5 }, doc! { "$set": { "name": format!("n{id}") } }, &[])
                    }
                    3 => insert("lines", vec![doc! { "_id": id, "orderId": to, "n": 1 }]),
                    4 => update("orders", doc! { "_id": to }, doc! { "$set": { "price": id } }, &[]),
                    5 => update("orders", doc! { "_id": to }, doc! { "$set": { "customerId": made % 5 } }, &[]),
                    _ => delete("lines", doc! { "_id": id - 3 }, false),
                };
                let context = crate::harness::context();
                let written = layer.write(&mut Session::default(), &context, &op, &Capture::Nothing).await.unwrap();
                assert!(written.errors.is_empty(), "{:?}", written.errors);
                made += 1;
                tokio::task::yield_now().await;
            }
        })
    };
    (0..3).map(one).collect()
}

const BUSY: &str = "{ orders: {
    extended_reference: { customer: { from: customers, by: customerId, fields: [name] } },
    computed: {
        lines: { count: lines, by: orderId },
        total: { sum: n, from: lines, by: orderId },
        double: { expr: { $multiply: [$price, 2] } } } } }";

fn busy_order(id: i32) -> Document {
    let mut order = doc! { "_id": id, "customerId": id % 5, "price": 1 };
    match id % 4 {
        0 => drop(order.insert("customer", "before")),
        1 => order.extend(doc! { "lines": 70 + id, "total": "x", "double": id }),
        2 => order.extend(doc! { "total": 5, "customer": { "name": "old" }, "lines": null }),
        _ => {}
    }
    order
}

#[test]
fn values_are_kept_and_given_back_under_load() {
    run(async {
        for dropped_early in [false, true] {
            let village = Village::new().await;
            village.behind(insert("orders", (0..200).map(busy_order).collect())).await;
            village.behind(insert("customers", (0..5).map(|id| doc! { "_id": id, "name": "c" }).collect())).await;
            village.life.limit_hosts(3);
            let stop = Arc::new(AtomicBool::new(false));
            let running = clients(&village, &stop);
            village.overwriting(BUSY, !dropped_early).await.unwrap();
            if dropped_early {
                tokio::time::sleep(std::time::Duration::from_millis(60)).await;
            }
            for name in ["orders.total", "orders.customer", "orders.double", "orders.lines"] {
                restore(&village, name).await;
            }
            stop.store(true, Ordering::Relaxed);
            for client in running {
                client.await.unwrap();
            }
            let mut found = 0;
            for order in all(&village, "orders").await {
                let id = order.get_i32("_id").unwrap();
                let had = if id < 200 { busy_order(id) } else { Document::new() };
                for field in ["customer", "lines", "total", "double", "_pleach"] {
                    assert_eq!(order.get(field), had.get(field), "{field} of {order}, early: {dropped_early}");
                }
                found += 1;
            }
            assert!(found > 200, "{found}");
            village.close().await;
        }
    });
}

#[test]
fn wherever_seeding_and_restoring_are_cut_off_every_host_gets_back_what_it_had() {
    run(async {
        let mut tried = 0;
        for after in (5..).step_by(37) {
            let village = Village::new().await;
            legacy(&village).await;
            let before = all(&village, "orders").await;
            let left = Arc::new(AtomicI64::new(after));
            let killer = left.clone();
            let around = |inner| -> Arc<dyn Backend> { Arc::new(Dying { inner, left: killer, shared: false }) };
            let village = Village::open(village.close().await, around).await.unwrap();
            village.life.limit_hosts(4);
            let mut finished = village.overwrite(RULES).await.is_ok();
            for name in NAMES {
                finished &= village.ask("drop", doc! { "rule": name, "restore": true }).await.is_ok();
            }
            left.store(0, Ordering::Relaxed);
            let village = Village::open(village.close().await, |backend| backend).await.unwrap();
            // Sometimes it is dropped while it is still being seeded.
            village.life.limit_hosts(2);
            if after % 2 == 0 {
                village.life.settle("shop").await.unwrap();
            }
            for (name, _) in village.states().await {
                let _gone_already = village.ask("drop", doc! { "rule": name, "restore": true }).await;
            }
            village.life.settle("shop").await.unwrap();
            for (now, before) in all(&village, "orders").await.iter().zip(&before) {
                assert_eq!(now.to_string(), before.to_string(), "after {after}");
            }
            assert_eq!(all(&village, "pleach.replaced").await, Vec::<Document>::new(), "after {after}");
            village.close().await;
            tried += 1;
            if finished {
                break;
            }
        }
        assert!(tried > 8, "{tried}");
    });
}

/// Nothing works in the background: the rule is kept by clients' writes, and its seeding has not begun.
#[test]
fn a_document_that_came_before_seeding_loses_an_expression_again() {
    run(async {
        let living = Living::of(World::on(Opened::engine(), "shop"));
        living.set_rules("{ orders: { computed: { sums.total: { expr: { $add: [$n, 1] } } } } }").await;
        living.did(insert("orders", vec![doc! { "_id": 1, "n": 1 }])).await;
        assert_eq!(living.field("orders", 1, "sums").await, Some(doc! { "total": 2 }.into()));
        let leaving = Leaving { restore: true, ..Leaving::default() };
        living.life.drop_rule(Some("shop"), "orders.sums.total", leaving).await.unwrap();
        living.rest().await;
        assert_eq!(living.one("orders", 1).await, doc! { "_id": 1, "n": 1 });
    });
}

#[test]
fn copies_of_sources_that_are_not_there_go_with_their_rule() {
    run(async {
        let living = Living::of(World::on(Opened::engine(), "shop"));
        let seen = "{ from: products, by: productIds, each: true, fields: [price] }";
        living.set_rules(&format!("{{ baskets: {{ extended_reference: {{ seen: {seen} }} }} }}")).await;
        living.rest().await;
        living.did(insert("baskets", vec![doc! { "_id": 1, "productIds": [5, 0] }])).await;
        assert_eq!(living.field("baskets", 1, "seen").await, Some(vec![Bson::Null, Bson::Null].into()));
        let leaving = Leaving { with_data: true, ..Leaving::default() };
        living.life.drop_rule(Some("shop"), "baskets.seen", leaving).await.unwrap();
        living.rest().await;
        assert_eq!(living.one("baskets", 1).await, doc! { "_id": 1, "productIds": [5, 0] });
    });
}
