//! Time-series collections as clients meet them: what expires goes, on the embedded store by whole buckets; in front of a real
//! MongoDB they are its own.

use crate::serving::Serving;
use crate::shop::Shop;
use bson::{DateTime, Document, doc};
use judge::client::Client;
use std::time::{Duration, Instant};

const HOUR: i64 = 3_600_000;

fn values(client: &mut Client, db: &str) -> Vec<i32> {
    let find = doc! { "find": "weather", "sort": { "v": 1 }, "$db": db };
    let reply = client.must(&find).unwrap();
    let rows = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    rows.iter().map(|row| row.as_document().unwrap().get_i32("v").unwrap()).collect()
}

/// One reading an hour, the newest first.
fn readings(count: i32) -> Vec<Document> {
    let now = DateTime::now().timestamp_millis();
    let reading =
        |v: i32| doc! { "_id": v, "ts": DateTime::from_millis(now - i64::from(v) * HOUR), "m": { "s": 1 }, "v": v };
    (0..count).map(reading).collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn buckets_expire_when_all_of_their_readings_have() {
    let shop = Shop::new("timeseries-expiry", "database: shop\ncollections: {}\n");
    let serving = shop.serve(&["--ttl-seconds", "1"]);
    let mut client = serving.client();
    let series = doc! { "timeField": "ts", "metaField": "m" };
    client.must(&doc! { "create": "weather", "timeseries": series, "expireAfterSeconds": 5, "$db": "shop" }).unwrap();
    // Another collection, whose documents go as ever.
    let expiring = doc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 0 };
    client.must(&doc! { "createIndexes": "logins", "indexes": [expiring], "$db": "shop" }).unwrap();
    client.must(&doc! { "insert": "weather", "documents": readings(6), "$db": "shop" }).unwrap();
    until("two hours ago is past", || values(&mut client, "shop").len() <= 2);
    assert_eq!(values(&mut client, "shop").first(), Some(&0), "what is new stays");
    client
        .must(&doc! { "insert": "logins", "documents": [{ "at": DateTime::from_millis(0) }], "$db": "shop" })
        .unwrap();
    until("others expire too", || {
        let find = client.must(&doc! { "find": "logins", "$db": "shop" }).unwrap();
        find.get_document("cursor").unwrap().get_array("firstBatch").unwrap().is_empty()
    });
    // Switched off, and on again for longer.
    client.must(&doc! { "collMod": "weather", "expireAfterSeconds": "off", "$db": "shop" }).unwrap();
    let old = doc! { "_id": 9, "ts": DateTime::from_millis(0), "m": { "s": 1 }, "v": 9 };
    client.must(&doc! { "insert": "weather", "documents": [old], "$db": "shop" }).unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(values(&mut client, "shop").last(), Some(&9));
    client.must(&doc! { "collMod": "weather", "expireAfterSeconds": 86_400, "$db": "shop" }).unwrap();
    until("1970 is past", || !values(&mut client, "shop").contains(&9));
    assert_eq!(values(&mut client, "shop").first(), Some(&0));
    shop.stop(serving);
    assert_eq!(shop.run(&["audit"]).status.code(), Some(0));
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn in_front_of_a_real_mongodb_they_are_its_own() {
    let uri = judge::real::uri().unwrap();
    let db = format!("series{}", std::process::id());
    let serving = Serving::upstream(&uri, &[]);
    let mut client = serving.client();
    let series = doc! { "timeField": "ts", "metaField": "m" };
    client.must(&doc! { "create": "weather", "timeseries": series, "$db": &db }).unwrap();
    client.must(&doc! { "insert": "weather", "documents": readings(6), "$db": &db }).unwrap();
    assert_eq!(values(&mut client, &db), [0, 1, 2, 3, 4, 5]);
    let stats = client.must(&doc! { "collStats": "weather", "$db": &db }).unwrap();
    let told = stats.get_document("timeseries").unwrap();
    assert_eq!(told.get_str("bucketsNs").unwrap(), format!("{db}.system.buckets.weather"));
    let index = doc! { "key": { "m.s": 1, "ts": 1 }, "name": "both" };
    client.must(&doc! { "createIndexes": "weather", "indexes": [index], "$db": &db }).unwrap();
    client.must(&doc! { "collMod": "weather", "timeseries": { "granularity": "hours" }, "$db": &db }).unwrap();
    let by_value = doc! { "q": { "v": 1 }, "limit": 1 };
    let refused = client.command(&doc! { "delete": "weather", "deletes": [by_value], "$db": &db }).unwrap().document;
    assert!(refused.get_array("writeErrors").is_ok(), "MongoDB's own rules hold: {refused}");
    client.must(&doc! { "drop": "weather", "$db": &db }).unwrap();
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}
