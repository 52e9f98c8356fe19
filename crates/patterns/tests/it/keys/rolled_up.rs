//! Roll-ups: the document of a key comes with its first child and goes with its last (SEMANTICS R35).

use super::MONTHS;
use crate::harness::*;
use bson::{Bson, DateTime, doc};
use document::backend::{Backend, Session};
use document::op::Capture;

fn date(text: &str) -> DateTime {
    DateTime::parse_rfc3339_str(text).unwrap()
}

fn order(id: i32, at: &str, region: &str, total: i32) -> bson::Document {
    doc! {"_id": id, "at": date(at), "region": region, "total": total}
}

fn key(month: &str, region: &str) -> bson::Document {
    doc! {"month": date(month), "region": region}
}

/// Every derived value is right, and there are exactly the documents that have children or something of their own.
async fn check(world: &World, own: &[Bson]) {
    world.check().await;
    for month in world.all("months").await {
        let children = month.get_document("_pleach").unwrap().get_document("orders").unwrap();
        let n = children.get("children").and_then(Bson::as_i32).unwrap();
        assert!(n > 0 || own.contains(month.get("_id").unwrap()), "{month}");
    }
}

#[test]
fn documents_come_with_their_first_child_and_go_with_their_last() {
    let world = World::new(MONTHS);
    run(async {
        world
            .did(insert(
                "orders",
                vec![
                    order(1, "2024-02-03T10:00:00Z", "eu", 5),
                    order(2, "2024-02-28T10:00:00Z", "eu", 7),
                    order(3, "2024-02-28T10:00:00Z", "us", 1),
                    doc! {"_id": 4, "at": "never", "region": "eu", "total": 100},
                    doc! {"_id": 5, "at": date("2024-02-28T10:00:00Z"), "region": ["eu"], "total": 100},
                ],
            ))
            .await;
        let february = world.one("months", key("2024-02-01T00:00:00Z", "eu")).await;
        assert_eq!(february.keys().collect::<Vec<_>>(), ["_id", "orders", "revenue", "_pleach"]);
        assert_eq!((february.get("orders"), february.get("revenue")), (Some(&2.into()), Some(&12.into())));
        assert_eq!(world.all("months").await.len(), 2);
        check(&world, &[]).await;
        // One moves to another month, one is changed, one goes.
        world.did(update("orders", doc! {"_id": 3}, doc! {"$set": {"at": date("2024-03-01T00:00:00Z")}}, &[])).await;
        world.did(update("orders", doc! {"_id": 1}, doc! {"$inc": {"total": 10}}, &[])).await;
        world.did(update("orders", doc! {"_id": 4}, doc! {"$set": {"at": date("2024-03-02T00:00:00Z")}}, &[])).await;
        let ids: Vec<bson::Document> =
            world.all("months").await.iter().map(|month| month.get_document("_id").unwrap().clone()).collect();
        assert_eq!(ids.len(), 3, "{ids:?}");
        assert!(!ids.contains(&key("2024-02-01T00:00:00Z", "us")), "{ids:?}");
        check(&world, &[]).await;
        world.did(delete("orders", doc! {}, true)).await;
        assert_eq!(world.all("months").await, Vec::<bson::Document>::new());
    });
}

#[test]
fn what_clients_put_into_a_document_keeps_it() {
    let world = World::new(MONTHS);
    run(async {
        let march = || key("2024-03-01T00:00:00Z", "eu");
        world.did(insert("orders", vec![order(1, "2024-03-03T10:00:00Z", "eu", 5)])).await;
        world.did(update("months", doc! {"_id": march()}, doc! {"$set": {"note": "spring"}}, &[])).await;
        world.did(delete("orders", doc! {"_id": 1}, false)).await;
        let left = world.one("months", march()).await;
        assert_eq!(
            (left.get("orders"), left.get("revenue"), left.get("note")),
            (Some(&0.into()), Some(&0.into()), Some(&"spring".into()))
        );
        // A document of a client's own is a host like any other.
        let april = || key("2024-04-01T00:00:00Z", "eu");
        world.did(insert("months", vec![doc! {"_id": april(), "goal": 100}])).await;
        assert_eq!(world.field("months", april(), "orders").await, Some(0.into()));
        world.did(insert("orders", vec![order(2, "2024-04-03T10:00:00Z", "eu", 5)])).await;
        assert_eq!(world.field("months", april(), "revenue").await, Some(5.into()));
        check(&world, &[march().into(), april().into()]).await;
        // It may be deleted when no child is left, and not before.
        let (code, message) = world.refused(delete("months", doc! {"_id": april()}, false)).await;
        assert_eq!(code, 96);
        assert!(message.contains("months.orders") && message.contains("1 document of orders"), "{message}");
        world.did(delete("orders", doc! {"_id": 2}, false)).await;
        world.did(delete("months", doc! {}, true)).await;
        assert!(world.all("months").await.is_empty());
    });
}

#[test]
fn a_transaction_makes_and_removes_documents_and_its_abort_undoes_it() {
    let world = World::new(MONTHS);
    run(async {
        world.did(insert("orders", vec![order(1, "2024-03-03T10:00:00Z", "eu", 5)])).await;
        let before = world.all("months").await;
        let mut session = world.begin().await;
        world.write_at(&mut session, &delete("orders", doc! {}, true)).await.unwrap();
        world.write_at(&mut session, &insert("orders", vec![order(2, "2024-05-03T10:00:00Z", "us", 5)])).await.unwrap();
        let inside = world.all_at(&mut session, "months").await;
        assert_eq!(inside.len(), 1);
        assert_eq!(inside[0].get("_id"), Some(&key("2024-05-01T00:00:00Z", "us").into()));
        session.transaction.take().unwrap().abort();
        assert_eq!(world.all("months").await, before);
    });
}

#[test]
fn other_fields_of_a_document_are_filled_when_it_is_made() {
    let world = World::new(
        "
  regions:
    computed:
      orders: { count: orders, by: region, create: true }
      shops: { count: shops, by: region }
      busy: { expr: { $gt: [$orders, 1] } }
  letters:
    computed:
      regions: { count: regions, by: { $toUpper: $_id }, create: true }
",
    );
    run(async {
        world.did(insert("shops", vec![doc! {"_id": 1, "region": "eu"}])).await;
        world.did(insert("orders", vec![doc! {"_id": 1, "region": "eu"}])).await;
        let region = world.one("regions", "eu").await;
        assert_eq!(
            (region.get("orders"), region.get("shops"), region.get("busy")),
            (Some(&1.into()), Some(&1.into()), Some(&false.into())),
            "{region}"
        );
        assert_eq!(world.field("letters", "EU", "regions").await, Some(1.into()));
        world.did(insert("orders", vec![doc! {"_id": 2, "region": "eu"}, doc! {"_id": 3, "region": "us"}])).await;
        assert_eq!(world.field("regions", "eu", "busy").await, Some(true.into()));
        world.check().await;
        world.did(delete("orders", doc! {}, true)).await;
        assert!(world.all("regions").await.is_empty());
        assert!(world.all("letters").await.is_empty());
        world.check().await;
    });
}

#[test]
fn concurrent_writers_of_one_key_leave_it_right() {
    let world = World::new(MONTHS);
    run(async {
        let writer = |number: i32| {
            let layer = world.layer.clone();
            tokio::spawn(async move {
                for n in 0..60 {
                    let id = number * 1_000 + n;
                    let ops = [
                        insert("orders", vec![order(id, "2024-03-03T10:00:00Z", "eu", n)]),
                        update(
                            "orders",
                            doc! {"_id": id},
                            doc! {"$set": {"region": if n % 2 == 0 { "us" } else { "eu" }}},
                            &[],
                        ),
                        delete("orders", doc! {"_id": id}, false),
                    ];
                    // The last ones stay.
                    for op in &ops[..if n < 55 { 3 } else { 2 }] {
                        let written =
                            layer.write(&mut Session::default(), &context(), op, &Capture::Nothing).await.unwrap();
                        assert!(written.errors.is_empty(), "{:?}", written.errors);
                    }
                }
            })
        };
        let writers: Vec<_> = (0..8).map(writer).collect();
        for writer in writers {
            writer.await.unwrap();
        }
        check(&world, &[]).await;
        let orders: i32 = world.all("months").await.iter().map(|month| month.get_i32("orders").unwrap()).sum();
        assert_eq!(orders, 8 * 5);
        world.did(delete("orders", doc! {}, true)).await;
        assert!(world.all("months").await.is_empty());
    });
}
