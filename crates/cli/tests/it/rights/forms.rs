//! Arrays that overflow, arrays that are lifted and documents of several versions: what a user may do with the collections that they are
//! made of decides, also where one of these is not named by the command.

use super::{USERS, World, code, declaration, on, verb};
use crate::mongod::until;
use bson::{Document, doc};

/// The shop, and a rule of each form.
fn forms() -> Document {
    let mut declaration = declaration("shop");
    let names = doc! { "keep": 2, "overflow": "more", "owner": "userId", "item": "followerId", "flag": "hasMore", "count": "n" };
    let window = doc! { "from": "remarks", "by": "postId", "sort": { "at": -1 }, "keep": 2, "lift": "remarks" };
    declaration.get_document_mut("collections").unwrap().extend(doc! {
        "users": { "outlier": { "followers": names } },
        // What is compared stays old until a user writes it.
        "people": { "versions": { "field": "v", "steps": [{ "rename": { "mail": "email" } }], "migrate": { "background": false } } },
        "posts": { "subset": { "latest": window } },
    });
    declaration
}

fn world() -> World {
    let mut world = World::new();
    let mut root = world.client("root");
    let mut insert = |collection: &str, documents: Vec<Document>| {
        root.must(&doc! { "insert": collection, "documents": documents, "$db": "shop" }).unwrap();
    };
    insert("users", vec![doc! { "_id": 1, "followers": [1, 2, 3, 4] }, doc! { "_id": 2, "followers": [1] }]);
    insert("people", vec![doc! { "_id": 1, "mail": "a@example.org" }]);
    insert("posts", vec![doc! { "_id": 1, "remarks": [{ "at": 1 }, { "at": 2 }, { "at": 3 }] }]);
    root.must(&doc! { "pleach": "apply", "declaration": forms(), "overwrite": true, "$db": "shop" }).unwrap();
    until("the rules are on", || world.states("shop").iter().all(|state| state.ends_with(" on")));
    world
}

fn push(id: i32) -> Document {
    on("shop", doc! { "update": "users", "updates": [{ "q": { "_id": id }, "u": { "$push": { "followers": 9 } } }] })
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn each_user_may_do_what_the_collections_behind_a_form_allow() {
    let world = world();
    let filter = doc! { "find": "users", "filter": { "followers": 3 } };
    let table: Vec<(&str, Document, [i32; 5])> = vec![
        ("a filter on the array", on("shop", filter.clone()), [13, 13, 0, 0, 0]),
        ("explain of it", verb("explain", doc! { "command": filter.clone() }), [13, 13, 0, 0, 0]),
        ("explain of it by MongoDB's command", on("shop", doc! { "explain": filter }), [13, 13, 0, 0, 0]),
        ("all items", on("shop", doc! { "find": "users.followers", "filter": { "userId": 1 } }), [13, 13, 0, 0, 0]),
        ("count of all items", on("shop", doc! { "count": "users.followers" }), [13, 13, 0, 0, 0]),
        ("a push past the limit", push(1), [13, 13, 13, 0, 0]),
        ("a push below it", push(2), [13, 13, 13, 0, 0]),
        (
            "explain of a push",
            verb(
                "explain",
                doc! { "command": { "update": "users", "updates": [{ "q": { "_id": 1 }, "u": { "$push": { "followers": 9 } } }] } },
            ),
            [13, 13, 13, 0, 0],
        ),
        (
            "a write to the overflow",
            on("shop", doc! { "insert": "more", "documents": [{ "userId": 1 }] }),
            [13, 13, 13, 96, 96],
        ),
        (
            "old documents",
            on("shop", doc! { "find": "people", "filter": { "email": "a@example.org" } }),
            [13, 13, 0, 0, 0],
        ),
        ("documents by an older client", on("shop@1", doc! { "find": "people" }), [13, 13, 0, 0, 0]),
        (
            "a write by an older client",
            on(
                "shop@1",
                doc! { "update": "people", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "mail": "b" } } }] },
            ),
            [13, 13, 13, 0, 0],
        ),
        (
            "a lifted item",
            on("shop", doc! { "update": "remarks", "updates": [{ "q": { "at": 3 }, "u": { "$set": { "at": 0 } } }] }),
            [13, 13, 13, 0, 0],
        ),
    ];
    let mut wrong = Vec::new();
    for (what, command, expected) in &table {
        for (user, expected) in USERS.iter().zip(expected) {
            let reply = world.client(user).command(command).unwrap().document;
            if code(&reply) != *expected {
                wrong.push(format!("{what} by {user}: {} instead of {expected}: {reply}", code(&reply)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn the_overflow_is_no_way_around_the_rights_to_it() {
    let mut world = world();
    let all: &[&str] = &["find", "insert", "update", "remove"];
    let own: &[(&str, &[&str])] = &[("shop.users", all), ("shop.pleach.fences", all), ("shop.pleach.retries", all)];
    world.add_user("hosts_only", own);
    let before = world.stored("shop");
    let ask = |command: Document| code(&world.client("hosts_only").command(&command).unwrap().document);
    let filter = doc! { "find": "users", "filter": { "followers": 3 } };
    assert_eq!(ask(on("shop", doc! { "find": "users" })), 0, "what is stored there may be read");
    for (what, command) in [
        ("a filter that looks into the overflow", on("shop", filter.clone())),
        ("explain of it", on("shop", doc! { "explain": filter.clone() })),
        ("the verb", verb("explain", doc! { "command": filter })),
        ("all items", on("shop", doc! { "find": "users.followers" })),
        ("a push past the limit", push(1)),
        (
            "a delete of an owner",
            on("shop", doc! { "delete": "users", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] }),
        ),
    ] {
        assert_eq!(ask(command), 13, "{what}");
    }
    assert_eq!(world.stored("shop"), before);
}
