//! Refusals tell of no collection and no rule that the client may not read.

use super::{World, code, declaration, on, verb};
use bson::{Document, doc};

/// Sends commands that are refused with this code; none may tell of these names.
fn refused(world: &World, user: &str, hidden: &[&str], commands: Vec<(i32, Document)>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (expected, command) in commands {
        let reply = world.client(user).command(&command).unwrap().document;
        let (told, mut asked) = (reply.to_string(), command.clone());
        asked.remove("$db");
        let tells = hidden.iter().find(|name| told.contains(**name) && !asked.to_string().contains(**name));
        if code(&reply) != expected || tells.is_some() {
            wrong.push(format!("{user}: {command}\n  expected {expected}, tells {tells:?}: {told}"));
        }
    }
    wrong
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn refusals_tell_of_nothing_that_the_client_may_not_read() {
    let mut world = World::new();
    world.add_user("norole", &[]);
    world.add_user("one", &[("shop.orders", &["find"])]);
    world.add_user("logical", &[("shop.readings", &["find", "insert", "update", "remove"])]);
    world.add_user(
        "owner",
        &[("other", &["find", "insert", "update", "remove", "dropCollection", "renameCollectionSameDB"])],
    );
    let all = ["orders", "customers", "products", "reviews", "readings"];
    let empty = |verb: &str| doc! { "pleach": verb, "declaration": { "database": "shop", "collections": {} } };
    let mut wrong = refused(
        &world,
        "norole",
        &all,
        vec![
            (13, on("shop", empty("plan"))),
            (13, on("shop", empty("apply"))),
            (13, on("shop", empty("audit"))),
            (13, on("shop", empty("repair"))),
            (13, on("admin", empty("plan"))),
            (13, on("admin", empty("apply"))),
            (13, on("nowhere", doc! { "pleach": "plan", "declaration": { "database": "nowhere", "collections": {} } })),
            // Rights come before the question whether a rule is applied.
            (13, verb("repair", doc! { "declaration": declaration("shop"), "once": true })),
            (13, verb("repair", doc! { "declaration": declaration("shop") })),
            (13, verb("audit", doc! { "declaration": declaration("shop"), "rule": "orders.nope" })),
            (13, verb("forget", doc! { "rule": "orders.customer" })),
            (13, verb("drop", doc! { "rule": "orders.customer", "restore": true })),
            // What is wrong with a command is told to those who may send it.
            (13, on("shop", doc! { "find": "readings", "tailable": true })),
            (13, on("shop", doc! { "find": "readings", "showRecordId": true })),
            (13, on("shop", doc! { "find": "readings", "limit": "x" })),
            (13, on("shop", doc! { "find": "readings", "filter": { "$no": 1 } })),
            (13, on("shop", doc! { "count": "readings", "query": { "$where": "1" } })),
            (13, on("shop", doc! { "update": "orders", "updates": [{ "q": {}, "u": { "$no": 1 } }] })),
            (13, on("shop", doc! { "delete": "reviews", "deletes": [{ "q": { "$no": 1 }, "limit": 0 }] })),
            (13, on("shop", doc! { "explain": { "find": "readings", "limit": "x" } })),
            (13, on("shop", doc! { "collMod": "orders", "validationLevel": "x" })),
        ],
    );
    let own = doc! { "database": "shop", "collections": { "orders": { "computed": { "twice": { "expr": { "$add": ["$_id", "$_id"] } } } } } };
    wrong.extend(refused(
        &world,
        "one",
        &["customers", "products", "readings_buckets"],
        vec![
            (13, verb("plan", doc! { "declaration": &own })),
            (13, verb("apply", doc! { "declaration": &own })),
            (13, verb("uninstall", doc! { "preview": true })),
            (13, verb("uninstall", doc! {})),
        ],
    ));
    let reading = || doc! { "sensorId": 1_i64, "ts": bson::DateTime::from_millis(0) };
    let change = || doc! { "q": { "sensorId": 1_i64 }, "u": { "$set": { "v": 2 } } };
    let remove = || doc! { "q": { "sensorId": 1_i64 }, "limit": 1 };
    wrong.extend(refused(
        &world,
        "logical",
        &["readings_buckets"],
        vec![
            (13, on("shop", doc! { "insert": "readings", "documents": [reading()] })),
            (13, on("shop", doc! { "update": "readings", "updates": [change()] })),
            (13, on("shop", doc! { "delete": "readings", "deletes": [remove()] })),
            (13, on("shop", doc! { "findAndModify": "readings", "query": { "sensorId": 1_i64 }, "remove": true })),
            (13, on("shop", doc! { "explain": { "update": "readings", "updates": [change()] } })),
            (13, verb("explain", doc! { "command": { "find": "readings" } })),
            (13, verb("explain", doc! { "command": { "delete": "readings", "deletes": [remove()] } })),
            (13, on("secret", doc! { "find": "readings" })),
            (13, on("secret", doc! { "explain": { "find": "readings" } })),
            (13, on("secret", doc! { "pleach": "explain", "command": { "find": "readings" } })),
        ],
    ));
    // MongoDB reads a view for a client that may not read what it is made of.
    wrong.extend(refused(&world, "logical", &[], vec![
        (0, on("shop", doc! { "find": "readings", "filter": { "sensorId": 1_i64 } })),
        (0, on("shop", doc! { "count": "readings" })),
        (0, on("shop", doc! { "explain": { "find": "readings" } })),
        (0, on("shop", doc! { "explain": { "aggregate": "readings", "pipeline": [], "cursor": {} } })),
        (0, on("shop", doc! {
            "find": "readings", "lsid": crate::upstream::session(61), "txnNumber": 1_i64, "startTransaction": true, "autocommit": false,
        })),
    ]));
    let rename = |to: &str| on("admin", doc! { "renameCollection": "other.nope", "to": to });
    wrong.extend(refused(
        &world,
        "owner",
        &all,
        vec![
            (13, rename("shop.orders")),
            (13, rename("shop.pleach.catalog")),
            (13, on("admin", doc! { "renameCollection": "shop.orders", "to": "other.mine" })),
        ],
    ));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn the_stored_collection_opens_nothing_under_the_other_name() {
    let mut world = World::new();
    world.add_user("stored", &[("shop.readings_buckets", &["find", "insert", "update", "remove"])]);
    world.add_user("dropper", &[("shop", &["dropDatabase"])]);
    world.add_user("finder", &[("vx.items", &["find"])]);
    world.add_user("lister", &[("vx", &["listCollections"]), ("vx.items", &["find"])]);
    let nothing = doc! { "_id": "none" };
    let wrong = refused(
        &world,
        "stored",
        &[],
        vec![
            (13, on("shop", doc! { "find": "readings" })),
            (13, on("shop", doc! { "count": "readings" })),
            (13, on("shop", doc! { "distinct": "readings", "key": "v" })),
            (13, on("shop", doc! { "aggregate": "readings", "pipeline": [], "cursor": {} })),
            (13, on("shop", doc! { "explain": { "find": "readings" } })),
            (
                13,
                on("shop", doc! { "update": "readings", "updates": [{ "q": &nothing, "u": { "$set": { "v": 2 } } }] }),
            ),
            (13, on("shop", doc! { "delete": "readings", "deletes": [{ "q": &nothing, "limit": 1 }] })),
            (13, on("shop", doc! { "findAndModify": "readings", "query": &nothing, "remove": true })),
            (
                13,
                on(
                    "shop",
                    doc! { "insert": "readings", "documents": [{ "sensorId": 1, "ts": bson::DateTime::from_millis(0) }] },
                ),
            ),
        ],
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The collMod that a rule needs holds the validator.
    let validator =
        doc! { "$jsonSchema": { "properties": { "hushed": {}, "_id": {} }, "additionalProperties": false } };
    world.root.must(&on("vx", doc! { "create": "items", "validator": validator })).unwrap();
    world.root.must(&on("vx", doc! { "insert": "items", "documents": [{ "_id": 1 }] })).unwrap();
    let twice = doc! { "computed": { "twice": { "expr": { "$add": ["$_id", "$_id"] } } } };
    let plan =
        on("vx", doc! { "pleach": "plan", "declaration": { "database": "vx", "collections": { "items": twice } } });
    for (user, shows) in [("finder", false), ("lister", true)] {
        let told = world.client(user).must(&plan).unwrap().to_string();
        assert!(told.contains("the validator of items would refuse"), "{user}: {told}");
        assert_eq!(told.contains("hushed"), shows, "{user}: {told}");
    }
    let reply = world.client("dropper").command(&on("shop", doc! { "dropDatabase": 1 })).unwrap().document;
    assert_eq!(code(&reply), 0, "{reply}");
    assert_eq!(world.states("shop"), ["orders.customer on", "products.reviewCount on", "readings.bucket on"]);
}
