//! What is remembered for one user: cursors, retry records, sessions, copies read a moment ago.

use super::{World, code, declaration, on, roles, verb};
use crate::mongod::until;
use crate::upstream::{rows, session};
use bson::{Bson, Document, doc};
use judge::client::Client;

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn cursors_and_retry_records_serve_their_user_only() {
    let world = World::new();
    let mut reader = world.client("reader");
    let open = |client: &mut Client| {
        let find = on("shop", doc! { "find": "readings", "batchSize": 10 });
        client.must(&find).unwrap().get_document("cursor").unwrap().get_i64("id").unwrap()
    };
    let id = open(&mut reader);
    let more = on("shop", doc! { "getMore": id, "collection": "readings", "batchSize": 1 });
    let kill = on("shop", doc! { "killCursors": "readings", "cursors": [id] });
    for user in ["nobody", "elsewhere", "writer", "admin"] {
        for command in [&more, &kill] {
            let reply = world.client(user).command(command).unwrap().document;
            assert_eq!(code(&reply), 13, "{user}: {reply}");
        }
    }
    // Another connection of the same user goes on with it.
    assert_eq!(rows(&world.client("reader").must(&more).unwrap(), "nextBatch").len(), 1);
    world.client("reader").must(&kill).unwrap();
    // A write of one user, sent again by others under its session and number.
    let once = doc! {
        "insert": "reviews", "documents": [{ "_id": "once", "productId": 1 }], "lsid": session(5), "txnNumber": 7_i64, "$db": "shop",
    };
    world.client("writer").must(&once).unwrap();
    for (user, expected) in [("nobody", 13), ("elsewhere", 13), ("reader", 13), ("admin", 11000), ("writer", 0)] {
        let reply = world.client(user).command(&once).unwrap().document;
        assert_eq!(code(&reply), expected, "{user}: {reply}");
        assert_eq!(reply.contains_key("retriedStmtIds"), user == "writer", "{user}: {reply}");
    }
    // A higher number of another user does not end the session of this one.
    let mut later = once.clone();
    later.insert("txnNumber", 1_000_i64);
    assert_eq!(code(&world.client("admin").command(&later).unwrap().document), 11000);
    let mut next = once;
    next.extend(doc! { "documents": [{ "_id": "next", "productId": 1 }], "txnNumber": 8_i64 });
    world.client("writer").must(&next).unwrap();
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn nobody_learns_what_it_may_not_read() {
    let mut world = World::new();
    let on_collections = |names: &[&str], actions: &[&str]| -> Vec<Document> {
        let one = |name: &&str| doc! { "resource": { "db": "shop", "collection": *name }, "actions": actions.to_vec() };
        names.iter().map(one).collect()
    };
    let mut privileges = on_collections(
        &["reviews", "orders", "pleach.fences", "pleach.retries", "pleach.outbox"],
        &["find", "insert", "update", "remove", "dropCollection"],
    );
    privileges.extend(on_collections(&["products"], &["update"]));
    let role = doc! { "createRole": "narrow", "privileges": privileges, "roles": Vec::<Bson>::new(), "$db": "shop" };
    world.root.must(&role).unwrap();
    let user = doc! { "createUser": "narrow", "pwd": "s3cret", "roles": roles(&[("narrow", "shop")]), "$db": "admin" };
    world.root.must(&user).unwrap();
    let mut narrow = world.client("narrow");
    // A copy that another user's insert has just read.
    let order = |id: i32| on("shop", doc! { "insert": "orders", "documents": [{ "_id": id, "customerId": 1 }] });
    let mut writer = world.client("writer");
    for id in 10..20 {
        writer.must(&order(id)).unwrap();
    }
    for (what, command, expected) in [
        ("an insert that copies", order(30), 13),
        (
            "a field of a rule",
            on(
                "shop",
                doc! { "update": "products", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "reviewCount": 1 } } }] },
            ),
            66,
        ),
        ("a drop", on("shop", doc! { "drop": "reviews" }), 96),
        ("an audit", verb("audit", doc! { "rule": "orders.customer" }), 2),
        ("a status", verb("status", doc! {}), 0),
        ("a drop of a rule", verb("drop", doc! { "rule": "orders.customer" }), 2),
        (
            "an explain",
            verb("explain", doc! { "command": { "insert": "reviews", "documents": [{ "productId": 1 }] } }),
            13,
        ),
    ] {
        let reply = narrow.command(&command).unwrap().document;
        assert_eq!(code(&reply), expected, "{what}: {reply}");
        let told = reply.to_string();
        assert!(!told.contains("customers") && !told.contains("Ada"), "{what}: {told}");
        let named = command.to_string();
        assert!(named.contains("products") || !told.contains("products"), "{what}: {told}");
    }
    assert!(
        rows(&world.root.must(&on("shop", doc! { "find": "orders", "filter": { "_id": 30 } })).unwrap(), "firstBatch")
            .is_empty()
    );
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn transactions_that_are_refused_delay_no_change_of_rules() {
    let mut world = World::new();
    for (number, user) in [(1, "nobody"), (2, "elsewhere"), (3, "reader")] {
        for (part, collection) in [(0, "notes"), (1, "reviews"), (2, "readings")] {
            let begin = doc! {
                "insert": collection, "documents": [{ "sensorId": 1, "ts": bson::DateTime::from_millis(0) }],
                "lsid": session(100 + 10 * number + part), "txnNumber": 1_i64, "startTransaction": true, "autocommit": false, "$db": "shop",
            };
            let reply = world.client(user).command(&begin).unwrap().document;
            assert_ne!(code(&reply), 0, "{user}: {reply}");
            // A later statement of a transaction that was never begun.
            for (more, option) in [(0, doc! {}), (1, doc! { "tailable": true })] {
                let mut later = doc! {
                    "find": collection, "lsid": session(200 + 10 * number + 2 * part + more), "txnNumber": 1_i64,
                    "autocommit": false, "$db": "shop",
                };
                later.extend(option);
                let reply = world.client(user).command(&later).unwrap().document;
                assert_ne!(code(&reply), 0, "{user}: {reply}");
            }
        }
    }
    let mut wider = declaration("shop");
    let products = doc! { "reviewCount": { "count": "reviews", "by": "productId" }, "mean": { "avg": "stars", "from": "reviews", "by": "productId" } };
    wider.get_document_mut("collections").unwrap().insert("products", doc! { "computed": products });
    world.client("admin").must(&verb("apply", doc! { "declaration": wider, "wait": false })).unwrap();
    until("the rule is on", || world.states("shop").contains(&"products.mean on".to_owned()));
}
