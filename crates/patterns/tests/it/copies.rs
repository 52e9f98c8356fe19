//! Extended references on every write path.

use crate::harness::*;
use bson::{Bson, doc};
use document::backend::Session;
use document::op::Modify;

const ORDERS: &str = "
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name, tier] }
";

async fn with_orders(declaration: &str) -> World {
    let world = World::new(declaration);
    world
        .did(insert("customers", vec![doc! {"_id": 1, "name": "Ada", "tier": 1}, doc! {"_id": 2, "name": "Bo"}]))
        .await;
    let order = |id: i32, customer: i32| doc! {"_id": id, "customerId": customer};
    world.did(insert("orders", vec![order(1, 1), order(2, 1), order(3, 2), order(4, 9)])).await;
    world
}

async fn customer(world: &World, order: i32) -> Option<Bson> {
    world.field("orders", order, "customer").await
}

fn copy(name: &str) -> Option<Bson> {
    Some(Bson::Document(doc! {"name": name}))
}

#[test]
fn a_copy_is_filled_refreshed_and_re_pointed() {
    run(async {
        let world = with_orders(ORDERS).await;
        assert_eq!(customer(&world, 1).await, Some(doc! {"name": "Ada", "tier": 1}.into()));
        assert_eq!(customer(&world, 4).await, None);
        world
            .did(update("customers", doc! {"_id": 1}, doc! {"$set": {"name": "Eva"}, "$unset": {"tier": 1}}, &[]))
            .await;
        assert_eq!(customer(&world, 2).await, copy("Eva"));
        // A source that appears fills what waits for it (R28).
        world.did(insert("customers", vec![doc! {"_id": 9, "name": "Cy"}])).await;
        assert_eq!(customer(&world, 4).await, copy("Cy"));
        let each = [
            update("orders", doc! {"_id": 1}, doc! {"$set": {"customerId": 2}}, &[]),
            update("orders", doc! {"_id": 2}, doc! {"customerId": 2}, &[]),
            update("orders", doc! {"_id": 3}, vec![doc! {"$replaceWith": {"_id": 3, "customerId": 9}}], &[]),
            update("orders", doc! {"_id": 10}, doc! {"$set": {"customerId": 1}}, &["upsert"]),
            update("orders", doc! {"customerId": 2}, doc! {"$set": {"customerId": 1}}, &["multi"]),
            update("orders", doc! {"_id": 1}, doc! {"$unset": {"customerId": 1}}, &[]),
            update("customers", doc! {}, doc! {"$set": {"tier": 5}}, &["multi"]),
            find_and_modify("customers", doc! {"_id": 1}, modify(doc! {"$set": {"name": "Di"}}, false)),
            delete("customers", doc! {"_id": 9}, false),
            find_and_modify("customers", doc! {"_id": 1}, Modify::Remove),
            insert("customers", vec![doc! {"_id": 1, "name": "again"}]),
        ];
        for op in each {
            world.did(op.clone()).await;
            world.check().await;
        }
        assert_eq!(customer(&world, 1).await, None);
        assert_eq!(customer(&world, 2).await, copy("again"));
        assert_eq!(customer(&world, 10).await, copy("again"));
    });
}

/// SEMANTICS R26.
#[test]
fn find_and_modify_shows_the_document_after_all_steps() {
    run(async {
        let world = with_orders(ORDERS).await;
        let mut number = 0;
        for (query, update, upsert, expected) in [
            (
                doc! {"_id": 3},
                doc! {"$set": {"customerId": 1}},
                false,
                doc! {
                    "_id": 3, "customerId": 1, "customer": {"name": "Ada", "tier": 1},
                },
            ),
            (
                doc! {"_id": 3},
                doc! {"customerId": 2},
                false,
                doc! {
                    "_id": 3, "customerId": 2, "customer": {"name": "Bo"},
                },
            ),
            (
                doc! {"_id": 20},
                doc! {"$set": {"customerId": 2}},
                true,
                doc! {
                    "_id": 20, "customerId": 2, "customer": {"name": "Bo"},
                },
            ),
        ] {
            let op = find_and_modify("orders", query, modify(update, upsert));
            number += 1;
            for _sent in 0..2 {
                let mut session = Session { id: Some([1; 16]), retry: Some(number), ..Session::default() };
                let written = world.write_at(&mut session, &op).await.unwrap();
                let shown = bson::Document::try_from(&written.document.unwrap()).unwrap();
                assert_eq!(shown, expected);
            }
        }
        world.check().await;
    });
}

#[test]
fn a_deleted_source_is_kept_unset_refused_or_takes_its_hosts_along() {
    run(async {
        let world = with_orders(ORDERS).await;
        world.did(delete("customers", doc! {"_id": 1}, false)).await;
        assert_eq!(customer(&world, 1).await, Some(doc! {"name": "Ada", "tier": 1}.into()));

        let world = with_orders(&declared_policy("unset")).await;
        world.did(delete("customers", doc! {"_id": 1}, false)).await;
        assert_eq!(world.one("orders", 1).await, doc! {"_id": 1, "customerId": 1});
        world.check().await;

        let world = with_orders(&declared_policy("reject")).await;
        let (code, message) = world.refused(delete("customers", doc! {"_id": 1}, false)).await;
        assert_eq!(code, 96);
        assert!(message.starts_with("2 documents of orders refer to"), "{message}");
        world.did(delete("orders", doc! {"customerId": 1}, true)).await;
        world.did(delete("customers", doc! {"_id": 1}, false)).await;
        // Of many, those without hosts before the first that has some.
        world.did(insert("customers", vec![doc! {"_id": 0}])).await;
        let written = world.write(delete("customers", doc! {}, true)).await.unwrap();
        assert_eq!((written.n, written.errors[0].error.code().number()), (0, 96));
        assert_eq!(world.all("customers").await, [doc! {"_id": 2, "name": "Bo"}]);

        let world = with_orders(&declared_policy("cascade")).await;
        assert_eq!(world.did(delete("customers", doc! {"_id": 1}, false)).await.n, 1);
        assert_eq!(world.all("orders").await.len(), 2);
        world.check().await;
    });
}

fn declared_policy(policy: &str) -> String {
    ORDERS.replace("tier] }", &format!("tier], when_deleted: {policy} }}"))
}

#[test]
fn a_frozen_copy_stays_as_it_was_taken() {
    run(async {
        let world = with_orders(&ORDERS.replace("tier] }", "tier], when_changed: keep }")).await;
        world.did(update("customers", doc! {"_id": 2}, doc! {"$set": {"name": "New"}}, &[])).await;
        assert_eq!(customer(&world, 3).await, copy("Bo"));
        world.did(update("orders", doc! {"_id": 3}, doc! {"customerId": 2, "x": 1}, &[])).await;
        assert_eq!(customer(&world, 3).await, copy("Bo"));
        world.did(update("orders", doc! {"_id": 1}, doc! {"$set": {"customerId": 2}}, &[])).await;
        assert_eq!(customer(&world, 1).await, copy("New"));
        world.did(insert("customers", vec![doc! {"_id": 9, "name": "Cy"}])).await;
        assert_eq!(customer(&world, 4).await, copy("Cy"));
    });
}

/// SEMANTICS R29: copies of copies, sums of copies, expressions over both.
#[test]
fn a_derived_change_is_a_change_for_the_next_rule() {
    let world = World::new(
        "
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [region] }
    computed:
      total: { sum: amount, from: lines, by: orderId }
      doubled: { expr: { $multiply: [$total, 2] } }
  customers:
    extended_reference:
      region: { from: regions, by: regionId, fields: [name, rate] }
    computed:
      turnover: { sum: doubled, from: orders, by: customerId }
  regions:
    computed:
      size: { count: customers, by: regionId }
",
    );
    run(async {
        world
            .did(insert("regions", vec![doc! {"_id": 1, "name": "north", "rate": 1}, doc! {"_id": 2, "name": "south"}]))
            .await;
        world.did(insert("customers", vec![doc! {"_id": 1, "regionId": 1}])).await;
        world.did(insert("orders", vec![doc! {"_id": 1, "customerId": 1}])).await;
        world.did(insert("lines", vec![doc! {"_id": 1, "orderId": 1, "amount": 4}])).await;
        assert_eq!(
            world.one("orders", 1).await,
            doc! {
                "_id": 1, "customerId": 1, "customer": {"region": {"name": "north", "rate": 1}},
                "total": 4, "_pleach": world.one("orders", 1).await.get_document("_pleach").unwrap(), "doubled": 8,
            }
        );
        assert_eq!(world.field("customers", 1, "turnover").await, Some(8.into()));
        for op in [
            update("regions", doc! {"_id": 1}, doc! {"$set": {"name": "NORTH"}}, &[]),
            update("lines", doc! {"_id": 1}, doc! {"$inc": {"amount": 3}}, &[]),
            update("customers", doc! {"_id": 1}, doc! {"$set": {"regionId": 2}}, &[]),
            insert("lines", vec![doc! {"_id": 2, "orderId": 1, "amount": 0.5}]),
            delete("lines", doc! {"_id": 1}, false),
        ] {
            world.did(op.clone()).await;
            world.check().await;
        }
        assert_eq!(world.field("orders", 1, "customer").await, Some(doc! {"region": {"name": "south"}}.into()));
        assert_eq!(world.field("customers", 1, "turnover").await, Some(1.0.into()));
        assert_eq!(world.field("regions", 2, "size").await, Some(1.into()));
    });
}

/// SEMANTICS R13: more than 1,000 hosts are left to the outbox.
#[test]
fn many_hosts_are_left_to_the_outbox() {
    run(async {
        let world = with_orders(ORDERS).await;
        world.did(insert("orders", (100..1_300).map(|id| doc! {"_id": id, "customerId": 2}).collect())).await;
        world.did(update("customers", doc! {"_id": 2}, doc! {"$set": {"name": "New"}}, &[])).await;
        world.did(update("customers", doc! {"_id": 2}, doc! {"$set": {"name": "Newer"}}, &[])).await;
        assert_eq!(customer(&world, 100).await, copy("Bo"));
        let jobs = world.all("pleach.outbox").await;
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].get("_id"), Some(&doc! {"rule": "orders.customer", "key": 2}.into()));
        assert_eq!(jobs[0].get("gen"), Some(&2_i64.into()));
    });
}

/// Evidence 1: an order is inserted with a copy that is being changed.
#[test]
fn filling_a_copy_and_changing_its_source_conflict() {
    run(async {
        for fill_first in [true, false] {
            let world = with_orders(ORDERS).await;
            let (mut filling, mut changing) = (world.begin().await, world.begin().await);
            let fill = insert("orders", vec![doc! {"_id": 50, "customerId": 1}]);
            let change = update("customers", doc! {"_id": 1}, doc! {"$set": {"name": "Eva"}}, &[]);
            let (first, second) =
                if fill_first { (&mut filling, &mut changing) } else { (&mut changing, &mut filling) };
            let (op, other) = if fill_first { (&fill, &change) } else { (&change, &fill) };
            world.write_at(first, op).await.unwrap();
            assert_eq!(world.write_at(second, other).await.unwrap_err().code().number(), 112);
            world.commit(first).await.unwrap();
            world.did(other.clone()).await;
            world.check().await;
        }
    });
}

#[test]
fn an_id_that_is_listed_twice_has_two_copies() {
    run(async {
        let world = World::new(
            "
  orders:
    extended_reference:
      tags: { from: tags, by: tagIds, each: true, fields: [label] }
",
        );
        world.did(insert("tags", vec![doc! {"_id": 1, "label": "a"}, doc! {"_id": 2, "label": "b"}])).await;
        world.did(insert("orders", vec![doc! {"_id": 1, "tagIds": [2, 1]}])).await;
        for (change, labels) in [
            (doc! {"$push": {"tagIds": 1}}, vec!["b", "a", "a"]),
            (doc! {"$set": {"tagIds": [2, 2, 1]}}, vec!["b", "b", "a"]),
            (doc! {"$set": {"tagIds.0": 1}}, vec!["a", "b", "a"]),
            (doc! {"$pop": {"tagIds": 1}}, vec!["a", "b"]),
            (doc! {"$set": {"tagIds": []}}, vec![]),
        ] {
            world.did(update("orders", doc! {"_id": 1}, change.clone(), &[])).await;
            let copies: Vec<Bson> = labels.into_iter().map(|label| doc! {"label": label}.into()).collect();
            assert_eq!(world.field("orders", 1, "tags").await, Some(copies.into()), "{change}");
            world.check().await;
        }
    });
}
