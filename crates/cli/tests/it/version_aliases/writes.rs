//! What clients of an older version write.

use super::{Older, filled, ids, sorted};
use crate::doors::{At, Door, at_each_door};
use bson::{Bson, Document, doc};

at_each_door!(
    writes_keep_what_is_not_seen,
    statements_answer_as_mongodb_does,
    rules_are_kept_by_older_clients_too,
    a_transaction_of_an_older_client_is_one,
    a_write_that_is_sent_again_is_done_once,
    older_and_newer_clients_write_at_once,
);

fn writes_keep_what_is_not_seen(at: At) {
    let door = filled(at, "older_writes");
    let mut older = Older::of(&door, "1");
    older.must(doc! { "insert": "users", "documents": [{ "_id": 4, "name": "Dan O", "phone": "4", "mail": "d@x" }] });
    let phone = |number: &str, code: &str| doc! { "number": number, "countryCode": code };
    let new = doc! { "_id": 4, "active": true, "email": "d@x", "first": "Dan", "last": "O", "phone": phone("4", "+1"), "v": 3 };
    assert_eq!(older.newest(doc! { "_id": 4 }), [new]);
    let rows: Vec<(i32, Bson, Document)> = vec![
        (3, doc! { "$set": { "phone": "33" } }.into(), doc! { "phone": phone("33", "+49") }),
        (3, doc! { "$set": { "nick": "e" } }.into(), doc! { "nick": ["e", "d"] }),
        (
            3,
            doc! { "$set": { "name": "Cyd Q" }, "$inc": { "visits": 2 } }.into(),
            doc! { "first": "Cyd", "last": "Q", "visits": 2 },
        ),
        (
            3,
            bson::bson!([{ "$set": { "phone": { "$concat": ["$phone", "0"] } } }]),
            doc! { "phone": phone("330", "+49") },
        ),
        (2, doc! { "$rename": { "mail": "address" } }.into(), doc! { "address": "b@x", "phone": phone("2", "+44") }),
        (2, doc! { "$push": { "tags": "t" } }.into(), doc! { "tags": ["t"], "phone": phone("2", "+44") }),
        (1, doc! { "$set": { "phone": "11" } }.into(), doc! { "phone": phone("11", "+1"), "first": "Ada" }),
    ];
    for (id, update, expected) in rows {
        let reply = older.update(doc! { "_id": id }, update.clone());
        assert_eq!((reply.get_i32("n").ok(), reply.get_i32("nModified").ok()), (Some(1), Some(1)), "{update}: {reply}");
        let now = older.newest(doc! { "_id": id }).remove(0);
        for (field, value) in expected {
            assert_eq!(now.get(&field), Some(&value), "{update} made {now}");
        }
    }
    assert_eq!(older.newest(doc! { "_id": 2 })[0].get("email"), None);
    // A whole document that was read and is written back leaves everything as it is.
    let before = older.newest(doc! { "_id": 3 });
    let whole = older.find(doc! { "_id": 3 }).remove(0);
    let reply = older.update(doc! { "_id": 3 }, whole.clone());
    assert_eq!((reply.get_i32("n").ok(), reply.get_i32("nModified").ok()), (Some(1), Some(0)), "{reply}");
    assert_eq!(older.newest(doc! { "_id": 3 }), before);
    let mut own = whole.clone();
    own.remove("active");
    own.remove("v");
    own.insert("name", "Cyd R");
    older.update(doc! { "_id": 3 }, own);
    let now = older.newest(doc! { "_id": 3 }).remove(0);
    assert_eq!((now.get_str("last").ok(), now.get_bool("active").ok()), (Some("R"), Some(false)), "{now}");
    assert_eq!(
        (now.get_array("nick").unwrap().len(), now.get_document("phone").unwrap().get_str("countryCode").ok()),
        (2, Some("+49"))
    );
    door.finish();
}

fn statements_answer_as_mongodb_does(at: At) {
    let door = filled(at, "older_replies");
    let mut older = Older::of(&door, "1");
    // Many at once.
    let reply = older.must(doc! { "update": "users", "updates": [
        { "q": { "phone": { "$gte": "2" } }, "u": { "$set": { "phone": "7", "seen": 1 } }, "multi": true },
        { "q": { "phone": "none" }, "u": { "$set": { "x": 1 } } },
        { "q": { "_id": 1 }, "u": { "$set": { "y": 1 } } },
    ] });
    assert_eq!((reply.get_i32("n").ok(), reply.get_i32("nModified").ok()), (Some(3), Some(3)), "{reply}");
    let codes: Vec<String> = older
        .newest(doc! { "_id": { "$gt": 1 } })
        .iter()
        .map(|row| row.get_document("phone").unwrap().get_str("countryCode").unwrap().to_owned())
        .collect();
    assert_eq!(codes, ["+44", "+49"]);
    // An upsert makes a document of the version.
    let upsert = doc! { "update": "users", "updates": [{ "q": { "phone": "5" }, "u": { "$set": { "name": "Eve P" }, "$setOnInsert": { "_id": 5 } }, "upsert": true }] };
    let reply = older.must(upsert.clone());
    let made = reply.get_array("upserted").unwrap()[0].as_document().unwrap().clone();
    assert_eq!(
        (
            reply.get_i32("n").ok(),
            reply.get_i32("nModified").ok(),
            made.get_i32("_id").ok(),
            made.get_i32("index").ok()
        ),
        (Some(1), Some(0), Some(5), Some(0))
    );
    let reply = older.must(upsert);
    assert_eq!((reply.get_i32("n").ok(), reply.get_i32("nModified").ok()), (Some(1), Some(0)));
    let now = older.newest(doc! { "_id": 5 }).remove(0);
    assert_eq!(
        (now.get_str("last").ok(), now.get_bool("active").ok(), now.get_i32("v").ok()),
        (Some("P"), Some(true), Some(3)),
        "{now}"
    );
    // One that names a document and does not match it fails, and counts nothing.
    let refused = older.ask(doc! { "update": "users", "updates": [{ "q": { "_id": 5, "phone": "none" }, "u": { "$set": { "x": 1 } }, "upsert": true }] });
    let failed = refused.get_array("writeErrors").unwrap()[0].as_document().unwrap();
    assert_eq!((failed.get_i32("code").ok(), refused.get_i32("n").ok()), (Some(11000), Some(0)), "{refused}");
    assert!(!refused.contains_key("upserted"), "{refused}");
    // findAndModify shows documents of the version.
    let modify = |more: Document| {
        let mut command = doc! { "findAndModify": "users", "query": { "phone": "5" } };
        command.extend(more);
        command
    };
    let value = |reply: Document| sorted(reply.get_document("value").unwrap().clone());
    let before = value(older.must(modify(doc! { "update": { "$set": { "name": "Eve Q" } }, "fields": { "name": 1 } })));
    assert_eq!(before, doc! { "_id": 5, "name": "Eve P" });
    let after =
        value(older.must(modify(doc! { "update": { "$set": { "phone": "5", "name": "Eve R" } }, "new": true })));
    assert_eq!(after, doc! { "_id": 5, "active": true, "name": "Eve R", "phone": "5", "v": 1 });
    let by_order = doc! { "findAndModify": "users", "query": {}, "sort": { "name": -1 }, "update": { "$set": { "last": true } }, "fields": { "name": 1 } };
    assert_eq!(value(older.must(by_order)), doc! { "_id": 5, "name": "Eve R" });
    let made = older.must(doc! { "findAndModify": "users", "query": { "_id": 6 }, "update": { "$set": { "mail": "f@x" } }, "upsert": true, "new": true });
    assert_eq!(value(made), doc! { "_id": 6, "active": true, "mail": "f@x", "v": 1 });
    assert_eq!(value(older.must(modify(doc! { "remove": true }))).get_str("name").ok(), Some("Eve R"));
    // Deletes.
    let reply = older.must(doc! { "delete": "users", "deletes": [{ "q": { "mail": "f@x" }, "limit": 1 }, { "q": { "phone": "7" }, "limit": 0 }] });
    assert_eq!(reply.get_i32("n").ok(), Some(3));
    assert_eq!(ids(&older.newest(doc! {})), [1]);
    // Errors are those of the statement, in order.
    let reply = older
        .ask(doc! { "insert": "users", "documents": [{ "_id": 1 }, { "_id": 8, "phone": "8" }], "ordered": false });
    let error = |reply: &Document| {
        let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
        (error.get_i32("index").unwrap(), error.get_i32("code").unwrap())
    };
    assert_eq!((reply.get_i32("n").ok(), error(&reply)), (Some(1), (0, 11000)));
    let reply = older.ask(doc! { "update": "users", "updates": [
        { "q": { "_id": 8 }, "u": { "$set": { "phone": "88" } } },
        { "q": { "_id": 8 }, "u": { "$inc": { "phone": 1 } } },
        { "q": { "_id": 8 }, "u": { "$set": { "phone": "89" } } },
    ] });
    assert_eq!((reply.get_i32("n").ok(), error(&reply)), (Some(1), (1, 14)), "{reply}");
    assert_eq!(older.find(doc! { "_id": 8 })[0].get_str("phone").ok(), Some("88"));
    let reply = older.ask(doc! { "update": "users", "updates": [{ "q": { "_id": 8 }, "u": { "$set": { "v": 2 } } }] });
    assert_eq!(error(&reply), (0, 66), "{reply}");
    door.finish();
}

fn rules_are_kept_by_older_clients_too(at: At) {
    let door = at.door("older_rules");
    let mut collections = doc! { "users": { "versions": { "field": "v", "steps": [
        { "nest": { "phone": { "into": "phone.number", "with": { "phone.countryCode": "+1" } } } },
        { "rename": { "town": "city" } },
    ] }, "computed": {
        "orderCount": { "count": "orders", "by": "userId" },
        "label": { "expr": { "$concat": ["$city", "!"] } },
    } } };
    collections.extend(doc! {
        "orders": { "extended_reference": { "buyer": { "from": "users", "by": "userId", "fields": ["city"] } } },
    });
    door.apply(collections);
    let mut older = Older::of(&door, "1");
    older.must(doc! { "insert": "users", "documents": [{ "_id": 1, "town": "Bern", "phone": "1" }] });
    older.must(doc! { "insert": "orders", "documents": [{ "_id": 1, "userId": 1 }, { "_id": 2, "userId": 1 }] });
    let seen = older.find(doc! { "_id": 1 }).remove(0);
    assert_eq!(
        (seen.get_i32("orderCount").ok(), seen.get_str("label").ok(), seen.get_str("town").ok()),
        (Some(2), Some("Bern!"), Some("Bern")),
        "{seen}"
    );
    older.update(doc! { "town": "Bern" }, doc! { "$set": { "town": "Rome" } });
    let copied = |door: &Door| door.all("orders")[0].get_document("buyer").unwrap().get_str("city").unwrap().to_owned();
    assert_eq!(copied(&door), "Rome");
    assert_eq!(older.find(doc! {})[0].get_str("label").ok(), Some("Rome!"));
    // What a rule keeps is refused where it is named, and left out of a whole document.
    let reply = older.ask(doc! { "update": "users", "updates": [{ "q": { "town": "Rome" }, "u": { "$set": { "orderCount": 9, "town": "Nice" } } }] });
    assert_eq!(
        reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().get_i32("code").ok(),
        Some(66),
        "{reply}"
    );
    assert_eq!(copied(&door), "Rome");
    older.update(doc! { "_id": 1 }, doc! { "town": "Oslo", "phone": "2", "orderCount": 9 });
    let seen = older.find(doc! {}).remove(0);
    assert_eq!(
        (seen.get_i32("orderCount").ok(), seen.get_str("label").ok(), copied(&door).as_str()),
        (Some(2), Some("Oslo!"), "Oslo"),
        "{seen}"
    );
    let audited = door.client().command(&doc! { "pleach": "audit", "$db": &older.db }).unwrap().document;
    assert_eq!(
        (audited.get_f64("ok").ok(), audited.get_i64("drifted").unwrap_or_default()),
        (Some(1.0), 0),
        "{audited}"
    );
    door.finish();
}

fn a_transaction_of_an_older_client_is_one(at: At) {
    let door = filled(at, "older_transaction");
    let mut older = Older::of(&door, "1");
    let session = session();
    let mut number = 0_i64;
    for commits in [false, true] {
        number += 1;
        let mut first = true;
        let mut within = |older: &mut Older<'_>, mut command: Document| {
            command.extend(doc! { "lsid": session.clone(), "txnNumber": number, "autocommit": false });
            if std::mem::take(&mut first) {
                command.insert("startTransaction", true);
            }
            older.must(command)
        };
        within(&mut older, doc! { "insert": "users", "documents": [{ "_id": 10, "phone": "10", "name": "Jo K" }] });
        let update = doc! { "q": { "phone": "3" }, "u": { "$set": { "phone": "30" } } };
        assert_eq!(
            within(&mut older, doc! { "update": "users", "updates": [update] }).get_i32("nModified").ok(),
            Some(1)
        );
        let many = doc! { "q": { "phone": { "$gte": "2" } }, "u": { "$set": { "mail": "t@x" } }, "multi": true };
        assert_eq!(within(&mut older, doc! { "update": "users", "updates": [many] }).get_i32("n").ok(), Some(2));
        let found = within(&mut older, doc! { "find": "users", "filter": { "phone": { "$in": ["10", "30"] } } });
        assert_eq!(found.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len(), 2);
        assert_eq!(ids(&older.find(doc! { "phone": { "$in": ["10", "30"] } })), [] as [i32; 0]);
        let end = if commits { "commitTransaction" } else { "abortTransaction" };
        let end = doc! { end: 1, "lsid": session.clone(), "txnNumber": number, "autocommit": false, "$db": "admin" };
        assert_eq!(older.client.command(&end).unwrap().document.get_f64("ok").ok(), Some(1.0));
        let expected: &[i32] = if commits { &[3, 10] } else { &[] };
        assert_eq!(ids(&older.find(doc! { "phone": { "$in": ["10", "30"] } })), expected);
    }
    assert_eq!(
        older.newest(doc! { "_id": 3 })[0].get_document("phone").unwrap().get_str("countryCode").ok(),
        Some("+49")
    );
    door.finish();
}

fn a_write_that_is_sent_again_is_done_once(at: At) {
    let door = filled(at, "older_retry");
    let mut older = Older::of(&door, "1");
    let session = session();
    let commands = [
        doc! { "insert": "users", "documents": [{ "_id": 20, "phone": "20" }] },
        doc! { "update": "users", "updates": [{ "q": { "_id": 3 }, "u": [{ "$set": { "phone": { "$concat": ["$phone", "+"] } } }] }] },
        doc! { "findAndModify": "users", "query": { "_id": 3 }, "update": [{ "$set": { "phone": { "$concat": ["$phone", "-"] } } }], "new": true },
        doc! { "update": "users", "updates": [{ "q": { "phone": "21" }, "u": { "$setOnInsert": { "_id": 21 } }, "upsert": true }, { "q": { "_id": 1 }, "u": { "$inc": { "n": 1 } } }] },
        doc! { "delete": "users", "deletes": [{ "q": { "phone": "20" }, "limit": 1 }] },
    ];
    for (number, command) in (1_i64..).zip(commands) {
        let mut once = command;
        once.extend(doc! { "lsid": session.clone(), "txnNumber": number });
        let told = |mut reply: Document| {
            for name in [
                "operationTime",
                "$clusterTime",
                "lastErrorObject",
                "retriedStmtId",
                "retriedStmtIds",
                "electionId",
                "opTime",
            ] {
                reply.remove(name);
            }
            reply
        };
        let first = told(older.must(once.clone()));
        assert_eq!(told(older.must(once.clone())), first, "{once}");
    }
    let now = older.find(doc! {});
    assert_eq!(ids(&now), [1, 2, 3, 21]);
    assert_eq!((now[2].get_str("phone").ok(), now[0].get_i32("n").ok()), (Some("3+-"), Some(1)));
    door.finish();
}

/// Clients of three versions change one document at once, each something of its own; nothing gets lost.
fn older_and_newer_clients_write_at_once(at: At) {
    let door = filled(at, "older_at_once");
    let rounds = 25;
    std::thread::scope(|scope| {
        for (version, field, update) in [
            (
                "@1",
                "one",
                bson::bson!([{ "$set": { "phone": { "$concat": ["$phone", "1"] }, "one": { "$add": [{ "$ifNull": ["$one", 0] }, 1] } } }]),
            ),
            (
                "@2",
                "two",
                bson::bson!([{ "$set": { "phone.number": { "$concat": ["$phone.number", "2"] }, "two": { "$add": [{ "$ifNull": ["$two", 0] }, 1] } } }]),
            ),
            (
                "",
                "three",
                bson::bson!([{ "$set": { "phone.countryCode": { "$concat": ["$phone.countryCode", "3"] }, "three": { "$add": [{ "$ifNull": ["$three", 0] }, 1] } } }]),
            ),
        ] {
            let (door, name) = (&door, format!("{}{version}", door.db));
            scope.spawn(move || {
                let mut client = door.client();
                for _ in 0..rounds {
                    let command = doc! { "update": "users", "updates": [{ "q": { "_id": 3 }, "u": update.clone() }], "$db": &name };
                    let reply = client.command(&command).unwrap().document;
                    assert_eq!(reply.get_i32("nModified").ok(), Some(1), "{field}: {reply}");
                }
            });
        }
    });
    let now = door.all("users").remove(2);
    for field in ["one", "two", "three"] {
        assert_eq!(now.get_i32(field).ok(), Some(rounds), "{now}");
    }
    let phone = now.get_document("phone").unwrap();
    let count = |text: &str, sign: char| text.chars().filter(|other| *other == sign).count();
    let (number, code) = (phone.get_str("number").unwrap(), phone.get_str("countryCode").unwrap());
    assert_eq!((count(number, '1'), count(number, '2'), count(code, '3')), (25, 25, 25), "{phone}");
    assert!(code.starts_with("+49") && number.starts_with('3'), "{phone}");
    door.finish();
}

/// A session that no run before had: a real MongoDB remembers them.
fn session() -> Document {
    let bytes = bson::Uuid::new().bytes().to_vec();
    doc! { "id": bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes } }
}
