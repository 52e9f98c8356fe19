//! Unique indexes over paths that differ between versions, at both doors: refused while a document is stored in an older version, whether
//! the index comes after the rule or was there before (SEMANTICS R19).

use crate::doors::{At, Door, at_each_door};
use bson::{Document, doc};
use std::time::{Duration, Instant};

at_each_door!(an_index_waits_for_the_migration, a_rule_does_not_come_over_an_index, an_audit_looks_at_all_documents,);

fn users(background: bool) -> Document {
    doc! { "users": { "versions": {
        "field": "v",
        "migrate": { "background": background },
        "steps": [{ "rename": { "mail": "email" } }],
    } } }
}

fn index(door: &Door, key: &str) -> Document {
    let index = doc! { "key": { key: 1 }, "name": format!("{key}_1"), "unique": true };
    door.ask(doc! { "createIndexes": "users", "indexes": [index] })
}

fn filled(at: At, name: &str) -> Door {
    let door = at.door(name);
    let old = (0..3).map(|id| doc! { "_id": id, "mail": format!("{id}@x"), "n": id });
    door.must(doc! { "insert": "users", "documents": old.collect::<Vec<_>>() });
    door
}

/// Waits until all documents are stored in the newest version.
fn migrated(door: &Door) {
    let began = Instant::now();
    loop {
        let status = door.must(doc! { "pleach": "status" });
        let rule = status.get_array("rules").unwrap()[0].as_document().unwrap().clone();
        if rule.get_document("health").is_ok_and(|health| health.get_i64("left").ok() == Some(0)) {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{status}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn an_index_waits_for_the_migration(at: At) {
    let door = filled(at, "unique_waits");
    door.apply(users(false));
    for path in ["email", "mail"] {
        let reply = index(&door, path);
        assert_eq!(reply.get_i32("code").ok(), Some(67), "{reply}");
        assert!(reply.get_str("errmsg").unwrap().contains("older version"), "{reply}");
    }
    // A path that no step changes is nobody's business, nor is an index that only finds.
    assert_eq!(index(&door, "n").get_f64("ok").unwrap(), 1.0);
    door.must(doc! { "createIndexes": "users", "indexes": [{ "key": { "email": 1, "n": 1 }, "name": "found" }] });
    door.apply(users(true));
    migrated(&door);
    let reply = index(&door, "email");
    assert_eq!(reply.get_f64("ok").unwrap(), 1.0, "{reply}");
    let again = door.ask(doc! { "insert": "users", "documents": [{ "_id": 9, "email": "1@x", "n": 9 }] });
    let error = again.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
    assert_eq!(error.get_i32("code").unwrap(), 11000, "{again}");
    door.finish();
}

fn a_rule_does_not_come_over_an_index(at: At) {
    let door = filled(at, "unique_before");
    assert_eq!(index(&door, "mail").get_f64("ok").unwrap(), 1.0);
    let refused = door.applied(&mut door.client(), users(true));
    assert_eq!(refused.get_f64("ok").unwrap(), 0.0, "{refused}");
    let text = refused.get_str("errmsg").unwrap();
    assert!(text.contains("nothing was applied") && text.contains("mail_1") && text.contains("dropIndex"), "{text}");
    assert_eq!(door.all("users")[0], doc! { "_id": 0, "mail": "0@x", "n": 0 });
    door.must(doc! { "dropIndexes": "users", "index": "mail_1" });
    door.apply(users(true));
    migrated(&door);
    assert_eq!(index(&door, "email").get_f64("ok").unwrap(), 1.0);
    // The index is in the words of the newest version: applied again, nothing is in its way.
    door.apply(users(false));
    assert_eq!(door.all("users")[0], doc! { "_id": 0, "n": 0, "email": "0@x", "v": 2 });
    door.finish();
}

fn an_audit_looks_at_all_documents(at: At) {
    let door = filled(at, "versions_audit");
    door.apply(users(false));
    let audit = door.must(doc! { "pleach": "audit" });
    let rule = audit.get_array("rules").unwrap()[0].as_document().unwrap().clone();
    assert_eq!((rule.get_str("rule").unwrap(), rule.get_i64("checked").unwrap()), ("users.versions", 3), "{audit}");
    door.finish();
}
