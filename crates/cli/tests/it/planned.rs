//! Planned writes with all that MongoDB's write commands take, through both doors: the same answers, and derived values to match.

use crate::doors::{At, Door, at_each_door};
use crate::upstream::{rows, session};
use bson::{Bson, Document, doc};
use judge::client::Client;

at_each_door!(
    a_collation_is_the_real_servers_and_refused_by_the_embedded_store,
    merged_documents_may_contain_what_rules_keep,
    the_new_document_has_what_comes_back_to_it_by_way_of_others,
    what_a_client_may_not_write_is_not_explained_either,
);

struct Shop {
    door: Door,
}

/// A server with rules and products.
fn shop(at: At, name: &str) -> Shop {
    let shop = Shop { door: at.door(name) };
    shop.door.apply(doc! {
        "products": { "computed": { "count": { "count": "reviews", "by": "product" }, "stars": { "sum": "stars", "from": "reviews", "by": "product" } } },
        "reviews": { "extended_reference": { "about": { "from": "products", "by": "product", "fields": ["title", "count"] } } },
    });
    let products: Vec<Document> = (1..=2).map(|id| doc! { "_id": id, "title": format!("t{id}") }).collect();
    shop.must(doc! { "insert": "products", "documents": products });
    shop
}

impl Shop {
    fn client(&self) -> Client {
        self.door.client()
    }

    fn must(&self, mut command: Document) -> Document {
        command.insert("$db", &self.door.db);
        self.client().must(&command).unwrap()
    }

    fn code(&self, mut command: Document) -> i32 {
        command.insert("$db", &self.door.db);
        let reply = self.client().command(&command).unwrap().document;
        let statement =
            reply.get_array("writeErrors").ok().and_then(|errors| errors[0].as_document()?.get_i32("code").ok());
        statement.or_else(|| reply.get_i32("code").ok()).unwrap_or_default()
    }

    /// Number and sum of the stars that a product has.
    fn product(&self, id: i32) -> (Option<Bson>, Option<Bson>) {
        let found = rows(&self.must(doc! { "find": "products", "filter": { "_id": id } }), "firstBatch");
        let product = found[0].as_document().unwrap();
        (product.get("count").cloned(), product.get("stars").cloned())
    }

    fn finish(self) {
        let audit = self.must(doc! { "pleach": "audit" });
        assert_eq!(
            audit.get("drifted").and_then(|drifted| drifted.as_i64().or(drifted.as_i32().map(i64::from))),
            Some(0),
            "{audit}"
        );
        self.door.finish();
    }
}

fn numbers(count: i32, stars: i32) -> (Option<Bson>, Option<Bson>) {
    (Some(Bson::Int32(count)), Some(Bson::Int32(stars)))
}

fn a_collation_is_the_real_servers_and_refused_by_the_embedded_store(at: At) {
    let shop = shop(at, "collated");
    let names = ["Ann", "ann", "ANN", "bob"];
    let reviews =
        names.iter().zip(0..).map(|(name, id)| doc! { "_id": name.repeat(2), "product": 1, "stars": id, "by": *name });
    shop.must(doc! { "insert": "reviews", "documents": reviews.collect::<Vec<_>>() });
    let collation = doc! { "locale": "en", "strength": 2 };
    let update = |query: Document, change: Document, multi: bool| {
        doc! {
            "update": "reviews", "updates": [{ "q": query, "u": change, "multi": multi, "collation": &collation }],
        }
    };
    let many = update(doc! { "by": "aNN" }, doc! { "$inc": { "stars": 10 } }, true);
    let one = update(doc! { "by": "BOB" }, doc! { "$set": { "product": 2 } }, false);
    let modify = doc! { "findAndModify": "reviews", "query": { "by": "BOB" }, "update": { "$inc": { "stars": 1 } }, "new": true, "collation": &collation };
    let delete =
        doc! { "delete": "reviews", "deletes": [{ "q": { "by": "ann" }, "limit": 0, "collation": &collation }] };
    if shop.door.is_real() {
        assert_eq!(shop.must(many).get_i32("nModified").unwrap(), 3);
        assert_eq!(shop.product(1), numbers(4, 36));
        assert_eq!(shop.must(one).get_i32("nModified").unwrap(), 1);
        assert_eq!((shop.product(1), shop.product(2)), (numbers(3, 33), numbers(1, 3)));
        assert_eq!(shop.must(modify).get_document("value").unwrap().get_i32("stars").unwrap(), 4);
        assert_eq!(shop.must(delete).get_i32("n").unwrap(), 3);
        assert_eq!((shop.product(1), shop.product(2)), (numbers(0, 0), numbers(1, 4)));
        let comparing = doc! { "findAndModify": "reviews", "query": {}, "update": { "$pull": { "about": 1 }, "$set": { "product": 2 } }, "new": true, "collation": &collation };
        assert_ne!(shop.code(comparing), 0);
    } else {
        assert_eq!([many, one, modify, delete].map(|command| shop.code(command)), [238; 4]);
    }
    let simple = doc! { "update": "reviews", "updates": [{ "q": { "by": "bob" }, "u": { "$set": { "stars": 7 } }, "collation": { "locale": "simple" } }] };
    assert_eq!(shop.must(simple).get_i32("n").unwrap(), 1);
    shop.finish();
}

fn merged_documents_may_contain_what_rules_keep(at: At) {
    let shop = shop(at, "merged");
    let reviews: Vec<Document> = (0..4).map(|id| doc! { "_id": id, "product": 1 + id % 2, "stars": id }).collect();
    shop.must(doc! { "insert": "reviews", "documents": reviews });
    let merge = |from: &str, stages: Vec<Document>| doc! { "aggregate": from, "pipeline": stages, "cursor": {} };
    // Each document as it was read, kept fields included, and one change.
    shop.must(merge("reviews", vec![doc! { "$set": { "stars": 10 } }, doc! { "$merge": "reviews" }]));
    assert_eq!((shop.product(1), shop.product(2)), (numbers(2, 20), numbers(2, 20)));
    shop.must(merge("products", vec![doc! { "$set": { "title": "new", "count": 99 } }, doc! { "$merge": "products" }]));
    assert_eq!(shop.product(1), numbers(2, 20));
    // A pipeline sees the result under its name, with variables under theirs.
    let into = |matched: Vec<Document>, variables: Option<Document>| {
        let mut into = doc! { "into": "reviews", "whenMatched": matched };
        into.extend(variables.map(|variables| doc! { "let": variables }).unwrap_or_default());
        doc! { "$merge": into }
    };
    let matched = vec![doc! { "$set": { "stars": { "$add": ["$stars", "$$new.more"] } } }];
    shop.must(merge("reviews", vec![doc! { "$project": { "more": "$_id" } }, into(matched, None)]));
    assert_eq!((shop.product(1), shop.product(2)), (numbers(2, 22), numbers(2, 24)));
    let matched = vec![doc! { "$set": { "product": "$$to" } }];
    shop.must(merge(
        "reviews",
        vec![doc! { "$project": { "to": { "$literal": 2 } } }, into(matched, Some(doc! { "to": "$to" }))],
    ));
    assert_eq!((shop.product(1), shop.product(2)), (numbers(0, 0), numbers(4, 46)));
    shop.finish();
}

fn the_new_document_has_what_comes_back_to_it_by_way_of_others(at: At) {
    let shop = shop(at, "circle");
    // The review changes the product's count, which is part of the copy in the review itself.
    let modify = |product: i32| {
        doc! {
            "findAndModify": "reviews", "query": { "_id": 1 }, "update": { "$set": { "product": product, "stars": 3 } }, "upsert": true, "new": true,
            "fields": { "about": 1 }, "lsid": session(41), "txnNumber": i64::from(product), "$db": &shop.door.db,
        }
    };
    for product in [1, 2] {
        let expected = doc! { "_id": 1, "about": { "title": format!("t{product}"), "count": 1 } };
        // Sent again it is answered from its record.
        for _ in 0..2 {
            let reply = shop.must(modify(product));
            assert_eq!(reply.get_document("value").unwrap(), &expected);
        }
    }
    let positional = doc! { "findAndModify": "reviews", "query": { "a": 1 }, "update": { "$set": { "x": 1 } }, "new": true, "fields": { "a.$": 1 } };
    assert_eq!(shop.code(positional), 2);
    shop.finish();
}

fn what_a_client_may_not_write_is_not_explained_either(at: At) {
    let shop = shop(at, "unexplained");
    let update = doc! { "update": "products", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "count": 5 } } }] };
    assert_eq!(shop.code(doc! { "explain": update, "verbosity": "queryPlanner" }), 66);
    shop.finish();
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn a_database_that_was_dropped_behind_pleach_takes_its_rules_again() {
    let uri = judge::real::uri().unwrap();
    let shop = shop(At::Upstream, "behind");
    Client::connect(&uri).unwrap().must(&doc! { "dropDatabase": 1, "$db": &shop.door.db }).unwrap();
    let collections = doc! { "products": { "computed": { "count": { "count": "reviews", "by": "product" } } } };
    shop.must(doc! { "pleach": "apply", "declaration": { "database": &shop.door.db, "collections": collections }, "remove": true });
    // The first write looks for its record and then misses the fences.
    let began = std::time::Instant::now();
    let upsert = doc! { "q": { "_id": 1 }, "u": { "title": "t" }, "upsert": true };
    shop.must(doc! { "update": "products", "updates": [upsert], "lsid": session(42), "txnNumber": 1_i64 });
    shop.must(doc! { "insert": "reviews", "documents": [{ "product": 1 }] });
    assert_eq!(shop.product(1).0, Some(Bson::Int32(1)));
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    shop.finish();
}
