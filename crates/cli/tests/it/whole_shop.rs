//! The declaration of `examples/shop`, every pattern at once, at both doors: applied to documents that are there, used by clients' writes
//! that touch each rule, audited.

use crate::doors::{At, Door, at_each_door};
use crate::serving::pleach;
use crate::upstream::rows;
use bson::{Bson, DateTime, Document, doc};
use std::time::{Duration, Instant};

at_each_door!(every_rule_is_kept_beside_all_others,);

const DECLARATION: &str = include_str!("../../../../examples/shop/pleach.yaml");

/// Noon of a day of 2026, and so many minutes.
fn at(day: u32, minute: i64) -> DateTime {
    let noon = DateTime::builder().year(2026).month(1).day(1).hour(12).build().unwrap();
    DateTime::from_millis(noon.timestamp_millis() + (i64::from(day - 1) * 24 * 60 + minute) * 60_000)
}

struct Whole(Door);

impl Whole {
    fn insert(&self, collection: &str, documents: Vec<Document>) {
        let reply = self.0.must(doc! { "insert": collection, "documents": &documents });
        assert_eq!(reply.get_i32("n").unwrap() as usize, documents.len(), "{reply}");
    }

    /// The code of the first write error; 0 if there is none.
    fn write(&self, command: Document) -> i32 {
        let reply = self.0.ask(command);
        let errors = reply.get_array("writeErrors").cloned().unwrap_or_default();
        errors.first().map_or(0, |error| error.as_document().unwrap().get_i32("code").unwrap())
    }

    fn update(&self, collection: &str, filter: Document, update: Document) {
        let update = doc! { "update": collection, "updates": [{ "q": filter, "u": update, "multi": true }] };
        assert_eq!(self.write(update), 0);
    }

    fn delete(&self, collection: &str, filter: Document) {
        assert_eq!(self.write(doc! { "delete": collection, "deletes": [{ "q": filter, "limit": 0 }] }), 0);
    }

    fn one(&self, collection: &str, id: i32) -> Document {
        self.0.rows(doc! { "find": collection, "filter": { "_id": id } }).remove(0)
    }

    fn count(&self, collection: &str, query: Document) -> i32 {
        self.0.must(doc! { "count": collection, "query": query }).get_i32("n").unwrap()
    }

    fn older(&self, mut command: Document) -> Document {
        command.insert("$db", format!("{}@1", self.0.db));
        let reply = self.0.client().command(&command).unwrap().document;
        assert!(reply.get_f64("ok").unwrap() == 1.0 && !reply.contains_key("writeErrors"), "{command}: {reply}");
        reply
    }

    /// Waits until all rules are on, and nothing is left for later.
    fn settle(&self) {
        let began = Instant::now();
        loop {
            let status = self.0.must(doc! { "pleach": "status" });
            let is_settled = |rule: &Document| {
                let pending = rule.get("pending").and_then(Bson::as_i64).unwrap_or_default();
                rule.get_str("state").ok() == Some("on") && pending == 0
            };
            let rules = status.get_array("rules").unwrap();
            if rules.len() == 16 && rules.iter().all(|rule| is_settled(rule.as_document().unwrap())) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "{status}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Nothing is wrong, and every rule has looked at something.
    fn audited(&self) {
        self.settle();
        let uri = self.0.uri();
        let output = pleach().args(["audit", "--db", &self.0.db, "--json", "--server", &uri]).output().unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!((output.status.code(), &found["drifted"]), (Some(0), &serde_json::json!(0)), "{found:#}");
        let rules = found["rules"].as_array().unwrap();
        let unseen: Vec<_> = rules.iter().filter(|rule| rule["checked"].as_i64().unwrap() == 0).collect();
        assert!(rules.len() == 16 && unseen.is_empty(), "{unseen:#?}");
    }
}

fn names(document: &Document, list: &str, field: &str) -> Vec<Bson> {
    let items = document.get_array(list).unwrap();
    items.iter().map(|item| item.as_document().unwrap().get(field).unwrap().clone()).collect()
}

fn every_rule_is_kept_beside_all_others(door_at: At) {
    let shop = Whole(door_at.door("whole_shop"));
    // What is there before the declaration.
    let followers: Vec<i32> = (0..620).collect();
    shop.insert(
        "users",
        vec![
            doc! { "_id": 1, "name": "Ada", "avatar": "a", "phone": "1" },
            doc! { "_id": 2, "name": "Bob", "avatar": "b", "phone": { "number": "2", "countryCode": "+44" }, "schemaVersion": 2, "followers": &followers },
        ],
    );
    shop.insert("posts", vec![doc! { "_id": 1, "authorId": 1 }, doc! { "_id": 2, "authorId": 2 }]);
    shop.insert("customers", vec![doc! { "_id": 1, "name": "Cyd", "email": "c@x", "tier": "gold" }]);
    shop.insert("orders", vec![doc! { "_id": 1, "customerId": 1 }]);
    shop.insert(
        "products",
        vec![doc! { "_id": 1, "type": "book", "title": "Emma", "isbn": "1", "price": 10, "cost": 4 }],
    );
    shop.insert("sales", vec![doc! { "_id": 1, "productId": 1, "amount": 10, "status": "paid", "date": at(3, 0) }]);
    shop.insert("sensor_data", vec![doc! { "sensorId": 1, "ts": at(1, -1), "temp": 1, "humid": 1 }]);
    shop.insert("events", vec![doc! { "key": "ab".repeat(32), "date": at(1, -60), "approved": 1 }]);

    let declaration = DECLARATION.replace("database: shop", &format!("database: {}", shop.0.db));
    let apply = doc! { "pleach": "apply", "declaration": &declaration, "overwrite": true, "createMissing": true, "$db": "admin" };
    let applied = shop.0.client().command(&apply).unwrap().document;
    assert_eq!(applied.get_f64("ok").unwrap(), 1.0, "{applied}");
    shop.settle();

    // Posts: a copy, a count and a window.
    let comment = |id: i32| doc! { "_id": id, "postId": 1, "author": "x", "text": format!("t{id}"), "date": at(1, i64::from(id)), "more": 1 };
    shop.insert("comments", (1..=7).map(comment).collect());
    shop.insert("likes", (1..=3).map(|id| doc! { "_id": id, "postId": 1 }).collect());
    shop.delete("comments", doc! { "_id": 7 });
    shop.update("comments", doc! { "_id": 6 }, doc! { "$set": { "text": "edited" } });
    shop.update("likes", doc! { "_id": 3 }, doc! { "$set": { "postId": 2 } });
    shop.update("users", doc! { "_id": 1 }, doc! { "$set": { "name": "Ada L" } });
    let post = shop.one("posts", 1);
    assert_eq!(post.get_document("author").unwrap(), &doc! { "name": "Ada L", "avatar": "a" });
    assert_eq!(post.get_i32("likeCount").unwrap(), 2, "{post}");
    assert_eq!(names(&post, "recentComments", "text"), ["edited", "t5", "t4", "t3", "t2"].map(Bson::from));
    shop.update("customers", doc! { "_id": 1 }, doc! { "$set": { "tier": "silver" } });
    assert_eq!(shop.one("orders", 1).get_document("customer").unwrap().get_str("tier").unwrap(), "silver");

    // Products: six fields and kinds; months are made by sales.
    let review = |id: i32| doc! { "_id": id, "productId": 1, "userId": id, "rating": id, "text": "", "date": at(1, i64::from(id)) };
    shop.insert("reviews", (1..=6).map(review).collect());
    shop.delete("reviews", doc! { "_id": 6 });
    shop.insert(
        "sales",
        vec![
            doc! { "_id": 2, "productId": 1, "amount": 20, "status": "open", "date": at(4, 0) },
            doc! { "_id": 3, "productId": 1, "amount": 30, "status": "paid", "date": at(40, 0) },
        ],
    );
    shop.insert("follows", (1..=4).map(|id| doc! { "_id": id, "productId": 1 }).collect());
    shop.update("products", doc! { "_id": 1 }, doc! { "$inc": { "price": 1 } });
    for (product, code) in [
        (doc! { "_id": 2, "type": "book", "title": "Dune" }, 121),
        (doc! { "_id": 2, "type": "book", "title": "Dune", "isbn": "1" }, 11000),
        (doc! { "_id": 2, "type": "car", "title": "Beetle" }, 121),
        (doc! { "_id": 2, "type": "electronics", "title": "Radio", "brand": "A", "price": 5, "cost": 1 }, 0),
    ] {
        assert_eq!(shop.write(doc! { "insert": "products", "documents": [product.clone()] }), code, "{product}");
    }
    shop.settle();
    let book = shop.one("products", 1);
    let kept =
        ["reviewCount", "avgRating", "totalRevenue", "margin", "followers"].map(|name| book.get(name).unwrap().clone());
    assert_eq!(kept, [Bson::Int32(5), Bson::Double(3.0), Bson::Int32(40), Bson::Int32(7), Bson::Int32(4)], "{book}");
    assert_eq!(names(&book, "recentReviews", "userId"), [5, 4, 3, 2, 1].map(Bson::from));
    let revenue: Vec<i32> = shop.0.all("months").iter().map(|month| month.get_i32("revenue").unwrap()).collect();
    assert_eq!(revenue, [30, 30]);

    // Buckets of readings, and slots of events.
    let reading = |minute: i64| doc! { "sensorId": 1, "ts": at(1, minute), "temp": minute, "humid": 1 };
    shop.insert("sensor_data", (0..60).map(reading).collect());
    shop.update("sensor_data", doc! { "ts": at(1, 5) }, doc! { "$set": { "temp": 99_i64 } });
    shop.delete("sensor_data", doc! { "ts": at(1, 6) });
    assert_eq!(shop.count("sensor_data", doc! { "sensorId": 1, "ts": { "$gte": at(1, 0) } }), 59);
    let bucket = shop.0.rows(doc! { "find": "sensor_hours", "filter": { "count": 59 } }).remove(0);
    assert_eq!(bucket.get_document("stats").unwrap().get_i64("maxTemp").unwrap(), 99);
    shop.insert("events", vec![doc! { "key": "ab".repeat(32), "date": at(1, 60), "approved": 2, "noFunds": 1 }]);
    let event = shop.0.rows(doc! { "find": "events" }).remove(0);
    assert_eq!((event.get_i32("approved").unwrap(), event.get_i32("noFunds").unwrap()), (3, 1), "{event}");

    // Users: an outlier array beside two versions, by clients of both.
    let bob = shop.one("users", 2);
    assert_eq!((bob.get_i32("followerCount").unwrap(), bob.get_array("followers").unwrap().len()), (620, 500));
    shop.older(doc! { "update": "users", "updates": [{ "q": { "phone": "2" }, "u": {
        "$set": { "phone": "3", "name": "Bobby" }, "$push": { "followers": { "$each": [700, 701] } },
    } }] });
    shop.update("users", doc! { "followers": 610 }, doc! { "$pull": { "followers": { "$lt": 10 } } });
    let bob = shop.one("users", 2);
    assert_eq!(bob.get_document("phone").unwrap(), &doc! { "number": "3", "countryCode": "+44" });
    assert_eq!(bob.get_i32("followerCount").unwrap(), 612, "{bob}");
    assert_eq!(shop.count("users.followers", doc! { "userId": 2 }), 612);
    assert_eq!(shop.count("users", doc! { "followers": 701, "phone.number": "3" }), 1);
    assert_eq!(shop.one("posts", 2).get_document("author").unwrap().get_str("name").unwrap(), "Bobby");
    shop.older(doc! { "insert": "users", "documents": [{ "_id": 3, "name": "Old", "phone": "9" }] });
    shop.insert("posts", vec![doc! { "_id": 3, "authorId": 3 }]);
    assert_eq!(shop.one("posts", 3).get_document("author").unwrap(), &doc! { "name": "Old" });
    let seen = shop.older(doc! { "find": "users", "filter": { "phone": { "$gte": "1" } }, "sort": { "phone": -1 }, "projection": { "phone": 1, "_id": 0 } });
    let seen: Vec<String> = rows(&seen, "firstBatch")
        .iter()
        .map(|row| row.as_document().unwrap().get_str("phone").unwrap().to_owned())
        .collect();
    assert_eq!(seen, ["9", "3", "1"]);
    shop.delete("users", doc! { "phone.number": "3" });
    assert_eq!(shop.count("follower_overflow", doc! {}), 0);
    shop.audited();
    shop.0.finish();
}
