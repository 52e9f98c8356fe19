//! The table: every verb and command that Pleach answers itself, by every user.

use super::{USERS, World, code, declaration, on, verb};
use bson::{Document, doc};

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn each_user_may_do_what_mongodb_lets_it_do() {
    let mut world = World::new();
    let shop = || doc! { "declaration": declaration("shop") };
    let explained = |command: Document| verb("explain", doc! { "command": command });
    let insert = doc! { "insert": "reviews", "documents": [{ "productId": 1 }] };
    let nothing = doc! { "q": { "_id": "none" }, "u": { "$set": { "productId": 2 } } };
    let table: Vec<(&str, Document, [i32; 5])> = vec![
        ("status", verb("status", doc! {}), [13, 13, 0, 0, 0]),
        ("status of all", on("admin", doc! { "pleach": "status" }), [13, 0, 0, 0, 0]),
        ("check", verb("check", shop()), [13, 0, 0, 0, 0]),
        ("check of what is there", verb("check", doc! { "infer": "products" }), [13, 13, 0, 0, 0]),
        (
            "check of what is secret",
            on("secret", doc! { "pleach": "check", "infer": "products" }),
            [13, 13, 13, 13, 13],
        ),
        ("plan", verb("plan", shop()), [13, 13, 0, 0, 0]),
        ("audit", verb("audit", doc! {}), [13, 13, 0, 0, 0]),
        ("audit of a declaration", verb("audit", shop()), [13, 13, 0, 0, 0]),
        ("explain of a read", explained(doc! { "find": "orders" }), [13, 13, 0, 0, 0]),
        ("explain of a bucket's read", explained(doc! { "find": "readings" }), [13, 13, 0, 0, 0]),
        ("explain of a write", explained(insert.clone()), [13, 13, 13, 0, 0]),
        (
            "explain of a bucket's write",
            explained(doc! { "delete": "readings", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] }),
            [13, 13, 13, 0, 0],
        ),
        (
            "explain by MongoDB's command",
            on("shop", doc! { "explain": { "update": "reviews", "updates": [nothing.clone()] } }),
            [13, 13, 13, 0, 0],
        ),
        ("repair", verb("repair", doc! {}), [13, 13, 13, 0, 0]),
        ("apply of the same", verb("apply", shop()), [13, 13, 13, 0, 0]),
        ("drop of an unknown rule", verb("drop", doc! { "rule": "a.b" }), [13, 13, 2, 2, 2]),
        ("drop of an unknown rule anywhere", on("admin", doc! { "pleach": "drop", "rule": "a.b" }), [13, 2, 2, 2, 2]),
        ("uninstall, looked at", verb("uninstall", doc! { "preview": true }), [13, 13, 13, 0, 0]),
        (
            "uninstall of all, looked at",
            on("admin", doc! { "pleach": "uninstall", "preview": true }),
            [13, 0, 13, 0, 0],
        ),
        ("listCollections", on("shop", doc! { "listCollections": 1 }), [13, 13, 0, 0, 0]),
        ("forget", verb("forget", doc! { "rule": "orders.customer" }), [13, 13, 13, 0, 0]),
        ("forget of an unknown rule", verb("forget", doc! { "rule": "a.b" }), [13, 13, 2, 2, 2]),
        (
            "forget elsewhere",
            on("secret", doc! { "pleach": "forget", "rule": "orders.customer" }),
            [13, 13, 13, 13, 13],
        ),
        ("find in buckets", on("shop", doc! { "find": "readings", "filter": { "sensorId": 1 } }), [13, 13, 0, 0, 0]),
        ("count in buckets", on("shop", doc! { "count": "readings" }), [13, 13, 0, 0, 0]),
        ("planned insert", on("shop", insert), [13, 13, 13, 0, 0]),
        (
            "planned update of nothing",
            on("shop", doc! { "update": "reviews", "updates": [nothing] }),
            [13, 13, 13, 0, 0],
        ),
        (
            "planned delete of nothing",
            on("shop", doc! { "delete": "reviews", "deletes": [{ "q": { "_id": "none" }, "limit": 0 }] }),
            [13, 13, 13, 0, 0],
        ),
        (
            "planned findAndModify of nothing",
            on("shop", doc! { "findAndModify": "reviews", "query": { "_id": "none" }, "remove": true }),
            [13, 13, 13, 0, 0],
        ),
        (
            "bucket insert",
            on(
                "shop",
                doc! { "insert": "readings", "documents": [{ "sensorId": 9, "ts": bson::DateTime::from_millis(0) }] },
            ),
            [13, 13, 13, 0, 0],
        ),
        (
            "bucket update of nothing",
            on(
                "shop",
                doc! { "update": "readings", "updates": [{ "q": { "_id": "none" }, "u": { "$set": { "v": 2 } } }] },
            ),
            [13, 13, 13, 0, 0],
        ),
        (
            "bucket update that changes nothing",
            on(
                "shop",
                doc! { "update": "readings", "updates": [{ "q": { "_id": 5_i64 }, "u": { "$set": { "v": 1 } } }] },
            ),
            [13, 13, 13, 0, 0],
        ),
        (
            "bucket delete of nothing",
            on("shop", doc! { "delete": "readings", "deletes": [{ "q": { "_id": "none" }, "limit": 1 }] }),
            [13, 13, 13, 0, 0],
        ),
        (
            "a field that a rule keeps",
            on(
                "shop",
                doc! { "update": "products", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "reviewCount": 9 } } }] },
            ),
            [13, 13, 13, 66, 66],
        ),
        (
            "bookkeeping",
            on("shop", doc! { "insert": "pleach.catalog", "documents": [{ "_id": 1 }] }),
            [13, 13, 13, 73, 73],
        ),
        ("convertToCapped", on("shop", doc! { "convertToCapped": "products", "size": 10_000 }), [13, 13, 13, 96, 96]),
        (
            "applyOps",
            on("shop", doc! { "applyOps": [{ "op": "i", "ns": "shop.reviews", "o": { "_id": 900 } }] }),
            [13, 13, 13, 96, 96],
        ),
        ("collMod", on("shop", doc! { "collMod": "products", "validationLevel": "strict" }), [13, 13, 13, 13, 0]),
        (
            "an index that expires",
            on(
                "shop",
                doc! { "createIndexes": "reviews", "indexes": [{ "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 999_999 }] },
            ),
            [13, 13, 13, 0, 0],
        ),
        ("drop of an index", on("shop", doc! { "dropIndexes": "reviews", "index": "at_1" }), [13, 13, 13, 0, 27]),
        (
            "indexes of buckets",
            on("shop", doc! { "createIndexes": "readings", "indexes": [{ "key": { "v": 1 }, "name": "v_1" }] }),
            [13, 13, 13, 166, 166],
        ),
        (
            "watching buckets",
            on("shop", doc! { "aggregate": "readings", "pipeline": [{ "$changeStream": {} }], "cursor": {} }),
            [13, 13, 166, 166, 166],
        ),
        (
            "$merge",
            on(
                "shop",
                doc! { "aggregate": "customers", "pipeline": [{ "$project": { "productId": "$_id" } }, { "$merge": "reviews" }], "cursor": {} },
            ),
            [13, 13, 13, 0, 0],
        ),
        ("dropDatabase elsewhere", on("secret", doc! { "dropDatabase": 1 }), [13, 13, 13, 13, 13]),
        ("status elsewhere", on("secret", doc! { "pleach": "status" }), [13, 13, 13, 13, 13]),
        (
            "audit elsewhere",
            on("secret", doc! { "pleach": "audit", "declaration": declaration("secret") }),
            [13, 13, 13, 13, 13],
        ),
        (
            "drop elsewhere",
            on("secret", doc! { "pleach": "drop", "rule": "orders.customer", "with_data": true }),
            [13, 13, 13, 13, 13],
        ),
        ("uninstall elsewhere", on("secret", doc! { "pleach": "uninstall" }), [13, 13, 13, 13, 13]),
    ];
    let mut wrong = Vec::new();
    for (what, command, expected) in &table {
        // Those who are refused come first: after them nothing has changed.
        let mut before = Some(world.stored("shop"));
        for (user, expected) in USERS.iter().zip(expected) {
            if *expected != 13 && before.take().is_some_and(|before| before != world.stored("shop")) {
                wrong.push(format!("{what} was refused and has changed something"));
            }
            let reply = world.client(user).command(command).unwrap().document;
            if code(&reply) != *expected {
                wrong.push(format!("{what} by {user}: {} instead of {expected}: {reply}", code(&reply)));
            }
            let told = reply.to_string();
            if told.contains("secret") && command.get_str("$db").unwrap() != "secret" {
                wrong.push(format!("{what} by {user} tells of a database that it may not read: {told}"));
            }
        }
        if before.is_some_and(|before| before != world.stored("shop")) {
            wrong.push(format!("{what} was refused and has changed something"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(world.states("secret"), ["orders.customer on", "products.reviewCount on", "readings.bucket on"]);
}
