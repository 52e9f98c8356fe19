//! Extended references on every write path.

use crate::harness::*;
use bson::doc;

const ORDERS: &str = "
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name, tier] }
";

#[test]
fn a_copy_is_filled_refreshed_and_re_pointed() {
    let world = World::new(ORDERS);
    run(async {
        world.did(insert("customers", vec![doc! {"_id": 1, "name": "Ada", "tier": 1, "x": 0}])).await;
        world.did(insert("orders", vec![doc! {"_id": 1, "customerId": 1}, doc! {"_id": 2, "customerId": 2}])).await;
        assert_eq!(world.one("orders", 1).await, doc! {
            "_id": 1, "customerId": 1, "customer": {"name": "Ada", "tier": 1},
        });
        assert_eq!(world.one("orders", 2).await, doc! {"_id": 2, "customerId": 2});
        world.did(update("customers", doc! {"_id": 1}, doc! {"$set": {"name": "Eva"}}, &[])).await;
        world.did(insert("customers", vec![doc! {"_id": 2, "name": "Bo"}])).await;
        assert_eq!(world.one("orders", 1).await.get_document("customer"), Ok(&doc! {"name": "Eva", "tier": 1}));
        assert_eq!(world.one("orders", 2).await.get_document("customer"), Ok(&doc! {"name": "Bo"}));
        world.did(update("orders", doc! {"_id": 1}, doc! {"$set": {"customerId": 2}}, &[])).await;
        assert_eq!(world.one("orders", 1).await.get_document("customer"), Ok(&doc! {"name": "Bo"}));
        world.check().await;
    });
}
