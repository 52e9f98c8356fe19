//! The same commands directly and through Pleach: both refuse them, or neither.

use super::{USERS, World, code, on};
use crate::upstream::log_in;
use bson::{Bson, Document, doc};

/// Commands on one collection that matter here: each may match something or nothing.
fn commands_on(collection: &str) -> Vec<Document> {
    let mut all = Vec::new();
    for id in [Bson::from(1), Bson::from("none")] {
        let (q, unmatched) = (doc! { "_id": &id }, doc! { "_id": &id, "zzz": 9 });
        let set = doc! { "$set": { "productId": 1 } };
        all.extend([
            doc! { "update": collection, "updates": [{ "q": &q, "u": &set }] },
            doc! { "update": collection, "updates": [{ "q": &q, "u": { "$set": { "other": 1 } }, "multi": true }] },
            doc! { "update": collection, "updates": [{ "q": &q, "u": [&set] }] },
            doc! { "delete": collection, "deletes": [{ "q": &unmatched, "limit": 0 }] },
            doc! { "findAndModify": collection, "query": &unmatched, "update": &set },
            doc! { "findAndModify": collection, "query": &unmatched, "remove": true },
            doc! { "explain": { "update": collection, "updates": [{ "q": &q, "u": &set }] } },
            doc! { "explain": { "delete": collection, "deletes": [{ "q": &q, "limit": 1 }] } },
            doc! { "explain": { "find": collection, "filter": &q } },
            doc! { "find": collection, "filter": &q },
            doc! { "count": collection, "query": &q },
            doc! { "distinct": collection, "key": "a", "query": &q },
            doc! { "aggregate": collection, "pipeline": [{ "$match": q }], "cursor": {} },
        ]);
    }
    all.extend([
        doc! { "insert": collection, "documents": [] },
        doc! { "listIndexes": collection },
        doc! { "collStats": collection },
        doc! { "aggregate": "free", "pipeline": [{ "$match": { "q": 1 } }, { "$merge": collection }], "cursor": {} },
        doc! { "aggregate": "free", "pipeline": [{ "$match": { "q": 1 } }, { "$out": format!("{collection}_out") }], "cursor": {} },
        doc! { "createIndexes": collection, "indexes": [{ "key": { "_id": 1 }, "name": "_id_" }] },
        doc! { "dropIndexes": collection, "index": "none_1" },
        doc! { "collMod": collection, "validationLevel": "strict" },
        doc! { "create": collection },
        // What is wrong with a command is told before or behind the missing right, as MongoDB does.
        doc! { "find": collection, "tailable": true },
        doc! { "find": collection, "showRecordId": true },
        doc! { "find": collection, "limit": "x" },
        doc! { "find": collection, "filter": { "$no": 1 } },
        doc! { "count": collection, "query": { "$where": "1" } },
        doc! { "distinct": collection, "key": 1 },
        doc! { "aggregate": collection, "pipeline": [{ "$no": 1 }], "cursor": {} },
        doc! { "aggregate": collection, "pipeline": "x", "cursor": {} },
        doc! { "insert": collection, "documents": "x" },
        doc! { "update": collection, "updates": "x" },
        doc! { "update": collection, "updates": [{ "q": {}, "u": { "$no": 1 } }] },
        doc! { "delete": collection, "deletes": [{ "q": { "$no": 1 }, "limit": 0 }] },
        doc! { "delete": collection, "deletes": [{ "q": {}, "limit": 7 }] },
        doc! { "findAndModify": collection, "query": { "$no": 1 }, "remove": true },
        doc! { "findAndModify": collection, "query": "x", "remove": true },
        doc! { "explain": { "find": collection, "limit": "x" } },
        doc! { "collMod": collection, "validationLevel": "x" },
        doc! { "collMod": collection, "validator": "x" },
        doc! { "createIndexes": collection, "indexes": "x" },
        doc! { "create": collection, "capped": "x" },
    ]);
    all
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn mongodb_and_pleach_refuse_the_same_commands() {
    let world = World::new();
    let collections = [
        "reviews",
        "orders",
        "products",
        "customers",
        "readings",
        "readings_buckets",
        "pleach.catalog",
        "pleach.fences",
        "free",
    ];
    let mut commands: Vec<Document> = collections.iter().flat_map(|name| commands_on(name)).collect();
    commands.extend([
        doc! { "listCollections": 1 },
        doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true },
        doc! { "dbStats": 1 },
        doc! { "serverStatus": 1 },
    ]);
    let mut wrong = Vec::new();
    for user in USERS {
        let (mut direct, mut through) = (world.mongod.client(), world.client(user));
        if user != "nobody" {
            log_in(&mut direct, user, "s3cret").unwrap();
        }
        for command in &commands {
            let command = on("shop", command.clone());
            let (theirs, ours) =
                (direct.command(&command).unwrap().document, through.command(&command).unwrap().document);
            if (code(&theirs) == 13) != (code(&ours) == 13) {
                wrong.push(format!("{user}: {command}\n  MongoDB: {theirs}\n  Pleach: {ours}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
