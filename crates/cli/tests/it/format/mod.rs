//! A store and a catalog of an earlier build are opened by every later one: documents, rules, buckets and what was kept of before.
//!
//! `store.tar.gz` is a data folder after a clean stop, `stored.json` what the same rules leave in a MongoDB, `logical.json` what clients
//! see of either. They were made once, by applying `pleach.yaml` to a small shop, and are never made again: a format that changes
//! gets files of its own beside them.

use crate::mongod::{Mongod, initiate};
use crate::serving::Serving;
use crate::upstream::rows;
use bson::{Bson, Document, doc};
use judge::client::Client;
use std::process::Command;

const STORE: &[u8] = include_bytes!("store.tar.gz");
const STORED: &str = include_str!("stored.json");
const LOGICAL: &str = include_str!("logical.json");

/// Collections by name, from canonical Extended JSON.
fn collections(json: &str) -> Vec<(String, Vec<Document>)> {
    let all: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json).unwrap();
    let document = |value: serde_json::Value| match Bson::try_from(value).unwrap() {
        Bson::Document(document) => document,
        other => panic!("{other:?}"),
    };
    all.into_iter()
        .map(|(name, values)| match values {
            serde_json::Value::Array(values) => (name, values.into_iter().map(document).collect()),
            other => panic!("{name}: {other}"),
        })
        .collect()
}

fn on_shop(mut command: Document) -> Document {
    command.insert("$db", "shop");
    command
}

fn all(client: &mut Client, collection: &str) -> Vec<Document> {
    let find = doc! { "find": collection, "sort": { "_id": 1 }, "batchSize": 1_000 };
    let reply = client.must(&on_shop(find)).unwrap();
    rows(&reply, "firstBatch").iter().map(|row| row.as_document().unwrap().clone()).collect()
}

/// Everything is read as it was written, and every rule is in force.
fn check(serving: &Serving) {
    let mut client = serving.client();
    for (name, expected) in collections(LOGICAL) {
        assert_eq!(all(&mut client, &name), expected, "{name}");
    }
    let status = client.must(&on_shop(doc! { "pleach": "status" })).unwrap();
    let rules = status.get_array("rules").unwrap();
    assert_eq!(rules.len(), 8, "{status}");
    assert!(rules.iter().all(|rule| rule.as_document().unwrap().get_str("state").unwrap() == "on"), "{status}");
    let audit = |client: &mut Client| {
        let audit = client.must(&on_shop(doc! { "pleach": "audit" })).unwrap();
        assert_eq!(audit.get("drifted").and_then(Bson::as_i64), Some(0), "{audit}");
    };
    audit(&mut client);
    let reviews = vec![doc! { "_id": "new", "productId": 1, "rating": 5 }];
    client.must(&on_shop(doc! { "insert": "reviews", "documents": reviews })).unwrap();
    let change = vec![doc! { "q": { "_id": 2 }, "u": { "$set": { "name": "Cleo" } } }];
    client.must(&on_shop(doc! { "update": "customers", "updates": change })).unwrap();
    let reading =
        vec![doc! { "_id": "new", "sensorId": 1, "ts": bson::DateTime::from_millis(1_767_265_200_000), "temp": 1 }];
    client.must(&on_shop(doc! { "insert": "sensor_data", "documents": reading })).unwrap();
    assert_eq!(all(&mut client, "products")[0].get_i32("reviewCount").unwrap(), 4);
    assert_eq!(all(&mut client, "orders")[1].get_document("customer").unwrap().get_str("name").unwrap(), "Cleo");
    assert_eq!(all(&mut client, "sensor_data").len(), 71);
    audit(&mut client);
    client.must(&on_shop(doc! { "pleach": "drop", "rule": "orders.customer", "restore": true })).unwrap();
    assert_eq!(all(&mut client, "orders")[0].get_document("customer").unwrap().get_str("name").unwrap(), "stale");
}

#[test]
fn a_store_of_an_earlier_build_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("store.tar.gz");
    std::fs::write(&archive, STORE).unwrap();
    let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder.path()).status().unwrap();
    assert!(unpacked.success());
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    let serving = Serving::start(&["--data", data]);
    check(&serving);
    assert_eq!(serving.stop(), Some(0));
    // What this build has written is opened again.
    let again = Serving::start(&["--data", data]);
    assert_eq!(all(&mut again.client(), "sensor_data").len(), 71);
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn a_catalog_of_an_earlier_build_in_a_real_mongodb_is_taken_up() {
    let mongod = Mongod::start(&["--replSet", "rs"]);
    initiate(&[&mongod]);
    let mut direct = mongod.client();
    for (name, documents) in collections(STORED).into_iter().filter(|(_, documents)| !documents.is_empty()) {
        direct.must(&on_shop(doc! { "insert": name, "documents": documents })).unwrap();
    }
    let serving = Serving::upstream(&format!("mongodb://127.0.0.1:{}/?replicaSet=rs", mongod.port), &[]);
    check(&serving);
}
