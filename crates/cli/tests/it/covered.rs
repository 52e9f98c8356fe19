//! Fields that an index of the children could answer alone: a field that a child does not have is not null, though it is in the index.

use crate::doors::{At, at_each_door};
use bson::{Document, doc};

at_each_door!(what_a_child_does_not_have_is_not_null,);

fn what_a_child_does_not_have_is_not_null(at: At) {
    let door = at.door("covered");
    let mut client = door.client();
    let by_product = |more: Document| {
        let mut rule = doc! { "from": "sales", "by": "productId" };
        rule.extend(more);
        rule
    };
    let rules = doc! { "products": {
        "computed": {
            "colours": by_product(doc! { "distinct": "colour" }),
            "earliest": by_product(doc! { "first": "at", "sort": { "at": 1 } }),
        },
        "subset": { "oldest": by_product(doc! { "sort": { "at": 1 }, "keep": 3, "fields": ["at"] }) },
    } };
    assert_eq!(door.applied(&mut client, rules).get_f64("ok").ok(), Some(1.0));
    let sales = vec![
        doc! { "_id": 1, "productId": 1, "colour": "red", "at": 5 },
        doc! { "_id": 2, "productId": 1 },
        doc! { "_id": 3, "productId": 1, "colour": "red", "at": 6 },
        doc! { "_id": 4, "productId": 2, "colour": null, "at": null },
        doc! { "_id": 5, "productId": 2 },
    ];
    door.insert(&mut client, "sales", sales);
    // Hosts that are made after their children are evaluated from them.
    for (id, colours, oldest) in
        [(1, 1, vec![doc! {}, doc! { "at": 5 }, doc! { "at": 6 }]), (2, 1, vec![doc! { "at": null }, doc! {}])]
    {
        door.run(&mut client, doc! { "update": "products", "updates": [{ "q": { "_id": id }, "u": { "$set": { "price": 1 } }, "upsert": true }] });
        let product = door.rows(doc! { "find": "products", "filter": { "_id": id } }).remove(0);
        assert_eq!(product.get_i32("colours").ok(), Some(colours), "{product}");
        let oldest: Vec<bson::Bson> = oldest.into_iter().map(bson::Bson::from).collect();
        assert_eq!(product.get_array("oldest").ok(), Some(&oldest), "{product}");
    }
    let audit = door.ask(doc! { "pleach": "audit" });
    assert_eq!(audit.get_i64("drifted").ok(), Some(0), "{audit}");
    door.finish();
}
