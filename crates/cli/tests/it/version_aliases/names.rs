//! Which names stand for a version, and what may be asked under them.

use super::{Older, filled};
use crate::doors::{At, at_each_door};
use bson::doc;

at_each_door!(
    what_is_no_version_is_refused,
    definitions_are_left_to_the_database,
    without_versions_it_is_a_name_like_any_other,
);

fn what_is_no_version_is_refused(at: At) {
    let door = filled(at, "older_unknown");
    for version in ["0", "4", "9", "x", "", "01"] {
        let mut client = Older::of(&door, version);
        for command in [
            doc! { "find": "users" },
            doc! { "find": "notes" },
            doc! { "insert": "users", "documents": [{ "_id": 50 }] },
            doc! { "insert": "notes", "documents": [{ "_id": 50 }] },
            doc! { "update": "users", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }] },
            doc! { "delete": "users", "deletes": [{ "q": {}, "limit": 0 }] },
            doc! { "aggregate": "users", "pipeline": [], "cursor": {} },
            doc! { "listCollections": 1 },
            doc! { "createIndexes": "users", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] },
        ] {
            let reply = client.ask(command.clone());
            assert_eq!(reply.get_i32("code").ok(), Some(73), "{version}: {command}: {reply}");
            assert!(reply.get_str("errmsg").unwrap().contains("versions 1 to 3"), "{reply}");
        }
    }
    // Posts have two versions.
    let mut third = Older::of(&door, "3");
    let reply = third.ask(doc! { "find": "posts" });
    assert_eq!(reply.get_i32("code").ok(), Some(73), "{reply}");
    let reply = third.ask(doc! { "aggregate": "users", "pipeline": [{ "$unionWith": "posts" }], "cursor": {} });
    assert_eq!(reply.get_i32("code").ok(), Some(73), "{reply}");
    third.must(doc! { "find": "users" });
    assert_eq!(door.all("users").len(), 3);
    door.finish();
}

fn definitions_are_left_to_the_database(at: At) {
    let door = filled(at, "older_definitions");
    let mut older = Older::of(&door, "1");
    for command in [
        doc! { "drop": "users" },
        doc! { "dropDatabase": 1 },
        doc! { "collMod": "users", "validator": {} },
        doc! { "create": "seen", "viewOn": "users", "pipeline": [] },
        doc! { "dropIndexes": "users", "index": "*" },
        doc! { "aggregate": "users", "pipeline": [{ "$out": "copies" }], "cursor": {} },
    ] {
        let reply = older.ask(command.clone());
        assert_eq!(reply.get_i32("code").ok(), Some(96), "{command}: {reply}");
        assert!(reply.get_str("errmsg").unwrap().contains(&door.db), "{reply}");
    }
    let watched = older.ask(doc! { "aggregate": "users", "pipeline": [{ "$changeStream": {} }], "cursor": {} });
    assert_eq!(watched.get_i32("code").ok(), Some(115), "{watched}");
    // What object mappers do when they start.
    let created = older.ask(doc! { "create": "users" });
    assert_eq!(created.get_i32("code").ok(), Some(48), "{created}");
    older.must(doc! { "create": "fresh" });
    older.must(doc! { "createIndexes": "users", "indexes": [{ "key": { "phone": 1 }, "name": "phone_1" }, { "key": { "x": 1 }, "name": "x_1", "unique": true, "sparse": true }] });
    let strict = older.ask(
        doc! { "createIndexes": "users", "indexes": [{ "key": { "mail": 1 }, "name": "mail_1", "unique": true }] },
    );
    assert_eq!(strict.get_i32("code").ok(), Some(67), "{strict}");
    let mut client = door.client();
    let indexes = door.indexes(&mut client, "users");
    assert!(indexes.contains(&"phone_1".to_owned()) && indexes.contains(&"x_1".to_owned()), "{indexes:?}");
    let listed = older.must(doc! { "listIndexes": "users" });
    assert!(listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len() >= 3, "{listed}");
    let listed = older.must(doc! { "listCollections": 1, "nameOnly": true });
    let names: Vec<&str> = listed
        .get_document("cursor")
        .unwrap()
        .get_array("firstBatch")
        .unwrap()
        .iter()
        .map(|row| row.as_document().unwrap().get_str("name").unwrap())
        .collect();
    assert!(names.contains(&"users") && names.contains(&"fresh"), "{names:?}");
    for command in [
        doc! { "ping": 1 },
        doc! { "dbStats": 1 },
        doc! { "collStats": "users" },
        doc! { "buildInfo": 1 },
        doc! { "pleach": "status" },
    ] {
        older.must(command);
    }
    // Nothing of it is a database.
    let all = client.must(&doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" }).unwrap();
    let names: Vec<&str> = all
        .get_array("databases")
        .unwrap()
        .iter()
        .map(|row| row.as_document().unwrap().get_str("name").unwrap())
        .collect();
    assert!(!names.contains(&older.db.as_str()), "{names:?}");
    door.finish();
}

fn without_versions_it_is_a_name_like_any_other(at: At) {
    let door = at.door("older_plain");
    let mut named = Older::of(&door, "1");
    named.must(doc! { "insert": "users", "documents": [{ "_id": 1, "phone": "1" }] });
    assert_eq!(named.find(doc! {}), [doc! { "_id": 1, "phone": "1" }]);
    assert_eq!(door.all("users"), []);
    named.must(doc! { "dropDatabase": 1 });
    door.finish();
}
