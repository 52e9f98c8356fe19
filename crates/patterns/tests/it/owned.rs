//! SEMANTICS R11: fields that rules keep.

use crate::harness::*;
use bson::doc;

const PRODUCTS: &str = "
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
      avgRating: { avg: rating, from: reviews, by: productId }
      margin: { expr: { $subtract: [$price, $cost] } }
";

async fn shop(declaration: &str) -> World {
    let world = World::new(declaration);
    world.did(insert("reviews", vec![doc! {"_id": 1, "productId": 1, "rating": 4}])).await;
    world.did(insert("products", vec![doc! {"_id": 1, "price": 10, "cost": 7}])).await;
    world
}

fn overridden(world: &World, rule: &str) -> u64 {
    world.layer.rules().find("shop", rule).unwrap().overridden()
}

#[test]
fn operators_and_stages_that_name_an_owned_field_are_refused() {
    run(async {
        let world = shop(PRODUCTS).await;
        let sentence = "'reviewCount' is kept by rule products.reviewCount (count of reviews by productId); write to reviews instead";
        for op in [
            update("products", doc! {"_id": 1}, doc! {"$set": {"x": 1, "reviewCount": 5}}, &[]),
            update("products", doc! {"_id": 1}, doc! {"$inc": {"reviewCount": 5}}, &["multi"]),
            update("products", doc! {"_id": 8}, vec![doc! {"$set": {"reviewCount": 5}}], &["upsert"]),
            find_and_modify("products", doc! {"_id": 1}, modify(doc! {"$unset": {"reviewCount": 1}}, false)),
        ] {
            assert_eq!(world.refused(op).await, (66, sentence.to_owned()));
        }
        let statements = vec![
            statement(doc! {"_id": 1}, doc! {"$set": {"a": 1}}, &[]),
            statement(doc! {"_id": 1}, doc! {"$set": {"margin": 1}}, &[]),
            statement(doc! {"_id": 1}, doc! {"$set": {"b": 1}}, &[]),
            statement(doc! {"_id": 1}, doc! {"$set": {"_pleach.avgRating": 1}}, &[]),
        ];
        let written = world.write(updates("products", statements.clone(), false)).await.unwrap();
        assert_eq!((written.n, written.errors.iter().map(|error| error.index).collect()), (2, vec![1, 3]));
        let written = world.write(updates("products", statements, true)).await.unwrap();
        assert_eq!((written.n, written.errors.len(), written.errors[0].index), (1, 1, 1));
        world.check().await;
    });
}

#[test]
fn whole_documents_that_contain_owned_fields_are_taken_and_ours_wins() {
    run(async {
        let world = shop(PRODUCTS).await;
        let saved = world.one("products", 1).await;
        assert_eq!(saved.get("margin"), Some(&3.into()));
        let mut changed = saved.clone();
        changed.insert("reviewCount", 70);
        changed.insert("price", 20);
        let each = [
            // As it was read; with another value; without any.
            (update("products", doc! {"_id": 1}, saved.clone(), &[]), 0, 3),
            (update("products", doc! {"_id": 1}, changed.clone(), &[]), 1, 13),
            (update("products", doc! {"_id": 1}, doc! {"price": 8, "cost": 7}, &[]), 1, 1),
            (update("products", doc! {"_id": 1}, vec![doc! {"$replaceWith": {"_id": 1, "margin": 9}}], &[]), 1, 0),
            (update("products", doc! {"_id": 1}, doc! {"$set": {"price": 2, "cost": 2}}, &[]), 1, 0),
        ];
        for (op, count, margin) in each {
            world.did(op.clone()).await;
            world.check().await;
            assert_eq!(overridden(&world, "products.reviewCount"), count, "{op:?}");
            let stored = world.one("products", 1).await;
            assert_eq!(stored.get("reviewCount"), Some(&1.into()), "{op:?}");
            let expected = if stored.contains_key("price") { margin.into() } else { bson::Bson::Null };
            assert_eq!(stored.get("margin"), Some(&expected), "{op:?}");
        }
        world.did(insert("products", vec![doc! {"_id": 2, "reviewCount": 9, "_pleach": {"avgRating": 1}}])).await;
        assert_eq!(overridden(&world, "products.reviewCount"), 2);
        assert_eq!(world.field("products", 2, "reviewCount").await, Some(0.into()));
        world.check().await;
    });
}

#[test]
fn a_rule_may_refuse_more_or_let_pass_more() {
    run(async {
        let strict = PRODUCTS.replace(
            "reviews, by: productId }\n      avg",
            "reviews, by: productId, client_writes: refuse }\n      avg",
        );
        let world = shop(&strict).await;
        let differing = doc! {"reviewCount": 9};
        assert_eq!(world.refused(update("products", doc! {"_id": 1}, differing, &[])).await.0, 66);
        assert_eq!(world.refused(insert("products", vec![doc! {"_id": 3, "reviewCount": 9}])).await.0, 66);
        world.did(update("products", doc! {"_id": 1}, world.one("products", 1).await, &[])).await;
        let loose = strict.replace("refuse", "ignore");
        let world = shop(&loose).await;
        world.did(update("products", doc! {"_id": 1}, doc! {"$set": {"reviewCount": 9, "x": 1}}, &[])).await;
        world.did(update("products", doc! {"_id": 1}, doc! {"$inc": {"reviewCount": 9}}, &[])).await;
        let stored = world.one("products", 1).await;
        assert_eq!(stored.get("reviewCount").zip(stored.get("x")), Some((&1.into(), &1.into())));
        world.check().await;
    });
}

#[test]
fn a_whole_document_that_is_merged_may_contain_what_rules_keep() {
    run(async {
        let merged = |change: bson::Document| {
            let mut merged = statement(doc! {"_id": 1}, change, &[]);
            merged.update.whole = true;
            updates("products", vec![merged], true)
        };
        let world = shop(PRODUCTS).await;
        let mut saved = world.one("products", 1).await;
        saved.insert("price", 20);
        saved.insert("reviewCount", 70);
        world.did(merged(doc! {"$set": saved.clone()})).await;
        let stored = world.one("products", 1).await;
        assert_eq!(stored.get("reviewCount").zip(stored.get("margin")), Some((&1.into(), &13.into())));
        world.check().await;
        let strict = shop(
            &PRODUCTS.replace("count: reviews, by: productId", "count: reviews, by: productId, client_writes: refuse"),
        )
        .await;
        assert_eq!(strict.refused(merged(doc! {"$set": saved})).await.0, 66);
    });
}
