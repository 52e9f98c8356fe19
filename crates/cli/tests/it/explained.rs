//! What `explain` says a write costs is what the write then does: through the wire's `explain`, `{ pleach: "explain" }` and the
//! command line, on both doors.

use crate::doors::{At, Door, at_each_door};
use crate::serving::pleach;
use bson::{Bson, DateTime, Document, doc};
use std::collections::BTreeMap;
use std::process::Command;

at_each_door!(
    what_a_write_costs_is_what_it_writes,
    all_that_a_command_says_counts,
    what_would_fail_is_told_beside_what_would_be_written,
    what_a_server_refuses_is_refused,
    what_a_pipeline_writes_is_counted,
    what_jobs_write_is_counted_too,
    buckets_are_counted_as_they_are_stored,
    fields_of_one_key_are_one_statement,
);

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
    if matches!(verb.as_str(), "update" | "delete" | "findAndModify") && statements == 1 {
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

/// The same for a command of which some statements fail: `failing` are their places.
fn check_failing(door: &Door, command: Document, expected: i64, failing: &[i32]) {
    let places = |errors: &[Bson]| -> Vec<(i64, i64)> {
        let place = |error: &Bson| {
            let error = error.as_document().unwrap();
            (number(&error["index"]), number(&error["code"]))
        };
        errors.iter().map(place).collect()
    };
    let before = everything(door);
    let told = door.must(doc! { "pleach": "explain", "command": command.clone() });
    let foreseen = places(told.get_array("errors").unwrap());
    assert_eq!(written(&told), expected, "{command}: {told}");
    let text = command_line(door, &command, &[]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("statements that would fail:"), "{text}");
    assert_eq!(everything(door), before, "explain changes nothing: {command}");
    let reply = door.ask(command.clone());
    assert_eq!(foreseen, places(reply.get_array("writeErrors").unwrap()), "{command}");
    assert_eq!(
        foreseen.iter().map(|(index, _)| *index).collect::<Vec<_>>(),
        failing.iter().map(|at| i64::from(*at)).collect::<Vec<_>>()
    );
    assert_eq!(changed(door, &before), expected, "{command}");
}

/// What `explain` says is how the command then fails.
fn check_refused(door: &Door, command: Document, code: i32) {
    let told = door.ask(doc! { "pleach": "explain", "command": command.clone() });
    assert_eq!(told.get_i32("code").unwrap_or(0), code, "{command}: {told}");
    let output = command_line(door, &command, &["--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{command}");
    let reply = door.ask(command.clone());
    let statement = reply.get_array("writeErrors").ok().map(|errors| errors[0].as_document().unwrap().clone());
    assert_eq!(statement.as_ref().unwrap_or(&reply).get_i32("code").unwrap_or(0), code, "{command}: {reply}");
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

fn what_a_write_costs_is_what_it_writes(at: At) {
    let door = at.door("explained");
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
    let modify =
        doc! { "findAndModify": "orders", "query": { "_id": 4 }, "update": { "$inc": { "total": 1 } }, "new": true };
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
    check(&door, doc! { "insert": "other", "documents": [{ "a": 1 }, { "a": 2 }, { "_id": 3 }] }, 3);
    check(&door, doc! { "drop": "other" }, 5);
    door.finish();
}

fn shop(door: &Door) {
    door.apply(doc! {
        "customers": { "computed": { "orders": { "count": "orders", "by": "customerId" } } },
        "orders": { "extended_reference": { "customer": { "from": "customers", "by": "customerId", "fields": ["name"] } } },
    });
    let customers: Vec<Document> = (0..4).map(|id| doc! { "_id": id, "name": format!("c{id}") }).collect();
    door.must(doc! { "insert": "customers", "documents": customers });
    let orders: Vec<Document> = (0..12).map(|id| doc! { "_id": id, "customerId": id % 3, "total": id }).collect();
    door.must(doc! { "insert": "orders", "documents": orders });
}

fn all_that_a_command_says_counts(at: At) {
    let door = at.door("explainedwords");
    shop(&door);
    // Of customer 0 there are the orders 0, 3, 6 and 9: the first by this order belongs to another one than without it.
    let sorted = doc! { "findAndModify": "orders", "query": {}, "sort": { "_id": -1 }, "update": { "$set": { "customerId": 3 } } };
    let told = door.must(doc! { "pleach": "explain", "command": sorted.clone() });
    let shown = told.to_string();
    assert!(shown.contains("\"sort\""), "{shown}");
    check(&door, sorted, 3);
    let expr = |field: &str| doc! { "$expr": { "$eq": [field, "$$wanted"] } };
    let with_let = doc! { "update": "customers", "updates": [{ "q": expr("$name"), "u": { "$set": { "name": "x" } } }], "let": { "wanted": "c1" } };
    check(&door, with_let, 5);
    let pipeline = doc! { "update": "customers", "updates": [{ "q": { "_id": 1 }, "u": [{ "$set": { "name": "$$wanted" } }], "c": { "wanted": "y" } }] };
    check(&door, pipeline, 5);
    let deletes = doc! { "delete": "orders", "deletes": [{ "q": expr("$_id"), "limit": 0 }], "let": { "wanted": 11 } };
    check(&door, deletes, 2);
    let modify = doc! { "findAndModify": "orders", "query": expr("$_id"), "remove": true, "let": { "wanted": 10 } };
    check(&door, modify, 2);
    let hinted = doc! { "update": "orders", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "total": 1 } }, "hint": "_id_" }] };
    check(&door, hinted, 1);
    check_refused(
        &door,
        doc! { "update": "orders", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "total": 1 } }, "hint": "none_1" }] },
        2,
    );
    let collated = doc! { "update": "customers", "updates": [{ "q": { "name": "C2" }, "u": { "$set": { "name": "z" } }, "collation": { "locale": "en", "strength": 2 } }] };
    match door.is_real() {
        true => check(&door, collated, 4),
        false => check_refused(&door, collated, 238),
    }
    let reading = doc! { "find": "orders", "filter": expr("$_id"), "let": { "wanted": 10 } };
    door.must(doc! { "pleach": "explain", "command": reading });
    door.finish();
}

fn what_would_fail_is_told_beside_what_would_be_written(at: At) {
    let door = at.door("explainedfailing");
    shop(&door);
    let order = |id: i32| doc! { "_id": id, "customerId": 1 };
    let insert = |documents: Vec<Document>, ordered: bool| doc! { "insert": "orders", "documents": documents, "ordered": ordered };
    // One order and its customer before the duplicate …
    check_failing(&door, insert(vec![order(20), order(1), order(21)], true), 2, &[1]);
    // … and all but the duplicates where the order does not matter.
    check_failing(&door, insert(vec![order(22), order(1), order(23), order(2), order(24)], false), 4, &[1, 3]);
    let other = doc! { "insert": "other", "documents": [{ "_id": 1 }, { "_id": 1 }, { "_id": 2 }], "ordered": false };
    check_failing(&door, other, 2, &[1]);
    let owned = doc! { "update": "customers", "updates": [
        { "q": { "_id": 0 }, "u": { "$set": { "tier": 1 } } }, { "q": { "_id": 1 }, "u": { "$set": { "orders": 7 } } }, { "q": { "_id": 2 }, "u": { "$set": { "tier": 1 } } },
    ] };
    check_failing(&door, owned, 1, &[1]);
    // Where nothing would be written, the error stands alone.
    check_refused(&door, insert(vec![order(1)], true), 11_000);
    door.finish();
}

fn what_a_server_refuses_is_refused(at: At) {
    let door = at.door("explainedrefused");
    shop(&door);
    for (command, code) in [
        (doc! { "frob": "orders" }, 59),
        (doc! { "delete": "orders", "deletes": [{ "q": {} }] }, 40_414),
        (doc! { "delete": "orders", "deletes": [{ "q": {}, "limit": 5 }] }, 9),
        (doc! { "update": "orders", "updates": [] }, 16),
        (doc! { "update": "orders", "updates": [{ "q": {} }] }, 40_414),
        (doc! { "update": "orders", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } }, "mulit": true }] }, 40_415),
        (doc! { "insert": "orders", "documents": [] }, 16),
        (doc! { "insert": "orders", "documents": [{ "_id": 90 }], "orderd": true }, 40_415),
        (doc! { "findAndModify": "orders", "query": {} }, 9),
        (doc! { "drop": "orders" }, 96),
        (doc! { "aggregate": "customers", "pipeline": [{ "$out": "orders" }], "cursor": {} }, 96),
    ] {
        check_refused(&door, command, code);
    }
    door.finish();
}

/// A name that the server answers is none that `explain` does not know.
#[test]
fn every_command_is_known() {
    let serving = crate::serving::Serving::start(&[]);
    let mut client = serving.client();
    for name in server::COMMANDS.iter().flat_map(|command| command.names) {
        let asked = doc! { "pleach": "explain", "command": { *name: "c" }, "$db": "shop" };
        let told = client.command(&asked).unwrap().document;
        assert_ne!(told.get_i32("code").unwrap_or(0), 59, "{name}: {told}");
    }
}

fn what_a_pipeline_writes_is_counted(at: At) {
    let door = at.door("explainedsinks");
    shop(&door);
    let merge = |more: Document| {
        let mut merge = doc! { "into": "orders" };
        merge.extend(more);
        let made =
            doc! { "_id": { "$add": [100, "$_id"] }, "customerId": { "$literal": 3 }, "total": { "$literal": 1 } };
        doc! { "aggregate": "customers", "pipeline": [{ "$project": made }, { "$merge": merge }], "cursor": {} }
    };
    // Four orders and their customer.
    check(&door, merge(doc! {}), 5);
    check(&door, merge(doc! {}), 0);
    check(&door, merge(doc! { "whenMatched": [{ "$set": { "total": 9 } }] }), 4);
    check(&door, merge(doc! { "whenMatched": "keepExisting" }), 0);
    let names = doc! { "aggregate": "orders", "pipeline": [{ "$match": { "_id": { "$lt": 3 } } }, { "$project": { "name": "new" } }, { "$merge": "customers" }], "cursor": {} };
    // Three customers and their twelve orders.
    check(&door, names, 15);
    let told = door.must(doc! { "pleach": "explain", "command": merge(doc! { "whenMatched": "replace" }) });
    assert_eq!(told.get_array("rules").unwrap(), &[Bson::from("orders.customer")], "{told}");
    // Into a collection of no rule.
    let out = |limit: i32| doc! { "aggregate": "orders", "pipeline": [{ "$sort": { "_id": 1 } }, { "$limit": limit }, { "$out": "copied" }], "cursor": {} };
    check(&door, out(5), 5);
    check(&door, out(3), 2);
    check(
        &door,
        doc! { "aggregate": "orders", "pipeline": [{ "$match": { "_id": { "$lt": 3 } } }, { "$merge": "others" }], "cursor": {} },
        3,
    );
    door.finish();
}

/// Deferred work is counted beside, and done afterwards.
fn what_jobs_write_is_counted_too(at: At) {
    let door = at.door("deferred");
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

fn buckets_are_counted_as_they_are_stored(at: At) {
    let door = at.door("explainedbuckets");
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

/// Copies with each other, and with a count; the host is written once.
fn fields_of_one_key_are_one_statement(at: At) {
    let door = at.door("merged");
    let copy = |fields: &[&str]| doc! { "from": "customers", "by": "email", "match": "email", "fields": fields };
    door.apply(doc! { "receipts": {
        "extended_reference": { "customer": copy(&["name"]), "payer.known": copy(&["name"]), "payer.place": copy(&["city"]) },
        "computed": { "payer.count": { "count": "customers", "by": "email", "match": "email" } },
    } });
    door.must(doc! { "insert": "receipts", "documents": [{ "_id": 1, "email": "a@b" }] });
    let ada = doc! { "_id": 1, "email": "a@b", "name": "Ada", "city": "Oslo" };
    let rename = doc! { "q": { "_id": 1 }, "u": { "$set": { "name": "Eva", "city": "Rome" } } };
    for command in
        [doc! { "insert": "customers", "documents": [ada] }, doc! { "update": "customers", "updates": [rename] }]
    {
        let told = door.must(doc! { "pleach": "explain", "command": command.clone() });
        let steps = told.get_array("steps").unwrap().iter().map(|step| step.as_document().unwrap());
        let derived = steps.filter(|step| step.get_str("kind").unwrap() == "derived").count();
        assert_eq!(derived, 1, "{}: {told}", door.at.name());
        door.must(command);
    }
    let receipt = door.all("receipts").remove(0);
    let payer = doc! { "count": 1, "known": { "name": "Eva" }, "place": { "city": "Rome" } };
    let shown = (receipt.get_document("customer").unwrap(), receipt.get_document("payer").unwrap());
    assert_eq!(shown, (&doc! { "name": "Eva" }, &payer), "{}: {receipt}", door.at.name());
    door.finish();
}
