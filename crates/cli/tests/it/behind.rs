//! Commands that would change a rule's collection behind the rule's back are refused with a hint, and change nothing; the same
//! commands on other collections work as ever.

use crate::doors::{At, Door, at_each_door};
use bson::{Document, doc};

at_each_door!(a_rules_collection_is_not_changed_behind_its_back,);

/// What each door answers; the embedded store has neither capped collections nor `applyOps`.
struct Case {
    command: Document,
    embedded: i32,
    real: i32,
}

fn same(command: Document, code: i32) -> Case {
    Case { command, embedded: code, real: code }
}

fn only_real(command: Document, code: i32) -> Case {
    Case { command, embedded: 238, real: code }
}

fn code(door: &Door, command: &Document) -> i32 {
    let reply = door.ask(command.clone());
    reply.get_i32("code").unwrap_or(0)
}

fn apply_rules(door: &Door) {
    door.apply(doc! {
        "customers": { "computed": { "orders": { "count": "orders", "by": "customerId" } } },
        "orders": { "extended_reference": { "customer": { "from": "customers", "by": "customerId", "fields": ["name"] } } },
        "parts": { "extended_reference": { "maker": { "from": "makers", "by": "makerCode", "match": "code", "fields": ["name"] } } },
        "readings": { "bucket": { "into": "hours", "time": "at", "by": ["s"], "every": "hour" } },
        "totals": { "computed": { "n": { "count": "events", "by": "totalId" } } },
    });
    door.must(doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "a" }] });
    door.must(doc! { "insert": "orders", "documents": [{ "_id": 1, "customerId": 1 }] });
    door.must(doc! { "insert": "makers", "documents": [{ "_id": 1, "code": "x", "name": "m" }] });
    door.must(doc! { "insert": "other", "documents": [{ "_id": 1, "v": 1 }] });
}

fn refused(db: &str) -> Vec<Case> {
    let ns = |collection: &str| format!("{db}.{collection}");
    let map = "function() { emit(this._id, 1) }";
    let reduce = "function(key, values) { return 1 }";
    let into = |out: Document| doc! { "mapReduce": "other", "map": map, "reduce": reduce, "out": out };
    let apply = |operation: Document| doc! { "applyOps": [operation] };
    let series = doc! { "timeField": "at" };
    vec![
        only_real(doc! { "convertToCapped": "orders", "size": 10_000 }, 96),
        only_real(doc! { "convertToCapped": "customers", "size": 10_000, "writeConcern": { "w": 1 } }, 96),
        only_real(doc! { "convertToCapped": "hours", "size": 10_000 }, 96),
        only_real(doc! { "convertToCapped": "pleach.catalog", "size": 10_000 }, 73),
        only_real(doc! { "cloneCollectionAsCapped": "other", "toCollection": "totals", "size": 10_000 }, 96),
        only_real(into(doc! { "replace": "orders" }), 96),
        only_real(into(doc! { "merge": "orders", "db": db }), 96),
        only_real(into(doc! { "reduce": "hours" }), 96),
        only_real(doc! { "mapReduce": "other", "map": map, "reduce": reduce, "out": "customers" }, 96),
        only_real(apply(doc! { "op": "i", "ns": ns("orders"), "o": { "_id": 5 } }), 96),
        only_real(apply(doc! { "op": "d", "ns": ns("hours"), "o": { "_id": 5 } }), 96),
        only_real(apply(doc! { "op": "c", "ns": ns("$cmd"), "o": { "drop": "orders" } }), 96),
        only_real(
            apply(doc! { "op": "u", "ns": ns("pleach.catalog"), "o": { "$set": { "v": 1 } }, "o2": { "_id": 1 } }),
            73,
        ),
        same(doc! { "renameCollection": ns("other"), "to": ns("orders"), "dropTarget": true }, 96),
        // Not there yet: what they become must be an ordinary collection.
        same(doc! { "create": "totals", "capped": true, "size": 10_000 }, 96),
        same(doc! { "create": "totals", "viewOn": "other", "pipeline": [] }, 96),
        same(doc! { "create": "totals", "timeseries": series.clone() }, 96),
        // There already: MongoDB's own answer.
        same(doc! { "create": "orders", "viewOn": "other", "pipeline": [] }, 48),
        same(doc! { "create": "orders", "timeseries": series }, 48),
        // Makers are found by their code, which must mean one of them.
        same(doc! { "dropIndexes": "makers", "index": "code_1" }, 96),
        same(doc! { "dropIndexes": "makers", "index": { "code": 1 } }, 96),
        same(doc! { "dropIndexes": "makers", "index": "*" }, 96),
        same(doc! { "collMod": "orders", "expireAfterSeconds": 10 }, 96),
        same(doc! { "createIndexes": "pleach.outbox", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }, 73),
        same(doc! { "dropIndexes": "pleach.outbox", "index": "*" }, 73),
    ]
}

fn a_rules_collection_is_not_changed_behind_its_back(at: At) {
    let door = at.door("behindback");
    apply_rules(&door);
    let listed = || door.rows(doc! { "listCollections": 1, "filter": { "name": { "$ne": "pleach.catalog" } } });
    let before = listed();
    for case in refused(&door.db) {
        let mut command = case.command.clone();
        command.insert("$db", if command.contains_key("renameCollection") { "admin" } else { &door.db });
        let reply = door.client().command(&command).unwrap().document;
        let expected = if door.is_real() { case.real } else { case.embedded };
        assert_eq!(reply.get_i32("code").unwrap_or(0), expected, "{command}: {reply}");
        let text = reply.get_str("errmsg").unwrap();
        assert!(expected != 96 || text.contains("rule"), "{text}");
    }
    assert_eq!(listed(), before);
    // The rules go on.
    door.must(doc! { "update": "customers", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "name": "b" } } }] });
    let orders = door.all("orders");
    assert_eq!(orders[0].get_document("customer").unwrap(), &doc! { "name": "b" });
    // Other indexes and collections are the clients' own.
    let index = doc! { "createIndexes": "makers", "indexes": [{ "key": { "name": 1 }, "name": "name_1" }] };
    door.must(index);
    door.must(doc! { "dropIndexes": "makers", "index": "name_1" });
    door.must(doc! { "dropIndexes": "orders", "index": "*" });
    // A unique index of the client's own serves as well.
    let unique = doc! { "key": { "code": 1 }, "name": "mine", "unique": true };
    let reply = door.ask(doc! { "createIndexes": "makers", "indexes": [unique] });
    if reply.get_f64("ok").unwrap() == 1.0 {
        door.must(doc! { "dropIndexes": "makers", "index": "code_1" });
        assert_eq!(code(&door, &doc! { "dropIndexes": "makers", "index": "mine" }), 96);
    }
    if door.is_real() {
        door.must(doc! { "cloneCollectionAsCapped": "orders", "toCollection": "copied", "size": 10_000 });
        door.must(doc! { "convertToCapped": "other", "size": 10_000 });
        let inline = doc! { "mapReduce": "orders", "map": "function() { emit(1, 1) }", "reduce": "function() { return 1 }", "out": { "inline": 1 } };
        door.must(inline);
        let free = doc! { "op": "i", "ns": format!("{}.free", door.db), "o": { "_id": 5 } };
        door.must(doc! { "create": "free" });
        door.must(doc! { "applyOps": [free] });
    }
    door.finish();
}
