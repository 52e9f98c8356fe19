//! SEMANTICS R25 and R31: what a write would do, told without doing it.

use crate::harness::*;
use bson::doc;
use document::backend::{Backend, Session};
use document::op::{Explained, Verbosity, WriteOp};

const SHOP: &str = "
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
      avgRating: { avg: rating, from: reviews, by: productId }
      weight: { expr: { $multiply: [$reviewCount, { $ifNull: [$avgRating, 0] }] } }
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name] }
";

async fn explained(world: &World, op: WriteOp) -> bson::Document {
    let (op, verbosity) = (Explained::Write(op), Verbosity::QueryPlanner);
    let told = world.layer.explain(&mut Session::default(), &context(), op, verbosity).await.unwrap();
    bson::Document::try_from(&told).unwrap().get_document("pleach").unwrap().clone()
}

fn kinds(told: &bson::Document) -> Vec<&str> {
    let steps = told.get_array("steps").unwrap().iter();
    steps.map(|step| step.as_document().unwrap().get_str("kind").unwrap()).collect()
}

#[test]
fn a_child_is_one_statement_and_one_more_on_its_host() {
    let world = World::new(SHOP);
    run(async {
        world.did(insert("products", vec![doc! {"_id": 1}])).await;
        world.did(insert("reviews", vec![doc! {"_id": 1, "productId": 1, "rating": 5}])).await;
        let change = update("reviews", doc! {"_id": 1}, doc! {"$set": {"rating": 3}}, &[]);
        let told = explained(&world, change).await;
        // The average, the count and what is computed from both: one statement on the product.
        assert_eq!(kinds(&told), ["write", "derived"], "{told}");
        let fences = |told: &bson::Document| told.get_array("fences").unwrap().len();
        assert_eq!(fences(&told), 0);
        let told = explained(&world, update("reviews", doc! {"_id": 1}, doc! {"$set": {"productId": 2}}, &[])).await;
        assert_eq!((kinds(&told), fences(&told) > 0), (vec!["write", "derived"], true), "{told}");
        assert_eq!(world.field("reviews", 1, "rating").await, Some(5.into()));
        world.did(insert("customers", vec![doc! {"_id": 1, "name": "Ada"}])).await;
        world.did(insert("orders", vec![doc! {"_id": 1, "customerId": 1}])).await;
        let told = explained(&world, update("customers", doc! {"_id": 1}, doc! {"$set": {"name": "Eva"}}, &[])).await;
        assert_eq!((kinds(&told), fences(&told)), (vec!["write", "read", "derived"], 1), "{told}");
        world.did(insert("reviews", vec![doc! {"_id": 2, "productId": 1, "rating": 2}])).await;
        assert_eq!(world.field("products", 1, "weight").await, Some(7.0.into()));
        let told = explained(&world, insert("reviews", vec![doc! {"_id": 3, "productId": 1}])).await;
        assert_eq!(kinds(&told), ["write", "derived"], "{told}");
        world.check().await;
    });
}

/// How many derived statements a write means.
fn derived(told: &bson::Document) -> usize {
    kinds(told).into_iter().filter(|kind| *kind == "derived").count()
}

#[test]
fn copies_of_one_key_are_one_statement_with_each_other_and_with_counts() {
    let world = World::new(
        "
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name] }
      billing.customer: { from: customers, by: customerId, fields: [name, tier] }
      billing.address: { from: customers, by: customerId, fields: [city] }
  receipts:
    extended_reference:
      payer.known: { from: customers, by: email, match: email, fields: [name] }
    computed:
      payer.count: { count: customers, by: email, match: email }
",
    );
    run(async {
        world.did(insert("orders", vec![doc! {"_id": 1, "customerId": 1}])).await;
        world.did(insert("receipts", vec![doc! {"_id": 1, "email": "a@b"}])).await;
        let ada = doc! {"_id": 1, "name": "Ada", "tier": 1, "city": "Oslo", "email": "a@b"};
        let told = explained(&world, insert("customers", vec![ada.clone()])).await;
        assert_eq!(derived(&told), 2, "one for the order, one for the receipt: {told}");
        world.did(insert("customers", vec![ada])).await;
        let change = || update("customers", doc! {"_id": 1}, doc! {"$set": {"name": "Eva", "city": "Rome"}}, &[]);
        let told = explained(&world, change()).await;
        assert_eq!(derived(&told), 2, "{told}");
        world.did(change()).await;
        let billing = doc! {"customer": {"name": "Eva", "tier": 1}, "address": {"city": "Rome"}};
        assert_eq!(world.field("orders", 1, "billing").await, Some(billing.into()));
        let payer = doc! {"count": 1, "known": {"name": "Eva"}};
        assert_eq!(world.field("receipts", 1, "payer").await, Some(payer.into()));
        world.check().await;
    });
}
