//! What `explain` says a write costs is what the write then does: through the wire's `explain`, `{ pleach: "explain" }` and the
//! command line, on both doors.

use crate::doors::{Door, doors};
use crate::serving::pleach;
use bson::{Bson, DateTime, Document, doc};
use std::collections::BTreeMap;
use std::process::Command;

const CUSTOMERS: i32 = 10;
const ORDERS: i32 = 100;

/// Everything that is not Pleach's own, by collection and `_id`.
fn everything(door: &Door) -> BTreeMap<(String, String), Document> {
    let names = door.rows(doc! { "listCollections": 1, "nameOnly": true });
    let mut all = BTreeMap::new();
    for name in names.iter().filter(|row| row.get_str("type").unwrap() == "collection") {
        let name = name.get_str("name").unwrap();
        if !name.starts_with("pleach.") && !name.starts_with("system.") {
            all.extend(door.all(name).into_iter().map(|doc| ((name.to_owned(), doc["_id"].to_string()), doc)));
        }
    }
    all
}

fn number(value: &Bson) -> i64 {
    value.as_i64().or(value.as_i32().map(i64::from)).unwrap_or_else(|| panic!("{value}"))
}

fn written(told: &Document) -> i64 {
    number(&told.get_document("cost").unwrap()["written"])
}

fn command_line(door: &Door, command: &Document, more: &[&str]) -> Command {
    let mut verb = pleach();
    verb.args(["explain", "--server", &door.uri(), "--db", &door.db]).args(more);
    verb.arg(Bson::Document(command.clone()).into_canonical_extjson().to_string());
    verb
}

/// All three ways say the same number of written documents; gives it.
fn told(door: &Door, command: &Document) -> i64 {
    let by_verb = door.must(doc! { "pleach": "explain", "command": command.clone() });
    let output = command_line(door, command, &["--json"]).output().unwrap();
    let by_line: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(by_line["cost"]["written"].as_i64(), Some(written(&by_verb)), "{command}");
    let text = command_line(door, command, &[]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    let cost = text.lines().find(|line| line.starts_with("cost: ")).unwrap_or_else(|| panic!("{text}"));
    assert!(cost.replace(',', "").starts_with(&format!("cost: {} document", written(&by_verb))), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // MongoDB explains one statement, and no inserts.
    let verb = command.keys().next().unwrap();
    let statements = command.get_array(if verb == "update" { "updates" } else { "deletes" }).map_or(1, Vec::len);
    if verb != "insert" && statements == 1 {
        let by_wire = door.must(doc! { "explain": command.clone() });
        match by_wire.get_document("pleach") {
            Ok(pleach) => assert_eq!(written(pleach), written(&by_verb), "{command}"),
            // What no rule concerns is MongoDB's alone.
            Err(_) => assert!(by_verb.get_array("rules").unwrap().is_empty(), "{by_wire}"),
        }
    }
    written(&by_verb)
}

/// Explains the command, runs it, and compares: `expected` documents.
fn check(door: &Door, command: Document, expected: i64) {
    let before = everything(door);
    assert_eq!(told(door, &command), expected, "{command}");
    assert_eq!(everything(door), before, "explain changes nothing: {command}");
    let reply = door.must(command.clone());
    assert!(reply.get_array("writeErrors").is_err(), "{reply}");
    assert_eq!(changed(door, &before), expected, "{command}");
}

fn changed(door: &Door, before: &BTreeMap<(String, String), Document>) -> i64 {
    let after = everything(door);
    let here = after.iter().filter(|(key, doc)| before.get(*key) != Some(*doc)).count();
    let gone = before.keys().filter(|key| !after.contains_key(*key)).count();
    i64::try_from(here + gone).unwrap()
}

fn update(collection: &str, q: Document, u: Document, multi: bool) -> Document {
    doc! { "update": collection, "updates": [{ "q": q, "u": u, "multi": multi }] }
}

fn fill(door: &Door) {
    let customers: Vec<Document> =
        (0..CUSTOMERS).map(|id| doc! { "_id": id, "name": format!("c{id}"), "tier": 1 }).collect();
    door.must(doc! { "insert": "customers", "documents": customers });
    let orders: Vec<Document> =
        (0..ORDERS).map(|id| doc! { "_id": id, "customerId": id % CUSTOMERS, "total": id }).collect();
    door.must(doc! { "insert": "orders", "documents": orders });
    let notes: Vec<Document> = (0..30).map(|id| doc! { "_id": id, "customerId": id % 3 }).collect();
    door.must(doc! { "insert": "notes", "documents": notes });
}

#[test]
fn what_a_write_costs_is_what_it_writes() {
    for door in doors("explained", "what explain says a write costs") {
        door.apply(doc! {
            "customers": { "computed": { "orders": { "count": "orders", "by": "customerId" }, "spent": { "sum": "total", "from": "orders", "by": "customerId" } } },
            "orders": { "extended_reference": { "customer": { "from": "customers", "by": "customerId", "fields": ["name"], "when_deleted": "unset" } } },
            "notes": { "extended_reference": { "who": { "from": "customers", "by": "customerId", "fields": ["name"], "when_deleted": "cascade" } } },
        });
        fill(&door);
        // 10 customers and their 100 orders and 30 notes.
        check(&door, update("customers", doc! {}, doc! { "$set": { "name": "new" } }, true), 140);
        // Nothing follows from it …
        check(&door, update("customers", doc! {}, doc! { "$set": { "tier": 2 } }, true), 10);
        // … and nothing changes.
        check(&door, update("customers", doc! {}, doc! { "$set": { "tier": 2, "name": "new" } }, true), 0);
        check(&door, update("customers", doc! { "_id": 5 }, doc! { "$set": { "name": "one" } }, false), 11);
        // The order, and the customers that it leaves and comes to.
        check(&door, update("orders", doc! { "_id": 5 }, doc! { "$set": { "customerId": 6 } }, false), 3);
        check(&door, update("orders", doc! { "_id": 5 }, doc! { "$inc": { "total": 1 } }, false), 2);
        // 10 orders of one customer, and of ten.
        check(&door, update("orders", doc! { "customerId": 7 }, doc! { "$inc": { "total": 1 } }, true), 11);
        check(&door, update("orders", doc! {}, doc! { "$inc": { "total": 1 } }, true), 110);
        let orders: Vec<Document> = (200..206).map(|id| doc! { "_id": id, "customerId": id % 3, "total": 1 }).collect();
        check(&door, doc! { "insert": "orders", "documents": orders }, 9);
        check(&door, doc! { "insert": "orders", "documents": [{ "_id": 300, "customerId": 99 }] }, 1);
        // A customer that orders wait for.
        check(&door, doc! { "insert": "customers", "documents": [{ "_id": 99, "name": "late" }] }, 2);
        let upsert = doc! { "update": "orders", "updates": [{ "q": { "_id": 301 }, "u": { "$set": { "customerId": 99, "total": 4 } }, "upsert": true }] };
        check(&door, upsert, 2);
        let bulk = doc! { "update": "orders", "updates": [
            { "q": { "_id": 1 }, "u": { "$inc": { "total": 1 } } }, { "q": { "_id": 11 }, "u": { "$inc": { "total": 1 } } },
            { "q": { "_id": 1 }, "u": { "$inc": { "total": 1 } } }, { "q": { "_id": 2 }, "u": { "$set": { "customerId": 3 } } },
        ] };
        // Three orders, and the customers 1, 2 and 3.
        check(&door, bulk, 6);
        let modify = doc! { "findAndModify": "orders", "query": { "_id": 4 }, "update": { "$inc": { "total": 1 } }, "new": true };
        check(&door, modify, 2);
        check(&door, doc! { "findAndModify": "orders", "query": { "_id": 4 }, "remove": true }, 2);
        check(&door, doc! { "delete": "orders", "deletes": [{ "q": { "_id": 14 }, "limit": 1 }] }, 2);
        // Unset in its orders, its notes deleted.
        let of_one =
            |name: &str| i64::try_from(door.rows(doc! { "find": name, "filter": { "customerId": 1 } }).len()).unwrap();
        let expected = 1 + of_one("orders") + of_one("notes");
        check(&door, doc! { "delete": "customers", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] }, expected);
        let orders = i64::try_from(door.all("orders").len()).unwrap();
        let counted = door.rows(doc! { "find": "customers", "filter": { "orders": { "$gt": 0 } } });
        check(
            &door,
            doc! { "delete": "orders", "deletes": [{ "q": {}, "limit": 0 }] },
            orders + i64::try_from(counted.len()).unwrap(),
        );
        // No rule concerns it.
        check(&door, doc! { "insert": "other", "documents": [{ "_id": 1 }, { "_id": 2 }] }, 2);
        door.finish();
    }
}

/// Deferred work is counted beside, and done afterwards.
#[test]
fn what_jobs_write_is_counted_too() {
    for door in doors("deferred", "what explain says of deferred work") {
        door.apply(doc! {
            "orders": { "extended_reference": { "customer": { "from": "customers", "by": "customerId", "fields": ["name"] } } },
        });
        door.must(doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "a" }, { "_id": 2, "name": "b" }] });
        for part in 0..2 {
            let orders: Vec<Document> = (0..600).map(|id| doc! { "_id": part * 1000 + id, "customerId": 1 }).collect();
            door.must(doc! { "insert": "orders", "documents": orders });
        }
        let command = update("customers", doc! { "_id": 1 }, doc! { "$set": { "name": "c" } }, false);
        assert_eq!(told(&door, &command), 1201);
        let cost = door.must(doc! { "pleach": "explain", "command": command.clone() });
        assert_eq!(number(&cost.get_document("cost").unwrap()["deferred"]), 1200);
        let before = everything(&door);
        door.must(command);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while changed(&door, &before) < 1201 && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        assert_eq!(changed(&door, &before), 1201);
        door.finish();
    }
}

#[test]
fn buckets_are_counted_as_they_are_stored() {
    for door in doors("explainedbuckets", "what explain says of buckets") {
        door.apply(doc! {
            "readings": { "bucket": { "into": "hours", "time": "at", "by": ["s"], "every": "hour", "at_most": 4 } },
            "events": { "bucket": { "into": "quarters", "time": "date", "by": ["key"], "every": "quarter", "slot": "day", "sum": { "approved": "a" }, "layout": "field_names" } },
        });
        let at = |minutes: i64| DateTime::from_millis(1_704_067_200_000 + minutes * 60_000);
        let reading = |id: i32, s: i32, minutes: i64| doc! { "_id": id, "s": s, "at": at(minutes), "v": id };
        // Two series, and a bucket that is full after four.
        let first: Vec<Document> = (0..12).map(|id| reading(id, id % 2, i64::from(id))).collect();
        check(&door, doc! { "insert": "readings", "documents": first }, 4);
        check(&door, doc! { "insert": "readings", "documents": [reading(20, 0, 5), reading(21, 0, 70)] }, 2);
        check(&door, update("readings", doc! { "s": 0 }, doc! { "$inc": { "v": 1 } }, true), 3);
        check(&door, update("readings", doc! { "_id": 1 }, doc! { "$set": { "v": 100 } }, false), 1);
        check(&door, update("readings", doc! { "_id": 1 }, doc! { "$set": { "v": 100 } }, false), 0);
        // From one series to another: out of one bucket, into another.
        check(&door, update("readings", doc! { "_id": 3 }, doc! { "$set": { "s": 9 } }, false), 2);
        check(&door, doc! { "delete": "readings", "deletes": [{ "q": { "s": 1 }, "limit": 0 }] }, 2);
        check(&door, doc! { "delete": "readings", "deletes": [{ "q": { "_id": 3 }, "limit": 1 }] }, 1);
        let inc = |key: &str, day: i64| doc! { "q": { "key": key, "date": at(day * 1440) }, "u": { "$inc": { "approved": 1 } }, "upsert": true };
        let bulk = doc! { "update": "events", "updates": [inc("a", 1), inc("a", 2), inc("b", 1), inc("a", 1)] };
        check(&door, bulk, 2);
        door.finish();
    }
}
