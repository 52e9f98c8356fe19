//! `dropDatabase` in front of a real MongoDB: clients find an empty database; the bookkeeping collections stay the same, and
//! so do those that the rules would make anew, as every collection that is dropped costs the server files until its next checkpoint.

use crate::serving::Serving;
use crate::upstream::database;
use bson::{Bson, Document, doc};
use judge::client::Client;

/// The collections of the server itself by name, with what tells them from others that were made later under that name.
fn collections(direct: &mut Client, db: &str) -> Vec<(String, Bson)> {
    let reply = direct.must(&doc! { "listCollections": 1, "$db": db, "cursor": { "batchSize": 1000 } }).unwrap();
    let rows = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
    let mut rows: Vec<(String, Bson)> = rows
        .into_iter()
        .map(|row| {
            let row: Document = row.as_document().unwrap().clone();
            let uuid = row.get_document("info").ok().and_then(|info| info.get("uuid").cloned()).unwrap_or(Bson::Null);
            (row.get_str("name").unwrap().to_owned(), uuid)
        })
        .collect();
    rows.sort_by(|left, right| left.0.cmp(&right.0));
    rows
}

fn ours(rows: &[(String, Bson)]) -> Vec<(String, Bson)> {
    rows.iter().filter(|(name, _)| name.starts_with("pleach.")).cloned().collect()
}

/// Those that the rules have indexes in: they are made by `apply`.
fn of_rules(rows: &[(String, Bson)]) -> Vec<(String, Bson)> {
    rows.iter().filter(|(name, _)| ["orders", "reviews"].contains(&name.as_str())).cloned().collect()
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn an_emptied_database_keeps_its_bookkeeping_collections() {
    let uri = judge::real::uri().unwrap();
    let proxy = Serving::upstream(&uri, &[]);
    let (mut client, mut direct) = (proxy.client(), Client::connect(&uri).unwrap());
    let db = database("emptied");
    let declaration = doc! { "collections": {
        "products": { "computed": { "reviewCount": { "count": "reviews", "by": "productId" } } },
        "orders": { "extended_reference": { "customer": { "from": "customers", "by": "customerId", "fields": ["name"] } } },
    } };
    client.must(&doc! { "pleach": "apply", "declaration": declaration, "$db": &db }).unwrap();
    let session = crate::upstream::session(7);
    let mut numbers = 1_i64..;
    let mut write = |client: &mut Client| {
        let number = numbers.next().unwrap();
        client.must(&doc! { "insert": "products", "documents": [{ "_id": 1 }], "$db": &db }).unwrap();
        client.must(&doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "Ada" }], "$db": &db }).unwrap();
        client
            .must(&doc! { "insert": "reviews", "documents": [{ "productId": 1 }], "$db": &db, "lsid": session.clone(), "txnNumber": number })
            .unwrap();
        client.must(&doc! { "insert": "orders", "documents": [{ "customerId": 1 }], "$db": &db }).unwrap();
        client.must(&doc! { "insert": "others", "documents": [{}], "$db": &db }).unwrap();
        let found = client.must(&doc! { "find": "products", "$db": &db }).unwrap();
        let product = found.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0].clone();
        assert_eq!(product.as_document().unwrap().get_i32("reviewCount").ok(), Some(1), "{product}");
    };
    write(&mut client);
    let before = ours(&collections(&mut direct, &db));
    assert!(before.iter().any(|(name, _)| name == "pleach.fences"), "{before:?}");
    let rules = of_rules(&collections(&mut direct, &db));
    assert_eq!(rules.len(), 2, "{rules:?}");
    for _ in 0..3 {
        client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
        let after = collections(&mut direct, &db);
        assert_eq!(ours(&after), before);
        assert_eq!(of_rules(&after), rules);
        let users: Vec<_> = after.iter().filter(|(name, _)| !name.starts_with("pleach.")).collect();
        assert_eq!(users.len(), rules.len(), "only what the rules need: {users:?}");
        for name in ["products", "reviews", "customers", "orders", "others"] {
            let count = direct.must(&doc! { "count": name, "$db": &db }).unwrap();
            assert_eq!(count.get_i32("n").unwrap(), 0, "{name}");
        }
        write(&mut client);
    }
    for rule in ["products.reviewCount", "orders.customer"] {
        client.must(&doc! { "pleach": "drop", "rule": rule, "$db": &db }).unwrap();
    }
    direct.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn a_collection_with_more_than_the_rules_need_is_dropped() {
    let uri = judge::real::uri().unwrap();
    let proxy = Serving::upstream(&uri, &[]);
    let (mut client, mut direct) = (proxy.client(), Client::connect(&uri).unwrap());
    let db = database("dropped");
    let index =
        |name: &str| doc! { "createIndexes": name, "indexes": [{ "key": { "a": 1 }, "name": "a_1" }], "$db": &db };
    client.must(&doc! { "create": "orders", "validator": { "a": { "$exists": false } }, "$db": &db }).unwrap();
    let declaration = doc! { "collections": {
        "products": { "computed": { "reviewCount": { "count": "reviews", "by": "productId" } } },
        "orders": { "extended_reference": { "customer": { "from": "customers", "by": "customerId", "fields": ["name"] } } },
    } };
    client.must(&doc! { "pleach": "apply", "declaration": declaration, "$db": &db }).unwrap();
    client.must(&index("reviews")).unwrap();
    let before = of_rules(&collections(&mut direct, &db));
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
    let after = of_rules(&collections(&mut direct, &db));
    assert_eq!((before.len(), after.len()), (2, 2));
    assert!(before.iter().all(|row| !after.contains(row)), "{before:?} {after:?}");
    let indexes = direct.must(&doc! { "listIndexes": "reviews", "$db": &db }).unwrap();
    assert_eq!(indexes.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len(), 2, "{indexes}");
    client.must(&doc! { "insert": "orders", "documents": [{ "a": 1 }], "$db": &db }).unwrap();
    for rule in ["products.reviewCount", "orders.customer"] {
        client.must(&doc! { "pleach": "drop", "rule": rule, "$db": &db }).unwrap();
    }
    direct.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}
