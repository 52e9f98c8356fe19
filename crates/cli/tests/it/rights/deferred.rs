//! Work that is put off: the background user does it, for clients that might do it themselves.

use super::{World, code, on, verb};
use crate::mongod::until;
use crate::upstream::{rows, session};
use bson::{Bson, Document, doc};

const WRITES: &[&str] = &["find", "insert", "update", "remove"];
const BOOKS: [&str; 3] = ["lag.pleach.fences", "lag.pleach.retries", "lag.pleach.outbox"];

fn declared() -> Document {
    doc! { "database": "lag", "collections": {
        "posts": {
            "extended_reference": { "author": {
                "from": "authors", "by": "aid", "fields": ["name"], "lag": "10ms", "when_deleted": "cascade",
            } },
        },
        "blogs": { "computed": { "postCount": { "count": "posts", "by": "blog" } } },
        "topics": { "computed": { "noteCount": { "count": "notes", "by": "topic", "lag": "10ms" } } },
        "orders": { "extended_reference": { "customer": { "from": "customers", "by": "cid", "fields": ["name"] } } },
    } }
}

fn fill(world: &mut World) {
    let mut root = world.client("root");
    let orders: Vec<Document> = (0..1_100).map(|id| doc! { "_id": id, "cid": 1 }).collect();
    for (collection, documents) in [
        ("authors", vec![doc! { "_id": 1, "name": "Ada" }]),
        ("blogs", vec![doc! { "_id": 1 }]),
        ("posts", vec![doc! { "_id": 1, "aid": 1, "blog": 1 }, doc! { "_id": 2, "aid": 1, "blog": 1 }]),
        ("topics", vec![doc! { "_id": 1 }]),
        ("customers", vec![doc! { "_id": 1, "name": "Cid" }]),
        ("orders", orders),
    ] {
        root.must(&doc! { "insert": collection, "documents": documents, "$db": "lag" }).unwrap();
    }
    root.must(&doc! { "pleach": "apply", "declaration": declared(), "$db": "lag" }).unwrap();
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn work_is_put_off_only_for_whom_may_do_it() {
    let mut world = World::new();
    fill(&mut world);
    let sources = ["lag.authors", "lag.notes", "lag.customers"];
    let with = |more: &[(&'static str, &'static [&'static str])]| -> Vec<(&'static str, &'static [&'static str])> {
        sources.into_iter().chain(BOOKS).map(|ns| (ns, WRITES)).chain(more.iter().copied()).collect()
    };
    world.add_user("narrow", &with(&[("lag.orders", &["find"])]));
    world.add_user("half", &with(&[("lag.posts", &["update"]), ("lag.blogs", &["find"])]));
    world.add_user("deleter", &with(&[("lag.posts", &["update", "remove"])]));
    world.add_user(
        "wide",
        &with(&[
            ("lag.posts", &["update", "remove"]),
            ("lag.blogs", &["update"]),
            ("lag.topics", &["update"]),
            ("lag.orders", &["find", "update"]),
        ]),
    );
    let rename = |collection: &str, name: &str| {
        on("lag", doc! { "update": collection, "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "name": name } } }] })
    };
    let delete = on("lag", doc! { "delete": "authors", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] });
    let note = on("lag", doc! { "insert": "notes", "documents": [{ "topic": 1 }] });
    let in_transaction = |mut command: Document, part: u8| {
        command
            .extend(doc! { "lsid": session(part), "txnNumber": 1_i64, "startTransaction": true, "autocommit": false });
        command
    };
    for (user, command, expected) in [
        ("narrow", rename("authors", "Bob"), 13),
        ("narrow", in_transaction(rename("authors", "Bob"), 40), 13),
        ("narrow", delete.clone(), 13),
        ("narrow", note.clone(), 13),
        // More hosts than one transaction takes.
        ("narrow", rename("customers", "Bob"), 13),
        // May change the posts, and not delete them.
        ("half", delete.clone(), 13),
        // May delete them, and not change what follows from that.
        ("deleter", delete.clone(), 13),
    ] {
        let before = world.stored("lag");
        let reply = world.client(user).command(&command).unwrap().document;
        assert_eq!(code(&reply), expected, "{user} {command}: {reply}");
        let told = reply.to_string();
        for hidden in ["posts", "topics", "blogs"] {
            let may_read = user == "half" && hidden == "blogs";
            assert!(may_read || !told.contains(hidden), "{user} {command}: {told}");
        }
        if command.contains_key("startTransaction") {
            let commit = doc! { "commitTransaction": 1, "lsid": session(40), "txnNumber": 1_i64, "autocommit": false, "$db": "admin" };
            assert_ne!(code(&world.client(user).command(&commit).unwrap().document), 0);
        }
        assert!(before == world.stored("lag"), "{user} {command} was refused and has changed something");
    }
    let name = |world: &mut World, collection: &str, field: &str| -> Vec<Bson> {
        let find = on("lag", doc! { "find": collection, "filter": { "_id": 1 } });
        let found = rows(&world.root.must(&find).unwrap(), "firstBatch");
        found.iter().filter_map(|row| row.as_document()?.get(field).cloned()).collect()
    };
    for (command, collection, field, expected) in [
        (rename("authors", "Cora"), "posts", "author", doc! { "name": "Cora" }.into()),
        (note, "topics", "noteCount", Bson::Int32(1)),
        (rename("customers", "Cora"), "orders", "customer", doc! { "name": "Cora" }.into()),
    ] {
        world.client("wide").must(&command).unwrap();
        until("it is done", || name(&mut world, collection, field) == vec![expected.clone()]);
    }
    world.client("wide").must(&delete).unwrap();
    until("the posts are gone", || name(&mut world, "blogs", "postCount") == vec![Bson::Int32(0)]);
    // A right that is given is noticed at once.
    world
        .root
        .must(&doc! { "grantPrivilegesToRole": "narrow", "privileges": [
            { "resource": { "db": "lag", "collection": "topics" }, "actions": ["update"] },
        ], "$db": "admin" })
        .unwrap();
    world.client("narrow").must(&on("lag", doc! { "insert": "notes", "documents": [{ "topic": 1 }] })).unwrap();
    until("it is done", || name(&mut world, "topics", "noteCount") == vec![Bson::Int32(2)]);
    world.client("root").must(&verb("status", doc! {})).unwrap();
}
