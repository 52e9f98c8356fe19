//! The state `_pleach` is the last field of its host (SEMANTICS R8) after whatever Pleach writes there.

use crate::doors::{At, Door, at_each_door};
use bson::{Document, doc};

at_each_door!(new_hosts_end_with_their_state, fields_that_come_later_stand_before_the_state);

fn rules(more: bool) -> Document {
    let from = |fold: &str| doc! { fold: "rating", "from": "reviews", "by": "productId" };
    let mut computed = doc! { "avgRating": from("avg") };
    let mut all = doc! {};
    if more {
        computed.insert("best", from("max"));
        computed.insert("z.total", from("sum"));
        computed.insert("double", doc! { "expr": { "$multiply": ["$price", 2] } });
        let window = doc! { "from": "reviews", "by": "productId", "sort": { "at": -1 }, "keep": 2, "fields": ["at"] };
        all.insert("subset", doc! { "recent": window });
        let maker = doc! { "from": "makers", "by": "makerId", "fields": ["name"] };
        all.insert("extended_reference", doc! { "maker": maker });
    }
    all.insert("computed", computed);
    doc! { "products": all }
}

fn names(door: &Door, id: i32) -> Vec<String> {
    let host = door.rows(doc! { "find": "products", "filter": { "_id": id } }).remove(0);
    host.keys().cloned().collect()
}

fn assert_last(door: &Door, id: i32, story: &str) {
    let names = names(door, id);
    assert_eq!(names.last().map(String::as_str), Some("_pleach"), "{}, {story}: {names:?}", door.at.name());
}

fn fill(door: &Door) {
    door.must(doc! { "insert": "makers", "documents": [{ "_id": 1, "name": "Ada" }] });
    let reviews: Vec<Document> =
        (0..12).map(|id| doc! { "_id": id, "productId": id % 4, "rating": id, "at": id }).collect();
    door.must(doc! { "insert": "reviews", "documents": reviews });
}

fn update(door: &Door, query: Document, change: impl Into<bson::Bson>, upsert: bool) {
    door.must(doc! { "update": "products", "updates": [{ "q": query, "u": change.into(), "upsert": upsert }] });
}

fn new_hosts_end_with_their_state(at: At) {
    let door = at.door("state_last");
    fill(&door);
    door.apply(rules(true));
    door.must(doc! { "insert": "products", "documents": [{ "_id": 0, "price": 1, "makerId": 1 }] });
    assert_last(&door, 0, "inserted");
    assert_eq!(names(&door, 0).len(), 10, "{:?}", names(&door, 0));
    update(&door, doc! { "_id": 1 }, doc! { "$set": { "price": 2, "makerId": 1 } }, true);
    assert_last(&door, 1, "upserted");
    update(&door, doc! { "_id": 2 }, vec![doc! { "$set": { "price": 2 } }], true);
    assert_last(&door, 2, "upserted by a pipeline");
    update(&door, doc! { "_id": 3 }, doc! { "price": 3 }, true);
    assert_last(&door, 3, "upserted by a replacement");
    update(&door, doc! { "_id": 0 }, doc! { "price": 5, "makerId": 1, "name": "new" }, false);
    assert_last(&door, 0, "replaced");
    door.must(doc! { "insert": "reviews", "documents": [{ "_id": 50, "productId": 0, "rating": 99, "at": 99 }] });
    assert_last(&door, 0, "a child came");
    // What a client adds stands behind it, until Pleach writes the fields of the host anew.
    update(&door, doc! { "_id": 0 }, doc! { "$set": { "later": 1 } }, false);
    update(&door, doc! { "_id": 0 }, doc! { "price": 5, "later": 1, "last": 1 }, false);
    assert_last(&door, 0, "replaced again");
    let audit = door.must(doc! { "pleach": "audit" });
    assert_eq!(audit.get_i64("drifted").ok(), Some(0), "{audit}");
    door.finish();
}

fn fields_that_come_later_stand_before_the_state(at: At) {
    let door = at.door("state_later");
    fill(&door);
    let hosts: Vec<Document> = (0..4).map(|id| doc! { "_id": id, "price": id, "makerId": 1 }).collect();
    door.must(doc! { "insert": "products", "documents": hosts });
    door.apply(rules(false));
    assert_last(&door, 1, "seeded");
    door.apply(rules(true));
    for id in 0..4 {
        assert_last(&door, id, "seeded with more");
    }
    let audit = door.must(doc! { "pleach": "audit" });
    assert_eq!(audit.get_i64("drifted").ok(), Some(0), "{audit}");
    door.finish();
}
