//! Shapes as servers count them become commands that can be run.

use super::*;

const RULES: &str = "database: shop
collections:
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name] }
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
";

fn mix(shapes: Vec<Document>, second_reads: Vec<Document>) -> Option<(Mix, Vec<String>)> {
    let declared = patterns::declare::from_yaml("pleach.yaml", RULES).into_result().unwrap();
    let traffic = Traffic { source: "test", shapes, second_reads };
    of_traffic("shop", &traffic, declared.rules.iter(), &["orders", "customers", "products", "reviews"])
}

/// The command that a shape becomes.
fn one(shape: Document) -> Option<Document> {
    let name = format!("{} of ", command(&shape));
    let (mix, _) = mix(vec![shape], Vec::new())?;
    let mut all = mix.reads.into_iter().chain(mix.writes);
    all.find(|operation| operation.name.starts_with(&name))?.commands.into_iter().next()
}

#[test]
fn second_reads_and_counts_are_what_rules_save() {
    let second = doc! { "from": "shop.orders", "path": "customerId", "read": "shop.customers", "count": 30_i64 };
    let by_id = doc! { "ns": "shop.customers", "command": "find", "filter": ["_id $eq"], "count": 40_i64 };
    let count = doc! { "ns": "shop.reviews", "command": "count", "filter": ["productId $eq"], "count": 7_i64 };
    let (mix, left) = mix(vec![by_id, count], vec![second]).unwrap();
    let found: Vec<(&str, f64, usize)> =
        mix.reads.iter().map(|read| (&*read.name, read.weight, read.instead.len())).collect();
    assert_eq!(
        found,
        [
            ("orders with customer", 30.0, 1),
            ("find of customers: _id $eq", 10.0, 0),
            ("products with reviewCount", 7.0, 1)
        ]
    );
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn shapes_become_commands_with_values_of_the_sample() {
    let find = doc! {
        "ns": "shop.orders", "command": "find", "filter": ["status $eq", "date $gte", "date $lt"], "sort": ["date -1"],
        "count": 10_i64, "returned": 195_i64,
    };
    assert_eq!(
        one(find).unwrap(),
        doc! {
            "find": "orders",
            "filter": { "status": { "$sample": "orders.status" }, "date": { "$gte": { "$sample": "orders.date" } } },
            "sort": { "date": -1 }, "limit": 20_i64, "batchSize": 20_i64,
        }
    );
    let group = doc! {
        "ns": "shop.orders", "command": "aggregate", "count": 1_i64,
        "stages": [{ "$match": ["status $eq"] }, { "$group": { "by": ["$city"], "fold": ["n $sum ?", "top $max $total"] } }],
    };
    assert_eq!(
        one(group).unwrap().get_array("pipeline").unwrap()[1],
        Bson::Document(doc! { "$group": { "_id": "$city", "n": { "$sum": 1 }, "top": { "$max": "$total" } } })
    );
    let update = doc! {
        "ns": "shop.products", "command": "update", "filter": ["_id $eq"], "changes": ["price $set", "n $inc"], "count": 3_i64,
    };
    assert_eq!(
        one(update).unwrap().get_array("updates").unwrap()[0].as_document().unwrap().get_document("u").unwrap(),
        &doc! { "$set": { "price": { "$changed": "products.price" } }, "$inc": { "n": 1 } }
    );
}

#[test]
fn what_cannot_be_repeated_is_named_and_other_collections_are_none() {
    let shape = |ns: &str, command: &str, filter: &str| doc! { "ns": ns, "command": command, "filter": [filter], "count": 1_i64 };
    let (mix, left) = mix(
        vec![
            shape("shop.orders", "delete", "_id $eq"),
            shape("shop.orders", "find", "$text $search"),
            shape("shop.orders", "find", "_id $eq"),
            shape("shop.elsewhere", "find", "_id $eq"),
        ],
        Vec::new(),
    )
    .unwrap();
    assert_eq!((mix.reads.len(), left.len()), (1, 2), "{mix:?} {left:?}");
    // What has no traffic is as if there were none.
    let names: Vec<&str> = mix.writes.iter().map(|write| &*write.name).collect();
    assert_eq!(names, ["update of customers.name", "insert into reviews"]);
    assert!(of_traffic("shop", &Traffic::default(), std::iter::empty(), &["orders"]).is_none());
}
