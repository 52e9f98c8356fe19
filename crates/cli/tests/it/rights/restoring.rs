//! Restoring a dump with the rights of a client: what a row of the catalog says is done by the background connection, so it may name
//! only what the client could move itself.

use super::{World, code, on, roles, uri};
use crate::serving::Serving;
use crate::upstream::{log_in, rows};
use bson::{DateTime, Document, doc};
use judge::client::Client;

/// A client that calls itself by the name of MongoDB's tool.
fn restoring(world: &World, user: &str) -> Client {
    let mut client = world.proxy.client();
    client
        .must(&doc! { "hello": 1, "client": {
        "application": { "name": "mongorestore" }, "driver": { "name": "t", "version": "1" }, "os": { "type": "t" } },
        "$db": "admin" })
        .unwrap();
    log_in(&mut client, user, "s3cret").unwrap();
    client
}

/// A user who may do all to these collections of `shop` and to nothing else.
fn add_user(world: &mut World, name: &str, collections: &[&str]) {
    let actions = [
        "find",
        "insert",
        "update",
        "remove",
        "createCollection",
        "createIndex",
        "dropCollection",
        "collMod",
        "renameCollectionSameDB",
        "listIndexes",
        "dropIndex",
    ];
    let privilege =
        |collection: &&str| doc! { "resource": { "db": "shop", "collection": *collection }, "actions": actions };
    let privileges: Vec<Document> = collections.iter().map(privilege).collect();
    world.root.must(&doc! { "createRole": name, "privileges": privileges, "roles": [], "$db": "admin" }).unwrap();
    let user = doc! { "createUser": name, "pwd": "s3cret", "roles": roles(&[(name, "admin")]), "$db": "admin" };
    world.root.must(&user).unwrap();
}

fn forged(shape: Document) -> Document {
    doc! { "_id": "sd.bucket", "kind": "bucket", "declaration": series(), "state": "on", "epoch": 1, "done": 0, "total": 0,
    "by": "x", "shape": shape }
}

fn series() -> Document {
    doc! { "database": "shop", "collections": { "sd": { "bucket": { "time": "ts", "by": ["sensorId"], "every": "hour" } } } }
}

/// Rows that name a collection of somebody else as a place of the rule's documents.
fn forgeries() -> Vec<Document> {
    let buckets = doc! { "stored": "sd_buckets", "declaration": series() };
    let mut other = series();
    other.insert(
        "collections",
        doc! { "sd": { "bucket": {
        "into": "readings_buckets", "time": "ts", "by": ["sensorId"], "every": "hour" } } },
    );
    vec![
        forged(doc! { "places": [&buckets, { "stored": "hidden" }] }),
        forged(doc! { "places": [], "turn": { "places": [&buckets, { "stored": "mine" }],
        "renames": [{ "from": "hidden", "to": "mine" }], "begun": true } }),
        forged(doc! { "places": [&buckets, { "stored": "pleach.aside.hidden" }] }),
        forged(doc! { "places": [&buckets, { "stored": "readings_buckets", "declaration": other }] }),
    ]
}

fn hide(world: &mut World) {
    let hidden = (0..5_i64).map(|id| doc! { "_id": id, "sensorId": 1, "ts": DateTime::from_millis(id * 60_000) });
    let hidden: Vec<Document> = hidden.collect();
    for name in ["hidden", "pleach.aside.hidden"] {
        world.root.must(&on("shop", doc! { "insert": name, "documents": &hidden })).unwrap();
    }
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn a_forged_row_moves_no_collection_of_others() {
    let mut world = World::new();
    add_user(&mut world, "tenant", &["sd", "sd_buckets", "pleach.catalog", "pleach.aside.sd", "system.views", "mine"]);
    hide(&mut world);
    let refused = world.client("tenant").command(&on("shop", doc! { "find": "hidden" })).unwrap().document;
    assert_eq!(code(&refused), 13, "{refused}");
    let before = world.settled("shop");
    for row in forgeries() {
        let mut client = restoring(&world, "tenant");
        let reply =
            client.command(&on("shop", doc! { "insert": "pleach.catalog", "documents": [&row] })).unwrap().document;
        assert_ne!(code(&reply), 0, "{row}: {reply}");
        client.must(&doc! { "endSessions": [], "$db": "admin" }).unwrap();
        drop(client);
        let after = world.settled("shop");
        assert_eq!(before.iter().zip(&after).find(|(before, after)| before != after), None, "{row}");
        assert_eq!(before.len(), after.len(), "{row}");
    }
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn a_row_written_behind_pleach_moves_no_collection_of_others() {
    let mut world = World::new();
    hide(&mut world);
    let names = world.states("shop");
    for row in forgeries().into_iter().take(3) {
        let put = doc! { "q": { "_id": "sd.bucket" }, "u": &row, "upsert": true };
        world.root.must(&on("shop", doc! { "update": "pleach.catalog", "updates": [put] })).unwrap();
        let another = Serving::upstream(&uri(&world.mongod, "operator"), &[]);
        let mut client = another.client();
        log_in(&mut client, "root", "s3cret").unwrap();
        let status = client.must(&on("shop", doc! { "pleach": "status" })).unwrap();
        let rules = status.get_array("rules").unwrap();
        assert_eq!(rules.len(), names.len(), "{row}: {status}");
        let found = world.root.must(&on("shop", doc! { "find": "hidden" })).unwrap();
        assert_eq!(rows(&found, "firstBatch").len(), 5, "{row}");
        drop(client);
        another.stop();
    }
}

fn all(world: &mut World, collection: &str) -> Vec<bson::Bson> {
    rows(&world.root.must(&on("shop", doc! { "find": collection, "sort": { "_id": 1 } })).unwrap(), "firstBatch")
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn who_may_not_bring_rules_back_drops_nothing() {
    let mut world = World::new();
    let user =
        doc! { "createUser": "restorer", "pwd": "s3cret", "roles": roles(&[("restore", "admin")]), "$db": "admin" };
    world.root.must(&user).unwrap();
    let (rules, orders, states) = (all(&mut world, "pleach.catalog"), all(&mut world, "orders"), world.states("shop"));
    assert_eq!(states.len(), 3);
    for user in ["restorer", "writer", "admin"] {
        let mut client = restoring(&world, user);
        // Rows that are here need nothing more than any other document.
        client.must(&on("shop", doc! { "insert": "pleach.catalog", "documents": &rules })).unwrap();
        let reply = client.command(&on("shop", doc! { "drop": "orders" })).unwrap().document;
        match user {
            "restorer" => {
                assert_eq!(code(&reply), 13, "{reply}");
                let message = reply.get_str("errmsg").unwrap();
                assert!(message.contains("needs the roles readWrite and dbAdmin on shop"), "{message}");
                assert_eq!(all(&mut world, "orders"), orders);
            }
            _ => {
                assert_eq!(code(&reply), 0, "{user}: {reply}");
                client.must(&on("shop", doc! { "drop": "pleach.catalog" })).unwrap();
                client.must(&on("shop", doc! { "create": "orders" })).unwrap();
                client.must(&on("shop", doc! { "insert": "orders", "documents": &orders })).unwrap();
                client.must(&on("shop", doc! { "insert": "pleach.catalog", "documents": &rules })).unwrap();
            }
        }
        drop(client);
        assert_eq!(world.states("shop"), states, "{user}");
        assert_eq!(all(&mut world, "orders"), orders, "{user}");
    }
}
